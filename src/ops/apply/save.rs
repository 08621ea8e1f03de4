//! The bytes that are about to be replaced go to `saved/<operation>.tmp/` first: as a second name of the same file
//! where that is possible (costs nothing, and later writes through an open handle land in it), else as a copy.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::check::{Job, Work};
use super::place::{Place, stale};
use super::{Context, FEW, each, session};
use crate::error::{Error, Result};
use crate::fsx::tree::SafePath;
use crate::fsx::{self, Name, durable, hash, stage, sys};
use crate::ops::journal::{Held, StepRecord};

/// Saves everything, durably.
pub(super) fn all(
    ctx: &Context<'_>,
    held: &Held,
    work: &mut Work<'_>,
    place: Place<'_>,
) -> Result<()> {
    let filling = Held::filling(ctx.id);
    let fail = |e| {
        Error::io(
            "the journal's folder cannot be used",
            ctx.journal.folder(),
            e,
        )
    };
    let dir = durable::subfolder(ctx.disk, held.saved().as_fd(), &filling).map_err(fail)?;
    let pairs: Vec<_> = work.jobs.iter().zip(&work.record.steps).collect();
    let few = pairs.len() <= FEW;
    each::map(&pairs, |_, (job, record)| {
        let Some(name) = record.saved.as_deref() else {
            return Ok(());
        };
        let file = one(job, record, place, (&dir, OsStr::new(name)))?;
        if few {
            ctx.disk.sync(&file).map_err(fail)?;
        }
        Ok(())
    })?;
    let session = work.session.iter().zip(&mut work.record.session);
    for (i, (job, record)) in session.enumerate() {
        record.saved = session::save(ctx, (i, job), &dir)?;
    }
    if !few {
        ctx.disk.sync_all(dir.as_fd()).map_err(fail)?;
    }
    ctx.disk.sync_folder(dir.as_fd()).map_err(fail)
}

/// Saves one file; gives it open, so that it can be made durable: what an agent has just written may not be, even
/// under a new name.
fn one(
    job: &Job<'_>,
    record: &StepRecord,
    place: Place<'_>,
    to: (&OwnedFd, &OsStr),
) -> Result<File> {
    let path = &record.path;
    let dir = place.folders.of(path).map_err(|e| place.io(path, e))?;
    let (from, to) = (Name::new(&dir, path.name()), Name::new(to.0, to.1));
    let fail = |e| cannot_save(place, path, e);
    match place.disk.link(from, to) {
        Ok(()) => {}
        Err(e) if fsx::unlinkable(&e) => return copy(job, record, place, (from, to)),
        Err(e) => return Err(fail(e)),
    }
    let file = sys::open_file(to.dir, to.name).map_err(fail)?;
    if job.look.is_still(&file.metadata().map_err(fail)?) {
        return Ok(file);
    }
    Err(changed(place, path))
}

fn copy(
    job: &Job<'_>,
    record: &StepRecord,
    place: Place<'_>,
    (from, to): (Name<'_>, Name<'_>),
) -> Result<File> {
    let path = &record.path;
    let source = sys::open_file(from.dir, from.name).map_err(|e| place.io(path, e))?;
    let file = place
        .disk
        .create(to.dir, to.name)
        .map_err(|e| cannot_save(place, path, e))?;
    let (len, sha256) = stage::fill(place.disk, &file, &source).map_err(|e| match e {
        stage::Trouble::Source(e) => place.io(path, e),
        stage::Trouble::Target(e) => cannot_save(place, path, e),
    })?;
    let now = source.metadata().map_err(|e| place.io(path, e))?;
    let same = len == record.before.len && hash::hex(&sha256) == record.before.sha256;
    if same && job.look.is_still(&now) {
        return Ok(file);
    }
    Err(changed(place, path))
}

fn cannot_save(place: Place<'_>, path: &SafePath, e: io::Error) -> Error {
    Error::io(
        "what a file holds now cannot be saved",
        place.whole(path),
        e,
    )
}

fn changed(place: Place<'_>, path: &SafePath) -> Error {
    stale().path(place.whole(path), "was just changed")
}
