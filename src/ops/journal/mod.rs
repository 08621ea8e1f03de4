//! The journal of a root: which operations were done, and the bytes that each replaced.
//!
//! ```text
//! <state>/roots/<first 32 hex digits of the SHA-256 of the canonical root's path>/
//!     root                  the root's path, its bytes
//!     lock                  held by the kernel while an operation runs
//!     operations.jsonl      {"schema":"rewind.operation/1","event":"prepared","id":"…", …}   one line an event
//!     saved/<operation>/0   the file that step 0 replaced; session-0: the part cut from a session file
//!     saved/<operation>.tmp while it is being filled
//! <state>/locks/<hash>      one for each session file that was ever cut
//! ```
//!
//! Lines are appended, never edited. A line that a kill cut off, or garbage, loses only itself. The folder is made by
//! the first operation; reading makes nothing. Does not cover what an open operation needs (`ops::recover`).

mod log;
mod record;

#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use chrono::{DateTime, SecondsFormat, Utc};

pub use log::{Log, Operation, Spoiled, Status};
pub use record::{Event, FolderRecord, Record, Saved, SessionChange, SessionRecord, StepRecord};

use crate::error::{Error, Kind, Result};
use crate::fsx::lock::{self, Lock};
use crate::fsx::tree::{Root, bytes_of};
use crate::fsx::{Disk, Name, durable, hash};

/// The log's file name.
const LOG: &str = "operations.jsonl";

/// The ending of a saved folder that is being filled.
const FILLING: &str = "tmp";

/// The journal of one root. Opening it touches nothing.
#[derive(Debug, Clone)]
pub struct Journal {
    state: PathBuf,
    key: String,
    root: PathBuf,
}

/// Makes the id of an operation: sorts by time, and no two are the same as long as the counter moves within a process.
#[must_use]
pub fn operation_id(now: DateTime<Utc>, pid: u32, counter: u32) -> String {
    format!("{}-{pid:x}-{counter}", now.format("%Y%m%dT%H%M%S%3fZ"))
}

/// A time as the journal spells it.
#[must_use]
pub fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

impl Journal {
    /// The journal of that root, in the user's state folder.
    ///
    /// # Errors
    /// No state folder is known.
    pub fn open(state: Option<&Path>, root: &Root) -> Result<Self> {
        let state = state.ok_or_else(|| {
            Error::new(
                Kind::Failed,
                "no place is known for the journal that makes a rewind undoable",
            )
            .hint("set REWIND_STATE_DIR (or HOME) to an absolute path")
        })?;
        let mut key = hash::hex(&hash::of_bytes(bytes_of(root.path())));
        key.truncate(32);
        Ok(Self {
            state: state.to_path_buf(),
            key,
            root: root.path().to_path_buf(),
        })
    }

    /// All journals of a state folder, also of folders that are gone. One that does not say whose it is is left out.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn all(state: &Path) -> io::Result<Vec<Self>> {
        let entries = match std::fs::read_dir(state.join("roots")) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut all = Vec::new();
        for entry in entries {
            let entry = entry?;
            let root = std::fs::read(entry.path().join("root"));
            if let (Ok(key), Ok(root)) = (entry.file_name().into_string(), root) {
                all.push(Self {
                    state: state.to_path_buf(),
                    key,
                    root: OsStr::from_bytes(&root).into(),
                });
            }
        }
        all.sort_by(|a, b| a.root.cmp(&b.root));
        Ok(all)
    }

    /// The folder whose journal it is.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The journal's folder.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.state.join("roots").join(&self.key)
    }

    /// The state folder that it is in.
    #[must_use]
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Where an operation's saved file lies.
    #[must_use]
    pub fn saved(&self, operation: &str, name: &str) -> PathBuf {
        self.folder().join("saved").join(operation).join(name)
    }

    /// Reads what was done.
    ///
    /// # Errors
    /// The log cannot be read. Damaged lines are no error; a missing log is an empty one.
    pub fn log(&self) -> Result<Log> {
        let path = self.folder().join(LOG);
        log::read(&path).map_err(|e| Error::io("the journal cannot be read", path, e))
    }

    /// Reads the whole record of an operation.
    ///
    /// # Errors
    /// The log cannot be read, or the line is not what it was.
    pub fn record(&self, operation: &Operation) -> Result<Record> {
        let path = self.folder().join(LOG);
        log::record(&path, operation).map_err(|e| Error::io("the journal cannot be read", path, e))
    }

    /// The operations, oldest first.
    ///
    /// # Errors
    /// As [`Journal::log`].
    pub fn operations(&self) -> Result<Vec<Operation>> {
        Ok(self.log()?.operations)
    }

    /// The operation that `undo` takes back.
    ///
    /// # Errors
    /// As [`Journal::log`].
    pub fn undo_target(&self) -> Result<Option<Operation>> {
        Ok(self.log()?.undo_target().cloned())
    }

    /// The undo that `redo` takes back.
    ///
    /// # Errors
    /// As [`Journal::log`].
    pub fn redo_target(&self) -> Result<Option<Operation>> {
        Ok(self.log()?.redo_target().cloned())
    }

    /// Whether a run is filling a saved folder, or was killed while it did. The files in it may be second names of
    /// files in the workspace then, which look like hard links to anybody who plans.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(crate) fn is_filling(&self) -> Result<bool> {
        let path = self.folder().join("saved");
        let fail = |e| Error::io("the journal's folder cannot be read", &path, e);
        let entries = match std::fs::read_dir(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
            other => other.map_err(fail)?,
        };
        for entry in entries {
            if is_filling(&entry.map_err(fail)?.file_name()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Locks the root for an operation; makes the journal's folder when it is the first.
    ///
    /// # Errors
    /// [`Kind::Busy`] when another process has it; otherwise the folder cannot be made.
    pub fn hold(&self, disk: &dyn Disk) -> Result<Held> {
        let path = self.folder();
        let fail = |e| Error::io("the journal's folder cannot be used", path.clone(), e);
        let dir = durable::folder(disk, &path).map_err(fail)?;
        let lock = lock::take(disk, dir.as_fd(), OsStr::new("lock")).map_err(fail)?;
        let lock = lock.ok_or_else(|| busy("another rewind is at work here", &self.root))?;
        let whose = self.name_root(disk, &dir).map_err(fail)?;
        if whose != self.root {
            return Err(
                Error::new(Kind::Failed, "the journal belongs to another folder")
                    .path(path, "is the journal")
                    .path(whose, "is the folder that it belongs to"),
            );
        }
        let saved = durable::subfolder(disk, dir.as_fd(), OsStr::new("saved")).map_err(fail)?;
        Ok(Held {
            path,
            dir,
            saved,
            _lock: lock,
        })
    }

    /// Locks the root when something was ever done here; makes nothing.
    ///
    /// # Errors
    /// As [`Journal::hold`].
    pub fn hold_existing(&self, disk: &dyn Disk) -> Result<Option<Held>> {
        let path = self.folder().join("saved");
        match std::fs::symlink_metadata(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io("the journal cannot be read", path, e)),
            Ok(_) => self.hold(disk).map(Some),
        }
    }

    /// Writes down whose journal this is, or reads it.
    fn name_root(&self, disk: &dyn Disk, dir: &OwnedFd) -> io::Result<PathBuf> {
        let name = OsStr::new("root");
        match std::fs::read(self.folder().join(name)) {
            Ok(bytes) => Ok(OsStr::from_bytes(&bytes).into()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                durable::replace(disk, dir.as_fd(), name, bytes_of(&self.root))?;
                Ok(self.root.clone())
            }
            Err(e) => Err(e),
        }
    }

    /// Locks a session file against other runs of this program, whatever root they work on.
    ///
    /// # Errors
    /// [`Kind::Busy`] when another process has it; otherwise the lock cannot be made.
    pub fn hold_session(&self, disk: &dyn Disk, session: &Path) -> Result<Lock> {
        let path = self.state.join("locks");
        let fail = |e| Error::io("the session cannot be locked", path.clone(), e);
        let dir = durable::folder(disk, &path).map_err(fail)?;
        let mut name = hash::hex(&hash::of_bytes(bytes_of(session)));
        name.truncate(32);
        lock::take(disk, dir.as_fd(), OsStr::new(&name))
            .map_err(fail)?
            .ok_or_else(|| busy("another rewind is at work on the session", session))
    }
}

/// Whether a name is that of a saved folder that is being filled.
fn is_filling(name: &OsStr) -> bool {
    Path::new(name).extension() == Some(OsStr::new(FILLING))
}

fn busy(what: &str, path: &Path) -> Error {
    Error::new(Kind::Busy, what)
        .path(path, "is locked")
        .hint("wait for it to end, then run the command again")
}

/// The journal while this process has the root.
#[derive(Debug)]
pub struct Held {
    path: PathBuf,
    dir: OwnedFd,
    saved: OwnedFd,
    _lock: Lock,
}

impl Held {
    /// The folder of saved bytes.
    #[must_use]
    pub fn saved(&self) -> &OwnedFd {
        &self.saved
    }

    /// The name of an operation's saved folder while it is being filled.
    #[must_use]
    pub fn filling(operation: &str) -> OsString {
        format!("{operation}.{FILLING}").into()
    }

    /// Appends an event, durably.
    ///
    /// # Errors
    /// The disk refuses; whether the event is in the log is then not known, and recovery takes it either way.
    pub fn append(&self, disk: &dyn Disk, event: &Event<'_>) -> Result<()> {
        let path = self.path.join(LOG);
        let fail = |e| Error::io("the journal cannot be written", path, e);
        let line = serde_json::to_vec(&event.line())
            .map_err(io::Error::from)
            .and_then(|line| durable::append(disk, self.dir.as_fd(), OsStr::new(LOG), &line));
        line.map_err(fail)
    }

    /// Removes what an operation replaced: from now on it cannot be taken back. The names go first, so that a kill leaves
    /// what [`Held::sweep`] removes; then it is written down.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn drop_saved(&self, disk: &dyn Disk, id: &str, at: DateTime<Utc>) -> Result<()> {
        let fail = |e| Error::io("the journal's folder cannot be used", &self.path, e);
        let going = Self::filling(id);
        let there = Name::new(&self.saved, OsStr::new(id));
        match disk.rename(there, Name::new(&self.saved, &going)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            other => other.map_err(fail)?,
        }
        disk.reach("prune-operation");
        durable::remove_folder(disk, Name::new(&self.saved, &going)).map_err(fail)?;
        self.append(disk, &Event::Pruned(id, at))
    }

    /// Removes saved folders that a killed run was still filling: nothing was changed then, so they hold only copies.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn sweep(&self, disk: &dyn Disk) -> Result<()> {
        let fail = |e| Error::io("the journal's folder cannot be used", &self.path, e);
        for name in durable::names(self.saved.as_fd()).map_err(fail)? {
            if is_filling(&name) {
                durable::remove_folder(disk, Name::new(&self.saved, &name)).map_err(fail)?;
            }
        }
        Ok(())
    }
}
