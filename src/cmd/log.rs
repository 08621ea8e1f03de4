//! `rewind log`: the operations of this folder, oldest first.

use super::{Context, Outcome, undo, words};
use crate::cli;
use crate::error::Result;
use crate::ops::journal::{Journal, Operation, Status};
use crate::ops::plan::Act;
use crate::ui::json::{self, OperationRow, PathOut};
use crate::ui::text::{Cell, Column, Table, count};
use crate::ui::{Paint, age};

/// Runs the command.
///
/// # Errors
/// The journal cannot be read.
pub fn run(ctx: &mut Context<'_>, args: &cli::Log) -> Result<Outcome> {
    let root = undo::root(ctx)?;
    ctx.settle(&root)?;
    let journal = Journal::open(ctx.env.state.as_deref(), &root)?;
    let log = journal.log()?;
    let skip = args
        .last
        .map_or(0, |n| log.operations.len().saturating_sub(n));
    let rows: Vec<OperationRow> = log.operations.iter().skip(skip).map(row).collect();
    if ctx.json() {
        ctx.print_json(&json::Log {
            schema: "rewind.log/1",
            root: PathOut::new(root.path()),
            operations: rows,
        })?;
        return Ok(Outcome::Done);
    }
    if rows.is_empty() {
        ctx.ui.say("no rewind was done in this folder");
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

fn table(ctx: &Context<'_>, rows: &[OperationRow]) -> Table {
    let mut table = Table::new([
        Column::Left("operation"),
        Column::Left("age"),
        Column::Left("what"),
        Column::Left("status"),
        Column::Right("files"),
        Column::Fitted("to before"),
    ]);
    for r in rows {
        let at = crate::format::time(&r.at);
        let first = r.prompt.trim_start().lines().next().unwrap_or_default();
        let what = match &r.of {
            Some(of) => format!("{} {of}", r.act),
            None => format!("{} {}", r.act, r.scope),
        };
        table.row([
            Cell::painted(&r.operation, Paint::Place),
            Cell::new(at.map_or("?".to_owned(), |at| age(at, ctx.env.now))),
            Cell::new(what),
            Cell::new(r.status),
            Cell::new(r.files.to_string()),
            Cell::new(format!("turn {} of {}: {first}", r.turn, r.agent)),
        ]);
    }
    table
}

fn row(operation: &Operation) -> OperationRow {
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
            Status::Committed => "done",
            Status::Aborted => "aborted",
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
