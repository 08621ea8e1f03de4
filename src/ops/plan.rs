//! What a rewind will do, decided and not yet done: steps, conflicts, gaps, the conversation cut. Pure data; what
//! `--dry-run` prints is what `ops::apply` takes.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::fsx::tree::{Fingerprint, SafePath};
use crate::model::edit::{Gap, Reason, Source};
use crate::model::point::Scope;

/// Where the new bytes of a step come from. Read once for the hash when the plan is made and once when they are
/// staged, so that a plan of ten thousand files holds none of them in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bytes {
    /// At hand: the result of undoing an edit.
    Held(Vec<u8>),
    /// A whole file.
    File(PathBuf),
    /// A whole file, compressed with zstd.
    Zst(PathBuf),
    /// A JSON string token in a file: path, offset of its first byte, offset behind its last byte.
    Token(PathBuf, u64, u64),
}

impl Bytes {
    /// Opens the bytes for reading.
    ///
    /// # Errors
    /// The file is gone, cannot be read, or does not hold what it held when the plan was made.
    pub fn open(&self) -> io::Result<Box<dyn Read + '_>> {
        match self {
            Self::Held(b) => Ok(Box::new(&b[..])),
            Self::File(p) => Ok(Box::new(std::fs::File::open(p)?)),
            Self::Zst(p) => Ok(Box::new(zstd::stream::read::Decoder::new(
                std::fs::File::open(p)?,
            )?)),
            Self::Token(p, start, end) => token(p, *start, *end),
        }
    }
}

fn token(path: &Path, start: u64, end: u64) -> io::Result<Box<dyn Read>> {
    use crate::format::{json, lines};
    let token = lines::read_span(path, start, end)?;
    let bytes = json::string(&token, json::Broken::Refuse)
        .ok_or(io::ErrorKind::InvalidData)?
        .into_owned();
    Ok(Box::new(io::Cursor::new(bytes)))
}

/// What a path is to become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Make {
    /// Nothing: the path is removed, and then those of these folders, deepest first, that this made empty.
    Absent(Vec<SafePath>),
    /// A file.
    File {
        /// Its bytes.
        bytes: Bytes,
        /// Their SHA-256, checked when they are staged and again when they are in place.
        sha256: [u8; 32],
        /// Their number.
        len: u64,
        /// Permission bits of the file; `None` keeps those that are there, or takes 0644 for a new file.
        mode: Option<u32>,
    },
    /// The file that is there, with these permission bits.
    Mode(u32),
}

/// One path that changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Which path, below the root.
    pub path: SafePath,
    /// What must be there for the step to be done.
    pub expect: Fingerprint,
    /// What is to be there.
    pub make: Make,
    /// Where that content was found; `None` for an undo or redo.
    pub source: Option<Source>,
    /// The turn whose first touch it is; `None` for an undo or redo.
    pub turn: Option<u32>,
}

/// A path that somebody changed since the agent wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Which path.
    pub path: SafePath,
    /// What happened to it.
    pub why: ConflictKind,
}

/// What happened to a path in conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictKind {
    /// Its bytes are not those that the agent left.
    Changed,
    /// It is gone, and the agent left a file.
    Deleted,
    /// A file is there, and the agent left none.
    Created,
    /// It is a folder, a link or a device now.
    NotAFile,
    /// It would be removed, and the record does not tell whether what is there is the agent's.
    NotKnown,
}

/// A path that cannot be taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The path as recorded.
    pub path: PathBuf,
    /// Why.
    pub reason: Reason,
    /// The turn that first touched it.
    pub turn: u32,
}

/// How a session file changes; `ops::apply` treats each like a step outside the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionStep {
    /// Which file, absolute.
    pub path: PathBuf,
    /// What must be there.
    pub expect: SessionMark,
    /// What is to be there.
    pub make: SessionMake,
}

/// What a session file looks like: enough to see that it grew or was written by somebody else, without hashing a
/// gigabyte.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SessionMark {
    /// Its length in bytes; `None` when it does not exist.
    pub len: Option<u64>,
    /// SHA-256 of its last 64 KiB, in hex; empty when it does not exist.
    pub tail: String,
}

/// How much of the end of a session file is hashed.
const TAIL: u64 = 64 << 10;

impl SessionMark {
    /// Nothing is there.
    #[must_use]
    pub fn absent() -> Self {
        Self {
            len: None,
            tail: String::new(),
        }
    }

    /// Marks the file at a path; links are followed.
    ///
    /// # Errors
    /// It is no plain file or cannot be read; only "not found" is absence.
    pub fn read(path: &Path) -> io::Result<Self> {
        match std::fs::metadata(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Self::absent()),
            Err(e) => return Err(e),
            Ok(m) if m.is_file() => {}
            Ok(_) => return Err(io::Error::other("not a plain file")),
        }
        Self::of(&std::fs::File::open(path)?)
    }

    /// Marks an open file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of(file: &std::fs::File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(SessionTail::of(file, len)?.mark())
    }
}

/// The end of a session file, as bytes are added to it.
#[derive(Debug, Clone, Default)]
pub struct SessionTail {
    len: u64,
    last: Vec<u8>,
}

impl SessionTail {
    /// The end of the first `len` bytes of a file.
    ///
    /// # Errors
    /// They cannot be read, or are fewer.
    pub fn of(file: &std::fs::File, len: u64) -> io::Result<Self> {
        use std::os::unix::fs::FileExt;
        let start = len.saturating_sub(TAIL);
        let mut last = vec![0; usize::try_from(len - start).map_err(io::Error::other)?];
        file.read_exact_at(&mut last, start)?;
        Ok(Self { len, last })
    }

    /// Adds all that a reader gives.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn extend(&mut self, mut from: impl Read) -> io::Result<()> {
        loop {
            let n = (&mut from).take(TAIL).read_to_end(&mut self.last)?;
            if n == 0 {
                return Ok(());
            }
            self.len += n as u64;
            let over = (self.last.len() as u64).saturating_sub(TAIL);
            self.last
                .drain(..usize::try_from(over).map_err(io::Error::other)?);
        }
    }

    /// The mark of a file that ends so.
    #[must_use]
    pub fn mark(&self) -> SessionMark {
        use crate::fsx::hash;
        SessionMark {
            len: Some(self.len),
            tail: hash::hex(&hash::of_bytes(&self.last)),
        }
    }
}

/// What a session file is to become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionMake {
    /// Its first `keep` bytes.
    Truncate {
        /// How many bytes stay.
        keep: u64,
    },
    /// What it is, and these bytes behind it.
    Extend(Bytes),
    /// These bytes.
    Write(Bytes),
    /// Nothing.
    Absent,
}

impl Bytes {
    /// Whether an error while reading them says that they are gone or are no longer what they were, rather than that
    /// the disk failed.
    #[must_use]
    pub fn are_gone(e: &io::Error) -> bool {
        use io::ErrorKind as E;
        matches!(e.kind(), E::NotFound | E::InvalidData | E::UnexpectedEof)
    }
}

/// What kind of rewind an operation is.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind", content = "of")]
pub enum Act {
    /// To before a turn.
    Restore,
    /// Takes back the operation with this id.
    Undo(String),
    /// Takes back the undo with this id.
    Redo(String),
}

/// The point that a restore goes to, for the journal and the report.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Point {
    /// Name of the agent.
    pub agent: String,
    /// The session's id.
    pub session: String,
    /// The session's file.
    #[serde(with = "crate::fsx::tree::path_serde")]
    pub path: PathBuf,
    /// Number of the turn.
    pub turn: u32,
    /// The agent's id of the turn.
    pub key: String,
    /// The turn's prompt.
    pub prompt: String,
}

/// A whole plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Restore, undo or redo.
    pub act: Act,
    /// The workspace folder, canonical.
    pub root: PathBuf,
    /// Where it goes; that of the first operation for an undo.
    pub point: Point,
    /// What goes back.
    pub scope: Scope,
    /// The paths that change.
    pub steps: Vec<Step>,
    /// The session files that change, in order.
    pub session: Vec<SessionStep>,
    /// The paths that are already as they should be.
    pub equal: Vec<SafePath>,
    /// The paths that somebody changed; with `OnConflict::Fail` any of them stops the whole plan.
    pub conflicts: Vec<Conflict>,
    /// The paths that cannot be taken back.
    pub missing: Vec<Missing>,
    /// Paths where a change made outside, between two turns, goes back with the rest: path, the turn before, the turn
    /// after.
    pub outside: Vec<(SafePath, u32, u32)>,
    /// Paths of which it is not known what the agent left there.
    pub unsure: Vec<SafePath>,
    /// What no restore covers.
    pub gaps: Vec<Gap>,
}
