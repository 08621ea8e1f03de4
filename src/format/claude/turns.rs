//! Finds the turns of a Claude Code session in one pass that leaves two thirds of the bytes at their head: most
//! `type:user` lines are tool results. The rules are those of `formats/claude-code.md` §2.4.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::super::json::{Field, Fields, Scan, Stop, Value};
use super::super::lines::{self, Visit, Wants};
use super::super::record::Owners;
use super::super::{Trouble, time};
use super::branch;
use super::place::{stem, text};
use super::prompt::{is_interrupt, prompt_of};
use crate::model::session::{FileNo, Session, Turn, TurnKind, Warnings};

/// How records of this format begin (for a whole record behind a torn one).
pub(super) const STARTS: &[&[u8]] = &[b"{\"parentUuid\":"];

/// A line that starts a turn, on whatever branch.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// Offset of the first line that only announces the turn, else of its own line.
    pub start: u64,
    /// Offset of the record with the prompt.
    pub line: u64,
    pub uuid: String,
    pub parent: Option<String>,
    /// `logicalParentUuid` of a compaction that was announced with the turn.
    pub before_compaction: Option<String>,
    pub prompt: String,
    pub at: Option<DateTime<Utc>>,
    pub kind: TurnKind,
    pub interrupted: bool,
}

/// Where a rewind marker says that the conversation ends.
#[derive(Debug)]
pub(super) enum Marker {
    /// Before the first turn.
    Empty,
    /// Behind the record with this id.
    Leaf(String),
}

/// What one pass over the file found.
#[derive(Debug, Default)]
pub(super) struct Pass {
    pub candidates: Vec<Candidate>,
    /// Offsets of compactions.
    pub compactions: Vec<u64>,
    /// The explicit rewind marker, while nothing came after it.
    pub marker: Option<Marker>,
    pub root: Option<PathBuf>,
    pub owners: Owners,
    /// Start of a run of lines that only announce a turn, while it goes on.
    announced: Option<u64>,
    compaction: Option<String>,
    line: Line,
}

/// What the line at hand means for a run of announcing lines.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Neither begins nor ends a run.
    #[default]
    Neutral,
    /// Announces a turn.
    Announces,
    /// Part of the conversation: ends a run.
    Ends,
}

/// Reads the turns of the active branch.
pub(super) fn read(path: &Path) -> Result<Session, Trouble> {
    let mut warnings = Warnings::default();
    let mut pass = Pass::default();
    let end = lines::scan(path, lines::whole(FileNo(0)), &mut pass, &mut warnings)
        .map_err(Trouble::io(path))?;
    let active = branch::active(path, &pass, end, &mut warnings).map_err(Trouble::io(path))?;
    pass.owners.tell(&mut warnings);
    let abandoned = pass.candidates.len() - active.len();
    let mut session = Session {
        agent: "claude",
        id: stem(path),
        files: vec![path.to_path_buf()],
        root: pass.root.take(),
        turns: turns(&pass, &active, end),
        abandoned: u32::try_from(abandoned).unwrap_or(u32::MAX),
        len: end,
        warnings,
    };
    session.files.extend(super::calls::sub_agents(path));
    Ok(session)
}

/// A turn ends where the next line that starts one is announced, be it of this branch or an abandoned one.
fn turns(pass: &Pass, active: &[usize], end: u64) -> Vec<Turn> {
    let mut out = Vec::with_capacity(active.len());
    let last_start = active
        .last()
        .and_then(|i| pass.candidates.get(*i))
        .map_or(0, |c| c.start);
    let compacted = pass
        .compactions
        .iter()
        .copied()
        .filter(|c| *c <= last_start || in_active(pass, active, *c))
        .max();
    for (no, index) in active.iter().enumerate() {
        let Some(c) = pass.candidates.get(*index) else {
            continue;
        };
        let next = pass.candidates.get(index + 1).map_or(end, |n| n.start);
        out.push(Turn {
            no: u32::try_from(no).unwrap_or(u32::MAX),
            key: c.uuid.clone(),
            prompt: c.prompt.clone(),
            at: c.at,
            kind: c.kind,
            span: crate::model::session::Span {
                file: FileNo(0),
                start: c.start,
                end: next,
            },
            line: c.line,
            interrupted: c.interrupted,
            compacted: compacted.is_some_and(|b| c.line < b),
        });
    }
    out
}

fn in_active(pass: &Pass, active: &[usize], at: u64) -> bool {
    active.iter().any(|i| {
        let start = pass.candidates.get(*i).map_or(u64::MAX, |c| c.start);
        let end = pass.candidates.get(i + 1).map_or(u64::MAX, |c| c.start);
        (start..end).contains(&at)
    })
}

impl Visit for Pass {
    fn starts(&self) -> &'static [&'static [u8]] {
        STARTS
    }

    fn wants(&mut self, head: &[u8]) -> Scan<Wants> {
        self.line = Line::Neutral;
        let mut fields = Fields::open(head, 0)?;
        let mut is_user = false;
        // A snapshot stands behind the prompt that it is of, in older versions before it.
        let (mut snapshot, mut of_last) = (false, None);
        while let Some(field) = fields.pull()? {
            if field.is("snapshot") && field.first()? == b'{' {
                let last = self.candidates.last();
                of_last = Some(last.map_or(Ok(false), |c| is_of(&field, &c.uuid))?);
            } else if field.is("type") {
                snapshot = field.equals("file-history-snapshot")?;
                match self.kind(&field)? {
                    Some(_) if snapshot => {}
                    Some(wants) => return Ok(wants),
                    None => is_user = true,
                }
            } else if field.is("isSidechain") && field.value()?.is_true() {
                return Ok(Wants::No);
            } else if field.is("message") && field.first()? == b'{' && result_or_answer(&field)? {
                self.line = Line::Ends;
                return Ok(self.chain());
            } else if field.is("attachment") && field.first()? == b'{' && !is_queued(&field)? {
                self.line = Line::Ends;
                return Ok(Wants::No);
            }
            // The map is long; what comes behind it is not waited for.
            if let (true, Some(of_last)) = (snapshot, of_last) {
                if of_last {
                    self.line = Line::Neutral;
                }
                break;
            }
        }
        Ok(if is_user { Wants::Whole } else { Wants::No })
    }

    fn take(&mut self, record: &[u8], at: u64) {
        let value = Value::head(record);
        if self.root.is_none() {
            self.root = text(&value, "cwd").map(PathBuf::from);
        }
        match text(&value, "type").as_deref() {
            Some("user" | "attachment") => self.take_message(&value, at),
            Some("system") => self.take_system(&value, at),
            Some("last-prompt") => self.take_last_prompt(&value),
            _ => {}
        }
    }

    fn line_done(&mut self, start: u64, _end: u64) {
        match std::mem::take(&mut self.line) {
            Line::Neutral => {}
            Line::Announces => {
                self.announced.get_or_insert(start);
            }
            Line::Ends => {
                self.announced = None;
                self.compaction = None;
            }
        }
    }
}

impl Pass {
    /// Decides by the type alone, where it can; `None` for a user line, whose message decides.
    fn kind(&mut self, field: &Field<'_>) -> Scan<Option<Wants>> {
        let value = field.value()?;
        let kind = value.text().unwrap_or_default();
        Ok(Some(match kind.as_ref() {
            "user" | "attachment" => {
                self.line = Line::Ends;
                return Ok(None);
            }
            "assistant" | "progress" => {
                self.line = Line::Ends;
                self.chain()
            }
            "system" => {
                self.line = Line::Ends;
                Wants::Whole
            }
            "last-prompt" => Wants::Whole,
            "queue-operation" | "file-history-snapshot" => {
                self.line = Line::Announces;
                Wants::No
            }
            _ => Wants::No,
        }))
    }

    /// A record of the conversation came after the rewind marker, so the marker no longer counts. The first one is
    /// read whole for the workspace folder that it names.
    fn chain(&mut self) -> Wants {
        self.marker = None;
        if self.root.is_none() {
            return Wants::Whole;
        }
        Wants::No
    }

    fn take_message(&mut self, value: &Value<'_>, at: u64) {
        if value.get("isSidechain").is_some_and(|v| v.is_true()) {
            self.line = Line::Neutral;
            return;
        }
        let content = text(value, "type").as_deref() == Some("user");
        if content {
            self.marker = None;
        }
        if let Some((kind, prompt)) = prompt_of(value) {
            self.start_turn(value, at, kind, prompt);
        } else if value.get("isCompactSummary").is_some_and(|v| v.is_true())
            || value.get("isMeta").is_some_and(|v| v.is_true())
        {
            // Only inside a run: a meta line in the middle of a turn announces nothing.
            self.line = match self.announced {
                Some(_) => Line::Announces,
                None => Line::Ends,
            };
        } else if content
            && is_interrupt(value)
            && let Some(last) = self.candidates.last_mut()
        {
            last.interrupted = true;
        }
    }

    fn start_turn(&mut self, value: &Value<'_>, at: u64, kind: TurnKind, prompt: String) {
        let queued = kind == TurnKind::Queued;
        let id = if queued {
            value
                .get("attachment")
                .and_then(|a| text(&a, "source_uuid"))
                .or_else(|| text(value, "uuid"))
        } else {
            text(value, "uuid")
        };
        // Lines that announce a queued prompt stand where it was typed, not where it was taken.
        let start = if queued { None } else { self.announced };
        self.owners.saw(text(value, "sessionId"), at);
        self.candidates.push(Candidate {
            start: start.unwrap_or(at),
            line: at,
            uuid: id.unwrap_or_else(|| format!("line-{at}")),
            parent: text(value, "parentUuid"),
            before_compaction: self.compaction.take(),
            prompt,
            at: text(value, "timestamp").and_then(|t| time(&t)),
            kind,
            interrupted: false,
        });
        self.marker = None;
        self.line = Line::Ends;
    }

    fn take_system(&mut self, value: &Value<'_>, at: u64) {
        if text(value, "subtype").as_deref() == Some("compact_boundary") {
            self.compactions.push(at);
            self.compaction = text(value, "logicalParentUuid");
            self.line = Line::Announces;
        }
    }

    /// `formats/claude-code.md` §3.2: the marker that newer versions write when a conversation is rewound.
    fn take_last_prompt(&mut self, value: &Value<'_>) {
        let explicit = |name| value.get(name).is_some_and(|v| v.is_true());
        self.marker = (explicit("explicit") && explicit("rewound"))
            .then(|| text(value, "leafUuid").map_or(Marker::Empty, Marker::Leaf));
    }
}

/// Whether a snapshot is of that prompt; an update names the answer outside and the prompt inside.
fn is_of(snapshot: &Field<'_>, prompt: &str) -> Scan<bool> {
    let mut members = snapshot.fields()?;
    while let Some(member) = members.pull()? {
        if member.is("messageId") {
            return member.equals(prompt);
        }
    }
    Ok(false)
}

/// Whether the message is an answer, or a tool result, of which the first block tells.
fn result_or_answer(field: &Field<'_>) -> Scan<bool> {
    let mut message = field.fields()?;
    while let Some(inner) = message.pull()? {
        if inner.is("role") {
            if !inner.equals("user")? {
                return Ok(true);
            }
        } else if inner.is("content") && inner.first()? == b'[' {
            return first_block_is_result(&inner);
        }
    }
    Ok(false)
}

fn is_queued(attachment: &Field<'_>) -> Scan<bool> {
    let mut members = attachment.fields()?;
    while let Some(member) = members.pull()? {
        if member.is("type") {
            return member.equals("queued_command");
        }
    }
    Ok(false)
}

fn first_block_is_result(content: &Field<'_>) -> Scan<bool> {
    let mut block = match content.first_item() {
        Ok(block) => block,
        Err(Stop::More) => return Err(Stop::More),
        Err(Stop::Bad(_)) => return Ok(false),
    };
    while let Some(member) = block.pull()? {
        if member.is("type") {
            return member.equals("tool_result");
        }
    }
    Ok(false)
}
