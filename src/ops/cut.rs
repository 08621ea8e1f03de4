//! The conversation half of a plan: what the format says must change, with what must stand there for it.

use super::plan::{Bytes, SessionMake, SessionMark, SessionStep};
use crate::error::{Error, Kind};
use crate::model::cut::FileChange;

/// Turns the changes of a cut into steps.
///
/// # Errors
/// A file cannot be read; [`Kind::Busy`] when one is no longer as long as it was when the turns were read.
pub fn steps(changes: Vec<FileChange>) -> Result<Vec<SessionStep>, Error> {
    changes.into_iter().map(step).collect()
}

fn step(change: FileChange) -> Result<SessionStep, Error> {
    let (path, len, make) = match change {
        FileChange::Truncate { path, keep, len } => {
            (path, Some(len), SessionMake::Truncate { keep })
        }
        FileChange::Append { path, bytes, len } => {
            (path, Some(len), SessionMake::Extend(Bytes::Held(bytes)))
        }
        FileChange::Replace { path, bytes } => (path, None, SessionMake::Write(Bytes::Held(bytes))),
        FileChange::Remove { path } => (path, None, SessionMake::Absent),
    };
    let expect = SessionMark::read(&path)
        .map_err(|e| Error::io("a session file cannot be read", &path, e))?;
    if len.is_some() && expect.len != len {
        return Err(Error::new(
            Kind::Busy,
            "the session file changed while it was read: an agent is at work on it",
        )
        .path(path, "longer or shorter than a moment ago")
        .hint("let the agent finish, or stop it, and try again"));
    }
    Ok(SessionStep { path, expect, make })
}
