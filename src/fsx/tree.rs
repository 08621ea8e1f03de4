//! The workspace folder and the paths below it that may be written: opened once, walked without following a link,
//! `..` refused (`bugs.md` 57).

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A path below the root, made of plain names only. Nothing else may be a step's path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SafePath(PathBuf);

impl SafePath {
    /// The path, relative to the root.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

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
