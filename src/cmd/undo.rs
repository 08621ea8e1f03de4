//! `rewind undo` and `rewind redo`: the inverse of an operation, through the same plan and the same engine.

use std::path::Path;

use super::carry::{Ask, carry_out, may_ask, next_steps};
use super::{Context, Outcome};
use crate::cli;
use crate::env::Env;
use crate::error::{Error, Kind, Result};
use crate::ops::journal::Journal;
use crate::ops::{Root, gather, undo};

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Undo,
    Redo,
}

/// Runs `undo`.
///
/// # Errors
/// Nothing to undo, conflicts, or what `ops::apply` says.
pub fn undo(ctx: &mut Context<'_>, args: &cli::Step) -> Result<Outcome> {
    step(ctx, args, Way::Undo)
}

/// Runs `redo`.
///
/// # Errors
/// Nothing to redo, conflicts, or what `ops::apply` says.
pub fn redo(ctx: &mut Context<'_>, args: &cli::Step) -> Result<Outcome> {
    step(ctx, args, Way::Redo)
}

fn step(ctx: &mut Context<'_>, args: &cli::Step, way: Way) -> Result<Outcome> {
    may_ask(ctx, args.yes || args.dry_run)?;
    let root = root(ctx)?;
    let journal = Journal::open(ctx.env.state.as_deref(), &root)?;
    ctx.settle(&root)?;
    let id = match &args.operation {
        Some(id) => id.clone(),
        None => newest(&journal, way)?,
    };
    let how = undo::How {
        on: args.on_conflict,
        scope: args.scope,
    };
    let plan = match way {
        Way::Undo => undo::plan_undo(&journal, &root, &id, how)?,
        Way::Redo => undo::plan_redo(&journal, &root, &id, how)?,
    };
    let ask = Ask {
        yes: args.yes,
        dry_run: args.dry_run,
        on_conflict: args.on_conflict,
        print_prompt: false,
    };
    let outcome = carry_out(ctx, &plan, &root, ask, None)?;
    if !args.dry_run {
        next_steps(ctx, &plan, None);
    }
    Ok(outcome)
}

fn newest(journal: &Journal, way: Way) -> Result<String> {
    let (target, word) = match way {
        Way::Undo => (journal.undo_target()?, "undo"),
        Way::Redo => (journal.redo_target()?, "redo"),
    };
    target.map(|o| o.id).ok_or_else(|| {
        Error::new(
            Kind::NotFound,
            format!("there is nothing to {word} in this folder"),
        )
        .hint("`rewind log` lists what was done here")
    })
}

/// The folder whose operations are meant: the one named, else the working folder or the nearest above it that has a
/// journal.
///
/// # Errors
/// It is not there.
pub fn root(ctx: &Context<'_>) -> Result<Root> {
    root_of(ctx.env, ctx.global.workspace.as_deref())
}

/// As [`root()`], where there are no streams.
///
/// # Errors
/// It is not there.
pub fn root_of(env: &Env, workspace: Option<&Path>) -> Result<Root> {
    if let Some(named) = workspace {
        return gather::open_root(&env.cwd.join(named));
    }
    // Without a place for a journal no folder has one.
    let above = env.state.iter().flat_map(|_| env.cwd.ancestors());
    for folder in above {
        let root = gather::open_root(folder)?;
        let journal = Journal::open(env.state.as_deref(), &root)?;
        if journal.folder().is_dir() {
            return Ok(root);
        }
    }
    gather::open_root(&env.cwd)
}
