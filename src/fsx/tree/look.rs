//! What stands at a path: enough to see whether it is still the same, and whether it may be replaced.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::fsx::{Owner, hash, sys};

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// Nothing.
    Absent,
    /// A plain file.
    File,
    /// A folder.
    Dir,
    /// A symbolic link.
    Link,
    /// A device, socket or FIFO.
    Other,
}

/// What stands at a path: enough to see whether it is still the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// What it is.
    pub kind: FileKind,
    /// Permission bits; 0 when absent.
    pub mode: u32,
    /// Length in bytes; 0 unless it is a plain file.
    pub len: u64,
    /// SHA-256 in hex; empty unless it is a plain file.
    pub sha256: String,
}

impl Fingerprint {
    /// Nothing is there.
    #[must_use]
    pub fn absent() -> Self {
        Self {
            kind: FileKind::Absent,
            mode: 0,
            len: 0,
            sha256: String::new(),
        }
    }

    /// A plain file.
    #[must_use]
    pub fn file(mode: u32, len: u64, sha256: &[u8; 32]) -> Self {
        Self {
            kind: FileKind::File,
            mode,
            len,
            sha256: hash::hex(sha256),
        }
    }

    /// Whether it is the same but for the permission bits.
    #[must_use]
    pub fn same_bytes(&self, other: &Self) -> bool {
        self.kind == other.kind && self.len == other.len && self.sha256 == other.sha256
    }
}

/// A fingerprint, and what else the system says of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// What stands there.
    pub print: Fingerprint,
    /// How many names the file has; 0 when absent.
    pub nlink: u64,
    /// When it came to be, where the file system keeps that.
    pub born: Option<DateTime<Utc>>,
    /// Whose it is.
    pub owner: Owner,
    /// Which file it is, as long as it exists: device and inode.
    pub id: (u64, u64),
    /// When its bytes were last changed: seconds and nanoseconds.
    pub written: (i64, i64),
}

impl Look {
    /// Nothing is there.
    #[must_use]
    pub fn absent() -> Self {
        Self {
            print: Fingerprint::absent(),
            nlink: 0,
            born: None,
            owner: Owner { uid: 0, gid: 0 },
            id: (0, 0),
            written: (0, 0),
        }
    }

    /// Whether a name now stands for the very file that was looked at, not written since as far as its times tell.
    pub(crate) fn is_still(&self, meta: &Metadata) -> bool {
        self.id == (meta.dev(), meta.ino())
            && self.print.len == meta.size()
            && self.written == (meta.mtime(), meta.mtime_nsec())
    }

    fn of(meta: &Metadata, print: Fingerprint) -> Self {
        Self {
            print,
            nlink: meta.nlink(),
            born: meta.created().ok().map(DateTime::from),
            owner: Owner {
                uid: meta.uid(),
                gid: meta.gid(),
            },
            id: (meta.dev(), meta.ino()),
            written: (meta.mtime(), meta.mtime_nsec()),
        }
    }
}

/// Looks at a name in an open folder. A link is not followed; a device or FIFO is not opened. Only "not found" is
/// absence.
///
/// # Errors
/// The name cannot be looked at, or the file cannot be read or changes into another while it is read.
pub fn look_at(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<Look> {
    let meta = match sys::stat(dir, name) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Look::absent()),
        other => other?,
    };
    let print = Fingerprint {
        kind: kind_of(&meta),
        mode: meta.mode() & 0o7777,
        len: 0,
        sha256: String::new(),
    };
    if print.kind != FileKind::File {
        return Ok(Look::of(&meta, print));
    }
    let file = sys::open_file(dir, name)?;
    let open = file.metadata()?;
    if (open.dev(), open.ino()) != (meta.dev(), meta.ino()) || !open.is_file() {
        return Err(io::Error::other("it was replaced while it was read"));
    }
    let (len, sha256) = hash::of_reader(&file)?;
    let print = Fingerprint::file(open.mode() & 0o7777, len, &sha256);
    // The times from before reading: a write in between then shows.
    Ok(Look::of(&open, print))
}

pub(super) fn kind_of(meta: &Metadata) -> FileKind {
    let t = meta.file_type();
    if t.is_file() {
        FileKind::File
    } else if t.is_dir() {
        FileKind::Dir
    } else if t.is_symlink() {
        FileKind::Link
    } else {
        FileKind::Other
    }
}
