//! What the calls of a Kimi Code session did: `tool.call` paired with its `tool.result`, and the file history that the
//! client keeps: `tracked` tells what a file was before the first edit of a turn, `checkpoint` what it was when the turn
//! ended (not every turn has one). Copies are named with a hash, so one that was written over is found out.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::super::Trouble;
use super::super::json::{Fields, Scan, Value};
use super::super::lines::{self, Visit, Wants};
use super::super::record::{Occurs, Place, sha256, text, turn_at};
use super::turns::{STARTS, when};
use crate::model::edit::{
    Calls, Change, Content, Edit, Fidelity, Gap, GapKind, Payload, Reason, RecordedPath, Source,
    State,
};
use crate::model::session::{FileNo, Session, Span, Turn, Warnings};

/// Reads the calls of the turns from `from` on.
pub(super) fn read(session: &Session, from: u32) -> Result<Calls, Trouble> {
    let Some(first) = session.turn(from) else {
        return Ok(Calls::default());
    };
    let mut reader = Reader {
        turns: session.turns.get(from as usize..).unwrap_or_default(),
        folder: session.path().parent().unwrap_or(Path::new("")),
        root: session.root.as_deref(),
        open: HashMap::new(),
        history: BTreeMap::new(),
        edits: Vec::new(),
        gaps: Vec::new(),
    };
    let mut warnings = Warnings::default();
    let span = Span {
        file: FileNo(0),
        start: first.span.start,
        end: session.len,
    };
    lines::scan(session.path(), span, &mut reader, &mut warnings)
        .map_err(Trouble::io(session.path()))?;
    reader.attach();
    Ok(Calls {
        edits: reader.edits,
        gaps: reader.gaps,
        warnings,
    })
}

/// What a turn's file history tells of one path.
#[derive(Default)]
struct Images {
    before: Option<State>,
    after: Option<State>,
}

/// A call that waits for its result.
struct Open {
    edit: Edit,
    began: Option<DateTime<Utc>>,
}

struct Reader<'a> {
    turns: &'a [Turn],
    /// Keys of copies are relative to it.
    folder: &'a Path,
    root: Option<&'a Path>,
    open: HashMap<String, Open>,
    history: BTreeMap<(u32, PathBuf), Images>,
    edits: Vec<Edit>,
    gaps: Vec<Gap>,
}

impl Reader<'_> {
    fn full(&self, path: &Path) -> PathBuf {
        self.root
            .map_or_else(|| path.to_path_buf(), |r| r.join(path))
    }

    fn called(&mut self, event: &Value<'_>, record: &Value<'_>, at: u64, turn: u32) {
        let (Some(id), Some(name)) = (text(event, "toolCallId"), text(event, "name")) else {
            return;
        };
        let args = event.get("args");
        if let Some((kind, detail)) = uncovered(&name, args.as_ref()) {
            self.gaps.push(Gap { turn, kind, detail });
        }
        let began = when(record, "time");
        if let Some(edit) = args.and_then(|a| asked(&name, &a, at, turn, &id)) {
            self.open.insert(id, Open { edit, began });
        }
    }

    fn answered(&mut self, event: &Value<'_>, record: &Value<'_>) {
        let open = text(event, "toolCallId").and_then(|id| self.open.remove(&id));
        let (Some(open), Some(result)) = (open, event.get("result")) else {
            return;
        };
        let failed = ["isError", "is_error"]
            .iter()
            .any(|n| result.get(n).is_some_and(|v| v.is_true()));
        // What a failed call says differs by version; what a done one says is known.
        let said = text(&result, "output").unwrap_or_default();
        if failed || !(said.starts_with("Replaced ") || said.starts_with("Wrote ")) {
            if !failed {
                self.gaps.push(unclear(&open.edit));
            }
            return;
        }
        let mut edit = open.edit;
        // Times are cut to whole milliseconds, so the end may lie up to one later.
        let ended = when(record, "time")
            .and_then(|t| t.checked_add_signed(chrono::TimeDelta::milliseconds(1)));
        edit.during = open.began.zip(ended);
        self.edits.push(edit);
    }

    fn tracked(&mut self, record: &Value<'_>, turn: u32) {
        if let (Some(path), Some(entry)) = (text(record, "path"), record.get("entry")) {
            let state = self.image(&entry);
            let images = self.history.entry((turn, self.full(Path::new(&path))));
            // The first touch counts.
            images.or_default().before.get_or_insert(state);
        }
    }

    fn checkpoint(&mut self, record: &Value<'_>, turn: u32) {
        if !record.get("phase").is_some_and(|p| p.is_str("end")) {
            return;
        }
        let entries = record.get("entries");
        for (path, entry) in entries.iter().flat_map(Value::entries) {
            let state = self.image(&entry);
            let path = self.full(Path::new(path.as_ref()));
            self.history.entry((turn, path)).or_default().after = Some(state);
        }
    }

    /// `key: null` says that the path did not exist; without a key nothing is said.
    fn image(&self, entry: &Value<'_>) -> State {
        let unknown = State::Unknown(Reason::NotRecorded);
        match entry.member("key") {
            Some(key) if key.is_null() => State::Absent,
            Some(key) => {
                let name = key.text().unwrap_or_default();
                let hash = text(entry, "contentHash").and_then(|h| sha256(&h));
                match (name.strip_prefix("file-history/"), hash) {
                    // A name in a record is never followed out of its folder.
                    (Some(name), Some(_)) if !name.contains('/') && !name.is_empty() => {
                        copy(&self.folder.join("file-history").join(name), hash)
                    }
                    _ => unknown,
                }
            }
            None => unknown,
        }
    }

    /// Gives the first and the last edit of each path in a turn the states that the history tells.
    fn attach(&mut self) {
        let mut open: Vec<Open> = self.open.drain().map(|(_, o)| o).collect();
        open.sort_by_key(|o| o.edit.turn);
        self.gaps.extend(open.iter().map(|o| unclear(&o.edit)));
        self.gaps.sort_by_key(|g| g.turn);
        let mut of_path: HashMap<(u32, PathBuf), (usize, usize)> = HashMap::new();
        for (n, edit) in self.edits.iter().enumerate() {
            let key = (edit.turn, self.full(&edit.path.path));
            of_path.entry(key).or_insert((n, n)).1 = n;
        }
        for (key, (first, last)) in of_path {
            let Some(images) = self.history.remove(&key) else {
                continue;
            };
            if let (Some(edit), Some(before)) = (self.edits.get_mut(first), images.before)
                && !matches!(before, State::Unknown(Reason::NotRecorded))
            {
                edit.before = before;
                edit.source = Source::Native;
            }
            if let (Some(edit), Some(after)) = (self.edits.get_mut(last), images.after)
                && !matches!(after, State::Unknown(_))
            {
                edit.after = after;
            }
        }
    }
}

/// A copy that is named and gone is unknown, never a neighbour's (`bugs.md` 21).
fn copy(path: &Path, sha256: Option<[u8; 32]>) -> State {
    match std::fs::symlink_metadata(path) {
        Ok(m) if m.is_file() => State::Held(Content {
            payload: Payload::File(path.to_path_buf()),
            fidelity: Fidelity::Exact,
            sha256,
        }),
        Ok(_) => State::Unknown(Reason::CopyGone),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => State::Unknown(Reason::CopyGone),
        Err(e) => State::Unknown(Reason::Unreadable(e.to_string())),
    }
}

fn unclear(edit: &Edit) -> Gap {
    Gap {
        turn: edit.turn,
        kind: GapKind::Tool,
        detail: format!(
            "whether the edit of `{}` was done is not recorded",
            edit.path.path.display()
        ),
    }
}

/// What a call of an edit tool asks for.
fn asked(name: &str, args: &Value<'_>, at: u64, turn: u32, call: &str) -> Option<Edit> {
    let place = Place::At(FileNo(0), at);
    let unknown = State::Unknown(Reason::NotRecorded);
    let (before, change, after) = match name {
        "Edit" => {
            let all = args.get("replace_all").is_some_and(|v| v.is_true());
            let occurs = if all {
                Occurs::Everywhere
            } else {
                Occurs::Once
            };
            let change = place.replace(args, ["old_string", "new_string"], occurs);
            (Reason::NotRecorded, change, unknown)
        }
        "Write" => {
            let adds = args.get("mode").is_some_and(|m| m.is_str("append"));
            let after = place.written(args, "content").filter(|_| !adds);
            (
                Reason::MaybeOverwritten,
                Change::Opaque,
                after.unwrap_or(unknown),
            )
        }
        _ => return None,
    };
    let path = text(args, "path").or_else(|| text(args, "file_path"))?;
    Some(Edit {
        turn,
        call: Some(call.to_owned()),
        path: RecordedPath::new(path),
        before: State::Unknown(before),
        source: Source::Reversed,
        mode: None,
        change,
        after,
        during: None,
    })
}

/// Calls that may change files without a record of it.
fn uncovered(name: &str, args: Option<&Value<'_>>) -> Option<(GapKind, String)> {
    match name {
        "Bash" | "Shell" => {
            let command = args.and_then(|a| text(a, "command"));
            Some((GapKind::Shell, command.unwrap_or_else(|| name.to_owned())))
        }
        "Agent" | "AgentSwarm" | "Task" => Some((
            GapKind::Tool,
            format!("{name}: what a sub-agent did is not read"),
        )),
        _ if name.starts_with("mcp__") => Some((GapKind::Tool, name.to_owned())),
        _ => None,
    }
}

impl Visit for Reader<'_> {
    fn starts(&self) -> &'static [&'static [u8]] {
        STARTS
    }

    fn wants(&mut self, head: &[u8]) -> Scan<Wants> {
        let mut fields = Fields::open(head, 0)?;
        let mut event = false;
        while let Some(field) = fields.pull()? {
            if field.is("message") {
                return Ok(Wants::No);
            }
            if field.is("type") {
                match field.value()?.text().unwrap_or_default().as_ref() {
                    "file_history.tracked" | "file_history.checkpoint" => return Ok(Wants::Whole),
                    "context.append_loop_event" => event = true,
                    _ => return Ok(Wants::No),
                }
            } else if event && field.is("event") && field.first()? == b'{' {
                return self.wants_event(field.fields()?);
            }
        }
        Ok(Wants::No)
    }

    fn take(&mut self, record: &[u8], at: u64) {
        let record = Value::head(record);
        // A line between the turns that are read is of a turn that was undone.
        let Some(turn) = turn_at(self.turns, at) else {
            return;
        };
        match super::kind(&record).as_str() {
            "file_history.tracked" => self.tracked(&record, turn),
            "file_history.checkpoint" => self.checkpoint(&record, turn),
            _ => {
                let Some(event) = record.get("event") else {
                    return;
                };
                match super::kind(&event).as_str() {
                    "tool.call" => self.called(&event, &record, at, turn),
                    "tool.result" => self.answered(&event, &record),
                    _ => {}
                }
            }
        }
    }
}

impl Reader<'_> {
    fn wants_event(&self, mut event: Fields<'_>) -> Scan<Wants> {
        let mut result = false;
        while let Some(field) = event.pull()? {
            if field.is("type") {
                match field.value()?.text().unwrap_or_default().as_ref() {
                    "tool.call" => return Ok(Wants::Whole),
                    "tool.result" => result = true,
                    _ => return Ok(Wants::No),
                }
            } else if result && field.is("toolCallId") {
                let id = field.value()?.text().unwrap_or_default();
                let ours = self.open.contains_key(id.as_ref());
                return Ok(if ours { Wants::Whole } else { Wants::No });
            }
        }
        Ok(Wants::No)
    }
}
