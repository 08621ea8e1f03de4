//! Reading the log: which operations there are, how each ended, and what undo and redo take back. The steps are
//! counted here and read only for the one operation that is asked for.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::record::{Record, SCHEMA, SCHEMAS, is_name};
use crate::model::point::Scope;
use crate::ops::plan::{Act, Point};

/// How far an operation came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Written down; nothing changed. Open: the next run tidies up.
    Prepared,
    /// Names were being changed. Open: the next run finishes it or puts everything back.
    Committing,
    /// Done.
    Committed,
    /// All is as before.
    Aborted,
    /// Done, and what it replaced was pruned since.
    Pruned,
}

/// An operation as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Its id.
    pub id: String,
    /// When it was done, RFC 3339.
    pub at: String,
    /// Restore, undo or redo.
    pub act: Act,
    /// Where it went.
    pub point: Point,
    /// What went back.
    pub scope: Scope,
    /// How far it came.
    pub status: Status,
    /// Why it was aborted, or what was left alone.
    pub reason: Option<String>,
    /// How many paths it changed.
    pub steps: usize,
    /// How many session files it changed.
    pub session: usize,
    /// Where its line lies in the log.
    line: (u64, u64),
}

/// A line that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spoiled {
    /// Its number, from 1.
    pub line: usize,
    /// Offset of its first byte.
    pub offset: u64,
}

/// The whole log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Log {
    /// The operations, oldest first.
    pub operations: Vec<Operation>,
    /// Lines that were skipped.
    pub spoiled: Vec<Spoiled>,
    /// The version of a line that a newer program wrote. What is open and what can be undone is then not known.
    pub newer: Option<String>,
}

impl Log {
    /// The operation of that id.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&Operation> {
        self.operations.iter().find(|o| o.id == id)
    }

    /// The operations that a killed run left open.
    pub fn open(&self) -> impl Iterator<Item = &Operation> {
        let open = |o: &&Operation| matches!(o.status, Status::Prepared | Status::Committing);
        self.operations.iter().filter(open)
    }

    /// The operation that `undo` takes back: the newest restore or redo that no undo has taken back.
    #[must_use]
    pub fn undo_target(&self) -> Option<&Operation> {
        self.find(self.stacks().0.last()?)
    }

    /// The undo that `redo` takes back: the newest one since the last restore that no redo has taken back.
    #[must_use]
    pub fn redo_target(&self) -> Option<&Operation> {
        self.find(self.stacks().1.last()?)
    }

    /// Whether an undo can take this operation back: a restore or redo that no undo has taken back.
    #[must_use]
    pub fn can_undo(&self, id: &str) -> bool {
        self.stacks().0.contains(&id)
    }

    /// Whether a redo can take this operation back: an undo since the last restore that no redo has taken back.
    #[must_use]
    pub fn can_redo(&self, id: &str) -> bool {
        self.stacks().1.contains(&id)
    }

    /// What can be undone and what can be redone, newest last.
    fn stacks(&self) -> (Vec<&str>, Vec<&str>) {
        let (mut undo, mut redo): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
        let done = |o: &&Operation| o.status == Status::Committed;
        for op in self.operations.iter().filter(done) {
            match &op.act {
                Act::Restore => {
                    undo.push(&op.id);
                    redo.clear();
                }
                Act::Undo(of) => {
                    undo.retain(|id| id != of);
                    redo.push(&op.id);
                }
                Act::Redo(of) => {
                    redo.retain(|id| id != of);
                    undo.push(&op.id);
                }
            }
        }
        (undo, redo)
    }

    fn take(&mut self, line: &[u8], at: (u64, u64)) -> Option<()> {
        let head: Head = serde_json::from_slice(line).ok()?;
        if head.schema != SCHEMA {
            if !head.schema.starts_with(SCHEMAS) {
                return None;
            }
            self.newer.get_or_insert(head.schema);
            return Some(());
        }
        let status = match head.event.as_str() {
            "prepared" => return self.prepared(line, at),
            "committing" => Status::Committing,
            "committed" => Status::Committed,
            "aborted" => Status::Aborted,
            "pruned" => Status::Pruned,
            _ => return None,
        };
        // An event of an operation whose own line was spoiled says nothing any more.
        if let Some(op) = self.operations.iter_mut().find(|o| o.id == head.id) {
            op.status = status;
            op.reason = head.reason;
        }
        Some(())
    }

    fn prepared(&mut self, line: &[u8], at: (u64, u64)) -> Option<()> {
        let s: Summary = serde_json::from_slice(line).ok()?;
        if !is_name(&s.id) || self.find(&s.id).is_some() {
            return None;
        }
        self.operations.push(Operation {
            id: s.id,
            at: s.at,
            act: s.act,
            point: s.point,
            scope: s.scope,
            status: Status::Prepared,
            reason: None,
            steps: s.steps.len(),
            session: s.session.len(),
            line: at,
        });
        Some(())
    }
}

#[derive(Deserialize)]
struct Head {
    schema: String,
    event: String,
    #[serde(default)]
    id: String,
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Summary {
    id: String,
    at: String,
    act: Act,
    point: Point,
    scope: Scope,
    steps: Vec<IgnoredAny>,
    session: Vec<IgnoredAny>,
}

/// Reads a log; a missing one is empty.
pub(super) fn read(path: &Path) -> io::Result<Log> {
    let mut log = Log::default();
    let mut reader = match File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(log),
        other => BufReader::new(other?),
    };
    let (mut offset, mut number) = (0, 0);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        number += 1;
        let len = line.len() as u64;
        let blank = line.iter().all(u8::is_ascii_whitespace);
        if !blank && log.take(&line, (offset, len)).is_none() {
            log.spoiled.push(Spoiled {
                line: number,
                offset,
            });
        }
        offset += len;
        line.clear();
    }
    Ok(log)
}

/// Reads the whole of one line again.
pub(super) fn record(path: &Path, operation: &Operation) -> io::Result<Record> {
    let (offset, len) = operation.line;
    let len = usize::try_from(len).map_err(io::Error::other)?;
    let mut line = vec![0; len];
    File::open(path)?.read_exact_at(&mut line, offset)?;
    let record: Record = serde_json::from_slice(&line)?;
    if record.id != operation.id || !record.is_sound() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(record)
}
