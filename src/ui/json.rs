//! The shapes of `--json`: apart from `model`, so that a change inside cannot change the contract. Names are
//! `snake_case`, times RFC 3339 in UTC, paths text with `path_bytes` (base64) beside it when they are no UTF-8.

pub use super::json_setup::{
    AgentOut, Completions, ConfigOut, Demo, Doctor, DoctorSession, FaultOut, Init, Man, PageOut,
};
pub use super::json_stores::{
    DamageOut, ItemOut, JournalOut, LeftOut, OperationOut, Pinned, Prune, Prunes, RemovalOut,
    RemovedOut, StoreOut, Verified,
};

use std::fmt::Write as _;
use std::path::Path;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;

use crate::error::Error;

/// A path.
#[derive(Debug, Clone, Serialize)]
pub struct PathOut {
    /// Its text; damaged bytes are shown as U+FFFD.
    pub path: String,
    /// Its bytes in base64, when they are no UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_bytes: Option<String>,
}

impl PathOut {
    /// A path as it is printed.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        let bytes = path.as_os_str().as_encoded_bytes();
        Self {
            path: path.to_string_lossy().into_owned(),
            path_bytes: path.to_str().is_none().then(|| base64(bytes)),
        }
    }
}

/// A time as it is printed.
#[must_use]
pub fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// A session.
#[derive(Debug, Clone, Serialize)]
pub struct SessionOut {
    /// Name of the agent.
    pub agent: String,
    /// The session's id.
    pub id: String,
    /// Its file.
    #[serde(flatten)]
    pub path: PathOut,
    /// The workspace folder that the agent recorded.
    pub workspace: Option<String>,
}

/// One row of `sessions`.
#[derive(Debug, Clone, Serialize)]
pub struct SessionRow {
    /// Which session.
    #[serde(flatten)]
    pub session: SessionOut,
    /// Its first prompt, where the head of the file holds it.
    pub prompt: Option<String>,
    /// When it was started.
    pub started: Option<String>,
    /// When its file was last written.
    pub modified: Option<String>,
    /// Length of its file in bytes.
    pub size: u64,
    /// How many turns it has; null where they were not counted.
    pub turns: Option<usize>,
    /// Whether an agent is at work on it; null where that was not looked at.
    pub live: Option<bool>,
}

/// An agent that is known and not supported.
#[derive(Debug, Clone, Serialize)]
pub struct NamedOut {
    /// Its name.
    pub agent: &'static str,
    /// Where a trace of it was found.
    #[serde(flatten)]
    pub path: PathOut,
    /// Why it is not supported.
    pub why: &'static str,
    /// Its own way back.
    pub instead: &'static str,
}

/// `rewind sessions`.
#[derive(Debug, Clone, Serialize)]
pub struct Sessions {
    /// `rewind.sessions/1`.
    pub schema: &'static str,
    /// Newest first.
    pub sessions: Vec<SessionRow>,
    /// Agents of which a trace was found and whose sessions are not read.
    pub unsupported: Vec<NamedOut>,
    /// Descriptions of agents that cannot be used.
    pub faults: Vec<FaultOut>,
}

/// One file of a turn.
#[derive(Debug, Clone, Serialize)]
pub struct FileOut {
    /// Below the recorded root where it lies there.
    #[serde(flatten)]
    pub path: PathOut,
    /// `recorded`, `reversible` or `unknown`.
    pub known: &'static str,
    /// `ckpt`, `native`, `transcript` or `reversed`.
    pub source: &'static str,
}

/// Something that no restore covers.
#[derive(Debug, Clone, Serialize)]
pub struct GapOut {
    /// Number of the turn.
    pub turn: u32,
    /// `shell`, `tool`, `capture` or `checkpoint`.
    pub kind: &'static str,
    /// The command, tool, path or reason.
    pub detail: String,
}

/// One turn.
#[derive(Debug, Clone, Serialize)]
pub struct TurnOut {
    /// Its number.
    pub turn: u32,
    /// The agent's id of it.
    pub id: String,
    /// When the prompt was given.
    pub at: Option<String>,
    /// The prompt.
    pub prompt: String,
    /// `prompt`, `command`, `shell` or `queued`.
    pub kind: &'static str,
    /// The person stopped the agent in it.
    pub interrupted: bool,
    /// The agent has summarised it away.
    pub compacted: bool,
}

/// One row of `list`.
#[derive(Debug, Clone, Serialize)]
pub struct TurnRow {
    /// Which turn.
    #[serde(flatten)]
    pub turn: TurnOut,
    /// The files that it changed.
    pub files: Vec<FileOut>,
    /// `none`, `full` or `partial`.
    pub coverage: &'static str,
    /// What is not covered.
    pub gaps: Vec<GapOut>,
}

/// What was odd about the session's bytes.
#[derive(Debug, Clone, Serialize)]
pub struct WarningOut {
    /// What.
    pub kind: &'static str,
    /// How often.
    pub count: u64,
    /// Offset in bytes of the first.
    pub offset: u64,
}

/// `rewind fork`.
#[derive(Debug, Clone, Serialize)]
pub struct Fork {
    /// `rewind.fork/1`.
    pub schema: &'static str,
    /// `planned` or `done`.
    pub status: &'static str,
    /// The session that it comes from.
    pub from: SessionOut,
    /// Number of the turn that the new session ends before; so many turns it holds.
    pub turn: u32,
    /// The agent's id of that turn.
    pub turn_id: String,
    /// That turn's prompt.
    pub prompt: String,
    /// The new session.
    pub session: SessionOut,
    /// How many checkpoints of the sidecar go along.
    pub checkpoints: usize,
    /// The name that it has in the agent; absent without one.
    pub name: Option<String>,
    /// The command that goes on with it, to be run in the workspace.
    pub resume: Option<String>,
    /// Lists of the agent's that could not be added to.
    pub unlisted: Vec<PathOut>,
}

/// `rewind list`.
#[derive(Debug, Clone, Serialize)]
pub struct List {
    /// `rewind.list/1`.
    pub schema: &'static str,
    /// Which session.
    pub session: SessionOut,
    /// How many turns it has; `turns` may hold the last ones only.
    pub total: usize,
    /// How many turns stand in the file that the conversation no longer holds.
    pub abandoned: u32,
    /// The turns, oldest first.
    pub turns: Vec<TurnRow>,
    /// What was odd.
    pub warnings: Vec<WarningOut>,
}

/// One path that changes.
#[derive(Debug, Clone, Serialize)]
pub struct StepOut {
    /// Below the root.
    #[serde(flatten)]
    pub path: PathOut,
    /// `write`, `create`, `remove` or `mode`.
    pub action: &'static str,
    /// Where the content was found; absent for undo and redo.
    pub source: Option<&'static str>,
    /// The turn whose first touch it is; absent for undo and redo.
    pub turn: Option<u32>,
    /// What must be there: length, SHA-256 and permission bits; absent when nothing.
    pub before: Option<FilePrint>,
    /// What is to be there; absent when nothing.
    pub after: Option<FilePrint>,
}

/// What a file is.
#[derive(Debug, Clone, Serialize)]
pub struct FilePrint {
    /// Length in bytes.
    pub len: u64,
    /// SHA-256 in hex.
    pub sha256: String,
    /// Permission bits in decimal; absent when they stay as they are.
    pub mode: Option<u32>,
}

/// A path with a word about it.
#[derive(Debug, Clone, Serialize)]
pub struct PathNote {
    /// Which path.
    #[serde(flatten)]
    pub path: PathOut,
    /// What about it.
    pub reason: String,
    /// The turn that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
}

/// A change from outside that goes back with the rest.
#[derive(Debug, Clone, Serialize)]
pub struct OutsideOut {
    /// Which path.
    #[serde(flatten)]
    pub path: PathOut,
    /// The turn before the change.
    pub after_turn: u32,
    /// The turn after it.
    pub before_turn: u32,
}

/// A session file that changes.
#[derive(Debug, Clone, Serialize)]
pub struct SessionStepOut {
    /// Which file.
    #[serde(flatten)]
    pub path: PathOut,
    /// `cut`, `extend`, `write` or `remove`.
    pub action: &'static str,
    /// Its length before.
    pub len: Option<u64>,
    /// How many bytes stay, for a cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<u64>,
}

/// `rewind restore`, `undo`, `redo`, and the plan inside `show`.
#[derive(Debug, Clone, Serialize)]
pub struct Rewind {
    /// `rewind.restore/1`, `rewind.undo/1`, `rewind.redo/1` or `rewind.show/1`.
    pub schema: &'static str,
    /// `planned`, `refused` (a plan that would not be carried out), `done`, `partial` or `unchanged`.
    pub status: &'static str,
    /// Id of the operation, when one was done.
    pub operation: Option<String>,
    /// The operation that was taken back or done again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The workspace folder that was acted on.
    pub root: PathOut,
    /// Which session.
    pub session: SessionOut,
    /// The turn that it goes to before.
    pub turn: u32,
    /// The agent's id of that turn.
    pub turn_id: String,
    /// The turn's prompt, handed back for editing.
    pub prompt: String,
    /// `code`, `conversation` or `both`.
    pub scope: &'static str,
    /// The paths that change.
    pub steps: Vec<StepOut>,
    /// Folders that go too, if the steps leave them empty.
    pub folders: Vec<PathOut>,
    /// The session files that change.
    pub session_steps: Vec<SessionStepOut>,
    /// Paths that are already as they should be.
    pub unchanged: Vec<PathOut>,
    /// Paths that somebody changed since.
    pub conflicts: Vec<PathNote>,
    /// Paths that cannot be taken back.
    pub missing: Vec<PathNote>,
    /// Changes from outside that go back with the rest.
    pub outside: Vec<OutsideOut>,
    /// Paths of which it is not known what the agent left there.
    pub unsure: Vec<PathOut>,
    /// What no restore covers.
    pub gaps: Vec<GapOut>,
    /// The command that goes on with the session.
    pub resume: Option<String>,
}

/// One row of `log`.
#[derive(Debug, Clone, Serialize)]
pub struct OperationRow {
    /// Its id.
    pub operation: String,
    /// `restore`, `undo` or `redo`.
    pub act: &'static str,
    /// The operation that it took back or did again.
    pub of: Option<String>,
    /// When.
    pub at: String,
    /// How it ended: `done`, `undone`, `aborted` or `open`.
    pub status: &'static str,
    /// `code`, `conversation` or `both`.
    pub scope: &'static str,
    /// Name of the agent.
    pub agent: String,
    /// The session's id.
    pub session: String,
    /// The turn that it went to before.
    pub turn: u32,
    /// The turn's prompt.
    pub prompt: String,
    /// How many files it changed.
    pub files: usize,
}

/// `rewind log`.
#[derive(Debug, Clone, Serialize)]
pub struct Log {
    /// `rewind.log/1`.
    pub schema: &'static str,
    /// The workspace folder.
    pub root: PathOut,
    /// Oldest first.
    pub operations: Vec<OperationRow>,
}

/// A failure, on standard error.
#[derive(Debug, Clone, Serialize)]
pub struct ErrorOut {
    /// `rewind.error/1`.
    pub schema: &'static str,
    /// The exit code.
    pub code: u8,
    /// Its name.
    pub kind: &'static str,
    /// What failed.
    pub message: String,
    /// What was and was not changed.
    pub changed: String,
    /// What to do next.
    pub hints: Vec<String>,
    /// The paths that it is about.
    pub paths: Vec<PathNote>,
    /// What lies beneath.
    pub causes: Vec<String>,
}

impl ErrorOut {
    /// An error as it is printed.
    #[must_use]
    pub fn new(error: &Error) -> Self {
        let mut causes = Vec::new();
        let mut next = std::error::Error::source(error);
        while let Some(cause) = next {
            causes.push(cause.to_string());
            next = cause.source();
        }
        Self {
            schema: "rewind.error/1",
            code: error.kind.code(),
            kind: error.kind.name(),
            message: error.message.clone(),
            changed: error.changed.clone(),
            hints: error.hints.clone(),
            paths: error
                .paths
                .iter()
                .map(|(p, w)| PathNote {
                    path: PathOut::new(p),
                    reason: w.clone(),
                    turn: None,
                })
                .collect(),
            causes,
        }
    }
}

/// One line of JSON. Characters that a terminal acts upon or hides are written as escapes, also those that JSON allows
/// as they are: what is meant for a program is looked at by people too.
#[must_use]
pub fn text(value: &impl Serialize) -> String {
    // Our own types hold nothing that JSON cannot: no maps with keys that are no text, no failing serialisers.
    let text = serde_json::to_string(value)
        .unwrap_or_else(|e| format!("{{\"schema\":\"rewind.error/1\",\"message\":\"{e}\"}}"));
    if !text.chars().any(super::is_hidden) {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if super::is_hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string does not fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let at = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let word = at(0) << 16 | at(1) << 8 | at(2);
        for i in 0..4 {
            let digit = (word >> (18 - 6 * i)) & 63;
            let known = DIGITS.get(digit as usize).copied().unwrap_or(b'=');
            out.push(char::from(if i > chunk.len() { b'=' } else { known }));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_escaped_and_mean_the_same() {
        let words = "a\u{9b}\u{202e}\u{e0001}\u{7f}\n\"検\"";
        let json = text(&words);
        assert_eq!(json, r#""a\u009b\u202e\udb40\udc01\u007f\n\"検\"""#);
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), words);
    }

    #[test]
    fn bytes_are_base64() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
