//! The event log of schema 1: what the conversation is, whatever the `.jsonl` says.
//!
//! ```text
//! {"schema_version":1,"type":"replace","revision":1,"messages":[{"role":"system","content":"s"}],…}
//! {"schema_version":1,"type":"append","revision":2,"message_index":1,"messages":[{"role":"user","content":"hi"}],…}
//! ```
//!
//! `replace` sets the list, `append` adds to it and counts only when it begins where the list ends. At the first record that
//! cannot be used the replay stops, and what it has is the conversation. A later schema is a graph of messages and is not
//! read here.

use std::io;
use std::path::Path;

use serde::de::IgnoredAny;

use super::values::{self, Cut, Flow, Piece, Raw};
use crate::format::Trouble;
use crate::format::json::Value;

/// A log that was replayed.
#[derive(Debug)]
pub(super) struct Log<M> {
    /// The messages of the conversation.
    pub(super) messages: Vec<M>,
    /// The highest revision in it.
    pub(super) revision: u64,
    /// Where the replay stopped, when that was not the end.
    pub(super) stopped: Option<Stopped>,
    /// Offset behind the last record that counted.
    pub(super) end: u64,
    records: u64,
}

/// Where and why a replay stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopped {
    /// A record that cannot be used.
    Bad(u64),
    /// The file ends inside a record.
    Torn(u64),
}

/// What a record that was taken means for the replay.
enum Step {
    Used,
    Useless,
    Foreign,
}

/// Replays the log at that path; `None` when there is none, or it is not Reasonix's own, or it holds no whole record.
/// Each message is turned into what the caller wants of it as it goes by.
///
/// # Errors
/// It cannot be read, or is of a later schema.
pub(super) fn replay<M>(
    path: &Path,
    map: &mut dyn FnMut(Raw<'_>) -> M,
) -> Result<Option<Log<M>>, Trouble> {
    match std::fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Trouble::io(path)(e)),
        // A folder, a FIFO: not a log, and the latter would never end.
        Ok(m) if !m.is_file() && !m.is_symlink() => return Ok(None),
        Ok(_) => {}
    }
    let mut log = Log {
        messages: Vec::new(),
        revision: 0,
        stopped: None,
        end: 0,
        records: 0,
    };
    let mut pending = Vec::new();
    let mut sound = true;
    let mut verdict = Ok(true);
    let mut take = |piece: Piece<'_>| match piece {
        Piece::Item(raw) => {
            sound &= raw.bytes.is_none_or(is_json);
            pending.push(map(raw));
            Flow::On
        }
        Piece::Record(rest, end) => {
            let messages = std::mem::take(&mut pending);
            let step = if std::mem::replace(&mut sound, true) {
                log.step(rest, messages)
            } else {
                Ok(Step::Useless)
            };
            match step {
                Ok(Step::Used) => {
                    log.end = end;
                    return Flow::On;
                }
                Ok(Step::Useless) => log.stopped = Some(Stopped::Bad(log.end)),
                Ok(Step::Foreign) => verdict = Ok(false),
                Err(trouble) => verdict = Err(trouble),
            }
            Flow::Stop
        }
        Piece::Bad(at) => {
            log.stopped = Some(Stopped::Bad(at));
            Flow::Stop
        }
        Piece::Torn(at) => {
            log.stopped = Some(Stopped::Torn(at));
            Flow::Stop
        }
    };
    values::stream(path, 0, Cut::Messages, &mut take).map_err(Trouble::io(path))?;
    let native = verdict?;
    Ok((native && log.records > 0).then_some(log))
}

/// Whether bytes are one whole JSON value.
pub(super) fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

impl<M> Log<M> {
    fn step(&mut self, rest: &[u8], messages: Vec<M>) -> Result<Step, Trouble> {
        let useless = if self.records == 0 {
            Step::Foreign
        } else {
            Step::Useless
        };
        let Some(record) = Value::of(rest).filter(|_| is_json(rest)) else {
            return Ok(useless);
        };
        let kind = record.get("type").and_then(|t| t.text());
        let (Some(schema), Some(kind)) = (record.get("schema_version").and_then(|v| v.u64()), kind)
        else {
            return Ok(useless);
        };
        match (schema, &*kind) {
            (0, _) => return Ok(useless),
            (1, "replace") => self.messages = messages,
            (1, "append") => {
                let index = record.get("message_index").map_or(Some(0), |v| v.u64());
                if index != Some(self.messages.len() as u64) {
                    return Ok(useless);
                }
                self.messages.extend(messages);
            }
            _ => return Err(newer(schema, &kind)),
        }
        self.records += 1;
        let revision = record.get("revision").and_then(|v| v.u64());
        self.revision = self.revision.max(revision.unwrap_or(0));
        Ok(Step::Used)
    }
}

fn newer(schema: u64, kind: &str) -> Trouble {
    Trouble::Newer {
        what: format!(
            "the session's event log has a `{}` record of schema {schema}; schema 1 with `replace` and `append` is \
             known",
            kind.chars().take(40).collect::<String>()
        ),
    }
}
