//! What the calls of a turn did to files, as the agent's own record tells it. Contents are named, not held: a payload
//! is decoded from its place when a restore needs it.

use std::path::PathBuf;

use chrono::{DateTime, Utc};

use super::session::Span;

/// A path as it stands in a record: absolute or relative, with `..`, links or other tricks. Only `fsx::tree` turns
/// it into a path that may be written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordedPath {
    /// The bytes of the record.
    pub path: PathBuf,
    /// The folder that a relative path is relative to, where the record has it; else the session's root.
    pub base: Option<PathBuf>,
}

impl RecordedPath {
    /// A path without a folder of its own to be relative to.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            base: None,
        }
    }
}

/// Where a content lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// The whole of a file, raw bytes (an agent's backup, a checkpoint's blob).
    File(PathBuf),
    /// The whole of a file, compressed with zstd (a checkpoint's blob).
    Zst(PathBuf),
    /// A JSON string token, quotes included, in one of the session's files.
    Token(Span),
    /// A JSON string token, quotes included, in a file beside the session: path, offset of its first byte, offset
    /// behind its last byte.
    TokenIn(PathBuf, u64, u64),
    /// The lines of a JSON array of strings, in one of the session's files.
    Lines(Span),
    /// Bytes already at hand.
    Bytes(Vec<u8>),
}

/// How faithful a payload is to the file's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fidelity {
    /// Byte for byte.
    Exact,
    /// As text: the recorder may have dropped a byte order mark or turned CRLF into LF.
    Text,
}

/// A content in a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Where it lies.
    pub payload: Payload,
    /// How faithful it is.
    pub fidelity: Fidelity,
    /// SHA-256 that the bytes must have, where the record names one.
    pub sha256: Option<[u8; 32]>,
}

/// What the record says that a path held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Nothing: the path did not exist.
    Absent,
    /// A file with this content.
    Held(Content),
    /// The record does not say, or what it names is gone; with the reason.
    Unknown(Reason),
}

/// Why a content is not known. Shown to the user, so each says what happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The agent's record does not hold it.
    NotRecorded,
    /// The record names a copy that is gone.
    CopyGone,
    /// The copy is there, but not the bytes that were saved.
    CopyDamaged,
    /// The copy is there and cannot be read.
    Unreadable(String),
    /// The checkpoint was pruned; its bytes are gone.
    Expired,
    /// The file was over the limit of the recorder.
    TooLarge,
    /// The record cannot be read, so what it says of its files is unknown.
    RecordDamaged,
    /// A checkpoint that may hold it belongs to one of several turns.
    TurnUnknown,
    /// A new file was written, and the record does not say whether one was there before.
    MaybeOverwritten,
    /// The edit cannot be undone for certain on the bytes that are there.
    NotReversible,
    /// The record holds text only, and the file's line ends or encoding are not those of the text.
    TextOnly,
    /// The path leads out of the workspace.
    OutsideRoot,
    /// The path is not a plain file (a link, a folder, a device), or leads through one.
    NotAFile,
    /// The file has several names (hard links); replacing one would part them.
    HardLink,
    /// The path may not be used on this system.
    BadName,
}

/// How the bytes after an edit came from the bytes before it, as far as the record tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The record does not say.
    Opaque,
    /// `old` became `new`, once or everywhere.
    Replace {
        /// The text that was there.
        old: Content,
        /// The text that took its place.
        new: Content,
        /// Every occurrence, not just the only one.
        all: bool,
    },
    /// Several replacements, one after the other.
    Several(Vec<Change>),
    /// The same change, recorded in several ways; those that apply must agree.
    AnyOf(Vec<Change>),
    /// Unified diff text (from `@@` on) whose line numbers are those of the file.
    Hunks(Content),
    /// The file moved here from another path, unchanged or with the inner change.
    MovedFrom(RecordedPath, Box<Change>),
    /// The file moved away to another path, unchanged or with the inner change: what it held before is what the inner
    /// change makes of the other path's content just after the same call.
    MovedTo(RecordedPath, Box<Change>),
}

/// Where a pre-edit content was found; best first (`design.md` §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// A checkpoint sidecar.
    Ckpt,
    /// The agent's own file history.
    Native,
    /// Full text recorded with the call.
    Transcript,
    /// The edit undone from a state that is known.
    Reversed,
}

/// One file that one call changed, in the order of the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Number of the turn.
    pub turn: u32,
    /// The agent's id of the call.
    pub call: Option<String>,
    /// Which file.
    pub path: RecordedPath,
    /// What it held just before the call.
    pub before: State,
    /// Where `before` comes from.
    pub source: Source,
    /// Permission bits of the copy that `before` names. Those of an agent's backup are used only for a file that is
    /// gone: the agent's edits keep the mode, so a mode that differs now was set by somebody else.
    pub mode: Option<u32>,
    /// How the content changed.
    pub change: Change,
    /// What it held just after the call.
    pub after: State,
    /// When the call began and ended, where recorded: a file that was born in between was made by it.
    pub during: Option<(DateTime<Utc>, DateTime<Utc>)>,
}

/// Something in a turn that no restore can take back, or that is not known.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gap {
    /// Number of the turn.
    pub turn: u32,
    /// What kind.
    pub kind: GapKind,
    /// The command, tool, path or reason; as recorded, so hostile text.
    pub detail: String,
}

/// The kinds of [`Gap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GapKind {
    /// A shell command ran; what it did to files was not recorded.
    Shell,
    /// Another tool that may have changed files.
    Tool,
    /// The recorder could not capture a file.
    Capture,
    /// A checkpoint of this turn is damaged or was pruned.
    Checkpoint,
}

/// What the calls from one turn on did: edits in the order they happened, and gaps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Calls {
    /// Edits, oldest first.
    pub edits: Vec<Edit>,
    /// What is not covered.
    pub gaps: Vec<Gap>,
    /// What was odd about the bytes read.
    pub warnings: super::session::Warnings,
}
