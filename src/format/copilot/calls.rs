//! What the calls of a Copilot session did: `tool.execution_start` paired with its `tool.execution_complete`. Only a
//! call whose result says `success` changed anything. The states come from `snapshots`, where there are any.

use std::collections::HashMap;
use std::path::PathBuf;

use chrono::{DateTime, Utc};

use super::super::json::{Fields, Scan, Value};
use super::super::lines::{self, Visit, Wants};
use super::super::patch::envelope;
use super::super::record::{Occurs, Place, text, turn_at};
use super::super::{Trouble, time};
use super::snapshots;
use super::turns::STARTS;
use crate::model::edit::{Calls, Change, Edit, Gap, GapKind, Reason, RecordedPath, Source, State};
use crate::model::session::{FileNo, Session, Span, Turn, Warnings};

/// Reads the calls of the turns from `from` on.
pub(super) fn read(session: &Session, from: u32) -> Result<Calls, Trouble> {
    let Some(first) = session.turn(from) else {
        return Ok(Calls::default());
    };
    let mut reader = Reader {
        turns: session.turns.get(from as usize..).unwrap_or_default(),
        open: HashMap::new(),
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
    let (mut edits, mut gaps) = reader.finish();
    snapshots::read(session, from)?.attach(&mut edits, &mut gaps, session.root.as_deref());
    gaps.sort_by_key(|g| g.turn);
    Ok(Calls {
        edits,
        gaps,
        warnings,
    })
}

/// Whether a call of this turn has no result at the turn's end: the model refuses a call without one.
pub(super) fn open_at_end(session: &Session, turn: &Turn) -> Result<bool, Trouble> {
    let mut reader = Reader {
        turns: std::slice::from_ref(turn),
        open: HashMap::new(),
        edits: Vec::new(),
        gaps: Vec::new(),
    };
    lines::scan(
        session.path(),
        turn.span,
        &mut reader,
        &mut Warnings::default(),
    )
    .map_err(Trouble::io(session.path()))?;
    Ok(!reader.open.is_empty() && !turn.interrupted)
}

/// A call that waits for its result.
struct Open {
    turn: u32,
    tool: String,
    edits: Vec<Edit>,
    began: Option<DateTime<Utc>>,
}

struct Reader<'a> {
    turns: &'a [Turn],
    open: HashMap<String, Open>,
    edits: Vec<Edit>,
    gaps: Vec<Gap>,
}

impl Reader<'_> {
    fn started(&mut self, record: &Value<'_>, at: u64) {
        let (Some(data), Some(turn)) = (record.get("data"), turn_at(self.turns, at)) else {
            return;
        };
        let Some(id) = text(&data, "toolCallId") else {
            return;
        };
        let tool = text(&data, "toolName").unwrap_or_default();
        let args = data.get("arguments");
        if let Some((kind, detail)) = uncovered(&tool, &data, args.as_ref()) {
            self.gaps.push(Gap { turn, kind, detail });
        }
        let edits = args.map_or_else(Vec::new, |a| asked(&tool, &a, at));
        let began = text(record, "timestamp").and_then(|t| time(&t));
        let open = Open {
            turn,
            tool,
            edits: edits.into_iter().map(|e| e.of(turn, &id)).collect(),
            began,
        };
        self.open.insert(id, open);
    }

    fn completed(&mut self, record: &Value<'_>) {
        let Some(data) = record.get("data") else {
            return;
        };
        let Some((id, open)) = text(&data, "toolCallId").and_then(|i| self.open.remove_entry(&i))
        else {
            return;
        };
        if !data.get("success").is_some_and(|s| s.is_true()) {
            return;
        }
        let ended = text(record, "timestamp").and_then(|t| time(&t));
        let during = open.began.zip(ended).filter(|(a, b)| a <= b);
        let mut edits = open.edits;
        // A newer tool is known by the files that its result names.
        for path in data.get("fileEdits").iter().flat_map(Value::items) {
            let Some(path) = text(&path, "path").map(PathBuf::from) else {
                continue;
            };
            if edits.iter().all(|e| !path.ends_with(&e.path.path)) {
                edits.push(Asked::opaque(path).of(open.turn, &id));
            }
        }
        for edit in &mut edits {
            edit.during = during;
        }
        self.edits.append(&mut edits);
    }

    /// Calls without a result: an edit tool among them may have done its work.
    fn finish(mut self) -> (Vec<Edit>, Vec<Gap>) {
        let mut open: Vec<Open> = self.open.into_values().collect();
        open.retain(|o| !o.edits.is_empty());
        open.sort_by_key(|o| o.turn);
        for call in open {
            self.gaps.push(Gap {
                turn: call.turn,
                kind: GapKind::Tool,
                detail: format!("{}: no result was recorded", call.tool),
            });
        }
        (self.edits, self.gaps)
    }
}

/// What a call asks for.
struct Asked {
    path: PathBuf,
    before: Reason,
    change: Change,
    after: State,
}

impl Asked {
    fn opaque(path: PathBuf) -> Self {
        Self {
            path,
            before: Reason::NotReversible,
            change: Change::Opaque,
            after: State::Unknown(Reason::NotRecorded),
        }
    }

    fn of(self, turn: u32, call: &str) -> Edit {
        Edit {
            turn,
            call: Some(call.to_owned()),
            path: RecordedPath::new(self.path),
            before: State::Unknown(self.before),
            source: Source::Reversed,
            mode: None,
            change: self.change,
            after: self.after,
            during: None,
        }
    }
}

/// Arguments come as an object, as JSON in a string, or as the text of a patch.
fn asked(tool: &str, args: &Value<'_>, at: u64) -> Vec<Asked> {
    if args.is_object() {
        return of_object(tool, args, Place::At(FileNo(0), at));
    }
    let Some(inner) = args.bytes() else {
        return Vec::new();
    };
    match Value::of(&inner).filter(Value::is_object) {
        Some(object) => of_object(tool, &object, Place::Inside),
        None => of_patch(&inner),
    }
}

fn of_object(tool: &str, args: &Value<'_>, place: Place) -> Vec<Asked> {
    let verb = match tool {
        "str_replace_editor" => text(args, "command").unwrap_or_default(),
        _ => tool.to_owned(),
    };
    let path = text(args, "path").filter(|p| !p.is_empty());
    let one = |asked: Option<Asked>| asked.into_iter().collect();
    match verb.as_str() {
        "create" => one(path.map(|p| Asked {
            before: Reason::MaybeOverwritten,
            after: place
                .written(args, "file_text")
                .unwrap_or(State::Unknown(Reason::NotRecorded)),
            ..Asked::opaque(p.into())
        })),
        "edit" | "str_replace" => one(path.map(|p| Asked {
            before: Reason::NotRecorded,
            change: place.replace(args, ["old_str", "new_str"], Occurs::Once),
            ..Asked::opaque(p.into())
        })),
        "insert" => one(path.map(|p| Asked::opaque(p.into()))),
        "apply_patch" => ["input", "patch", "command"]
            .iter()
            .find_map(|n| args.get(n)?.bytes())
            .map_or_else(Vec::new, |patch| of_patch(&patch)),
        _ => Vec::new(),
    }
}

/// The hunks of a patch text have no line numbers, so they cannot be undone for certain; the snapshots can.
fn of_patch(patch: &[u8]) -> Vec<Asked> {
    envelope(patch)
        .unwrap_or_default()
        .into_iter()
        .map(|section| Asked::opaque(section.path))
        .collect()
}

/// Calls that may change files without a record of it.
fn uncovered(tool: &str, data: &Value<'_>, args: Option<&Value<'_>>) -> Option<(GapKind, String)> {
    let command = || args.and_then(|a| text(a, "command").or_else(|| text(a, "input")));
    match tool {
        "bash" | "powershell" | "shell" | "write_bash" | "write_powershell" => {
            Some((GapKind::Shell, command().unwrap_or_else(|| tool.to_owned())))
        }
        _ if data.get("mcpServerName").is_some() => Some((GapKind::Tool, tool.to_owned())),
        _ => None,
    }
}

impl Visit for Reader<'_> {
    fn starts(&self) -> &'static [&'static [u8]] {
        STARTS
    }

    fn wants(&mut self, head: &[u8]) -> Scan<Wants> {
        let mut fields = Fields::open(head, 0)?;
        let mut completes = false;
        while let Some(field) = fields.pull()? {
            if field.is("type") {
                match field.value()?.text().unwrap_or_default().as_ref() {
                    "tool.execution_start" => return Ok(Wants::Whole),
                    "tool.execution_complete" => completes = true,
                    _ => return Ok(Wants::No),
                }
            } else if completes && field.is("data") && field.first()? == b'{' {
                let mut data = field.fields()?;
                while let Some(member) = data.pull()? {
                    if member.is("toolCallId") {
                        let id = member.value()?.text().unwrap_or_default();
                        let ours = self.open.contains_key(id.as_ref());
                        return Ok(if ours { Wants::Whole } else { Wants::No });
                    }
                }
                return Ok(Wants::No);
            }
        }
        Ok(Wants::No)
    }

    fn take(&mut self, record: &[u8], at: u64) {
        let record = Value::head(record);
        match text(&record, "type").as_deref() {
            Some("tool.execution_start") => self.started(&record, at),
            Some("tool.execution_complete") => self.completed(&record),
            _ => {}
        }
    }
}
