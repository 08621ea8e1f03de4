//! `rewind list`: the turns of a session, newest last.

use std::collections::BTreeMap;

use super::words;
use super::{Context, Outcome};
use crate::cli;
use crate::error::Result;
use crate::model::session::{Session, Turn};
use crate::ops::coverage::{self, Coverage, Covered, Known};
use crate::ui::json::{self, FileOut, GapOut, PathOut, SessionOut, TurnOut, TurnRow, WarningOut};
use crate::ui::text::{Cell, Column, Table, count};
use crate::ui::{Paint, age};

/// Runs the command.
///
/// # Errors
/// The session cannot be found or read.
pub fn run(ctx: &mut Context<'_>, args: &cli::List) -> Result<Outcome> {
    let read = ctx.read(args.of.as_deref())?;
    // Whatever a killed run left is settled before anything is shown of the folder; a session whose folder is gone is
    // listed all the same.
    if let Ok(root) = read.root(ctx.env, ctx.global.workspace.as_deref()) {
        ctx.settle(&root)?;
    }
    let session = &read.session;
    let skip = args
        .last
        .map_or(0, |n| session.turns.len().saturating_sub(n));
    let turns = session.turns.get(skip..).unwrap_or_default();
    let covered = match turns.first() {
        Some(first) => {
            let calls = read.calls(first.no, ctx.env)?;
            coverage::of(session, &calls, &read.checkpoints()?)
        }
        None => BTreeMap::new(),
    };
    if ctx.json() {
        ctx.print_json(&list(session, turns, &covered))?;
        return Ok(Outcome::Done);
    }
    if turns.is_empty() {
        ctx.ui.say(&format!(
            "{} session `{}` has no turns",
            session.agent, session.id
        ));
        return Ok(Outcome::Done);
    }
    let text = table(ctx, turns, &covered).text(ctx.ui.style(), ctx.ui.width());
    ctx.print(&text)?;
    notes(ctx, session);
    Ok(Outcome::Done)
}

/// What a person should know beside the turns.
fn notes(ctx: &mut Context<'_>, session: &Session) {
    ctx.ui.say(&format!(
        "{} session `{}`, {}",
        session.agent,
        session.id,
        count(session.turns.len(), "turn", "turns")
    ));
    if session.abandoned > 0 {
        let n = count(session.abandoned as usize, "turn", "turns");
        ctx.ui
            .say(&format!("{n} of abandoned branches are not listed"));
    }
    for w in session.warnings.all() {
        let words = words::oddity_text(w.oddity, w.count);
        ctx.ui
            .warn(&format!("{words}, first at byte {}", w.first.1));
    }
}

fn table(ctx: &Context<'_>, turns: &[Turn], covered: &BTreeMap<u32, Covered>) -> Table {
    let mut table = Table::new([
        Column::Right("turn"),
        Column::Left("id"),
        Column::Left("age"),
        Column::Right("files"),
        Column::Left("covered"),
        Column::Fitted("prompt"),
    ]);
    let none = Covered::default();
    for turn in turns {
        let covered = covered.get(&turn.no).unwrap_or(&none);
        let files = match covered.files.len() {
            0 => String::new(),
            n => n.to_string(),
        };
        let (mark, paint) = mark(covered);
        let id: String = turn.key.chars().take(8).collect();
        table.row([
            Cell::new(turn.no.to_string()),
            Cell::painted(id, Paint::Place),
            Cell::new(turn.at.map_or("?".to_owned(), |at| age(at, ctx.env.now))),
            Cell::new(files),
            Cell::painted(mark, paint),
            Cell::new(prompt(turn)),
        ]);
    }
    table
}

/// The first line of the prompt, with what else is worth knowing of the turn.
fn prompt(turn: &Turn) -> String {
    let first = turn
        .prompt
        .trim_start()
        .lines()
        .next()
        .unwrap_or("(no words)");
    let mut text = first.to_owned();
    if turn.interrupted {
        text.push_str(" (interrupted)");
    }
    if turn.compacted {
        text.insert_str(0, "(compacted) ");
    }
    text
}

fn mark(covered: &Covered) -> (&'static str, Paint) {
    let shell = covered
        .gaps
        .iter()
        .any(|g| g.kind == crate::model::edit::GapKind::Shell);
    let unknown = covered.files.iter().any(|f| f.known == Known::Unknown);
    match covered.coverage() {
        Coverage::None => ("", Paint::Plain),
        Coverage::Full => ("all", Paint::Plain),
        Coverage::Partial if shell && !unknown => ("not the shell", Paint::Warning),
        Coverage::Partial => ("in part", Paint::Warning),
    }
}

fn list(session: &Session, turns: &[Turn], covered: &BTreeMap<u32, Covered>) -> json::List {
    let none = Covered::default();
    json::List {
        schema: "rewind.list/1",
        session: session_out(session),
        total: session.turns.len(),
        abandoned: session.abandoned,
        turns: turns
            .iter()
            .map(|t| row(t, covered.get(&t.no).unwrap_or(&none)))
            .collect(),
        warnings: session
            .warnings
            .all()
            .iter()
            .map(|w| WarningOut {
                kind: words::oddity(w.oddity),
                count: w.count,
                offset: w.first.1,
            })
            .collect(),
    }
}

/// A session as the JSON of every command names it.
#[must_use]
pub fn session_out(session: &Session) -> SessionOut {
    SessionOut {
        agent: session.agent.to_owned(),
        id: session.id.clone(),
        path: PathOut::new(session.path()),
        workspace: session
            .root
            .as_deref()
            .map(|r| r.to_string_lossy().into_owned()),
    }
}

fn row(turn: &Turn, covered: &Covered) -> TurnRow {
    TurnRow {
        turn: TurnOut {
            turn: turn.no,
            id: turn.key.clone(),
            at: turn.at.map(json::time),
            prompt: turn.prompt.clone(),
            kind: words::turn_kind(turn.kind),
            interrupted: turn.interrupted,
            compacted: turn.compacted,
        },
        files: covered
            .files
            .iter()
            .map(|f| FileOut {
                path: PathOut::new(&f.path),
                known: words::known(f.known),
                source: words::source(f.source),
            })
            .collect(),
        coverage: words::coverage(covered.coverage()),
        gaps: covered.gaps.iter().map(gap_out).collect(),
    }
}

/// A gap as the JSON of every command names it.
#[must_use]
pub fn gap_out(gap: &crate::model::edit::Gap) -> GapOut {
    GapOut {
        turn: gap.turn,
        kind: words::gap(gap.kind),
        detail: gap.detail.clone(),
    }
}
