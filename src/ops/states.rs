//! What a path held before and after each edit: as recorded, or worked out from the nearest state that is known for
//! certain. An agent without snapshots leaves a chain of diffs; it is undone from the newest state that is exact, and
//! where one link does not fit, all before it is unknown (`design.md` §4).

use std::collections::HashMap;

use super::change;
use super::contents::{self, Contents, is_plain};
use crate::fsx::tree::{FileKind, Root, SafePath};
use crate::model::edit::{Change, Content, Edit, Fidelity, Payload, Reason, RecordedPath, State};
use crate::model::session::Session;

/// The edits of a session from one turn on, each with the path that it changed below the root.
pub struct Chains<'a> {
    session: &'a Session,
    root: &'a Root,
    contents: &'a Contents<'a>,
    edits: Vec<(&'a Edit, SafePath)>,
    /// Per path, the indexes of its edits, oldest first.
    of_path: HashMap<SafePath, Vec<usize>>,
}

/// A state that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// The path did not exist.
    Absent,
    /// As a record names it.
    Named(Content),
    /// Worked out by undoing or redoing edits.
    Worked(Vec<u8>, Fidelity),
}

impl<'a> Chains<'a> {
    /// Takes edits whose paths are resolved, oldest first.
    #[must_use]
    pub fn new(
        session: &'a Session,
        root: &'a Root,
        contents: &'a Contents<'a>,
        edits: Vec<(&'a Edit, SafePath)>,
    ) -> Self {
        let mut of_path: HashMap<SafePath, Vec<usize>> = HashMap::new();
        for (index, (_, path)) in edits.iter().enumerate() {
            of_path.entry(path.clone()).or_default().push(index);
        }
        Self {
            session,
            root,
            contents,
            edits,
            of_path,
        }
    }

    /// Indexes of the edits of a path, oldest first.
    #[must_use]
    pub fn of(&self, path: &SafePath) -> &[usize] {
        self.of_path.get(path).map_or(&[], Vec::as_slice)
    }

    /// The paths that were edited.
    pub fn paths(&self) -> impl Iterator<Item = &SafePath> {
        self.of_path.keys()
    }

    /// The path of the edit at an index.
    #[must_use]
    pub fn path(&self, index: usize) -> Option<&SafePath> {
        self.edits.get(index).map(|(_, p)| p)
    }

    /// The edit at an index.
    #[must_use]
    pub fn edit(&self, index: usize) -> Option<&'a Edit> {
        self.edits.get(index).map(|(e, _)| *e)
    }

    /// What the record itself says that the path held before an edit.
    ///
    /// # Errors
    /// The reason why it does not say.
    pub fn told(&self, index: usize) -> Result<Known, Reason> {
        match self.edit(index).map(|e| &e.before) {
            Some(State::Absent) => Ok(Known::Absent),
            Some(State::Held(c)) => Ok(Known::Named(c.clone())),
            Some(State::Unknown(r)) => Err(r.clone()),
            None => Err(Reason::NotRecorded),
        }
    }

    /// What the path held before an edit, worked out by undoing it and those after it.
    ///
    /// # Errors
    /// Why that is not certain.
    pub fn undone(&self, index: usize) -> Result<Known, Reason> {
        if self.born_in(index) {
            return Ok(Known::Absent);
        }
        let why = match self.told(index) {
            Ok(known) => return Ok(known),
            Err(reason) => reason,
        };
        let mut undo: Vec<&Change> = Vec::new();
        let mut at = index;
        let base = loop {
            match self.step(at, &mut undo, &why)? {
                Step::Base(known) => break known,
                Step::Next(next) => at = next,
            }
            // Each step goes to a later edit, but for a move, whose two ends stand side by side.
            if undo.len() > self.edits.len() {
                return Err(Reason::NotReversible);
            }
        };
        self.apply_undo(base, &undo)
    }

    /// One step from "before edit `at`" toward a state that is known.
    fn step(&self, at: usize, undo: &mut Vec<&'a Change>, why: &Reason) -> Result<Step, Reason> {
        if !undo.is_empty()
            && let Ok(known) = self.told(at)
        {
            return Ok(Step::Base(known));
        }
        let (edit, _) = self.edits.get(at).ok_or(Reason::NotReversible)?;
        let mut from = at;
        match &edit.change {
            Change::Opaque => {
                let first = undo.is_empty();
                return Err(if first {
                    why.clone()
                } else {
                    Reason::NotReversible
                });
            }
            Change::MovedFrom(..) => return Err(why.clone()),
            Change::MovedTo(to, inner) => {
                from = self.other_end(at, to).ok_or(Reason::NotReversible)?;
                undo.push(inner);
            }
            change => undo.push(change),
        }
        let (edit, path) = self.edits.get(from).ok_or(Reason::NotReversible)?;
        match &edit.after {
            State::Held(c) => return Ok(Step::Base(Known::Named(c.clone()))),
            State::Absent => return Ok(Step::Base(Known::Absent)),
            State::Unknown(_) => {}
        }
        match self.of(path).iter().find(|i| **i > from) {
            Some(next) => Ok(Step::Next(*next)),
            None => self.on_disk(path).map(Step::Base),
        }
    }

    /// The edit of the path that a file moved to, in the same call.
    fn other_end(&self, at: usize, to: &RecordedPath) -> Option<usize> {
        let call = self.edit(at)?.call.as_ref();
        let path = self.root.resolve(to, self.session.root.as_deref()).ok()?;
        let of_call = |i: &&usize| self.edit(**i).is_some_and(|e| e.call.as_ref() == call);
        self.of(&path)
            .iter()
            .filter(of_call)
            .min_by_key(|i| i.abs_diff(at))
            .copied()
    }

    fn on_disk(&self, path: &SafePath) -> Result<Known, Reason> {
        let look = self
            .root
            .fingerprint(path)
            .map_err(|e| crate::fsx::tree::reason_of(&e))?;
        match look.print.kind {
            FileKind::File if look.print.len > contents::MOST => Err(Reason::TooLarge),
            FileKind::File => {
                let bytes = self.root.read(path).map_err(|e| contents::reason(&e))?;
                Ok(Known::Worked(bytes, Fidelity::Exact))
            }
            _ => Err(Reason::NotReversible),
        }
    }

    fn apply_undo(&self, base: Known, undo: &[&Change]) -> Result<Known, Reason> {
        let (mut bytes, mut fidelity) = match base {
            Known::Absent => return Err(Reason::NotReversible),
            Known::Named(c) => (self.contents.load(&c)?, c.fidelity),
            Known::Worked(b, f) => (b, f),
        };
        for change in undo.iter().rev() {
            if text_only(change) && !is_plain(&bytes) {
                return Err(Reason::TextOnly);
            }
            let look = |c: &Content| self.contents.load(c).ok();
            bytes = change::undo(change, &bytes, &look).ok_or(Reason::NotReversible)?;
            // The agent may have read and written the file through a decoder that damaged it.
            if text_only(change) && contents::is_replaced(&bytes) {
                return Err(Reason::TextOnly);
            }
            if text_only(change) && fidelity == Fidelity::Exact && !is_plain(&bytes) {
                fidelity = Fidelity::Text;
            }
        }
        Ok(Known::Worked(bytes, fidelity))
    }

    /// What an edit left, as recorded or by redoing the edits up to it from a state that is recorded.
    #[must_use]
    pub fn left(&self, index: usize, reach: Reach) -> Option<Known> {
        let (edit, path) = self.edits.get(index)?;
        match &edit.after {
            State::Absent => return Some(Known::Absent),
            State::Held(c) => return Some(Known::Named(c.clone())),
            State::Unknown(_) => {}
        }
        // Back to the nearest state that is recorded. Beyond this turn somebody may have changed the file in between.
        let mut redo: Vec<&Change> = vec![&edit.change];
        let mut at = index;
        let base = loop {
            if let Ok(known) = self.told(at) {
                break known;
            }
            at = self.of(path).iter().copied().rev().find(|i| *i < at)?;
            let near = |e: &&Edit| reach == Reach::Session || e.turn == edit.turn;
            let before = self.edit(at).filter(near)?;
            match &before.after {
                State::Absent => break Known::Absent,
                State::Held(c) => break Known::Named(c.clone()),
                State::Unknown(_) => redo.push(&before.change),
            }
        };
        self.apply_redo(&base, &redo)
    }

    fn apply_redo(&self, base: &Known, redo: &[&Change]) -> Option<Known> {
        let (mut bytes, mut fidelity) = match base {
            Known::Absent => (Vec::new(), Fidelity::Exact),
            Known::Named(c) => (self.contents.load(c).ok()?, c.fidelity),
            Known::Worked(b, f) => (b.clone(), *f),
        };
        for change in redo.iter().rev() {
            if text_only(change) {
                bytes = contents::plain(&bytes);
                fidelity = Fidelity::Text;
            }
            let look = |c: &Content| self.contents.load(c).ok();
            bytes = change::redo(change, &bytes, &look)?;
        }
        Some(Known::Worked(bytes, fidelity))
    }

    /// Whether the file on disk was born inside the call: then the call made it, and nothing was there before. The
    /// clock of a file system runs in ticks, so the birth may be told a little early.
    fn born_in(&self, index: usize) -> bool {
        let Some((edit, path)) = self.edits.get(index) else {
            return false;
        };
        let (State::Unknown(Reason::MaybeOverwritten), Some((began, ended))) =
            (&edit.before, edit.during)
        else {
            return false;
        };
        let tick = chrono::TimeDelta::milliseconds(20);
        self.root
            .fingerprint(path)
            .ok()
            .and_then(|l| l.born)
            .is_some_and(|born| (began - tick..=ended + tick).contains(&born))
    }
}

/// How far back to look for a state to redo from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Within the turn of the edit.
    Turn,
    /// In all of the session: a guess, to be held against what is on disk.
    Session,
}

enum Step {
    Base(Known),
    Next(usize),
}

/// Whether a change is recorded as text that may have lost line ends and a byte order mark.
fn text_only(change: &Change) -> bool {
    let text = |c: &Content| c.fidelity == Fidelity::Text && !matches!(c.payload, Payload::File(_));
    match change {
        Change::Opaque => false,
        Change::Replace { old, new, .. } => text(old) || text(new),
        Change::Hunks(c) => text(c),
        Change::Several(all) | Change::AnyOf(all) => all.iter().any(text_flat),
        Change::MovedFrom(_, inner) | Change::MovedTo(_, inner) => text_flat(inner),
    }
}

/// The same, one level down: changes nest no deeper in any record.
fn text_flat(change: &Change) -> bool {
    match change {
        Change::Replace { old, .. } => old.fidelity == Fidelity::Text,
        Change::Hunks(c) => c.fidelity == Fidelity::Text,
        _ => false,
    }
}
