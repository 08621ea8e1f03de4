//! The plan that takes an operation back, from its record alone: each path must be what the operation left and becomes
//! what it was before. A redo is the same for an undo. Writes nothing.
//!
//! A path that is back already is fine. One that is neither was changed since: a conflict, as in a restore. A session
//! file that went on after its cut is refused whatever the policy: both its ends are real, and only one can stay. The
//! files alone can still be taken back then, with [`Scope::Code`].

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;

use super::apply::each;
use super::apply::session::mark;
use super::journal::{Journal, Log, Operation, Record, SessionChange, SessionRecord, StepRecord};
use super::plan::{
    Act, Bytes, Conflict, ConflictKind, Make, Missing, Plan, SessionMake, SessionStep, Step,
};
use crate::error::{Error, Kind, Result};
use crate::fsx::hash;
use crate::fsx::tree::{FileKind, Fingerprint, Folders, Look, Root, SafePath, reason_of};
use crate::model::edit::Reason;
use crate::model::point::{OnConflict, Scope};

/// How an operation is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct How {
    /// What to do with paths that were changed since.
    pub on: OnConflict,
    /// What goes back, of what the operation changed.
    pub scope: Scope,
}

impl Default for How {
    fn default() -> Self {
        Self {
            on: OnConflict::Fail,
            scope: Scope::Both,
        }
    }
}

/// The plan that takes a restore, or a redo, back. With [`OnConflict::Fail`] a conflict has no step, and the caller
/// must not apply a plan that has one.
///
/// # Errors
/// [`Kind::NotFound`]: no such operation. [`Kind::Conflict`]: it was taken back already, or the session went on.
/// [`Kind::Damaged`]: its saved bytes are gone.
pub fn plan_undo(journal: &Journal, root: &Root, id: &str, how: How) -> Result<Plan> {
    let log = journal.log()?;
    let operation = find(&log, id)?;
    if !log.can_undo(id) {
        return Err(not_on_top(id, "is not one that can be undone now"));
    }
    inverse(journal, root, (operation, Act::Undo(id.to_owned())), how)
}

/// The plan that takes an undo back.
///
/// # Errors
/// As [`plan_undo`].
pub fn plan_redo(journal: &Journal, root: &Root, id: &str, how: How) -> Result<Plan> {
    let log = journal.log()?;
    let operation = find(&log, id)?;
    if !log.can_redo(id) {
        return Err(not_on_top(id, "is not one that can be redone now"));
    }
    inverse(journal, root, (operation, Act::Redo(id.to_owned())), how)
}

fn find<'l>(log: &'l Log, id: &str) -> Result<&'l Operation> {
    log.find(id).ok_or_else(|| {
        Error::new(
            Kind::NotFound,
            format!("no operation `{id}` in the journal"),
        )
        .hint("run `rewind log` to see what is")
    })
}

fn not_on_top(id: &str, words: &str) -> Error {
    Error::new(Kind::Conflict, format!("operation `{id}` {words}"))
        .hint("run `rewind log` to see what can be")
}

fn inverse(
    journal: &Journal,
    root: &Root,
    (operation, act): (&Operation, Act),
    how: How,
) -> Result<Plan> {
    let record = journal.record(operation)?;
    let mut plan = Plan {
        act,
        root: root.path().to_path_buf(),
        scope: narrowed(record.scope, how.scope),
        point: record.point.clone(),
        steps: Vec::new(),
        session: Vec::new(),
        equal: Vec::new(),
        conflicts: Vec::new(),
        missing: Vec::new(),
        outside: Vec::new(),
        unsure: Vec::new(),
        gaps: Vec::new(),
    };
    if how.scope.conversation() {
        plan.session = session_steps(journal, &record)?;
    }
    if how.scope.code() {
        let work = Inverse {
            journal,
            record: &record,
            folders: &Folders::new(root),
            on: how.on,
        };
        let found = each::map(&record.steps, |_, step| work.path(step))?;
        for found in found {
            take(&mut plan, found);
        }
    }
    Ok(plan)
}

/// What was asked for, of what the operation changed; where the two have nothing in common, what was asked for.
fn narrowed(done: Scope, asked: Scope) -> Scope {
    match (done, asked) {
        (done, Scope::Both) => done,
        (_, asked) => asked,
    }
}

/// What becomes of one path.
enum Found {
    Equal(SafePath),
    Step(Step),
    Conflict(Conflict, Option<Step>),
    Missing(Missing),
}

fn take(plan: &mut Plan, found: Found) {
    match found {
        Found::Equal(path) => plan.equal.push(path),
        Found::Step(step) => plan.steps.push(step),
        Found::Missing(missing) => plan.missing.push(missing),
        Found::Conflict(conflict, step) => {
            plan.conflicts.push(conflict);
            plan.steps.extend(step);
        }
    }
}

struct Inverse<'a> {
    journal: &'a Journal,
    record: &'a Record,
    folders: &'a Folders<'a>,
    on: OnConflict,
}

impl Inverse<'_> {
    fn path(&self, step: &StepRecord) -> Result<Found> {
        let look = match self.folders.look(&step.path) {
            Ok(look) => look,
            Err(e) => return Ok(self.missing(step, reason_of(&e))),
        };
        let now = &look.print;
        if *now == step.before {
            return Ok(Found::Equal(step.path.clone()));
        }
        if look.nlink > 1 && now.kind == FileKind::File {
            return Ok(self.missing(step, Reason::HardLink));
        }
        if *now == step.after {
            return Ok(Found::Step(self.step(step, look.print)?));
        }
        let conflict = Conflict {
            path: step.path.clone(),
            why: why(step, now),
        };
        let instead = match self.on {
            OnConflict::Fail | OnConflict::Keep => None,
            OnConflict::Overwrite => self.overwrite(step, look)?,
            OnConflict::Beside => self.beside(step)?,
        };
        Ok(Found::Conflict(conflict, instead))
    }

    fn missing(&self, step: &StepRecord, reason: Reason) -> Found {
        Found::Missing(Missing {
            path: step.path.as_path().to_path_buf(),
            reason,
            turn: self.record.point.turn,
        })
    }

    /// The step from what is there now to what was there before.
    fn step(&self, step: &StepRecord, now: Fingerprint) -> Result<Step> {
        let make = if step.before.kind == FileKind::Absent {
            Make::Absent(self.made_above(&step.path))
        } else if now.same_bytes(&step.before) {
            Make::Mode(step.before.mode)
        } else {
            self.saved(step)?
        };
        Ok(Step {
            path: step.path.clone(),
            expect: now,
            make,
            source: None,
            turn: None,
        })
    }

    fn overwrite(&self, step: &StepRecord, look: Look) -> Result<Option<Step>> {
        match look.print.kind {
            // The operation changed the mode alone: the mode alone goes back, on whatever the file holds now. Of a
            // file that somebody deleted since, it never held the bytes.
            FileKind::Absent if mode_alone(step) => Ok(None),
            FileKind::File if mode_alone(step) => Ok(Some(Step {
                path: step.path.clone(),
                expect: look.print,
                make: Make::Mode(step.before.mode),
                source: None,
                turn: None,
            })),
            FileKind::Absent | FileKind::File => self.step(step, look.print).map(Some),
            // A folder, link or device is nobody's to replace.
            FileKind::Dir | FileKind::Link | FileKind::Other => Ok(None),
        }
    }

    /// The old bytes as `<name>.rewind`, where that name is free; nothing where there were none.
    fn beside(&self, step: &StepRecord) -> Result<Option<Step>> {
        let mut name = OsString::from(step.path.name());
        name.push(".rewind");
        let Ok(path) = step.path.beside(&name) else {
            return Ok(None);
        };
        let free = |look: Look| look.print.kind == FileKind::Absent;
        if step.before.kind == FileKind::Absent
            || mode_alone(step)
            || !self.folders.look(&path).is_ok_and(free)
        {
            return Ok(None);
        }
        Ok(Some(Step {
            path,
            expect: Fingerprint::absent(),
            make: self.saved(step)?,
            source: None,
            turn: None,
        }))
    }

    /// Folders above a path that the operation made, deepest first.
    fn made_above(&self, path: &SafePath) -> Vec<SafePath> {
        let made = &self.record.made_folders;
        let mut above = path.folders();
        above.retain(|f| made.contains(f));
        above
    }

    /// The bytes that were there before, from the journal.
    fn saved(&self, step: &StepRecord) -> Result<Make> {
        let gone =
            |words: &str| damaged(self.folders.root().path().join(step.path.as_path()), words);
        let Some(name) = &step.saved else {
            return Err(gone("has no saved bytes"));
        };
        let path = self.journal.saved(&self.record.id, name);
        if !holds(&path, (step.before.len, &step.before.sha256))? {
            return Err(gone(
                "has saved bytes that are gone or are not the same any more",
            ));
        }
        let sha256 = hash::unhex(&step.before.sha256).and_then(|b| b.try_into().ok());
        Ok(Make::File {
            bytes: Bytes::File(path),
            sha256: sha256.ok_or_else(|| gone("has a record without a hash"))?,
            len: step.before.len,
            mode: Some(step.before.mode),
        })
    }
}

/// Whether the operation changed a file's mode and left its bytes, which it therefore did not save.
fn mode_alone(step: &StepRecord) -> bool {
    step.saved.is_none()
        && step.before.kind == FileKind::File
        && step.after.same_bytes(&step.before)
}

fn why(step: &StepRecord, now: &Fingerprint) -> ConflictKind {
    match (now.kind, step.after.kind) {
        (FileKind::Absent, _) => ConflictKind::Deleted,
        (FileKind::File, FileKind::Absent) => ConflictKind::Created,
        (FileKind::File, _) => ConflictKind::Changed,
        _ => ConflictKind::NotAFile,
    }
}

fn session_steps(journal: &Journal, record: &Record) -> Result<Vec<SessionStep>> {
    let mut steps = Vec::new();
    // In the other order: what was done last is taken back first.
    for s in record.session.iter().rev() {
        let now = mark(&s.path)?;
        if now == s.before {
            continue;
        }
        if now != s.after {
            return Err(Error::new(Kind::Conflict, "the session went on since")
                .path(&s.path, "was changed since the operation")
                .hint("take back the files alone with `--scope code`"));
        }
        steps.push(SessionStep {
            path: s.path.clone(),
            expect: now,
            make: session_make(journal, record, s)?,
        });
    }
    Ok(steps)
}

fn session_make(journal: &Journal, record: &Record, s: &SessionRecord) -> Result<SessionMake> {
    let saved = || {
        let gone = || {
            damaged(
                s.path.clone(),
                "has saved bytes that are gone or not the same any more",
            )
        };
        let saved = s.saved.as_ref().ok_or_else(gone)?;
        let path = journal.saved(&record.id, &saved.name);
        if holds(&path, (saved.len, &saved.sha256))? {
            Ok(Bytes::File(path))
        } else {
            Err(gone())
        }
    };
    Ok(match (s.change, s.before.len) {
        (_, None) => SessionMake::Absent,
        (SessionChange::Truncate, _) => SessionMake::Extend(saved()?),
        (SessionChange::Extend, Some(keep)) => SessionMake::Truncate { keep },
        (SessionChange::Write | SessionChange::Remove, _) => SessionMake::Write(saved()?),
    })
}

/// Whether a saved file holds what it held when it was saved.
fn holds(path: &PathBuf, (len, sha256): (u64, &str)) -> Result<bool> {
    match File::open(path).and_then(hash::of_reader) {
        Ok((n, hash)) => Ok(n == len && hash::hex(&hash) == sha256),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(Error::io("what was saved cannot be read", path, e)),
    }
}

fn damaged(path: PathBuf, words: &str) -> Error {
    Error::new(Kind::Damaged, "an operation cannot be taken back whole").path(path, words)
}
