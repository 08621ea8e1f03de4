//! `rewind sessions`: the sessions of this folder, newest first; and the agents that are known and not read.

use std::path::PathBuf;

use super::{Context, Outcome, words};
use crate::cli;
use crate::error::{Error, Kind, Result};
use crate::format;
use crate::format::described::{self, Fault};
use crate::format::named::{self, Named};
use crate::ops::discover::{self, Found};
use crate::ops::overview::{self, Overview};
use crate::ui::json::{self, FaultOut, NamedOut, PathOut, SessionOut, SessionRow};
use crate::ui::text::{Cell, Column, Table, count, size};
use crate::ui::{Paint, age, path_text};

/// Runs the command.
///
/// # Errors
/// An agent of that name is not known, or not supported; standard output cannot be written.
pub fn run(ctx: &mut Context<'_>, args: &cli::Sessions) -> Result<Outcome> {
    let agent = args.agent.as_deref();
    known(ctx, agent)?;
    ctx.settle_here()?;
    let mut found = match (args.all, &ctx.global.workspace) {
        (true, _) => discover::all(ctx.env, agent),
        (false, Some(folder)) => discover::of_workspace(ctx.env, &ctx.env.cwd.join(folder), agent),
        (false, None) => discover::here(ctx.env, agent),
    };
    if let Some(since) = args.since.map(|w| w.before(ctx.env.now)) {
        // One whose age is not known may be newer.
        found.retain(|f| f.modified.is_none_or(|m| m >= since));
    }
    let named = match agent {
        None => named::seen(ctx.env),
        Some(_) => Vec::new(),
    };
    let all = overview::of(found, ctx.env);
    if ctx.json() {
        let sessions = json::Sessions {
            schema: "rewind.sessions/1",
            sessions: all.iter().map(row).collect(),
            unsupported: named.iter().map(named_out).collect(),
            faults: described::faults(ctx.env).iter().map(fault_out).collect(),
        };
        tell_faults(ctx);
        ctx.print_json(&sessions)?;
        return Ok(Outcome::Done);
    }
    if all.is_empty() {
        none(ctx, args, agent);
    } else {
        let text = table(ctx, &all, args).text(ctx.ui.style(), ctx.ui.width());
        ctx.print(&text)?;
    }
    if let (false, Some(first)) = (args.all, all.first()) {
        let folder = path_text(&first.found.card.root.clone().unwrap_or_default());
        let n = count(all.len(), "session", "sessions");
        ctx.ui.say(&format!("{n} of {folder}"));
    }
    if args.all || all.is_empty() {
        tell_named(ctx, &named);
    }
    tell_faults(ctx);
    Ok(Outcome::Done)
}

/// A description with a mistake in it hides an agent's sessions, so it is said every time.
fn tell_faults(ctx: &mut Context<'_>) {
    for Fault { path, why } in described::faults(ctx.env) {
        let path = path_text(path);
        ctx.ui.warn(&format!("`{path}` is left out: {why}"));
    }
}

/// # Errors
/// [`Kind::Usage`] for an agent that nobody knows, [`Kind::Unsupported`] for one that is only known.
pub fn known(ctx: &Context<'_>, agent: Option<&str>) -> Result<()> {
    let Some(name) = agent.filter(|a| format::of_agent(a, ctx.env).is_none()) else {
        return Ok(());
    };
    if let Some(named) = Named::of_agent(name) {
        return Err(Error::new(Kind::Unsupported, named.sentence()).hint(named.instead));
    }
    let mut faults = described::faults(ctx.env).iter();
    if let Some(fault) = faults.find(|f| f.path.file_stem().is_some_and(|s| s == name)) {
        return Err(
            Error::new(Kind::Usage, format!("`{name}` is not described well"))
                .path(&fault.path, fault.why.clone())
                .hint("`man rewind-formats` tells what a description says"),
        );
    }
    let known: Vec<_> = format::all(ctx.env).iter().map(|f| f.agent()).collect();
    Err(
        Error::new(Kind::Usage, format!("no agent is called `{name}`"))
            .hint(format!("known are: {}", known.join(", "))),
    )
}

fn none(ctx: &mut Context<'_>, args: &cli::Sessions, agent: Option<&str>) {
    let whose = match agent.and_then(|a| format::of_agent(a, ctx.env)) {
        Some(f) => format!("no session of {}", f.title()),
        None => "no session".to_owned(),
    };
    let since = if args.since.is_some() {
        " since then"
    } else {
        ""
    };
    if args.all {
        ctx.ui.say(&format!("{whose} was found{since}"));
        return;
    }
    let place = match &ctx.global.workspace {
        Some(folder) => path_text(&discover::canonical(&ctx.env.cwd.join(folder))),
        None => "this folder or one above it".to_owned(),
    };
    ctx.ui
        .say(&format!("{whose} was recorded in {place}{since}"));
    ctx.ui
        .hint("`rewind sessions --all` lists those of all folders");
}

fn tell_named(ctx: &mut Context<'_>, named: &[(&'static Named, PathBuf)]) {
    for (n, path) in named {
        let place = path_text(path);
        ctx.ui.say(&format!("{} ({place})", n.sentence()));
        ctx.ui.hint(n.instead);
    }
}

/// All sessions of one folder have the same, so it is a column only where they may differ.
fn table(ctx: &Context<'_>, all: &[Overview], args: &cli::Sessions) -> Table {
    let mut columns = vec![
        Column::Left("session"),
        Column::Left("agent"),
        Column::Left("age"),
        Column::Right("turns"),
        Column::Right("size"),
    ];
    if args.all {
        columns.push(Column::Left("workspace"));
    }
    columns.push(Column::Fitted("first prompt"));
    let mut table = Table::new(columns);
    let short = ctx.ui.width().is_some_and(|w| w < WIDE);
    let least = if short { least(all) } else { usize::MAX };
    for o in all {
        table.row(cells(ctx, o, args.all, least));
    }
    table
}

/// From so many columns on, ids are shown whole.
const WIDE: usize = 120;

fn cells(ctx: &Context<'_>, o: &Overview, all: bool, least: usize) -> Vec<Cell> {
    let f = &o.found;
    let id: String = f.card.id.chars().take(least).collect();
    let age = match (o.live, f.modified) {
        (Some(true), _) => Cell::painted("live", Paint::Added),
        (_, Some(m)) => Cell::new(age(m, ctx.env.now)),
        (_, None) => Cell::new("?"),
    };
    let mut row = vec![
        Cell::painted(id, Paint::Place),
        Cell::new(f.format.agent()),
        age,
        Cell::new(o.turns.map_or("?".to_owned(), |n| n.to_string())),
        Cell::new(size(f.len)),
    ];
    if all {
        let root = f.card.root.as_deref();
        row.push(Cell::new(root.map_or("?".to_owned(), path_text)));
    }
    let first = f.card.prompt.as_deref().map(words::first_line);
    row.push(Cell::new(first.unwrap_or_default()));
    row
}

/// How many characters tell the ids apart; those that begin with the time need more to be safe against the next one.
fn least(all: &[Overview]) -> usize {
    let mut ids: Vec<&str> = all.iter().map(|o| o.found.card.id.as_str()).collect();
    ids.sort_unstable();
    let same = |a: &str, b: &str| a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let pairs = ids.iter().zip(ids.iter().skip(1));
    let most = pairs.filter(|(a, b)| a != b).map(|(a, b)| same(a, b));
    (most.max().unwrap_or_default() + 1).max(13)
}

fn row(o: &Overview) -> SessionRow {
    let f: &Found = &o.found;
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
        turns: o.turns,
        live: o.live,
    }
}

fn named_out((n, path): &(&'static Named, PathBuf)) -> NamedOut {
    NamedOut {
        agent: n.agent,
        path: PathOut::new(path),
        why: n.why,
        instead: n.instead,
    }
}

fn fault_out(f: &Fault) -> FaultOut {
    FaultOut {
        path: PathOut::new(&f.path),
        why: f.why.clone(),
    }
}
