//! The walk through the calls: pairs calls with their results and events, and keeps what is certain.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;

use chrono::{DateTime, TimeDelta, Utc};

use super::super::super::json::{Fields, Scan, Value};
use super::super::super::lines::{Visit, Wants};
use super::super::super::patch::Section;
use super::super::super::time;
use super::super::look::{Look, STARTS, look};
use super::super::{prompts, text};
use super::changes::{self, Told};
use super::event::{During, Ended, Event};
use super::tools::{self, Effects, Outcome};
use crate::model::edit::{Calls, Change, Edit, Gap, GapKind, Reason, RecordedPath, Source, State};
use crate::model::session::{FileNo, Warnings};

/// Where turns begin: number and offset.
pub(super) type Starts = VecDeque<(u32, u64)>;

/// A call in legacy files has no start time of its own; the time of its record counts only when the event came this
/// soon, so that nobody was asked for approval in between.
const SOON: TimeDelta = TimeDelta::seconds(5);

/// The edit with nothing left of it but that it happened.
pub(super) fn unclear(edit: Edit) -> Edit {
    Edit {
        before: State::Unknown(Reason::NotReversible),
        after: State::Unknown(Reason::NotRecorded),
        change: Change::Opaque,
        during: None,
        ..edit
    }
}

/// A patch whose result has not come yet.
struct Pending {
    turn: u32,
    patches: Vec<(Vec<Section>, Option<PathBuf>)>,
    outcome: Outcome,
    at: Option<DateTime<Utc>>,
    /// In code mode the events have ids of their own.
    nested: bool,
}

/// Where an edit comes from.
#[derive(PartialEq, Eq)]
enum Evidence {
    Event,
    Text,
}

/// Collects edits and gaps.
#[derive(Default)]
pub(super) struct Reader {
    turn: u32,
    file: FileNo,
    /// The turns that are still to come in the span.
    starts: Starts,
    cwd: Option<PathBuf>,
    edits: Vec<(Evidence, Edit)>,
    gaps: Vec<(Option<String>, Gap)>,
    pending: HashMap<String, Pending>,
    /// Calls that an event told of.
    told: HashSet<String>,
    /// Calls that never ran.
    rejected: HashSet<String>,
    /// When calls were made, for the events of legacy files.
    made: HashMap<String, DateTime<Utc>>,
    /// Calls whose patch text names a path twice.
    twice: HashSet<String>,
    /// Paths that this turn deleted or moved away, while nothing else could have made them again.
    vacated: HashSet<RecordedPath>,
}

impl Reader {
    /// Begins a span.
    pub(super) fn enter(&mut self, file: FileNo, starts: Starts) {
        self.file = file;
        self.starts = starts;
    }

    /// Goes on to the turn that a record lies in.
    fn reach(&mut self, at: u64) {
        while let Some((turn, _)) = self
            .starts
            .front()
            .copied()
            .filter(|(_, start)| *start <= at)
        {
            self.starts.pop_front();
            self.turn = turn;
            // Between two turns a person may have made the file again.
            self.vacated.clear();
            self.made.clear();
        }
    }

    /// What was found.
    pub(super) fn finish(mut self) -> Calls {
        let mut open: Vec<Pending> = self.pending.drain().map(|(_, p)| p).collect();
        open.sort_by_key(|p| p.turn);
        for pending in open {
            self.gap(
                None,
                pending.turn,
                GapKind::Tool,
                "apply_patch: no result was recorded".to_owned(),
            );
        }
        let told = self.told;
        let twice = |e: &Edit| e.call.as_ref().is_some_and(|c| told.contains(c));
        let edits = self
            .edits
            .into_iter()
            .filter(|(from, e)| *from == Evidence::Event || !twice(e))
            .map(|(_, e)| e)
            .collect();
        let rejected = self.rejected;
        let ran = |call: &Option<String>| call.as_ref().is_none_or(|c| !rejected.contains(c));
        let mut gaps: Vec<Gap> = self
            .gaps
            .into_iter()
            .filter(|(call, _)| ran(call))
            .map(|(_, gap)| gap)
            .collect();
        gaps.sort_by_key(|g| g.turn);
        Calls {
            edits,
            gaps,
            warnings: Warnings::default(),
        }
    }

    fn gap(&mut self, call: Option<String>, turn: u32, kind: GapKind, detail: String) {
        // Whatever it was, it may have made a file again.
        self.vacated.clear();
        self.gaps.push((call, Gap { turn, kind, detail }));
    }

    /// A tool was called.
    fn called(&mut self, payload: &Value<'_>, at: Option<DateTime<Utc>>) {
        let call = text(payload, "call_id").or_else(|| text(payload, "id"));
        let effects = tools::effects(payload, self.cwd.as_deref());
        for (kind, detail) in effects.gaps() {
            self.gap(call.clone(), self.turn, kind, detail);
        }
        let Some(call) = call else {
            return;
        };
        if let Some(at) = at {
            self.made.insert(call.clone(), at);
        }
        self.patched(call, effects, at);
    }

    fn patched(&mut self, call: String, effects: Effects, at: Option<DateTime<Utc>>) {
        if effects.patches.is_empty() {
            return;
        }
        if tools::names_twice(&effects.patches) {
            self.twice.insert(call.clone());
        }
        // An event that came before its call is told already.
        if self.told.contains(&call) {
            return;
        }
        let pending = Pending {
            turn: self.turn,
            patches: effects.patches,
            outcome: effects.quiet,
            at,
            nested: effects.nested,
        };
        self.pending.insert(call, pending);
    }

    /// The result of a call came.
    fn answered(&mut self, payload: &Value<'_>, at: Option<DateTime<Utc>>) {
        let Some(call) = text(payload, "call_id") else {
            return;
        };
        let Some(pending) = self.pending.remove(&call) else {
            return;
        };
        let outcome = match payload.get("output") {
            Some(output) => tools::outcome(&output, pending.outcome),
            None => Outcome::Unclear,
        };
        match outcome {
            Outcome::Done => self.take_text(&call, pending, at),
            Outcome::Failed => {}
            Outcome::Unclear => self.gap(
                Some(call),
                pending.turn,
                GapKind::Tool,
                "apply_patch: its result does not say whether it was applied".to_owned(),
            ),
        }
    }

    /// Takes the edits of a patch text that was applied and that no event told of.
    fn take_text(&mut self, call: &str, pending: Pending, end: Option<DateTime<Utc>>) {
        let twice = self.twice.contains(call);
        let during = pending
            .at
            .zip(end)
            .filter(|(from, to)| *to >= *from && *to - *from <= SOON);
        for (sections, base) in pending.patches {
            for section in sections {
                let edits = changes::of_section(section, base.as_deref());
                for told in edits {
                    self.push(Evidence::Text, Some(call), told, during, twice);
                }
            }
        }
    }

    /// An event told what a patch did.
    fn event(&mut self, told: &Event<'_>) {
        if let Some(id) = &told.id
            && !self.told.insert(id.clone())
        {
            return;
        }
        let id = told.id.as_deref();
        if let Some(id) = id {
            self.pending.remove(id);
        }
        let nested: Vec<String> = self
            .pending
            .iter()
            .filter(|(_, p)| p.nested)
            .map(|(id, _)| id.clone())
            .collect();
        let mut twice = id.is_some_and(|id| self.twice.contains(id));
        for call in nested {
            twice |= self.twice.contains(&call);
            // The event speaks for the whole script: its text is not counted again.
            self.pending.remove(&call);
        }
        match told.ended {
            Ended::Applied => self.applied(told, twice),
            Ended::Declined => {}
            // A patch of several files can fail in the middle.
            Ended::Failed => self.gap(
                None,
                self.turn,
                GapKind::Tool,
                "apply_patch: it failed and may have changed some of its files".to_owned(),
            ),
        }
    }

    fn applied(&mut self, told: &Event<'_>, twice: bool) {
        let id = told.id.as_deref();
        let during = told.during.or_else(|| {
            let made = *self.made.get(id?)?;
            let end = told.at?;
            (end >= made && end - made <= SOON).then_some((made, end))
        });
        let all = changes::of_event(&told.changes, self.file, told.offset);
        let twice = twice || changes::name_twice(&all);
        for told in all {
            self.push(Evidence::Event, id, told, during, twice);
        }
    }

    fn push(
        &mut self,
        from: Evidence,
        call: Option<&str>,
        told: Told,
        during: Option<During>,
        twice: bool,
    ) {
        let (path, mut before) = (told.path, told.before);
        if path.path.to_string_lossy().contains('\u{fffd}') {
            // The name in the record is damaged: it would be another file's.
            let detail = format!("apply_patch: {}", path.path.display());
            return self.gap(None, self.turn, GapKind::Capture, detail);
        }
        let made_again = before == State::Unknown(Reason::MaybeOverwritten);
        if self.vacated.remove(&path) && made_again {
            before = State::Absent;
        }
        if told.after == State::Absent {
            self.vacated.insert(path.clone());
        }
        let edit = Edit {
            turn: self.turn,
            call: call.map(str::to_owned),
            path,
            before,
            source: Source::Reversed,
            mode: None,
            change: told.change,
            after: told.after,
            during,
        };
        // A patch that names a path twice tells only the last part of what it did to it, and in no order.
        self.edits
            .push((from, if twice { unclear(edit) } else { edit }));
    }
}

impl Visit for Reader {
    fn starts(&self) -> &'static [&'static [u8]] {
        STARTS
    }

    fn wants(&mut self, head: &[u8]) -> Scan<Wants> {
        let wanted = match look(head)? {
            Look::Context | Look::Odd => true,
            Look::Event(kind) => kind == "patch_apply_end",
            Look::Completed(kind) => kind == "FileChange",
            Look::Message(role) => role == "user",
            Look::Item(kind, fields) if kind.ends_with("_output") => {
                self.wants_output(fields, head)?
            }
            Look::Item(kind, _) => kind.ends_with("_call"),
            Look::Compacted | Look::Other => false,
        };
        Ok(if wanted { Wants::Whole } else { Wants::No })
    }

    fn take(&mut self, record: &[u8], at: u64) {
        self.reach(at);
        let record = Value::head(record);
        let payload = record.get("payload").unwrap_or(record);
        let when = text(&record, "timestamp").and_then(|t| time(&t));
        match text(&record, "type").unwrap_or_default().as_str() {
            "turn_context" => {
                let named = text(&payload, "cwd").map(PathBuf::from);
                self.cwd = named.or(self.cwd.take());
            }
            "event_msg" => {
                if let Some(event) = Event::of(&payload, &record, at) {
                    self.event(&event);
                }
            }
            _ => self.response(&payload, when),
        }
    }
}

impl Reader {
    fn response(&mut self, payload: &Value<'_>, when: Option<DateTime<Utc>>) {
        let kind = text(payload, "type").unwrap_or_default();
        if kind == "message" {
            let line = prompts::message(payload).and_then(|s| prompts::shell_line(&s));
            if let Some(line) = line {
                self.gap(None, self.turn, GapKind::Shell, tools::first_line(&line));
            }
        } else if kind.ends_with("_output") {
            self.answered(payload, when);
        } else if kind.ends_with("_call") {
            self.called(payload, when);
        }
    }

    /// A result matters only for a patch that waits for it; of the others the first bytes tell whether the call ran.
    fn wants_output(&mut self, mut fields: Fields<'_>, head: &[u8]) -> Scan<bool> {
        let mut call = None;
        while let Some(field) = fields.pull()? {
            if field.is("call_id") {
                let id = field.value()?.text().unwrap_or_default().into_owned();
                if self.pending.contains_key(&id) {
                    return Ok(true);
                }
                call = Some(id);
            } else if field.is("output") {
                let start = head.get(field.at..).unwrap_or_default();
                if let Some(id) = call.filter(|_| tools::never_ran(start)) {
                    self.rejected.insert(id);
                }
                // A call id behind the output is not how Codex writes it.
                return Ok(false);
            }
        }
        Ok(false)
    }
}
