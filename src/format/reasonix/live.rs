//! Whether Reasonix is at work on a session: a kernel lock that another process holds, or a hand-over that is under way.
//!
//! ```text
//! <session>.jsonl.lease.lock     held as long as the session is open; ` {"pid":4711,"handoff_until":"…"}` inside
//! <session>.jsonl.lock           held while it is saved
//! ```
//!
//! A lock file that nobody has locked is what a crash leaves: no sign of life. None is ever made here.

use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};

use super::names;
use crate::format::Alive;
use crate::format::json::Value;

/// A hand-over lasts this long at most.
const HANDOFF: TimeDelta = TimeDelta::seconds(30);

/// Looks at the locks of a session.
pub(super) fn live(session: &Path, now: DateTime<Utc>) -> Option<Alive> {
    lock(&names::with(session, ".lease.lock"), Some(now))
        .or_else(|| lock(&names::with(session, ".lock"), None))
}

fn lock(path: &Path, handoff: Option<DateTime<Utc>>) -> Option<Alive> {
    let says = |words: &str, pid| {
        Some(Alive {
            sign: format!("`{}` {words}", path.display()),
            pid,
        })
    };
    let mut file = match open(path) {
        Ok(file) => file?,
        // A lock that cannot be looked at may be held.
        Err(e) => return says(&format!("cannot be looked at ({e})"), None),
    };
    // Shared, so that two readers do not take each other for the agent.
    let tried = file.try_lock_shared();
    let mut inside = Vec::new();
    let known = file
        .by_ref()
        .take(64 << 10)
        .read_to_end(&mut inside)
        .is_ok();
    let lease = Value::of(&inside).filter(|_| known);
    let pid = lease
        .and_then(|l| l.get("pid")?.u64())
        .and_then(|p| p.try_into().ok());
    match tried {
        Err(TryLockError::WouldBlock) => says("is locked by another process", pid),
        Err(TryLockError::Error(e)) => says(&format!("cannot be looked at ({e})"), pid),
        Ok(()) if handing_over(lease.as_ref(), handoff) => says("hands the session over", pid),
        Ok(()) => None,
    }
}

/// Opens a lock file without making one; nothing when there is none.
fn open(path: &Path) -> io::Result<Option<File>> {
    match std::fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
        Ok(m) if !m.is_file() => return Err(io::Error::other("not a plain file")),
        Ok(_) => {}
    }
    match File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// Whether the lease is reserved for another process: one of its `handoff_…` times is not over yet.
fn handing_over(lease: Option<&Value<'_>>, now: Option<DateTime<Utc>>) -> bool {
    let (Some(lease), Some(now)) = (lease, now) else {
        return false;
    };
    lease
        .entries()
        .filter(|(key, _)| key.starts_with("handoff_"))
        .filter_map(|(_, value)| crate::format::time(&value.text()?))
        // A time far ahead is none that Reasonix wrote.
        .any(|at| now.signed_duration_since(at).abs() <= HANDOFF)
}
