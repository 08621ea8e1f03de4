//! What the calls of a pi session did: `toolCall` blocks paired with their `toolResult`, of entries that the conversation
//! holds. A `write` may have taken the place of a file; the record does not say, so what was there before is not known,
//! unless the file was born in the call.
//!
//! One trap: where the old text of an edit does not stand in the file as it is, pi matches it loosely and then writes the
//! **whole file** without trailing white space and with plain quotes and dashes. The record shows this only by the text
//! that was asked for, so an edit is undone only when its old text would itself be changed so and the recorded diff
//! shows it as it was asked for. Where the old text is plain, nothing in the record could show a loose match: such an
//! edit is a gap, never a guess.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use chrono::{DateTime, TimeDelta, Utc};

use super::super::json::{Fields, Scan, Value};
use super::super::lines::{self, Visit, Wants};
use super::super::record::{Occurs, Place, text, turn_at};
use super::super::{Trouble, time};
use super::turns::{self, STARTS};
use crate::env::Env;
use crate::model::edit::{Calls, Change, Edit, Gap, GapKind, Reason, RecordedPath, Source, State};
use crate::model::session::{FileNo, Session, Span, Turn, Warnings};

/// A birth proves something only in a call that took no longer: nobody else wrote the file meanwhile.
const SOON: TimeDelta = TimeDelta::seconds(5);

/// Reads the calls of the turns from `from` on.
pub(super) fn read(session: &Session, from: u32, env: &Env) -> Result<Calls, Trouble> {
    let Some(first) = session.turn(from) else {
        return Ok(Calls::default());
    };
    let mut warnings = Warnings::default();
    let (pass, _) = turns::pass(session.path(), &mut Warnings::default())?;
    let entries = &pass.tree.entries;
    let active = pass.tree.active(&mut Warnings::default());
    let mut reader = Reader {
        turns: session.turns.get(from as usize..).unwrap_or_default(),
        active: active
            .iter()
            .filter_map(|n| entries.get(*n))
            .map(|e| e.start)
            .collect(),
        home: env.home.clone(),
        open: HashMap::new(),
        edits: Vec::new(),
        gaps: Vec::new(),
    };
    let span = Span {
        file: FileNo(0),
        start: first.span.start,
        end: session.len,
    };
    lines::scan(session.path(), span, &mut reader, &mut warnings)
        .map_err(Trouble::io(session.path()))?;
    Ok(reader.finish(warnings))
}

/// A call that waits for its result.
struct Open {
    edit: Edit,
    /// Old texts that pi would match loosely.
    loose: Vec<String>,
    began: Option<DateTime<Utc>>,
}

struct Reader<'a> {
    turns: &'a [Turn],
    /// Offsets of the entries that the conversation holds.
    active: HashSet<u64>,
    home: Option<PathBuf>,
    open: HashMap<String, Open>,
    edits: Vec<Edit>,
    gaps: Vec<Gap>,
}

impl Reader<'_> {
    fn answer(&mut self, message: &Value<'_>, record: &Value<'_>, at: u64, turn: u32) {
        let began = text(record, "timestamp").and_then(|t| time(&t));
        for block in message.get("content").iter().flat_map(Value::items) {
            if !block.get("type").is_some_and(|t| t.is_str("toolCall")) {
                continue;
            }
            let (Some(id), Some(name)) = (text(&block, "id"), text(&block, "name")) else {
                continue;
            };
            let Some(args) = block.get("arguments") else {
                continue;
            };
            if name == "bash" {
                self.shell(turn, &args);
            }
            if let Some(mut edit) = asked(&name, &args, at, turn, &id) {
                edit.path.path = self.expanded(edit.path.path);
                let loose = loose(&args);
                self.open.insert(id, Open { edit, loose, began });
            }
        }
    }

    fn shell(&mut self, turn: u32, of: &Value<'_>) {
        self.gaps.push(Gap {
            turn,
            kind: GapKind::Shell,
            detail: text(of, "command").unwrap_or_else(|| "bash".to_owned()),
        });
    }

    /// pi takes a leading `@` off a path and knows `~`.
    fn expanded(&self, path: PathBuf) -> PathBuf {
        let bare = path
            .to_str()
            .and_then(|p| p.strip_prefix('@'))
            .map(PathBuf::from);
        let path = bare.unwrap_or(path);
        match (path.strip_prefix("~"), &self.home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path,
        }
    }

    fn result(&mut self, message: &Value<'_>, record: &Value<'_>) {
        let open = text(message, "toolCallId").and_then(|id| self.open.remove(&id));
        let Some(open) = open else {
            return;
        };
        if message.get("isError").is_some_and(|e| e.is_true()) {
            return;
        }
        let mut edit = open.edit;
        let diff = message
            .get("details")
            .and_then(|d| text(&d, "diff"))
            .unwrap_or_default();
        let told = matches!(edit.change, Change::Replace { .. } | Change::Several(_));
        let shown = |l: &String| !l.trim().is_empty() && diff.contains(l);
        if told && (open.loose.is_empty() || !open.loose.iter().all(shown)) {
            edit.before = State::Unknown(Reason::NotReversible);
            edit.change = Change::Opaque;
        }
        // The record of a result is written a moment after its call ended.
        let ended = text(record, "timestamp").and_then(|t| time(&t));
        edit.during = open
            .began
            .zip(ended)
            .filter(|(a, b)| a <= b && *b - *a <= SOON);
        self.edits.push(edit);
    }

    fn finish(mut self, warnings: Warnings) -> Calls {
        let mut open: Vec<Open> = self.open.into_values().collect();
        open.sort_by_key(|o| o.edit.turn);
        for call in open {
            self.gaps.push(Gap {
                turn: call.edit.turn,
                kind: GapKind::Tool,
                detail: format!(
                    "whether the edit of `{}` was done is not recorded",
                    call.edit.path.path.display()
                ),
            });
        }
        self.gaps.sort_by_key(|g| g.turn);
        Calls {
            edits: self.edits,
            gaps: self.gaps,
            warnings,
        }
    }
}

/// What a call of an edit tool asks for.
fn asked(name: &str, args: &Value<'_>, at: u64, turn: u32, call: &str) -> Option<Edit> {
    let place = Place::At(FileNo(0), at);
    let unknown = State::Unknown(Reason::NotRecorded);
    let replace = |of: &Value<'_>| place.replace(of, ["oldText", "newText"], Occurs::Once);
    let (before, change, after) = match name {
        "edit" => {
            let change = match args.get("edits").filter(Value::is_array) {
                Some(edits) => Change::Several(edits.items().map(|e| replace(&e)).collect()),
                None => replace(args),
            };
            (Reason::NotRecorded, change, unknown)
        }
        "write" => (
            Reason::MaybeOverwritten,
            Change::Opaque,
            place.written(args, "content").unwrap_or(unknown),
        ),
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

/// Lines of the old texts that pi would write in another way where it matches loosely.
fn loose(args: &Value<'_>) -> Vec<String> {
    let edits = args.get("edits");
    let all = edits.iter().flat_map(Value::items).chain([*args]);
    let mut lines = Vec::new();
    for old in all.filter_map(|e| text(&e, "oldText")) {
        let odd = |l: &&str| !l.is_ascii() || l.ends_with(char::is_whitespace);
        lines.extend(old.split('\n').filter(odd).map(str::to_owned));
    }
    lines
}

impl Visit for Reader<'_> {
    fn starts(&self) -> &'static [&'static [u8]] {
        STARTS
    }

    fn wants(&mut self, head: &[u8]) -> Scan<Wants> {
        let mut fields = Fields::open(head, 0)?;
        while let Some(field) = fields.pull()? {
            if field.is("type") && !field.equals("message")? {
                return Ok(Wants::No);
            }
            if !field.is("message") || field.first()? != b'{' {
                continue;
            }
            let mut message = field.fields()?;
            while let Some(member) = message.pull()? {
                if member.is("role") {
                    let role = member.value()?.text().unwrap_or_default();
                    return Ok(match role.as_ref() {
                        "assistant" | "bashExecution" => Wants::Whole,
                        "toolResult" if !self.open.is_empty() => Wants::Whole,
                        _ => Wants::No,
                    });
                }
            }
        }
        Ok(Wants::No)
    }

    fn take(&mut self, record: &[u8], at: u64) {
        let record = Value::head(record);
        let (Some(turn), true) = (turn_at(self.turns, at), self.active.contains(&at)) else {
            return;
        };
        let Some(message) = record.get("message") else {
            return;
        };
        match text(&message, "role").as_deref() {
            Some("assistant") => self.answer(&message, &record, at, turn),
            Some("toolResult") => self.result(&message, &record),
            Some("bashExecution") => self.shell(turn, &message),
            _ => {}
        }
    }
}
