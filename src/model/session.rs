//! A session as its file tells it: the turns, where each lies in which file, and what was odd about the bytes.
//! Does not cover what the calls inside a turn did to files (`model::edit`).

use std::path::PathBuf;

use chrono::{DateTime, Utc};

/// Index into [`Session::files`]; 0 is the session's own file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FileNo(pub u16);

/// A half-open range of bytes, `start..end`, of one of the session's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Span {
    /// The file that the bytes lie in.
    pub file: FileNo,
    /// Offset of the first byte.
    pub start: u64,
    /// Offset behind the last byte.
    pub end: u64,
}

impl Span {
    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether the span holds no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How a turn was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TurnKind {
    /// A prompt that a person wrote.
    #[default]
    Prompt,
    /// A slash command of the agent.
    Command,
    /// A shell line that the person gave to the agent (`!`).
    Shell,
    /// A prompt typed while the agent was at work on the turn before.
    Queued,
}

/// One user prompt and all that followed it, up to the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The number that is shown, accepted and stored: 0-based, of the active branch.
    pub no: u32,
    /// The agent's own id of the turn; unique in the session.
    pub key: String,
    /// The prompt as it is handed back; damaged text is shown with U+FFFD.
    pub prompt: String,
    /// When the prompt was given.
    pub at: Option<DateTime<Utc>>,
    /// How the turn was started.
    pub kind: TurnKind,
    /// The bytes of the turn, from the lines that only announce it to the start of the next turn.
    pub span: Span,
    /// Offset in the same file of the line that holds the prompt, for checking it again before a restore.
    pub line: u64,
    /// The person stopped the agent in this turn.
    pub interrupted: bool,
    /// The agent has summarised this turn away: it is on disk, but the model no longer sees it.
    pub compacted: bool,
}

/// What the reader found odd in a file; counted, never fatal (`bugs.md` 81, 82, 84).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Oddity {
    /// The file starts with a byte order mark.
    ByteOrderMark,
    /// A run of NUL bytes where a record should start.
    NulHole,
    /// Two or more records on one line.
    GluedRecords,
    /// A line that is no JSON object.
    BadLine,
    /// The last line has no end: the agent was stopped in it, or is still writing.
    TornTail,
    /// A line over the limit that was needed whole.
    HugeLine,
    /// A record whose parent is nowhere in the file.
    LostParent,
    /// Bytes of a text that are no UTF-8, or half a surrogate pair.
    BadText,
    /// A prompt that was recorded under the id of another session: the file holds several, one behind the other.
    OtherSession,
}

/// One kind of oddity: how often, and where first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Warning {
    /// What was odd.
    pub oddity: Oddity,
    /// Where it was seen first: file and byte offset.
    pub first: (FileNo, u64),
    /// How often it was seen.
    pub count: u64,
}

/// The oddities of a session, one entry a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Warnings(Vec<Warning>);

impl Warnings {
    /// Counts one oddity at a byte offset.
    pub fn add(&mut self, oddity: Oddity, file: FileNo, offset: u64) {
        if let Some(known) = self.0.iter_mut().find(|w| w.oddity == oddity) {
            known.count += 1;
        } else {
            self.0.push(Warning {
                oddity,
                first: (file, offset),
                count: 1,
            });
        }
    }

    /// Takes over the oddities of another reading.
    pub fn merge(&mut self, other: &Warnings) {
        for w in &other.0 {
            if let Some(known) = self.0.iter_mut().find(|k| k.oddity == w.oddity) {
                known.count += w.count;
            } else {
                self.0.push(*w);
            }
        }
    }

    /// The kinds seen, in the order of their first appearance.
    #[must_use]
    pub fn all(&self) -> &[Warning] {
        &self.0
    }

    /// How often one kind was seen.
    #[must_use]
    pub fn count(&self, oddity: Oddity) -> u64 {
        self.0
            .iter()
            .find(|w| w.oddity == oddity)
            .map_or(0, |w| w.count)
    }
}

/// A session as read: its turns and where they lie. The calls inside are read when they are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Name of the agent, as `--agent` takes it.
    pub agent: &'static str,
    /// The session's id.
    pub id: String,
    /// The files it is read from: its own first, then those it builds upon.
    pub files: Vec<PathBuf>,
    /// The workspace folder that the agent recorded.
    pub root: Option<PathBuf>,
    /// The turns of the active branch, in order; `turns[n].no == n`.
    pub turns: Vec<Turn>,
    /// How many turns stand in the file that the conversation no longer holds.
    pub abandoned: u32,
    /// Length in bytes of the session's own file when it was read.
    pub len: u64,
    /// What was odd about the bytes.
    pub warnings: Warnings,
}

impl Session {
    /// The session's own file.
    #[must_use]
    pub fn path(&self) -> &std::path::Path {
        self.files.first().map_or(std::path::Path::new(""), |p| p)
    }

    /// The turn of that number.
    #[must_use]
    pub fn turn(&self, no: u32) -> Option<&Turn> {
        self.turns.get(no as usize)
    }
}
