//! Reads what the calls of a Gemini session did to files. A call stands with its result in `toolCalls` of the agent's
//! message, which is written again each time one is added: a call counts once, and only when it succeeded. The whole
//! text before and after an edit stands in `resultDisplay`, with CRLF turned into LF.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use chrono::{DateTime, Utc};

use super::super::json::{Fields, Scan, Value};
use super::super::lines::{self, Visit, Wants};
use super::super::{Head, Trouble, time};
use super::{fold, is_document, text};
use crate::model::edit::{
    Calls, Change, Content, Edit, Fidelity, Gap, GapKind, Payload, Reason, RecordedPath, Source,
    State,
};
use crate::model::session::{FileNo, Session, Span, Turn, Warnings};

/// Reads the turns from `from` on.
pub(super) fn read(session: &Session, from: u32) -> Result<Calls, Trouble> {
    let turns = session.turns.get(from as usize..).unwrap_or_default();
    let mut warnings = Warnings::default();
    let mut seen = HashSet::new();
    let mut out = Found::default();
    for (no, path) in session.files.iter().enumerate() {
        let file = FileNo(u16::try_from(no).unwrap_or(u16::MAX));
        let mut reader = Reader {
            file,
            turns: by_place(path, &session.id, turns, file),
            seen: &mut seen,
            out: &mut out,
        };
        reader.file(path, &mut warnings)?;
    }
    Ok(out.sorted(warnings))
}

/// How the turn of a call is told.
enum Turns<'a> {
    /// By the bytes that it stands in.
    Spans(Vec<&'a Turn>),
    /// By its time: sub-agents have files of their own.
    Times(&'a [Turn]),
}

fn by_place<'a>(path: &Path, id: &str, turns: &'a [Turn], file: FileNo) -> Turns<'a> {
    let folder = path.parent().and_then(Path::file_name);
    if file != FileNo(0) && folder.is_some_and(|n| n == id) {
        return Turns::Times(turns);
    }
    Turns::Spans(turns.iter().filter(|t| t.span.file == file).collect())
}

impl Turns<'_> {
    fn of(&self, at: u64, when: Option<DateTime<Utc>>) -> Option<u32> {
        match self {
            Self::Spans(turns) => {
                let index = turns.partition_point(|t| t.span.start <= at);
                let turn = turns.get(index.checked_sub(1)?)?;
                (at < turn.span.end).then_some(turn.no)
            }
            Self::Times(turns) => {
                let began = |t: &&Turn| t.at.is_some_and(|at| when.is_some_and(|w| at <= w));
                turns.iter().rev().find(began).map(|t| t.no)
            }
        }
    }

    /// The bytes worth reading.
    fn span(&self, file: FileNo) -> Option<Span> {
        match self {
            Self::Times(turns) => (!turns.is_empty()).then(|| lines::whole(file)),
            Self::Spans(turns) => Some(Span {
                file,
                start: turns.first()?.span.start,
                end: turns.last()?.span.end,
            }),
        }
    }
}

/// What was found, each with its time.
#[derive(Default)]
struct Found {
    edits: Vec<(Option<DateTime<Utc>>, Edit)>,
    gaps: Vec<Gap>,
}

impl Found {
    /// By turn, and within a turn by time where all have one: sub-agents work beside the session's own calls.
    fn sorted(self, warnings: Warnings) -> Calls {
        let mut by_turn: BTreeMap<u32, Vec<_>> = BTreeMap::new();
        for found in self.edits {
            by_turn.entry(found.1.turn).or_default().push(found);
        }
        let mut edits = Vec::new();
        for mut found in by_turn.into_values() {
            if found.iter().all(|(when, _)| when.is_some()) {
                found.sort_by_key(|(when, _)| *when);
            }
            edits.extend(found.into_iter().map(|(_, edit)| edit));
        }
        let mut gaps = self.gaps;
        gaps.sort_by_key(|g| g.turn);
        Calls {
            edits,
            gaps,
            warnings,
        }
    }
}

struct Reader<'a> {
    file: FileNo,
    turns: Turns<'a>,
    /// Ids of the calls that were taken.
    seen: &'a mut HashSet<String>,
    out: &'a mut Found,
}

impl Reader<'_> {
    fn file(&mut self, path: &Path, warnings: &mut Warnings) -> Result<(), Trouble> {
        let Some(span) = self.turns.span(self.file) else {
            return Ok(());
        };
        let head = Head::read(path).map_err(Trouble::io(path))?;
        if is_document(head.bytes()) {
            let bytes = fold::document(path)?;
            let (lead, value) = fold::whole(&bytes);
            if let Some(value) = value {
                self.list(&value, lead as u64);
            }
            return Ok(());
        }
        // A session on one line begins before its turns do.
        let span = match head.records().next() {
            Some(first) if first.get("messages").is_some() => lines::whole(self.file),
            _ => span,
        };
        lines::scan(path, span, self, warnings).map_err(Trouble::io(path))?;
        Ok(())
    }

    /// A header or document with its messages in it.
    fn list(&mut self, record: &Value<'_>, at: u64) {
        for message in record.get("messages").iter().flat_map(Value::items) {
            self.message(&message, at, at + message.start as u64);
        }
    }

    /// Takes a message that begins at `at` in the file; its values are counted from `base`.
    fn message(&mut self, message: &Value<'_>, base: u64, at: u64) {
        let said = text(message, "timestamp").and_then(|t| time(&t));
        for call in message.get("toolCalls").iter().flat_map(Value::items) {
            let done = text(&call, "timestamp").and_then(|t| time(&t));
            let Some(turn) = self.turns.of(at, done.or(said)) else {
                continue;
            };
            let place = Place {
                file: self.file,
                base,
            };
            self.call(&call, place, turn, (said, done));
        }
    }

    fn call(&mut self, call: &Value<'_>, place: Place, turn: u32, (said, done): Times) {
        let name = text(call, "name").unwrap_or_default();
        let finished = text(call, "status")
            .is_some_and(|s| matches!(s.as_str(), "success" | "error" | "cancelled"));
        let id = text(call, "id");
        if !finished || id.clone().is_some_and(|id| !self.seen.insert(id)) {
            return;
        }
        if let Some((kind, detail)) = uncovered(&name, call) {
            self.out.gaps.push(Gap { turn, kind, detail });
        } else if let Some(mut edit) = place.edit(&name, call, turn) {
            edit.call = id;
            edit.during = said.zip(done);
            self.out.edits.push((done.or(said), edit));
        }
    }
}

/// When a message was said and when its call was done.
type Times = (Option<DateTime<Utc>>, Option<DateTime<Utc>>);

/// Calls that may change files without a record of it, whether they ended well or not.
fn uncovered(name: &str, call: &Value<'_>) -> Option<(GapKind, String)> {
    if name == "run_shell_command" {
        let command = call.get("args").and_then(|a| text(&a, "command"));
        return Some((GapKind::Shell, command.unwrap_or_else(|| name.to_owned())));
    }
    let foreign =
        name.starts_with("mcp_") || name.starts_with("discovered_tool_") || name.contains("__");
    foreign.then(|| (GapKind::Tool, name.to_owned()))
}

impl Visit for Reader<'_> {
    fn starts(&self) -> &'static [&'static [u8]] {
        fold::STARTS
    }

    fn wants(&mut self, head: &[u8]) -> Scan<Wants> {
        let mut fields = Fields::open(head, 0)?;
        while let Some(field) = fields.pull()? {
            let of_the_list = field.is("$set") || field.is("$rewindTo");
            if of_the_list || (field.is("type") && !field.equals("gemini")?) {
                return Ok(Wants::No);
            } else if field.is("toolCalls") || field.is("messages") {
                return Ok(Wants::Whole);
            }
        }
        Ok(Wants::No)
    }

    fn take(&mut self, record: &[u8], at: u64) {
        let value = Value::head(record);
        if value.get("messages").is_some() {
            self.list(&value, at);
        } else {
            self.message(&value, at, at);
        }
    }
}

/// Where a record lies, for naming values inside it.
#[derive(Debug, Clone, Copy)]
struct Place {
    file: FileNo,
    base: u64,
}

impl Place {
    fn content(self, of: &Value<'_>, name: &str) -> Option<Content> {
        let value = of.get(name).filter(Value::is_string)?;
        Some(Content {
            payload: Payload::Token(Span {
                file: self.file,
                start: self.base + value.start as u64,
                end: self.base + value.end as u64,
            }),
            fidelity: Fidelity::Text,
            sha256: None,
        })
    }

    /// The edit that a call made; `None` when it changed nothing.
    fn edit(self, name: &str, call: &Value<'_>, turn: u32) -> Option<Edit> {
        if !call.get("status").is_some_and(|s| s.is_str("success")) {
            return None;
        }
        let args = call.get("args");
        let shown = call.get("resultDisplay").filter(Value::is_object);
        let diff = shown.filter(|s| s.member("fileDiff").is_some());
        if !matches!(name, "write_file" | "replace" | "edit") && diff.is_none() {
            return None;
        }
        let path = diff
            .and_then(|d| text(&d, "filePath"))
            .or_else(|| args.and_then(|a| text(&a, "file_path")))
            .filter(|p| !p.is_empty())?;
        let before = diff.map_or(State::Unknown(Reason::NotRecorded), |d| {
            self.before(&d, call)
        });
        let after = diff.and_then(|d| self.content(&d, "newContent"));
        // What was asked for may have been corrected before it was done, so it counts only where nothing else tells.
        let change = match (&before, args) {
            (State::Unknown(_), Some(args)) => self.replace(&args),
            _ => Change::Opaque,
        };
        Some(Edit {
            turn,
            call: None,
            path: RecordedPath::new(path),
            before,
            source: Source::Transcript,
            mode: None,
            change,
            after: after.map_or(State::Unknown(Reason::NotRecorded), State::Held),
            during: None,
        })
    }

    /// What the file held. An empty text is a new file only where the record says so.
    fn before(self, diff: &Value<'_>, call: &Value<'_>) -> State {
        let new = diff.member("isNewFile");
        let held = self.content(diff, "originalContent");
        if new.is_some_and(|n| n.is_true()) || (new.is_none() && says_new(call)) {
            return State::Absent;
        }
        match held {
            None => State::Unknown(Reason::NotRecorded),
            Some(_)
                if new.is_none() && diff.get("originalContent").is_some_and(|o| o.is_str("")) =>
            {
                State::Unknown(Reason::MaybeOverwritten)
            }
            Some(content) => State::Held(content),
        }
    }

    fn replace(self, args: &Value<'_>) -> Change {
        let pair = || {
            Some((
                self.content(args, "old_string")?,
                self.content(args, "new_string")?,
            ))
        };
        let all = args.get("allow_multiple").is_some_and(|a| a.is_true())
            || args
                .get("expected_replacements")
                .and_then(|n| n.u64())
                .is_some_and(|n| n > 1);
        pair().map_or(Change::Opaque, |(old, new)| Change::Replace {
            old,
            new,
            all,
        })
    }
}

/// Whether the answer to the model says that the file was created; versions without `isNewFile` say it there.
fn says_new(call: &Value<'_>) -> bool {
    let said = call
        .get("result")
        .and_then(|r| r.items().next())
        .and_then(|p| p.get("functionResponse"))
        .and_then(|f| f.get("response"))
        .and_then(|r| text(&r, "output"));
    said.is_some_and(|s| {
        s.starts_with("Successfully created and wrote to new file:")
            || s.starts_with("Created new file:")
    })
}
