//! Is the world still what the plan was made for? Looks at everything and writes nothing; the result is the record
//! that goes to the journal.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use super::place::{Place, stale};
use super::{Context, each, session};
use crate::error::{Error, Kind, Result};
use crate::fsx::stage;
use crate::fsx::tree::{FileKind, Fingerprint, Look, SafePath, reason_of};
use crate::model::edit::Reason;
use crate::ops::journal::{self, FolderRecord, Record, StepRecord};
use crate::ops::plan::{Make, Plan, Step};

/// One step and what was found at its path.
pub(super) struct Job<'p> {
    pub(super) step: &'p Step,
    pub(super) look: Look,
}

/// All that an operation will do.
pub(super) struct Work<'p> {
    /// Side by side with `record.steps`.
    pub(super) jobs: Vec<Job<'p>>,
    /// Side by side with `record.session`.
    pub(super) session: Vec<session::Job<'p>>,
    pub(super) record: Record,
}

/// Compares the world with the plan.
pub(super) fn work<'p>(plan: &'p Plan, ctx: &Context<'_>, place: Place<'_>) -> Result<Work<'p>> {
    if plan.root != ctx.root.path() {
        return Err(Error::new(Kind::Failed, "the plan is for another folder")
            .path(&plan.root, "is the folder of the plan")
            .path(ctx.root.path(), "is this one"));
    }
    paths_are_apart(plan, ctx)?;
    let looks = each::map(&plan.steps, |_, step| {
        let look = place.folders.look(&step.path);
        look.map_err(|e| cannot_look(place, &step.path, e))
    })?;
    let jobs: Vec<Job<'p>> = plan
        .steps
        .iter()
        .zip(looks)
        .map(|(step, look)| Job { step, look })
        .collect();
    refuse_changed(&jobs, place)?;
    refuse_twins(&jobs, place)?;
    let jobs: Vec<Job<'p>> = jobs.into_iter().filter(Job::changes).collect();
    let session = session::check(plan, ctx)?;
    let record = Record {
        id: ctx.id.to_owned(),
        at: journal::time(ctx.now),
        act: plan.act.clone(),
        point: plan.point.clone(),
        scope: plan.scope,
        steps: step_records(&jobs, ctx.id, place)?,
        made_folders: missing_folders(&jobs, place)?,
        removed_folders: emptied_folders(&jobs, place)?,
        session: session.iter().map(|s| s.record.clone()).collect(),
    };
    Ok(Work {
        jobs,
        session,
        record,
    })
}

impl Job<'_> {
    /// What will be there. The bits beyond the permissions (setuid and its kin) are never set (`bugs.md` 52).
    fn after(&self) -> Fingerprint {
        let kept = match self.look.print.kind {
            FileKind::File => self.look.print.mode & 0o777,
            _ => 0o644,
        };
        match &self.step.make {
            Make::Absent(_) => Fingerprint::absent(),
            Make::Mode(mode) => Fingerprint {
                mode: mode & 0o777,
                ..self.look.print.clone()
            },
            Make::File {
                sha256, len, mode, ..
            } => Fingerprint::file(mode.map_or(kept, |m| m & 0o777), *len, sha256),
        }
    }

    fn changes(&self) -> bool {
        self.after() != self.look.print
    }
}

/// No path twice, none in the journal's own folder (`bugs.md` 64). A path that is a folder of another fails when it is
/// staged.
fn paths_are_apart(plan: &Plan, ctx: &Context<'_>) -> Result<()> {
    let all: BTreeSet<&Path> = plan.steps.iter().map(|s| s.path.as_path()).collect();
    if all.len() != plan.steps.len() {
        return Err(Error::new(Kind::Internal, "a path is in the plan twice"));
    }
    let state = ctx.journal.state();
    let state = state.canonicalize().unwrap_or_else(|_| state.to_path_buf());
    let state = state.strip_prefix(ctx.root.path()).ok();
    for path in &all {
        if let Some(state) = state
            && path.starts_with(state)
        {
            let whole = ctx.root.path().join(path);
            return Err(
                Error::new(Kind::Failed, "the plan would change rewind's own journal")
                    .path(whole, "belongs to the journal"),
            );
        }
    }
    Ok(())
}

fn cannot_look(place: Place<'_>, path: &SafePath, e: std::io::Error) -> Error {
    match reason_of(&e) {
        Reason::NotAFile | Reason::OutsideRoot => {
            stale().path(place.whole(path), "leads through a link or a file now")
        }
        _ => Error::io("a file cannot be read", place.whole(path), e),
    }
}

/// Every path must be what the plan expects, a plain file or nothing, and the only name of its file.
fn refuse_changed(jobs: &[Job<'_>], place: Place<'_>) -> Result<()> {
    let mut error = stale();
    for job in jobs {
        let now = &job.look;
        let words = if now.print != job.step.expect {
            "changed since the plan was made"
        } else if !matches!(now.print.kind, FileKind::Absent | FileKind::File) {
            "is no plain file"
        } else if now.nlink > 1 {
            "has another name (a hard link)"
        } else if matches!(job.step.make, Make::Mode(_)) && now.print.kind == FileKind::Absent {
            "is gone"
        } else {
            continue;
        };
        error = error.path(place.whole(&job.step.path), words);
    }
    if error.paths.is_empty() {
        return Ok(());
    }
    Err(error)
}

/// Two spellings of one file, in a folder that folds case: writing one and removing the other would lose it
/// (`bugs.md` 55).
fn refuse_twins(jobs: &[Job<'_>], place: Place<'_>) -> Result<()> {
    let mut seen: HashMap<(u64, u64), &SafePath> = HashMap::new();
    for job in jobs.iter().filter(|j| j.look.print.kind == FileKind::File) {
        if let Some(twin) = seen.insert(job.look.id, &job.step.path) {
            return Err(
                Error::new(Kind::Conflict, "two paths of the plan are the same file")
                    .path(place.whole(twin), "is one name of it")
                    .path(place.whole(&job.step.path), "is the other"),
            );
        }
    }
    Ok(())
}

fn step_records(jobs: &[Job<'_>], id: &str, place: Place<'_>) -> Result<Vec<StepRecord>> {
    let record = |(i, job): (usize, &Job<'_>)| {
        let path = &job.step.path;
        let before = job.look.print.clone();
        let after = job.after();
        let moves = !before.same_bytes(&after);
        let name = stage::name(path.name(), id, i);
        // A name that is nearly as long as names can be has room for the stage's by being shortened; so this fails
        // for no path that is safe itself.
        let beside = path.beside(&name).map_err(|_| {
            Error::new(Kind::Failed, "no name can be made beside a file")
                .path(place.whole(path), "has such a name")
        });
        Ok(StepRecord {
            saved: (moves && before.kind == FileKind::File).then(|| i.to_string()),
            stage: moves.then_some(beside?),
            path: path.clone(),
            before,
            after,
        })
    };
    jobs.iter().enumerate().map(record).collect()
}

/// Folders that new files need, a parent before what is in it.
fn missing_folders(jobs: &[Job<'_>], place: Place<'_>) -> Result<Vec<SafePath>> {
    let mut missing = BTreeSet::new();
    let new = |j: &&Job<'_>| {
        j.look.print.kind == FileKind::Absent && matches!(j.step.make, Make::File { .. })
    };
    for job in jobs.iter().filter(new) {
        for folder in job.step.path.folders() {
            if missing.contains(&folder) {
                break;
            }
            let (kind, _) = glance(place, &folder)?;
            if kind != FileKind::Absent {
                break;
            }
            missing.insert(folder);
        }
    }
    // A path sorts behind its parents.
    Ok(missing.into_iter().collect())
}

/// Folders that the removals may empty, deepest first.
fn emptied_folders(jobs: &[Job<'_>], place: Place<'_>) -> Result<Vec<FolderRecord>> {
    let mut emptied = BTreeMap::new();
    for job in jobs {
        let Make::Absent(folders) = &job.step.make else {
            continue;
        };
        let above = job.step.path.folders();
        for folder in folders.iter().filter(|f| above.contains(f)) {
            if emptied.contains_key(folder) {
                continue;
            }
            if let (FileKind::Dir, mode) = glance(place, folder)? {
                emptied.insert(folder.clone(), mode & 0o777);
            }
        }
    }
    let record = |(path, mode)| FolderRecord { path, mode };
    Ok(emptied.into_iter().rev().map(record).collect())
}

fn glance(place: Place<'_>, path: &SafePath) -> Result<(FileKind, u32)> {
    let seen = place.folders.glance(path);
    seen.map_err(|e| cannot_look(place, path, e))
}
