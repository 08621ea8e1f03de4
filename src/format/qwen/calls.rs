//! Reads what the calls of a Qwen session did to files: a `functionCall` paired with the `toolCallResult` of its id. The
//! whole text before and after stands in `resultDisplay`, with CRLF turned into LF, and cut off behind 16,000
//! characters: a text that was cut is no text, and the diff beside it is used instead.

use std::collections::HashMap;

use super::super::Trouble;
use super::super::json::{Broken, Fields, Scan, Value};
use super::super::lines::{self, Visit, Wants};
use super::history::History;
use super::{text, turns};
use crate::model::edit::{
    Calls, Change, Content, Edit, Fidelity, Gap, GapKind, Payload, Reason, RecordedPath, Source,
    State,
};
use crate::model::session::{FileNo, Session, Span, Turn, Warnings};

/// Reads the turns from `from` on.
pub(super) fn read(session: &Session, from: u32) -> Result<Calls, Trouble> {
    let turns = session.turns.get(from as usize..).unwrap_or_default();
    let Some(first) = turns.first() else {
        return Ok(Calls::default());
    };
    let mut reader = Reader {
        turns,
        pending: HashMap::new(),
        history: History::new(session),
        out: Calls::default(),
    };
    // The copies of a turn may be told just before its prompt.
    let before = from.checked_sub(1).and_then(|n| session.turn(n));
    let span = Span {
        file: FileNo(0),
        start: before.unwrap_or(first).span.start,
        end: session.len,
    };
    let mut warnings = Warnings::default();
    let path = session.path();
    lines::scan(path, span, &mut reader, &mut warnings).map_err(Trouble::io(path))?;
    let held = |content: &Content| held(session, content);
    let Reader {
        history, mut out, ..
    } = reader;
    history.attach(session, &mut out.edits, &held);
    out.warnings = warnings;
    Ok(out)
}

/// A content at hand, for comparing it; `None` for one that cannot be read, or is no text that a session holds whole.
fn held(session: &Session, content: &Content) -> Option<Vec<u8>> {
    match &content.payload {
        Payload::File(path) => lines::read_whole(path, lines::LONGEST).ok(),
        Payload::Token(span) => {
            let file = session.files.get(usize::from(span.file.0))?;
            let token = lines::read_span(file, span.start, span.end).ok()?;
            Some(super::super::json::string(&token, Broken::Refuse)?.into_owned())
        }
        _ => None,
    }
}

/// A call that waits for its result.
struct Pending {
    turn: u32,
    path: String,
    change: Change,
}

struct Reader<'a> {
    turns: &'a [Turn],
    pending: HashMap<String, Pending>,
    history: History,
    out: Calls,
}

impl Reader<'_> {
    /// The turn whose bytes hold this offset; `None` for a record of an abandoned branch.
    fn turn_at(&self, at: u64) -> Option<u32> {
        let index = self.turns.partition_point(|t| t.span.start <= at);
        let turn = self.turns.get(index.checked_sub(1)?)?;
        (at < turn.span.end).then_some(turn.no)
    }

    fn asked(&mut self, record: &Value<'_>, at: u64, turn: u32) {
        let parts = record.get("message").and_then(|m| m.get("parts"));
        for call in parts
            .iter()
            .flat_map(Value::items)
            .filter_map(|p| p.get("functionCall"))
        {
            let name = text(&call, "name").unwrap_or_default();
            let args = call.get("args");
            if let Some((kind, detail)) = uncovered(&name, args.as_ref()) {
                self.out.gaps.push(Gap { turn, kind, detail });
                continue;
            }
            let path = args.as_ref().and_then(|a| text(a, "file_path"));
            let (Some(id), Some(path), Some(args)) = (text(&call, "id"), path, args) else {
                continue;
            };
            if matches!(name.as_str(), "edit" | "write_file" | "replace") {
                let change = replace(&args, at);
                self.pending.insert(id, Pending { turn, path, change });
            }
        }
    }

    fn done(&mut self, record: &Value<'_>, at: u64) {
        let Some(result) = record.get("toolCallResult") else {
            return;
        };
        let id = text(&result, "callId").or_else(|| {
            let part = record.get("message")?.get("parts")?.items().next()?;
            text(&part.get("functionResponse")?, "id")
        });
        let Some(id) = id else { return };
        let Some(asked) = self.pending.remove(&id) else {
            return;
        };
        if !result.get("status").is_some_and(|s| s.is_str("success")) {
            return;
        }
        self.out.edits.push(edit(asked, id, record, &result, at));
    }
}

/// Calls that may change files without a record of it.
fn uncovered(name: &str, args: Option<&Value<'_>>) -> Option<(GapKind, String)> {
    if name == "run_shell_command" {
        let command = args.and_then(|a| text(a, "command"));
        return Some((GapKind::Shell, command.unwrap_or_else(|| name.to_owned())));
    }
    let foreign = name.starts_with("mcp_") || name.contains("__");
    // A sub-agent's own edits stand in no session file.
    let agent = matches!(name, "task" | "agent");
    (foreign || agent).then(|| (GapKind::Tool, name.to_owned()))
}

fn edit(asked: Pending, id: String, record: &Value<'_>, result: &Value<'_>, at: u64) -> Edit {
    let shown = result.get("resultDisplay").filter(Value::is_object);
    let whole = |name: &str| {
        let shown = shown.as_ref().filter(|s| !is_cut(s, name))?;
        content(shown, name, at)
    };
    let before = match whole("originalContent") {
        _ if says_new(record) => State::Absent,
        // Versions differ in what they write for a file that was not there, so an empty text alone proves nothing.
        Some(_) if empty(shown.as_ref()) && !says_old(record) => {
            State::Unknown(Reason::MaybeOverwritten)
        }
        Some(held) => State::Held(held),
        None => State::Unknown(Reason::NotRecorded),
    };
    let diff = shown
        .as_ref()
        .filter(|s| !is_cut(s, "fileDiff"))
        .and_then(hunks);
    let change = match (&before, diff, asked.change) {
        (State::Held(_) | State::Absent, _, _) => Change::Opaque,
        (_, Some(diff), Change::Opaque) => diff,
        (_, Some(diff), replace) => Change::AnyOf(vec![replace, diff]),
        (_, None, replace) => replace,
    };
    let path = shown.as_ref().and_then(|s| text(s, "filePath"));
    Edit {
        turn: asked.turn,
        call: Some(id),
        path: RecordedPath::new(path.unwrap_or(asked.path)),
        before,
        source: Source::Transcript,
        mode: None,
        change,
        after: whole("newContent").map_or(State::Unknown(Reason::NotRecorded), State::Held),
        during: None,
    }
}

/// Whether a text was cut off when the session was written. Versions without a flag for each text have one for all.
fn is_cut(shown: &Value<'_>, name: &str) -> bool {
    match shown.get(&format!("{name}Truncated")) {
        Some(flag) => flag.is_true(),
        None => shown
            .get("truncatedForSession")
            .is_some_and(|t| t.is_true()),
    }
}

fn empty(shown: Option<&Value<'_>>) -> bool {
    shown
        .and_then(|s| s.get("originalContent"))
        .is_some_and(|o| o.is_str(""))
}

fn said(record: &Value<'_>) -> Option<String> {
    let part = record.get("message")?.get("parts")?.items().next()?;
    text(&part.get("functionResponse")?.get("response")?, "output")
}

/// Whether the answer to the model says that the file was created.
fn says_new(record: &Value<'_>) -> bool {
    said(record).is_some_and(|s| {
        s.starts_with("Successfully created and wrote to new file:")
            || s.starts_with("Created new file:")
    })
}

/// Whether it says that the file was there.
fn says_old(record: &Value<'_>) -> bool {
    said(record).is_some_and(|s| {
        s.starts_with("Successfully overwrote file:") || s.starts_with("The file: ")
    })
}

fn content(of: &Value<'_>, name: &str, at: u64) -> Option<Content> {
    let value = of.get(name).filter(Value::is_string)?;
    Some(Content {
        payload: Payload::Token(Span {
            file: FileNo(0),
            start: at + value.start as u64,
            end: at + value.end as u64,
        }),
        fidelity: Fidelity::Text,
        sha256: None,
    })
}

fn replace(args: &Value<'_>, at: u64) -> Change {
    let pair = || {
        Some((
            content(args, "old_string", at)?,
            content(args, "new_string", at)?,
        ))
    };
    let all = args.get("replace_all").is_some_and(|a| a.is_true());
    pair().map_or(Change::Opaque, |(old, new)| Change::Replace {
        old,
        new,
        all,
    })
}

/// The hunks of the diff, without its heading.
fn hunks(shown: &Value<'_>) -> Option<Change> {
    let diff = shown.get("fileDiff")?.bytes()?;
    let at = memchr::memmem::find(&diff, b"\n@@ ")? + 1;
    Some(Change::Hunks(Content {
        payload: Payload::Bytes(diff.get(at..)?.to_vec()),
        fidelity: Fidelity::Text,
        sha256: None,
    }))
}

impl Visit for Reader<'_> {
    fn starts(&self) -> &'static [&'static [u8]] {
        turns::STARTS
    }

    fn wants(&mut self, head: &[u8]) -> Scan<Wants> {
        let mut fields = Fields::open(head, 0)?;
        while let Some(field) = fields.pull()? {
            if field.is("type") {
                if field.equals("assistant")? || field.equals("tool_result")? {
                    return Ok(Wants::Whole);
                }
                if !field.equals("system")? {
                    return Ok(Wants::No);
                }
            } else if field.is("subtype") {
                let wanted = field.equals("file_history_snapshot")?;
                return Ok(if wanted { Wants::Whole } else { Wants::No });
            }
        }
        Ok(Wants::No)
    }

    fn take(&mut self, record: &[u8], at: u64) {
        let value = Value::head(record);
        if History::is(&value) {
            // On whatever branch: a copy that was written over there is gone.
            self.history.take(&value);
            return;
        }
        let Some(turn) = self.turn_at(at) else {
            return;
        };
        if value.get("type").is_some_and(|t| t.is_str("assistant")) {
            self.asked(&value, at, turn);
        } else {
            self.done(&value, at);
        }
    }
}
