//! Doing a plan, in the order that survives a kill at any moment (`design.md` §5): lock; recover what is open; compare
//! the world with the plan; save what will be replaced; `prepared`; stage the new bytes beside their targets;
//! `committing`; change the names; look at everything again; `committed`. An error before `committing` leaves
//! everything as it was; one after it puts everything back.
//!
//! Does not keep extended attributes or access lists of a replaced file, nor its setuid bits. A file system that refuses
//! permission bits (FAT) refuses the apply. The case of a name in a folder that folds case stays as it is.

mod check;
pub(crate) mod each;
pub(crate) mod place;
mod save;
pub(crate) mod session;
pub(crate) mod staging;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use self::check::Work;
use self::place::Place;
use super::journal::{Event, Held, Journal, Record, SessionChange, StepRecord};
use super::plan::{Act, Plan};
use super::recover::{self, Came, Recovered};
use crate::error::{Error, Kind, Result};
use crate::fsx::Disk;
use crate::fsx::lock::{self, Lock};
use crate::fsx::tree::{FileKind, Folders, Root, SafePath};

/// Up to this many files are made durable one by one; more by file system, which also writes out what others did.
pub(crate) const FEW: usize = 32;

/// What an apply works with.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The disk.
    pub disk: &'a dyn Disk,
    /// The journal of the root.
    pub journal: &'a Journal,
    /// The workspace.
    pub root: &'a Root,
    /// When the run began.
    pub now: DateTime<Utc>,
    /// The id that the operation gets ([`super::journal::operation_id`]).
    pub id: &'a str,
    /// Who wants to know how it comes on.
    pub watch: Watch<'a>,
}

/// Told of each path, as the plan names it, when it has changed: from several threads, in any order, and before anything
/// is verified. What it was told of may still be put back.
pub type Watch<'a> = &'a (dyn Fn(&Path) + Sync);

/// Nobody wants to know.
pub fn unwatched() -> Watch<'static> {
    &|_| {}
}

/// What was done and verified.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applied {
    /// The operation in the journal; none when there was nothing to do.
    pub id: Option<String>,
    /// Files that were written.
    pub written: Vec<SafePath>,
    /// Files that were removed.
    pub removed: Vec<SafePath>,
    /// Files whose permission bits were set.
    pub modes: Vec<SafePath>,
    /// Session files that were changed.
    pub session: Vec<PathBuf>,
    /// An earlier operation that a killed run had left open, finished or reverted first.
    pub recovered: Option<Recovered>,
}

/// Does a plan. The caller has asked the user, looked for live agents, and refuses a plan whose conflicts it does not
/// want to pass over: steps that are in the plan are done.
///
/// # Errors
/// [`Kind::Busy`]: another run has the root or a session, or a session file grew. [`Kind::Conflict`]: something is not
/// what the plan expects. [`Kind::Damaged`]: old bytes are gone. [`Kind::Storage`]: the disk refused. In each case
/// `changed` says what was and was not changed.
pub fn apply(plan: &Plan, ctx: &Context<'_>) -> Result<Applied> {
    let empty = plan.steps.is_empty() && plan.session.is_empty();
    if empty && plan.act == Act::Restore {
        return Ok(Applied::default());
    }
    let held = ctx.journal.hold(ctx.disk)?;
    ctx.disk.reach("locked");
    let recovered = recover::open_operations(ctx, &held)?;
    let modes = folder_modes(plan, ctx)?;
    let _locks = hold_sessions(plan, ctx)?;
    let folders = Folders::new(ctx.root);
    let place = Place {
        disk: ctx.disk,
        folders: &folders,
    };
    let mut work = check::work(plan, ctx, place)?;
    if work.is_empty() && plan.act == Act::Restore {
        return Ok(Applied {
            recovered,
            ..Applied::default()
        });
    }
    if let Err(e) = prepare(ctx, &held, &mut work, place, &modes) {
        return Err(abandon(ctx, &held, &work.record, e));
    }
    if let Err(e) = commit(ctx, &work.record, place) {
        return Err(put_back(ctx, &held, &work.record, e));
    }
    if let Err(e) = held.append(ctx.disk, &Event::Committed(ctx.id, ctx.now, None)) {
        return Err(not_closed(ctx, &held, &work.record, e));
    }
    ctx.disk.reach("committed");
    Ok(Applied {
        recovered,
        ..report(&work.record)
    })
}

impl Work<'_> {
    fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.session.is_empty()
    }
}

/// Permission bits of what the operation removed that this one takes back.
struct Modes {
    folders: HashMap<SafePath, u32>,
    session: HashMap<PathBuf, u32>,
}

fn folder_modes(plan: &Plan, ctx: &Context<'_>) -> Result<Modes> {
    let log = ctx.journal.log()?;
    if log.find(ctx.id).is_some() {
        return Err(Error::new(
            Kind::Internal,
            "the id of the operation is taken",
        ));
    }
    let mut modes = Modes {
        folders: HashMap::new(),
        session: HashMap::new(),
    };
    let (Act::Undo(of) | Act::Redo(of)) = &plan.act else {
        return Ok(modes);
    };
    let of = log.find(of).ok_or_else(|| {
        Error::new(
            Kind::NotFound,
            "the operation to take back is not in the journal",
        )
        .hint("run `rewind log` to see what is")
    })?;
    let record = ctx.journal.record(of)?;
    let removed = record.removed_folders.into_iter();
    modes.folders = removed.map(|f| (f.path, f.mode)).collect();
    let gone = record.session.into_iter();
    let gone = gone.filter(|s| s.change == SessionChange::Remove);
    modes.session = gone.map(|s| (s.path, s.mode)).collect();
    Ok(modes)
}

fn hold_sessions(plan: &Plan, ctx: &Context<'_>) -> Result<Vec<Lock>> {
    let mut paths = Vec::new();
    for step in &plan.session {
        let fail = |e| Error::io("the session file cannot be read", &step.path, e);
        paths.push(session::canonical(&step.path).map_err(fail)?);
    }
    // In one order for all, so that two runs with several files do not wait crosswise; and each once.
    paths.sort();
    paths.dedup();
    let mut locks = Vec::new();
    for path in &paths {
        locks.push(ctx.journal.hold_session(ctx.disk, path)?);
        match lock::of_agent(path) {
            Ok(lock::Asked::None) => {}
            Ok(lock::Asked::Held(lock)) => locks.push(lock),
            Ok(lock::Asked::Busy) => {
                return Err(Error::new(Kind::Busy, "the agent is saving the session")
                    .path(path, "locked by the agent")
                    .hint("try again in a moment"));
            }
            Err(e) => return Err(Error::io("the agent's lock cannot be asked for", path, e)),
        }
    }
    Ok(locks)
}

/// Everything up to `committing`: nothing that anybody sees has changed after this.
fn prepare(
    ctx: &Context<'_>,
    held: &Held,
    work: &mut Work<'_>,
    place: Place<'_>,
    modes: &Modes,
) -> Result<()> {
    save::all(ctx, held, work, place)?;
    ctx.disk.reach("saved");
    held.append(ctx.disk, &Event::Prepared(&work.record))?;
    ctx.disk.reach("prepared");
    recover::keep_saved(ctx, held, &work.record.id)?;
    ctx.disk.reach("kept");
    staging::all(ctx, work, place, &modes.folders)?;
    ctx.disk.reach("staged");
    for job in &work.session {
        session::stage(ctx, job, modes.session.get(&job.record.path).copied())?;
        ctx.disk.reach("session-staged");
    }
    ctx.disk.reach("synced");
    held.append(ctx.disk, &Event::Committing(&work.record.id, ctx.now))?;
    ctx.disk.reach("committing");
    Ok(())
}

/// Changes the names, new files before removals (`bugs.md` 10), and looks at the result (`bugs.md` 46).
fn commit(ctx: &Context<'_>, record: &Record, place: Place<'_>) -> Result<()> {
    ctx.disk.reach("placing");
    let (gone, stay): (Vec<_>, Vec<_>) = record
        .steps
        .iter()
        .partition(|s| s.after.kind == FileKind::Absent);
    for steps in [stay, gone] {
        each::map(&steps, |_, step| {
            forward(step, place)?;
            (ctx.watch)(step.path.as_path());
            ctx.disk.reach("placed-one");
            Ok(())
        })?;
    }
    ctx.disk.reach("placed");
    recover::remove_folders(place, record)?;
    ctx.disk.reach("removed-folders");
    for step in &record.session {
        ctx.disk.reach("session-placing");
        session::put_in(place, step)?;
        (ctx.watch)(&step.path);
        ctx.disk.reach("session-placed");
    }
    recover::sync_names(ctx, place, record)?;
    verify(record, place)?;
    ctx.disk.reach("verified");
    for step in &record.session {
        session::settle(ctx.disk, step)?;
        ctx.disk.reach("settled");
    }
    Ok(())
}

/// Does one step whose new bytes stand ready.
pub(crate) fn forward(step: &StepRecord, place: Place<'_>) -> Result<()> {
    match &step.stage {
        None => place.set_mode(&step.path, step.after.mode, &step.before),
        Some(stage) if step.after.kind == FileKind::Absent => {
            place.take_out(&step.path, stage, &step.before)
        }
        Some(stage) => place.put_in(&step.path, stage, &step.before),
    }
}

/// Reads everything again: only this makes it true that it was done.
fn verify(record: &Record, place: Place<'_>) -> Result<()> {
    let wrong = |path: PathBuf| {
        Error::new(Kind::Failed, "a file is not what was written").path(
            path,
            "does not hold its old bytes after they were put there",
        )
    };
    each::map(&record.steps, |_, step| {
        let now = place.folders.look(&step.path);
        let now = now.map_err(|e| place.io(&step.path, e))?;
        if now.print == step.after {
            return Ok(());
        }
        Err(wrong(place.whole(&step.path)))
    })?;
    for step in &record.session {
        if session::mark(&step.path)? != step.after {
            return Err(wrong(step.path.clone()));
        }
    }
    Ok(())
}

/// After an error before `committing`: removes what was staged and saved.
fn abandon(ctx: &Context<'_>, held: &Held, record: &Record, e: Error) -> Error {
    match recover::revert(ctx, held, record, (Came::Nowhere, &e.message)) {
        Ok(_) => e,
        Err(also) => e
            .changed("no file was changed; temporary files may be left, and the next run of rewind removes them")
            .hint(format!("what could not be tidied up: {also}")),
    }
}

/// After an error behind `committing`: puts everything back.
fn put_back(ctx: &Context<'_>, held: &Held, record: &Record, e: Error) -> Error {
    match recover::revert(ctx, held, record, (Came::Somewhere, &e.message)) {
        Ok(left) => name_left(e.changed("everything that was changed was put back"), left),
        Err(also) => {
            let mut e = e.changed(
                "some files are changed and some are not; the journal is left open, and the next run of rewind \
                 finishes the rewind or puts everything back",
            );
            e.paths.extend(also.paths);
            e.hint(format!("what could not be put back: {}", also.message))
        }
    }
}

/// After an error while `committed` was written. The line may be there all the same, and an operation that the journal
/// calls done is never recovered: it is opened again before anything is put back, or nothing is.
fn not_closed(ctx: &Context<'_>, held: &Held, record: &Record, e: Error) -> Error {
    match held.append(ctx.disk, &Event::Committing(&record.id, ctx.now)) {
        Ok(()) => put_back(ctx, held, record, e),
        Err(_) => e.changed(
            "everything is changed as planned and was verified; only the journal could not be closed, and the next \
             run of rewind does that",
        ),
    }
}

fn name_left(mut e: Error, left: Vec<(PathBuf, String)>) -> Error {
    if !left.is_empty() {
        e = e.changed("everything was put back, except the paths that somebody else changed");
        e.paths.extend(left);
    }
    e
}

fn report(record: &Record) -> Applied {
    let mut done = Applied {
        id: Some(record.id.clone()),
        session: record.session.iter().map(|s| s.path.clone()).collect(),
        ..Applied::default()
    };
    for step in &record.steps {
        let list = match (&step.stage, step.after.kind) {
            (None, _) => &mut done.modes,
            (_, FileKind::Absent) => &mut done.removed,
            _ => &mut done.written,
        };
        list.push(step.path.clone());
    }
    done
}
