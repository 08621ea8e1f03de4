//! The turns of a Copilot session: `user.message` events that a person wrote. Messages with a `source` (skills, other
//! agents), those of sub-agents and the client's own "go on" are none (`formats/agents.md` §3.4).

use std::path::{Path, PathBuf};

use super::super::json::{Fields, Scan, Value};
use super::super::lines::{self, Visit, Wants};
use super::super::record::{self, text};
use super::super::{Trouble, time};
use crate::model::session::{FileNo, Session, Span, Turn, TurnKind, Warnings};

/// How events begin.
pub(super) const STARTS: &[&[u8]] = &[b"{\"type\":\""];

/// The newest version of the events that is known.
const VERSION: u64 = 1;

/// What `session.start` tells.
#[derive(Debug, Default)]
pub(super) struct Start {
    pub(super) id: String,
    pub(super) cwd: Option<PathBuf>,
    version: u64,
}

impl Start {
    pub(super) fn of(record: &Value<'_>) -> Self {
        let Some(data) = record.get("data") else {
            return Self::default();
        };
        Self {
            id: text(&data, "sessionId").unwrap_or_default(),
            cwd: data
                .get("context")
                .and_then(|c| text(&c, "cwd"))
                .map(PathBuf::from),
            version: data.get("version").and_then(|v| v.u64()).unwrap_or(VERSION),
        }
    }
}

/// The prompt, where the event is one that a person wrote.
pub(super) fn prompt_of(record: &Value<'_>) -> Option<String> {
    if !record.get("type")?.is_str("user.message") || record.get("agentId").is_some() {
        return None;
    }
    let data = record.get("data")?;
    let made = ["source", "agentId"].iter().any(|n| data.get(n).is_some())
        || data
            .get("isAutopilotContinuation")
            .is_some_and(|v| v.is_true());
    if made { None } else { text(&data, "content") }
}

/// Reads the turns.
pub(super) fn read(path: &Path) -> Result<Session, Trouble> {
    let mut warnings = Warnings::default();
    let mut pass = Pass::default();
    let end = lines::scan(path, lines::whole(FileNo(0)), &mut pass, &mut warnings)
        .map_err(Trouble::io(path))?;
    let start = pass.start.unwrap_or_default();
    if start.version > VERSION {
        return Err(Trouble::Newer {
            what: format!("events of version {} are newer than we know", start.version),
        });
    }
    let mut turns = pass.turns;
    record::apart(&mut turns);
    if let Some(last) = turns.last_mut() {
        last.span.end = end;
    }
    Ok(Session {
        agent: super::NAME,
        id: start.id,
        files: vec![path.to_path_buf()],
        root: start.cwd,
        turns,
        abandoned: 0,
        len: end,
        warnings,
    })
}

#[derive(Default)]
struct Pass {
    start: Option<Start>,
    turns: Vec<Turn>,
}

impl Pass {
    fn message(&mut self, record: &Value<'_>, at: u64) {
        let Some(prompt) = prompt_of(record) else {
            return;
        };
        if let Some(last) = self.turns.last_mut() {
            last.span.end = at;
        }
        let no = u32::try_from(self.turns.len()).unwrap_or(u32::MAX);
        self.turns.push(Turn {
            no,
            key: text(record, "id").unwrap_or_else(|| format!("line-{at}")),
            prompt,
            at: text(record, "timestamp").and_then(|t| time(&t)),
            kind: TurnKind::Prompt,
            span: Span {
                file: FileNo(0),
                start: at,
                end: at,
            },
            line: at,
            interrupted: false,
            compacted: false,
        });
    }

    /// The summary takes the place of all turns but the one that runs.
    fn compacted(&mut self, record: &Value<'_>) {
        let done = record
            .get("data")
            .and_then(|d| d.get("success"))
            .is_some_and(|s| s.is_true());
        if let Some((_, before)) = self.turns.split_last_mut().filter(|_| done) {
            for turn in before {
                turn.compacted = true;
            }
        }
    }
}

impl Visit for Pass {
    fn starts(&self) -> &'static [&'static [u8]] {
        STARTS
    }

    fn wants(&mut self, head: &[u8]) -> Scan<Wants> {
        let mut fields = Fields::open(head, 0)?;
        while let Some(field) = fields.pull()? {
            if field.is("type") {
                let kind = field.value()?.text().unwrap_or_default();
                return Ok(match kind.as_ref() {
                    "session.start" | "user.message" | "abort" | "session.compaction_complete" => {
                        Wants::Whole
                    }
                    _ => Wants::No,
                });
            }
        }
        Ok(Wants::No)
    }

    fn take(&mut self, record: &[u8], at: u64) {
        let record = Value::head(record);
        match text(&record, "type").as_deref() {
            Some("session.start") if self.start.is_none() => self.start = Some(Start::of(&record)),
            Some("user.message") => self.message(&record, at),
            Some("abort") => {
                if let Some(last) = self.turns.last_mut() {
                    last.interrupted = true;
                }
            }
            Some("session.compaction_complete") => self.compacted(&record),
            _ => {}
        }
    }
}
