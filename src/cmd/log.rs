//! `rewind log`: the operations of this folder, oldest first.

use std::collections::BTreeSet;

use super::{Context, Outcome, undo, words};
use crate::cli;
use crate::error::{Error, Result};
use crate::ops::journal::{Journal, Operation, Status};
use crate::ops::plan::Act;
use crate::ops::prune::removals;
use crate::ui::json::{self, OperationRow, PathOut};
use crate::ui::text::{Cell, Column, Table, count, size};
use crate::ui::{Paint, age, path_text};

/// Runs the command.
///
/// # Errors
/// The journal cannot be read.
pub fn run(ctx: &mut Context<'_>, args: &cli::Log) -> Result<Outcome> {
    if args.prune {
        return prunes(ctx, args.last);
    }
    let root = undo::root(ctx)?;
    ctx.settle_to_look(&root)?;
    let journal = Journal::open(ctx.env.state.as_deref(), &root)?;
    let log = journal.log()?;
    let skip = args
        .last
        .map_or(0, |n| log.operations.len().saturating_sub(n));
    let gone = taken_back(&log.operations);
    let shown = log.operations.iter().skip(skip);
    let rows: Vec<OperationRow> = shown.map(|o| row(o, &gone)).collect();
    if ctx.json() {
        ctx.print_json(&json::Log {
            schema: "rewind.log/1",
            root: PathOut::new(root.path()),
            operations: rows,
        })?;
        return Ok(Outcome::Done);
    }
    if rows.is_empty() {
        let folder = path_text(root.path());
        ctx.ui.say(&format!("no rewind was done in {folder}"));
        return Ok(Outcome::Done);
    }
    let text = table(ctx, &rows).text(ctx.ui.style(), ctx.ui.width());
    ctx.print(&text)?;
    if !log.spoiled.is_empty() {
        let n = count(log.spoiled.len(), "line", "lines");
        ctx.ui.warn(&format!(
            "{n} of the journal cannot be read and count for nothing"
        ));
    }
    Ok(Outcome::Done)
}

/// What was pruned, oldest first.
fn prunes(ctx: &mut Context<'_>, last: Option<usize>) -> Result<Outcome> {
    let (mut all, spoiled) = match &ctx.env.state {
        None => (Vec::new(), 0),
        Some(state) => removals::read(state).map_err(|e| {
            Error::io(
                "the record of prunes cannot be read",
                state.join(removals::FILE),
                e,
            )
        })?,
    };
    let skip = last.map_or(0, |n| all.len().saturating_sub(n));
    all.drain(..skip);
    if ctx.json() {
        ctx.print_json(&json::Prunes {
            schema: "rewind.prunes/1",
            removals: all.iter().map(removal).collect(),
        })?;
        return Ok(Outcome::Done);
    }
    let mut table = Table::new([
        Column::Left("age"),
        Column::Right("freed"),
        Column::Right("removed"),
        Column::Fitted("place"),
    ]);
    for r in &all {
        let at = crate::format::time(&r.at);
        table.row([
            Cell::new(at.map_or("?".to_owned(), |at| age(at, ctx.env.now))),
            Cell::new(size(r.freed)),
            Cell::new(r.what.len().to_string()),
            Cell::new(&r.path),
        ]);
    }
    if all.is_empty() {
        ctx.ui.say("nothing was pruned yet");
    } else {
        let text = table.text(ctx.ui.style(), ctx.ui.width());
        ctx.print(&text)?;
    }
    if spoiled > 0 {
        let n = count(spoiled, "line", "lines");
        ctx.ui.warn(&format!("{n} of the record cannot be read"));
    }
    Ok(Outcome::Done)
}

fn removal(r: &removals::Removal) -> json::RemovalOut {
    let what = r.what.iter().map(|w| json::RemovedOut {
        checkpoint: w.checkpoint,
        operation: w.operation.clone(),
        reason: w.why.clone(),
    });
    json::RemovalOut {
        at: r.at.clone(),
        path: r.path.clone(),
        agent: r.agent.clone(),
        session: r.session.clone(),
        freed: r.freed,
        removed: what.collect(),
    }
}

fn table(ctx: &Context<'_>, rows: &[OperationRow]) -> Table {
    let mut table = Table::new([
        Column::Left("operation"),
        Column::Left("age"),
        Column::Left("act"),
        Column::Left("status"),
        Column::Right("files"),
        Column::Left("scope"),
        Column::Fitted("point"),
    ]);
    for r in rows {
        let at = crate::format::time(&r.at);
        let point = if let Some(of) = &r.of {
            format!("before {of}")
        } else {
            let first = words::first_line(&r.prompt);
            format!("before turn {} of {}: {first}", r.turn, r.agent)
        };
        table.row([
            Cell::painted(&r.operation, Paint::Place),
            Cell::new(at.map_or("?".to_owned(), |at| age(at, ctx.env.now))),
            Cell::new(r.act),
            Cell::new(r.status),
            Cell::new(r.files.to_string()),
            Cell::new(r.scope),
            Cell::new(point),
        ]);
    }
    table
}

/// The operations that hold no more: another one took them back, and none took that back.
fn taken_back(operations: &[Operation]) -> BTreeSet<&str> {
    let mut gone = BTreeSet::new();
    for operation in operations.iter().rev() {
        let holds = operation.status == Status::Committed && !gone.contains(operation.id.as_str());
        if let (true, Act::Undo(of) | Act::Redo(of)) = (holds, &operation.act) {
            gone.insert(of.as_str());
        }
    }
    gone
}

fn row(operation: &Operation, gone: &BTreeSet<&str>) -> OperationRow {
    let (act, of) = match &operation.act {
        Act::Restore => ("restore", None),
        Act::Undo(of) => ("undo", Some(of.clone())),
        Act::Redo(of) => ("redo", Some(of.clone())),
    };
    OperationRow {
        operation: operation.id.clone(),
        act,
        of,
        at: operation.at.clone(),
        status: match operation.status {
            Status::Committed if gone.contains(operation.id.as_str()) => "undone",
            Status::Committed => "done",
            Status::Aborted => "aborted",
            Status::Pruned => "pruned",
            Status::Prepared | Status::Committing => "open",
        },
        scope: words::scope(operation.scope),
        agent: operation.point.agent.clone(),
        session: operation.point.session.clone(),
        turn: operation.point.turn,
        prompt: operation.point.prompt.clone(),
        files: operation.steps,
    }
}
