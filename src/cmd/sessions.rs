//! `rewind sessions`: the sessions of this folder, newest first.

use super::{Context, Outcome, undo};
use crate::cli;
use crate::error::{Error, Kind, Result};
use crate::format;
use crate::ops::discover::{self, Found};
use crate::ui::json::{self, PathOut, SessionOut, SessionRow};
use crate::ui::text::{Cell, Column, Table};
use crate::ui::{Paint, age};

/// Runs the command.
///
/// # Errors
/// An agent of that name is not known; standard output cannot be written.
pub fn run(ctx: &mut Context<'_>, args: &cli::Sessions) -> Result<Outcome> {
    let agent = args.agent.as_deref();
    if let Some(name) = agent.filter(|a| format::of_agent(a).is_none()) {
        let known: Vec<_> = format::ALL.iter().map(|f| f.agent()).collect();
        return Err(
            Error::new(Kind::Usage, format!("no agent is called `{name}`"))
                .hint(format!("known are: {}", known.join(", "))),
        );
    }
    let root = undo::root(ctx)?;
    ctx.settle(&root)?;
    let found = match (args.all, &ctx.global.workspace) {
        (true, _) => discover::all(ctx.env, agent),
        (false, Some(folder)) => discover::of_workspace(ctx.env, &ctx.env.cwd.join(folder), agent),
        (false, None) => discover::here(ctx.env, agent),
    };
    if ctx.json() {
        let sessions = json::Sessions {
            schema: "rewind.sessions/1",
            sessions: found.iter().map(row).collect(),
        };
        ctx.print_json(&sessions)?;
        return Ok(Outcome::Done);
    }
    if found.is_empty() {
        ctx.ui
            .say("no session was recorded in this folder or one above it");
        ctx.ui
            .hint("see those of all folders with `rewind sessions --all`");
        return Ok(Outcome::Done);
    }
    let text = table(ctx, &found).text(ctx.ui.style(), ctx.ui.width());
    ctx.print(&text)?;
    Ok(Outcome::Done)
}

fn table(ctx: &Context<'_>, found: &[Found]) -> Table {
    let mut table = Table::new([
        Column::Left("session"),
        Column::Left("agent"),
        Column::Left("age"),
        Column::Left("workspace"),
        Column::Fitted("first prompt"),
    ]);
    for f in found {
        let root = f
            .card
            .root
            .as_deref()
            .map_or("?".into(), |r| r.to_string_lossy());
        let first = f.card.prompt.as_deref().and_then(|p| p.lines().next());
        table.row([
            Cell::painted(&f.card.id, Paint::Place),
            Cell::new(f.format.agent()),
            Cell::new(f.modified.map_or("?".to_owned(), |m| age(m, ctx.env.now))),
            Cell::new(root),
            Cell::new(first.unwrap_or_default()),
        ]);
    }
    table
}

fn row(f: &Found) -> SessionRow {
    SessionRow {
        session: SessionOut {
            agent: f.format.agent().to_owned(),
            id: f.card.id.clone(),
            path: PathOut::new(&f.path),
            workspace: f
                .card
                .root
                .as_deref()
                .map(|r| r.to_string_lossy().into_owned()),
        },
        prompt: f.card.prompt.clone(),
        started: f.card.at.map(json::time),
        modified: f.modified.map(json::time),
        size: f.len,
    }
}
