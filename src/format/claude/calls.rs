//! Reads what the calls of a Claude Code session did to files: `tool_use` blocks paired with their results, in the
//! session's own file and in those of its sub-agents. An attempted call is not an applied one; a result that is an
//! error changed nothing. Contents are named by their place in the file, never copied.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::super::json::{Field, Fields, Scan, Stop, Value};
use super::super::lines::{self, Visit, Wants};
use super::super::record::entries;
use super::super::{Trouble, time};
use super::history::History;
use super::place::{self, text};
use super::tool::{Pending, edit_of};
use crate::env::Env;
use crate::model::edit::{Calls, Edit, Gap, GapKind};
use crate::model::session::{FileNo, Session, Span, Turn, Warnings};

/// An edit and when its result was written: sub-agents work beside the session's own calls.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub edit: Edit,
    pub when: Option<DateTime<Utc>>,
}

/// Reads the turns from `from` on. Lines of abandoned branches in between are read for one thing only: a backup's
/// name that they use again.
pub(super) fn read(session: &Session, from: u32, env: &Env) -> Result<Calls, Trouble> {
    let Some(first) = session.turn(from) else {
        return Ok(Calls::default());
    };
    let mut warnings = Warnings::default();
    let agents = agents(session, &mut warnings)?;
    let mut reader = Reader::new(
        FileNo(0),
        session.turns.get(from as usize..).unwrap_or_default(),
    );
    reader.agents = agents;
    reader.history = History::new(session, place::config_of(session, env));
    reader.place_agents_by_time();
    let span = Span {
        file: FileNo(0),
        start: first.span.start,
        end: session.len,
    };
    lines::scan(session.path(), span, &mut reader, &mut warnings)
        .map_err(Trouble::io(session.path()))?;
    Ok(reader.finish(warnings))
}

/// Transcripts of the session's sub-agents, wherever its version put them (`formats/claude-code.md` §1).
pub(super) fn sub_agents(path: &Path) -> Vec<PathBuf> {
    let folder = path.with_extension("").join("subagents");
    let mut out = Vec::new();
    for entry in entries(&folder) {
        if is_agent_file(&entry) {
            out.push(entry);
        } else if entry.file_name().is_some_and(|n| n == "workflows") {
            out.extend(
                entries(&entry)
                    .iter()
                    .flat_map(|run| entries(run))
                    .filter(|p| is_agent_file(p)),
            );
        }
    }
    out.extend(beside(path));
    out.sort();
    out.truncate(usize::from(u16::MAX) - 1);
    out
}

fn is_agent_file(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "jsonl")
        && path
            .file_name()
            .and_then(|n| n.to_str())
            .is_some_and(|n| n.starts_with("agent-"))
}

/// Version 2.0 put them beside the session, under its id.
fn beside(path: &Path) -> Vec<PathBuf> {
    let id = place::stem(path);
    let Some(folder) = path.parent() else {
        return Vec::new();
    };
    entries(folder)
        .into_iter()
        .filter(|p| is_agent_file(p))
        .filter(|p| {
            super::super::Head::read(p).is_ok_and(|h| {
                h.records()
                    .any(|r| text(&r, "sessionId").as_deref() == Some(&id))
            })
        })
        .collect()
}

/// What one sub-agent did, not yet tied to a turn.
#[derive(Debug, Default)]
struct Agent {
    /// The call that started it.
    call: Option<String>,
    began: Option<DateTime<Utc>>,
    found: Vec<Found>,
    gaps: Vec<Gap>,
    /// The calls that it made itself: one of them may have started another agent.
    calls: Vec<String>,
}

fn agents(session: &Session, warnings: &mut Warnings) -> Result<Vec<Agent>, Trouble> {
    let mut out = Vec::new();
    for (no, path) in session.files.iter().enumerate().skip(1) {
        let file = FileNo(u16::try_from(no).unwrap_or(u16::MAX));
        let mut reader = Reader::new(file, &[]);
        lines::scan(path, lines::whole(file), &mut reader, warnings).map_err(Trouble::io(path))?;
        out.push(Agent {
            call: started_by(path),
            began: reader.began,
            found: reader.found,
            gaps: reader.gaps,
            calls: reader.calls,
        });
    }
    Ok(out)
}

/// The call named in `agent-<id>.meta.json`.
fn started_by(path: &Path) -> Option<String> {
    let bytes = std::fs::read(path.with_extension("meta.json")).ok()?;
    text(&Value::of(&bytes)?, "toolUseId")
}

struct Reader<'a> {
    file: FileNo,
    /// The turns to read, by position; none in a sub-agent's file, where every line counts.
    turns: &'a [Turn],
    pending: HashMap<String, Pending>,
    history: History,
    agents: Vec<Agent>,
    found: Vec<Found>,
    gaps: Vec<Gap>,
    calls: Vec<String>,
    began: Option<DateTime<Utc>>,
}

impl<'a> Reader<'a> {
    fn new(file: FileNo, turns: &'a [Turn]) -> Self {
        Self {
            file,
            turns,
            pending: HashMap::new(),
            history: History::default(),
            agents: Vec::new(),
            found: Vec::new(),
            gaps: Vec::new(),
            calls: Vec::new(),
            began: None,
        }
    }

    /// The turn whose bytes hold this offset; `None` for a line of an abandoned branch.
    fn turn_at(&self, at: u64) -> Option<&'a Turn> {
        let index = self
            .turns
            .partition_point(|t| t.span.start <= at)
            .checked_sub(1)?;
        self.turns.get(index).filter(|t| at < t.span.end)
    }

    /// Number of the turn that a line counts for; `None` where it counts for none.
    fn counts_for(&self, at: u64) -> Option<u32> {
        if self.file != FileNo(0) {
            return Some(0);
        }
        self.turn_at(at).map(|t| t.no)
    }

    /// An agent that no record names belongs to the turn that was at work when it began.
    fn place_agents_by_time(&mut self) {
        for agent in &mut self.agents {
            if agent.call.is_some() {
                continue;
            }
            let Some(began) = agent.began else { continue };
            let turn = self
                .turns
                .iter()
                .rev()
                .find(|t| t.at.is_some_and(|at| at <= began));
            if let Some(turn) = turn {
                for f in &agent.found {
                    self.history.touched(turn.no, &f.edit.path.path);
                }
                move_to(agent, turn.no, &mut self.found, &mut self.gaps);
            }
        }
    }

    /// Takes over what the agents started by this call did, and the agents that those started.
    fn adopt(&mut self, call: &str, turn: u32) {
        let mut calls = vec![call.to_owned()];
        while let Some(call) = calls.pop() {
            for agent in &mut self.agents {
                if agent.call.as_deref() == Some(&call) {
                    agent.call = None;
                    for f in &agent.found {
                        self.history.touched(turn, &f.edit.path.path);
                    }
                    move_to(agent, turn, &mut self.found, &mut self.gaps);
                    calls.append(&mut agent.calls);
                }
            }
        }
    }

    fn assistant(&mut self, record: &Value<'_>, at: u64) {
        let Some(turn) = self.counts_for(at) else {
            return;
        };
        self.history.pass(turn);
        if self.began.is_none() {
            self.began = text(record, "timestamp").and_then(|t| time(&t));
        }
        let content = record.get("message").and_then(|m| m.get("content"));
        for block in content.iter().flat_map(Value::items) {
            if text(&block, "type").as_deref() == Some("tool_use") {
                self.tool_use(&block, at, turn);
            }
        }
    }

    fn tool_use(&mut self, block: &Value<'_>, at: u64, turn: u32) {
        let (Some(id), Some(name)) = (text(block, "id"), text(block, "name")) else {
            return;
        };
        if self.file == FileNo(0) {
            self.adopt(&id, turn);
        } else {
            self.calls.push(id.clone());
        }
        if let Some(pending) = Pending::of(&name, block, self.file, at, turn) {
            self.pending.insert(id, pending);
        } else if let Some((kind, detail)) = uncovered(&name, block) {
            self.gaps.push(Gap { turn, kind, detail });
        }
    }

    fn result(&mut self, record: &Value<'_>, at: u64) {
        let content = record.get("message").and_then(|m| m.get("content"));
        for block in content.iter().flat_map(Value::items) {
            let Some(id) = text(&block, "tool_use_id") else {
                continue;
            };
            let Some(pending) = self.pending.remove(&id) else {
                continue;
            };
            let when = text(record, "timestamp").and_then(|t| time(&t));
            if let Some(mut edit) = edit_of(&pending, record, &block, at) {
                edit.call = Some(id);
                self.history.touched(edit.turn, &edit.path.path);
                self.found.push(Found { edit, when });
            }
        }
    }

    fn finish(mut self, warnings: Warnings) -> Calls {
        // A stable sort: calls without a time stay where the file has them.
        self.found.sort_by_key(|f| f.edit.turn);
        let mut by_turn: BTreeMap<u32, Vec<Found>> = BTreeMap::new();
        for found in self.found {
            by_turn.entry(found.edit.turn).or_default().push(found);
        }
        let mut edits = Vec::new();
        for (_, mut found) in by_turn {
            if found.iter().all(|f| f.when.is_some()) {
                found.sort_by_key(|f| f.when);
            }
            self.history.attach(&mut found);
            edits.extend(found.into_iter().map(|f| f.edit));
        }
        self.gaps.sort_by_key(|g| g.turn);
        Calls {
            edits,
            gaps: self.gaps,
            warnings,
        }
    }
}

fn move_to(agent: &mut Agent, turn: u32, found: &mut Vec<Found>, gaps: &mut Vec<Gap>) {
    for mut f in agent.found.drain(..) {
        f.edit.turn = turn;
        found.push(f);
    }
    for mut g in agent.gaps.drain(..) {
        g.turn = turn;
        gaps.push(g);
    }
}

/// Calls that may change files without a record of it.
fn uncovered(name: &str, block: &Value<'_>) -> Option<(GapKind, String)> {
    match name {
        "Bash" | "PowerShell" => {
            let command = block.get("input").and_then(|i| text(&i, "command"));
            Some((GapKind::Shell, command.unwrap_or_else(|| name.to_owned())))
        }
        _ if name.starts_with("mcp__") => Some((GapKind::Tool, name.to_owned())),
        _ => None,
    }
}

impl Visit for Reader<'_> {
    fn starts(&self) -> &'static [&'static [u8]] {
        super::turns::STARTS
    }

    fn wants(&mut self, head: &[u8]) -> Scan<Wants> {
        let mut fields = Fields::open(head, 0)?;
        while let Some(field) = fields.pull()? {
            if field.is("message") && field.first()? == b'{' {
                match message(&field)? {
                    Message::Answer => return Ok(Wants::Whole),
                    Message::Result(id) if self.pending.contains_key(&id) => {
                        return Ok(Wants::Whole);
                    }
                    Message::Result(_) => return Ok(Wants::No),
                    Message::Other => {}
                }
            } else if field.is("type") {
                let value = field.value()?;
                match value.text().unwrap_or_default().as_ref() {
                    "assistant" | "file-history-snapshot" | "file-history-delta" => {
                        return Ok(Wants::Whole);
                    }
                    "user" => {}
                    _ => return Ok(Wants::No),
                }
            }
        }
        Ok(Wants::No)
    }

    fn take(&mut self, record: &[u8], at: u64) {
        let value = Value::head(record);
        // Most answers are words. The text is string-safe as a mark to skip by: no call can be without it.
        let answer = memchr::memmem::find(record, b"\"tool_use\"").is_none();
        if answer
            && value
                .get("message")
                .is_some_and(|m| m.get("role").is_some_and(|r| r.is_str("assistant")))
        {
            return;
        }
        match text(&value, "type").as_deref() {
            Some("assistant") => self.assistant(&value, at),
            Some("user") => self.result(&value, at),
            Some("file-history-snapshot") => {
                let turn = self.turn_at(at).map(|t| t.no);
                self.history.snapshot(&value, turn, at);
            }
            Some("file-history-delta") => {
                let turn = self.turn_at(at).map(|t| t.no);
                self.history.delta(&value, turn, at);
            }
            _ => {}
        }
    }
}

/// What the head of a message tells.
enum Message {
    /// The agent speaks.
    Answer,
    /// The result of this call.
    Result(String),
    /// Something else.
    Other,
}

fn message(message: &Field<'_>) -> Scan<Message> {
    let mut members = message.fields()?;
    while let Some(member) = members.pull()? {
        if member.is("role") && member.equals("assistant")? {
            return Ok(Message::Answer);
        }
        if !member.is("content") {
            continue;
        }
        let mut block = match member.first_item() {
            Ok(block) => block,
            Err(Stop::More) => return Err(Stop::More),
            Err(Stop::Bad(_)) => continue,
        };
        while let Some(inner) = block.pull()? {
            if inner.is("tool_use_id") {
                let id = inner.value()?.text().unwrap_or_default().into_owned();
                return Ok(Message::Result(id));
            }
            if inner.is("type") && !inner.equals("tool_result")? {
                break;
            }
        }
    }
    Ok(Message::Other)
}
