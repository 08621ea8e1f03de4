//! A checkpoint as a store holds it: what the files of one turn were before the turn touched them.
//! Which turn of the transcript it belongs to is decided in `ops::timeline`, never here.

use chrono::{DateTime, Utc};

use super::edit::{GapKind, Reason, RecordedPath, State};

/// What a path held before a turn. Three cases, never an option: "not captured" must not look like "empty" or
/// "absent" (`bugs.md` 11, 12).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prior<B> {
    /// The path did not exist.
    Absent,
    /// The path was a file with these bytes.
    Bytes(B),
    /// What it held is not known.
    Unavailable(Reason),
}

/// What a recorder found at a path after the last edit of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AfterMark {
    /// The path did not exist.
    Absent,
    /// A file whose bytes have this SHA-256, with these permission bits where recorded.
    File([u8; 32], Option<u32>),
}

/// One file in a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Which file, as recorded.
    pub path: RecordedPath,
    /// What it held when the turn first touched it.
    pub before: State,
    /// Its permission bits then, where recorded.
    pub mode: Option<u32>,
    /// What the agent left there in this turn, where recorded.
    pub after: Option<AfterMark>,
}

/// The whole work tree at a turn, as commits that git mode made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// Top folder of the work tree.
    pub top: std::path::PathBuf,
    /// The commit of its beginning.
    pub begin: String,
    /// The commit of its end, where the agent told of that.
    pub end: Option<String>,
}

/// What a store knows of the files at the start of one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The store's own number of the turn.
    pub turn: u32,
    /// When it was opened.
    pub time: Option<DateTime<Utc>>,
    /// The prompt, as recorded.
    pub prompt: String,
    /// The agent's id of the turn's message, where the store has it.
    pub message: Option<String>,
    /// How many messages stood before the turn's own, where the store has it.
    pub msg_index: Option<u64>,
    /// The session that it was made for, where the store has it.
    pub session: Option<String>,
    /// The files, first touch only.
    pub files: Vec<Snapshot>,
    /// What the recorder could not cover: kind and its words.
    pub gaps: Vec<(GapKind, String)>,
    /// The whole work tree, in git mode.
    pub tree: Option<Tree>,
    /// Set when the record itself cannot be read: its files are unknown, and no later snapshot may stand in.
    pub damaged: Option<Reason>,
}
