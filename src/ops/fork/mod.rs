//! A fork: a new session beside an old one that ends before a turn. The old one is only read. New files are written whole
//! and made durable before the session's own file, the last one, gets its name, so that a kill leaves the agent with
//! either no new session or a whole one. The result is read again, and its turns compared, before success is said.
//!
//! It is no operation of the journal: nothing that was there has changed, so there is nothing to take back.

mod carry;
mod write;

use std::path::PathBuf;

use uuid::Uuid;

use self::write::Made;
use super::gather::Read;
use super::{Disk, discover};
use crate::env::Env;
use crate::error::{Error, Kind, Result};
use crate::format;
use crate::fsx::durable;
use crate::model::checkpoint::Checkpoint;
use crate::model::fork::{Fork, NewSession, Row};
use crate::model::session::Session;

/// What a fork will make, decided and not yet done.
#[derive(Debug)]
pub struct Plan {
    /// The turn that it ends before.
    pub turn: u32,
    /// The files, by the format.
    pub fork: Fork,
    /// Numbers of the sidecar's checkpoints that go along.
    pub checkpoints: Vec<Checkpoint>,
}

/// A fork that was made and read again.
#[derive(Debug)]
pub struct Forked {
    /// The new session.
    pub session: Session,
    /// Lists of the agent's that could not be added to: the session works all the same.
    pub unlisted: Vec<PathBuf>,
}

/// A random seed for the new session's id.
#[must_use]
pub fn seed() -> Uuid {
    Uuid::new_v4()
}

/// Decides what a fork makes.
///
/// # Errors
/// [`Kind::Unsupported`] where the agent would not take it up, or no turn would be left; [`Kind::Conflict`] when a
/// path is taken; the session or its sidecar cannot be read.
pub fn plan(read: &Read, turn: u32, new: &NewSession, env: &Env) -> Result<Plan> {
    if turn == 0 {
        return Err(Error::new(
            Kind::Unsupported,
            "a fork before turn 0 would hold no turn at all",
        )
        .hint("start a new session in the agent instead"));
    }
    let fork = match read.format.fork(&read.session, turn, new, env) {
        // That the conversation alone cannot be had is the whole answer here; files are another command's.
        Err(format::Trouble::Refused { why }) => {
            return Err(Error::new(Kind::Unsupported, why)
                .hint("`rewind restore TURN --scope code` takes back the files"));
        }
        other => other?,
    };
    for file in &fork.files {
        match std::fs::symlink_metadata(&file.path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => {
                return Err(Error::io(
                    "the new session's place cannot be looked at",
                    &file.path,
                    e,
                ));
            }
            Ok(_) => {
                return Err(
                    Error::new(Kind::Conflict, "the new session's place is taken")
                        .path(&file.path, "is there already"),
                );
            }
        }
    }
    Ok(Plan {
        turn,
        fork,
        checkpoints: carry::kept(read, turn)?,
    })
}

/// Makes the fork, reads it again, and compares its turns with those that were to be kept.
///
/// # Errors
/// [`Kind::Storage`] and the like when the disk refuses; [`Kind::Damaged`] when what was written does not read as the
/// kept turns. What was made is removed again in each case, and the error says so.
pub fn make(plan: &Plan, read: &Read, disk: &dyn Disk, env: &Env) -> Result<Forked> {
    let mut made = Made::new(disk);
    match all(plan, read, &mut made, env) {
        Ok(session) => Ok(Forked {
            session,
            unlisted: list(&plan.fork.rows, disk),
        }),
        Err(e) => Err(match made.take_back() {
            Ok(()) => e.changed("nothing was left behind; the session is as it was"),
            Err((path, left)) => e
                .path(path, format!("was made, and cannot be removed: {left}"))
                .changed("the session is as it was; a part of the new one was left behind"),
        }),
    }
}

fn all(plan: &Plan, read: &Read, made: &mut Made<'_>, env: &Env) -> Result<Session> {
    let Some((own, before)) = plan.fork.files.split_last() else {
        return Err(Error::new(Kind::Internal, "a fork without a file"));
    };
    let bits = write::mode_of(read.session.path())?;
    for file in before {
        made.file(file, bits)?;
    }
    carry::all(
        &plan.checkpoints,
        &read.session,
        (&own.path, &plan.fork.id),
        made,
    )?;
    made.session(own, bits)?;
    let session = again(plan, read, env)?;
    Ok(session)
}

/// Reads the new session as any command would.
fn again(plan: &Plan, read: &Read, env: &Env) -> Result<Session> {
    let path = plan.fork.session().map(|f| f.path.clone());
    let path = path.unwrap_or_default();
    let wrong = |what: String| {
        Error::new(Kind::Damaged, "the new session does not read as it should")
            .path(&path, what)
            .hint("this is a bug, or the session changed meanwhile: try again")
    };
    let found = discover::at(&path, env).map_err(|e| wrong(e.message))?;
    if found.format.agent() != read.format.agent() {
        return Err(wrong(format!("is told to be of {}", found.format.title())));
    }
    let session = Read::new(&found, env)?.session;
    if session.id != plan.fork.id {
        return Err(wrong("has another id".to_owned()));
    }
    let kept = read.session.turns.iter().take(plan.turn as usize);
    let same = session.turns.len() == plan.turn as usize
        && session
            .turns
            .iter()
            .zip(kept)
            .all(|(new, old)| new.prompt == old.prompt);
    if !same {
        let n = session.turns.len();
        return Err(wrong(format!(
            "has {n} turns that are not the {} kept ones",
            plan.turn
        )));
    }
    Ok(session)
}

/// Adds to the agent's lists; one that is not there is not needed.
fn list(rows: &[Row], disk: &dyn Disk) -> Vec<PathBuf> {
    let mut unlisted = Vec::new();
    for row in rows {
        if write::add_row(disk, row).is_err() {
            unlisted.push(row.path.clone());
        }
    }
    unlisted
}
