//! What the calls of a list of messages did: each paired with its result by id. An attempted call is not an applied one:
//! one that failed did nothing, and one of which nothing tells may have done what it asked for or not.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use super::super::Trouble;
use super::super::json::{Scan, Value};
use super::super::lines::{self, Visit, Wants};
use super::super::record::{Place, turn_at};
use super::tools::{self, Tool};
use super::{Action, Dialect, Input};
use crate::model::edit::{Calls, Change, Edit, Gap, GapKind, Reason, State};
use crate::model::session::{FileNo, Session, Span, Turn, Warnings};

/// Reads the calls of the turns from `from` on.
///
/// # Errors
/// [`Trouble::Io`].
pub(in super::super) fn calls(
    session: &Session,
    from: u32,
    dialect: &dyn Dialect,
) -> Result<Calls, Trouble> {
    let Some(first) = session.turn(from) else {
        return Ok(Calls::default());
    };
    let last = session.turns.last().map_or(session.len, |t| t.span.end);
    let mut reader = Reader {
        dialect,
        turns: session.turns.get(from as usize..).unwrap_or_default(),
        open: HashMap::new(),
        edits: Vec::new(),
        gaps: Vec::new(),
    };
    let mut warnings = Warnings::default();
    let span = Span {
        file: FileNo(0),
        start: first.span.start,
        end: last,
    };
    lines::scan(session.path(), span, &mut reader, &mut warnings)
        .map_err(Trouble::io(session.path()))?;
    let mut left: Vec<Edit> = reader
        .open
        .drain()
        .flat_map(|(_, open)| open.edits)
        .collect();
    // Nothing tells whether these were done.
    left.sort_by(|a, b| (a.turn, &a.path.path).cmp(&(b.turn, &b.path.path)));
    for edit in left {
        reader.edits.push(attempted(edit));
    }
    reader.edits.sort_by_key(|e| e.turn);
    Ok(Calls {
        edits: reader.edits,
        gaps: reader.gaps,
        warnings,
    })
}

/// An edit that may have been done or not: its path is known, and nothing else.
fn attempted(edit: Edit) -> Edit {
    Edit {
        before: State::Unknown(Reason::NotRecorded),
        change: Change::Opaque,
        after: State::Unknown(Reason::NotRecorded),
        ..edit
    }
}

/// A call that waits for its result.
struct Open {
    edits: Vec<Edit>,
    began: Option<DateTime<Utc>>,
}

struct Reader<'a> {
    dialect: &'a dyn Dialect,
    turns: &'a [Turn],
    open: HashMap<String, Open>,
    edits: Vec<Edit>,
    gaps: Vec<Gap>,
}

impl Reader<'_> {
    fn called(&mut self, (id, name): (Option<String>, &str), input: &Input<'_>, now: Now) {
        let Some(tool) = self.dialect.tool(name) else {
            return;
        };
        let (value, place) = match input {
            Input::Value(v) => (Some(*v), Place::At(FileNo(0), now.at)),
            Input::Text(t) => (Value::of(t), Place::Inside),
        };
        let (turn, names) = (now.turn, self.dialect.names());
        if matches!(tool, Tool::Shell | Tool::Other) {
            let command = value.as_ref().and_then(|v| tools::command(v, names));
            let kind = if tool == Tool::Shell {
                GapKind::Shell
            } else {
                GapKind::Tool
            };
            let detail = command.unwrap_or_else(|| name.to_owned());
            self.gaps.push(Gap { turn, kind, detail });
            return;
        }
        // A patch may be the whole of the arguments, as plain text.
        let patch = match (tool, input, &value) {
            (Tool::Patch, Input::Text(t), None) => tools::of_patch(t),
            _ => Vec::new(),
        };
        let mut edits = match &value {
            Some(value) => tools::asked(tool, value, names, place),
            None => patch,
        };
        if edits.is_empty() {
            self.gaps.push(Gap {
                turn,
                kind: GapKind::Tool,
                detail: format!("what a call of `{name}` asked for is not understood"),
            });
            return;
        }
        for edit in &mut edits {
            edit.turn = turn;
            edit.call.clone_from(&id);
        }
        let began = now.when;
        match id {
            Some(id) if self.dialect.has_results() => {
                self.open.insert(id, Open { edits, began });
            }
            _ => self.edits.extend(edits.into_iter().map(attempted)),
        }
    }

    fn ended(&mut self, id: &str, done: Option<bool>, now: Now) {
        let Some(open) = self.open.remove(id) else {
            return;
        };
        match done {
            Some(true) => {
                let during = open.began.zip(now.when);
                let edits = open.edits.into_iter();
                self.edits.extend(edits.map(|e| Edit { during, ..e }));
            }
            Some(false) => {}
            None => self.edits.extend(open.edits.into_iter().map(attempted)),
        }
    }
}

/// Where and when a record stands.
#[derive(Clone, Copy)]
struct Now {
    turn: u32,
    at: u64,
    when: Option<DateTime<Utc>>,
}

impl Visit for Reader<'_> {
    fn starts(&self) -> &'static [&'static [u8]] {
        &[]
    }

    fn wants(&mut self, _head: &[u8]) -> Scan<Wants> {
        Ok(Wants::Whole)
    }

    fn take(&mut self, bytes: &[u8], at: u64) {
        let (Some(record), Some(turn)) = (Value::of(bytes), turn_at(self.turns, at)) else {
            return;
        };
        let when = self.dialect.at(&record);
        let now = Now { turn, at, when };
        let dialect = self.dialect;
        dialect.actions(&record, &mut |action| match action {
            Action::Call { id, name, input } => self.called((id, &name), &input, now),
            Action::Result { id, done } => self.ended(&id, done, now),
        });
    }
}

/// The calls of a format whose tools are not understood: nothing, and each turn says so.
pub(in super::super) fn not_understood(session: &Session, from: u32) -> Calls {
    let gap = |t: &Turn| Gap {
        turn: t.no,
        kind: GapKind::Tool,
        detail: "what the agent did to files is not read from its transcript".to_owned(),
    };
    Calls {
        gaps: session
            .turns
            .iter()
            .filter(|t| t.no >= from)
            .map(gap)
            .collect(),
        ..Calls::default()
    }
}
