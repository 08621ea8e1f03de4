//! Finishing or reverting an operation that a killed run left open. Nothing is believed but what stands on the disk:
//! each path is looked at and is the old one, the new one, or neither. Every act here may itself be killed and done
//! again.
//!
//! Forward when every path is new already or its new bytes stand ready; back otherwise. A path that is neither was
//! changed by somebody since: it is left alone and named.

mod folders;
mod saved;
mod session;
mod steps;

use std::path::PathBuf;

pub(crate) use folders::{remove_folders, sync_names};
pub(crate) use saved::keep_saved;

use self::folders::{make_folders_again, remove_empty};
use self::saved::{drop_saved, part};
use self::steps::{Now, back, look, now_at, sweep};
use super::apply::place::Place;
use super::apply::{self, Context, each};
use super::journal::{Event, Held, Record, Status, StepRecord};
use crate::error::{Error, Kind, Result};
use crate::fsx::lock::Lock;
use crate::fsx::tree::{FileKind, Folders};

/// Paths that were left as they are, each with a few words.
pub(crate) type Left = Vec<(PathBuf, String)>;

/// How an open operation was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// It is done now.
    Finished,
    /// All is as before it.
    Reverted,
}

/// An operation that a killed run had left open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// Its id.
    pub id: String,
    /// What became of it.
    pub close: Close,
    /// Paths that somebody changed since, or whose bytes are gone: left as they are.
    pub left: Vec<(PathBuf, String)>,
}

/// Finishes or reverts what a killed run left open; every command starts with this. Makes nothing when there is no
/// journal.
///
/// # Errors
/// [`Kind::Busy`] when another run is at work; otherwise the disk refuses, and the operation stays open.
pub fn recover(ctx: &Context<'_>) -> Result<Option<Recovered>> {
    // Most runs have nothing to recover: they must not even take the lock.
    let log = ctx.journal.log()?;
    let idle = log.open().next().is_none() && log.newer.is_none();
    if idle && !ctx.journal.is_filling()? {
        return Ok(None);
    }
    let Some(held) = ctx.journal.hold_existing(ctx.disk)? else {
        return Ok(None);
    };
    open_operations(ctx, &held)
}

/// Recovers under the lock that is held.
pub(crate) fn open_operations(ctx: &Context<'_>, held: &Held) -> Result<Option<Recovered>> {
    let log = ctx.journal.log()?;
    if let Some(newer) = log.newer {
        return Err(Error::new(
            Kind::Unsupported,
            "the journal was written by a newer rewind",
        )
        .path(ctx.journal.folder(), format!("holds `{newer}`"))
        .hint("use that version here"));
    }
    held.sweep(ctx.disk)?;
    let mut last = None;
    for operation in log.open() {
        ctx.disk.reach("recovering");
        let record = ctx.journal.record(operation)?;
        let recovered = one(ctx, held, &record, operation.status).map_err(|e| {
            e.changed("an earlier rewind that was stopped is still open; nothing else was begun")
        })?;
        ctx.disk.reach("recovered");
        last = Some(recovered);
    }
    Ok(last)
}

fn one(ctx: &Context<'_>, held: &Held, record: &Record, status: Status) -> Result<Recovered> {
    let _locks: Vec<Lock> = record
        .session
        .iter()
        .map(|s| ctx.journal.hold_session(ctx.disk, &s.path))
        .collect::<Result<_>>()?;
    let folders = Folders::new(ctx.root);
    let place = Place {
        disk: ctx.disk,
        folders: &folders,
    };
    for step in &record.session {
        apply::session::settle_aside(ctx.disk, step)?;
    }
    let forward = status == Status::Committing && can_finish(record, place)?;
    let (close, left) = if forward {
        (Close::Finished, finish(ctx, held, record)?)
    } else {
        (
            Close::Reverted,
            revert(ctx, held, record, (Came::Somewhere, "the run was stopped"))?,
        )
    };
    Ok(Recovered {
        id: record.id.clone(),
        close,
        left,
    })
}

fn can_finish(record: &Record, place: Place<'_>) -> Result<bool> {
    let ready = each::map(&record.steps, |_, step| {
        if now_at(step, place)?.0 != Now::Old {
            return Ok(true);
        }
        match &step.stage {
            Some(stage) if step.after.kind == FileKind::File => {
                Ok(look(place, stage)?.same_bytes(&step.after))
            }
            _ => Ok(true),
        }
    })?;
    if ready.contains(&false) {
        return Ok(false);
    }
    for step in &record.session {
        if !session::can_finish(step)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Does what is not done yet.
fn finish(ctx: &Context<'_>, held: &Held, record: &Record) -> Result<Left> {
    let folders = Folders::new(ctx.root);
    let place = Place {
        disk: ctx.disk,
        folders: &folders,
    };
    let mut left = Left::new();
    let each = each::map(&record.steps, |_, step| {
        let (now, seen) = now_at(step, place)?;
        if now == Now::Old {
            let step = StepRecord {
                before: seen,
                ..step.clone()
            };
            apply::forward(&step, place)?;
            return Ok(None);
        }
        sweep(ctx, place, record, (step, now))
    })?;
    left.extend(each.into_iter().flatten());
    remove_folders(place, record)?;
    for step in &record.session {
        left.extend(session::finish(ctx, place, record, step)?);
    }
    sync_names(ctx, place, record)?;
    if !left.is_empty() {
        part(ctx, place, record)?;
    }
    let words = words_of(&left);
    held.append(
        ctx.disk,
        &Event::Committed(&record.id, ctx.now, words.as_deref()),
    )?;
    Ok(left)
}

/// How far an operation that is reverted came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Came {
    /// No name was changed, for certain: what was saved is still in its place.
    Nowhere,
    /// Names may have been changed.
    Somewhere,
}

/// Puts everything back as it was before the operation. Also for one that changed nothing yet: then it only tidies up.
pub(crate) fn revert(
    ctx: &Context<'_>,
    held: &Held,
    record: &Record,
    (came, why): (Came, &str),
) -> Result<Left> {
    // The folders that were open may have been removed and made since.
    let folders = Folders::new(ctx.root);
    let place = Place {
        disk: ctx.disk,
        folders: &folders,
    };
    let mut left = Left::new();
    for step in record.session.iter().rev() {
        apply::session::settle_aside(ctx.disk, step)?;
        left.extend(session::back(ctx, place, record, step)?);
    }
    make_folders_again(place, record)?;
    let each = each::map(&record.steps, |_, step| back(ctx, place, record, step))?;
    left.extend(each.into_iter().flatten());
    for folder in record.made_folders.iter().rev() {
        remove_empty(place, folder)?;
    }
    sync_names(ctx, place, record)?;
    if left.is_empty() || came == Came::Nowhere {
        drop_saved(ctx, held, &record.id)?;
    } else {
        keep_saved(ctx, held, &record.id)?;
        part(ctx, place, record)?;
    }
    let why = match words_of(&left) {
        Some(words) => format!("{why}; {words}"),
        None => why.to_owned(),
    };
    held.append(ctx.disk, &Event::Aborted(&record.id, ctx.now, &why))?;
    Ok(left)
}

fn words_of(left: &Left) -> Option<String> {
    let one = |(path, words): &(PathBuf, String)| format!("`{}` {words}", path.display());
    let all: Vec<String> = left.iter().map(one).collect();
    (!all.is_empty()).then(|| format!("left alone: {}", all.join(", ")))
}
