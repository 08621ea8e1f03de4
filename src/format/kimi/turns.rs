//! The turns of a Kimi Code session: `turn.prompt` with an `origin` of kind `user`. The client's own reminders are
//! messages of role `user` and no turns. `context.undo` takes back the last turns; they stay in the file.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::super::Trouble;
use super::super::json::{Fields, Scan, Value};
use super::super::lines::{self, Visit, Wants};
use super::super::record::{self, text};
use crate::model::session::{FileNo, Session, Span, Turn, TurnKind, Warnings};

/// How records begin.
pub(super) const STARTS: &[&[u8]] = &[b"{\"type\":\"", b"{\"message\":{", b"{\"turnId\":"];

/// The id and the workspace of the session that this wire file belongs to: `state.json` two folders up, else the
/// folder's name.
pub(super) fn state(path: &Path) -> (String, Option<PathBuf>) {
    let Some(folder) = path.ancestors().nth(3) else {
        return (String::new(), None);
    };
    let name = folder
        .file_name()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default();
    // Without the file, or with one that cannot be read, the wire file may still name the workspace.
    let bytes = std::fs::read(folder.join("state.json")).unwrap_or_default();
    let Some(state) = Value::of(&bytes) else {
        return (name, None);
    };
    (
        text(&state, "id").unwrap_or(name),
        text(&state, "cwd").map(PathBuf::from),
    )
}

/// A time in milliseconds.
pub(super) fn when(record: &Value<'_>, name: &str) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_millis(record.get(name)?.i64()?)
}

/// The workspace, in versions that write it into the wire file.
pub(super) fn folder_of(record: &Value<'_>) -> Option<PathBuf> {
    record.get("type").filter(|t| t.is_str("config.update"))?;
    text(record, "cwd").map(PathBuf::from)
}

/// The prompt, where the record is one of a person.
pub(super) fn prompt_of(record: &Value<'_>) -> Option<String> {
    record.get("type").filter(|t| t.is_str("turn.prompt"))?;
    let origin = record.get("origin")?;
    origin.get("kind").filter(|k| k.is_str("user"))?;
    let input = record.get("input")?;
    if input.is_string() {
        return input.text().map(std::borrow::Cow::into_owned);
    }
    let parts: Vec<String> = input.items().filter_map(|p| text(&p, "text")).collect();
    Some(parts.join("\n"))
}

/// Whether a line begins at this offset and is not the first of the file.
pub(super) fn begins_a_line(path: &Path, at: u64) -> Result<bool, Trouble> {
    let Some(before) = at.checked_sub(1) else {
        return Ok(false);
    };
    let mut byte = [0];
    File::open(path)
        .and_then(|f| f.read_exact_at(&mut byte, before))
        .map_err(Trouble::io(path))?;
    Ok(byte == [b'\n'])
}

/// Reads the turns.
pub(super) fn read(path: &Path) -> Result<Session, Trouble> {
    let mut warnings = Warnings::default();
    let mut pass = Pass::default();
    let end = lines::scan(path, lines::whole(FileNo(0)), &mut pass, &mut warnings)
        .map_err(Trouble::io(path))?;
    pass.end(end);
    let (id, root) = state(path);
    let all = pass.turns.len();
    let mut turns: Vec<Turn> = pass
        .turns
        .into_iter()
        .filter(|(_, state)| *state == Held::Kept)
        .map(|(turn, _)| turn)
        .collect();
    for (no, turn) in (0..).zip(&mut turns) {
        turn.no = no;
    }
    record::apart(&mut turns);
    Ok(Session {
        agent: super::NAME,
        id,
        files: vec![path.to_path_buf()],
        root: root.or(pass.cwd),
        abandoned: u32::try_from(all - turns.len()).unwrap_or(u32::MAX),
        turns,
        len: end,
        warnings,
    })
}

/// Whether the conversation still holds a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    Kept,
    Undone,
}

#[derive(Default)]
struct Pass {
    turns: Vec<(Turn, Held)>,
    cwd: Option<PathBuf>,
}

impl Pass {
    fn end(&mut self, at: u64) {
        if let Some((last, _)) = self.turns.last_mut() {
            last.span.end = at;
        }
    }

    fn prompt(&mut self, record: &Value<'_>, at: u64) {
        let Some(prompt) = prompt_of(record) else {
            return;
        };
        self.end(at);
        let turn = Turn {
            no: 0,
            key: text(record, "promptId").unwrap_or_else(|| format!("line-{at}")),
            prompt,
            at: when(record, "time"),
            kind: TurnKind::Prompt,
            span: Span {
                file: FileNo(0),
                start: at,
                end: at,
            },
            line: at,
            interrupted: false,
            compacted: false,
        };
        self.turns.push((turn, Held::Kept));
    }

    fn undo(&mut self, record: &Value<'_>) {
        let count = record.get("count").and_then(|c| c.u64()).unwrap_or(1);
        let kept = self
            .turns
            .iter_mut()
            .rev()
            .filter(|(_, h)| *h == Held::Kept);
        for (_, held) in kept.take(usize::try_from(count).unwrap_or(usize::MAX)) {
            *held = Held::Undone;
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
            // An event that repeats a message for other programs; its type comes behind the message.
            if field.is("message") {
                return Ok(Wants::No);
            }
            if field.is("type") {
                let kind = field.value()?.text().unwrap_or_default();
                return Ok(match kind.as_ref() {
                    "turn.prompt" | "context.undo" | "config.update" | "turn.ended" => Wants::Whole,
                    _ => Wants::No,
                });
            }
        }
        Ok(Wants::No)
    }

    fn take(&mut self, record: &[u8], at: u64) {
        let record = Value::head(record);
        match super::kind(&record).as_str() {
            "turn.prompt" => self.prompt(&record, at),
            "context.undo" => self.undo(&record),
            "config.update" if self.cwd.is_none() => self.cwd = folder_of(&record),
            "turn.ended" => {
                let reason = text(&record, "reason").unwrap_or_default();
                if let Some((last, _)) = self.turns.last_mut() {
                    last.interrupted |= matches!(reason.as_str(), "cancelled" | "aborted");
                }
            }
            _ => {}
        }
    }
}
