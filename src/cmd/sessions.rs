//! `rewind sessions`: the sessions of this folder, newest first.

use super::{Context, Outcome, words};
use crate::cli;
use crate::error::{Error, Kind, Result};
use crate::format;
use crate::ops::discover::{self, Found};
use crate::ui::json::{self, PathOut, SessionOut, SessionRow};
use crate::ui::text::{Cell, Column, Table, count};
use crate::ui::{Paint, age, path_text};

/// Runs the command.
///
/// # Errors
/// An agent of that name is not known; standard output cannot be written.
pub fn run(ctx: &mut Context<'_>, args: &cli::Sessions) -> Result<Outcome> {
    let agent = args.agent.as_deref();
    if let Some(name) = agent.filter(|a| format::of_agent(a, ctx.env).is_none()) {
        let known: Vec<_> = format::all(ctx.env).iter().map(|f| f.agent()).collect();
        return Err(
            Error::new(Kind::Usage, format!("no agent is called `{name}`"))
                .hint(format!("known are: {}", known.join(", "))),
        );
    }
    ctx.settle_here()?;
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
        none(ctx, args, agent);
        return Ok(Outcome::Done);
    }
    let text = table(ctx, &found, args).text(ctx.ui.style(), ctx.ui.width());
    ctx.print(&text)?;
    if let (false, Some(first)) = (args.all, found.first()) {
        let folder = path_text(&first.card.root.clone().unwrap_or_default());
        let n = count(found.len(), "session", "sessions");
        ctx.ui.say(&format!("{n} of {folder}"));
    }
    Ok(Outcome::Done)
}

fn none(ctx: &mut Context<'_>, args: &cli::Sessions, agent: Option<&str>) {
    let whose = match agent.and_then(|a| format::of_agent(a, ctx.env)) {
        Some(f) => format!("no session of {}", f.title()),
        None => "no session".to_owned(),
    };
    if args.all {
        ctx.ui.say(&format!("{whose} was found"));
        return;
    }
    let place = match &ctx.global.workspace {
        Some(folder) => path_text(&discover::canonical(&ctx.env.cwd.join(folder))),
        None => "this folder or one above it".to_owned(),
    };
    ctx.ui.say(&format!("{whose} was recorded in {place}"));
    ctx.ui
        .hint("`rewind sessions --all` lists those of all folders");
}

/// All sessions of one folder have the same, so it is a column only where they may differ.
fn table(ctx: &Context<'_>, found: &[Found], args: &cli::Sessions) -> Table {
    let mut columns = vec![
        Column::Left("session"),
        Column::Left("agent"),
        Column::Left("age"),
    ];
    if args.all {
        columns.push(Column::Left("workspace"));
    }
    columns.push(Column::Fitted("first prompt"));
    let mut table = Table::new(columns);
    for f in found {
        let first = f.card.prompt.as_deref().map(words::first_line);
        let mut row = vec![
            Cell::painted(&f.card.id, Paint::Place),
            Cell::new(f.format.agent()),
            Cell::new(f.modified.map_or("?".to_owned(), |m| age(m, ctx.env.now))),
        ];
        if args.all {
            let root = f.card.root.as_deref();
            row.push(Cell::new(root.map_or("?".to_owned(), path_text)));
        }
        row.push(Cell::new(first.unwrap_or_default()));
        table.row(row);
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
