//! One path of an operation that is finished or reverted: what stands there now, and how it goes back.

use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

use super::Context;
use super::saved::saved_folder;
use crate::error::{Error, Result};
use crate::fsx::tree::{FileKind, Fingerprint, SafePath, look_at, owner_of, reason_of};
use crate::fsx::{self, Name, durable, hash, stage, sys};
use crate::model::edit::Reason;
use crate::ops::apply::place::Place;
use crate::ops::journal::{Record, StepRecord};

/// Which of the two a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Now {
    Old,
    New,
    Neither,
}

fn now(step: &StepRecord, seen: &Fingerprint) -> Now {
    // The bytes count; the permission bits only where nothing else differs.
    let bytes = !step.before.same_bytes(&step.after);
    let is = |want: &Fingerprint| seen == want || (bytes && seen.same_bytes(want));
    if is(&step.before) {
        Now::Old
    } else if is(&step.after) {
        Now::New
    } else {
        Now::Neither
    }
}

pub(super) fn look(place: Place<'_>, path: &SafePath) -> Result<Fingerprint> {
    let seen = place.folders.look(path);
    Ok(seen.map_err(|e| place.io(path, e))?.print)
}

/// A step's path now. A path that can no longer be looked at because a link or a file stands on the way is neither.
pub(super) fn now_at(step: &StepRecord, place: Place<'_>) -> Result<(Now, Fingerprint)> {
    match place.folders.look(&step.path) {
        Ok(seen) => Ok((now(step, &seen.print), seen.print)),
        Err(e) if reason_of(&e) == Reason::NotAFile => Ok((Now::Neither, Fingerprint::absent())),
        Err(e) => Err(place.io(&step.path, e)),
    }
}

/// Puts one path back.
pub(super) fn back(
    ctx: &Context<'_>,
    place: Place<'_>,
    record: &Record,
    step: &StepRecord,
) -> Result<Option<(PathBuf, String)>> {
    let (now, seen) = now_at(step, place)?;
    if now != Now::New {
        return sweep(ctx, place, record, (step, now));
    }
    let Some(stage) = &step.stage else {
        place.set_mode(&step.path, step.before.mode, &seen)?;
        return Ok(None);
    };
    let ready = look(place, stage)?;
    if is_foreign(step, &ready) {
        return displaced(place, step, &seen).map(Some);
    }
    if step.before.kind == FileKind::Absent {
        // A kill between a link and an unlink leaves the new file under both names.
        remove_stage(place, stage)?;
        place.take_out(&step.path, stage, &seen)?;
        return Ok(None);
    }
    if !ready.same_bytes(&step.before) {
        remove_stage(place, stage)?;
        if !bring_saved(ctx, place, (record, step), stage)? {
            let words = "holds the new bytes; the old ones are missing in the journal";
            return Ok(Some((place.whole(&step.path), words.to_owned())));
        }
    }
    place.put_in(&step.path, stage, &seen)?;
    Ok(None)
}

/// Whether the name beside a path holds a file that is neither the old nor the new one. While names change, it can
/// only be what somebody put at the path just before ours took its place.
fn is_foreign(step: &StepRecord, ready: &Fingerprint) -> bool {
    let ours = ready.same_bytes(&step.before) || ready.same_bytes(&step.after);
    ready.kind == FileKind::File && !ours
}

/// Gives a file that ours displaced its place back.
fn displaced(place: Place<'_>, step: &StepRecord, seen: &Fingerprint) -> Result<(PathBuf, String)> {
    if let Some(stage) = &step.stage {
        place.put_in(&step.path, stage, seen)?;
    }
    Ok((place.whole(&step.path), "was changed since".to_owned()))
}

/// Brings the saved file to the name beside its target; says whether its bytes are there.
fn bring_saved(
    ctx: &Context<'_>,
    place: Place<'_>,
    (record, step): (&Record, &StepRecord),
    stage: &SafePath,
) -> Result<bool> {
    let Some(saved) = saved_folder(ctx, &record.id, step.saved.as_deref())? else {
        return Ok(false);
    };
    let fail = |e| place.io(&step.path, e);
    let (folder, name) = saved;
    let folder = sys::open_folder(&folder).map_err(fail)?;
    let from = Name::new(&folder, &name);
    if !look_at(from.dir, from.name)
        .map_err(fail)?
        .print
        .same_bytes(&step.before)
    {
        return Ok(false);
    }
    let dir = place.folders.of(stage).map_err(fail)?;
    let to = Name::new(&dir, stage.name());
    match ctx.disk.link(from, to) {
        Ok(()) => return Ok(true),
        Err(e) if fsx::unlinkable(&e) => {}
        Err(e) => return Err(fail(e)),
    }
    copy_saved(place, step, from, to)?;
    Ok(true)
}

fn copy_saved(place: Place<'_>, step: &StepRecord, from: Name<'_>, to: Name<'_>) -> Result<()> {
    let fail = |e| place.io(&step.path, e);
    let source = sys::open_file(from.dir, from.name).map_err(fail)?;
    // A kill must not leave half of it under the name that the old file is taken from.
    let partial = stage::marked(to.name, PARTIAL);
    let partial = Name {
        dir: to.dir,
        name: &partial,
    };
    let file = place.disk.create(partial.dir, partial.name).map_err(fail)?;
    let (_, sha256) = stage::fill(place.disk, &file, &source).map_err(|e| match e {
        stage::Trouble::Source(e) | stage::Trouble::Target(e) => fail(e),
    })?;
    if hash::hex(&sha256) != step.before.sha256 {
        return Err(fail(io::ErrorKind::InvalidData.into()));
    }
    let (mut owner, _) = owner_of(&*place.folders.of(&step.path).map_err(fail)?).map_err(fail)?;
    if let Ok(there) = place.folders.look(&step.path)
        && there.print.kind == FileKind::File
    {
        owner = there.owner;
    }
    stage::dress(place.disk, &file, step.before.mode, owner).map_err(fail)?;
    place.disk.sync(&file).map_err(fail)?;
    place.disk.rename(partial, to).map_err(fail)
}

/// The mark of a saved file that is being copied back.
const PARTIAL: &str = "+";

/// Removes what is left at the name beside a path that needs no more work. Old bytes go only where they stand
/// elsewhere too; bytes that are neither are not ours.
pub(super) fn sweep(
    ctx: &Context<'_>,
    place: Place<'_>,
    record: &Record,
    (step, now): (&StepRecord, Now),
) -> Result<Option<(PathBuf, String)>> {
    let name_it = || match now {
        Now::Neither => Some((place.whole(&step.path), "was changed since".to_owned())),
        Now::Old | Now::New => None,
    };
    let Some(stage) = &step.stage else {
        return Ok(name_it());
    };
    let there = match place.folders.look(stage) {
        Ok(look) => look.print,
        // The folder is gone or became something else, and the stage with it.
        Err(e) if reason_of(&e) == Reason::NotAFile => {
            return Ok(name_it());
        }
        Err(e) => return Err(place.io(stage, e)),
    };
    let old = there.same_bytes(&step.before) && there.kind == FileKind::File;
    let safe = match now {
        // Still to be removed: a saved file that was being copied back.
        _ if there.kind == FileKind::Absent => true,
        // The old file is where it was, so what stands here is a copy of ours, whole or not.
        Now::Old => true,
        Now::New | Now::Neither if old => is_saved(ctx, record, step)?,
        Now::New if is_foreign(step, &there) => {
            let seen = look(place, &step.path)?;
            return displaced(place, step, &seen).map(Some);
        }
        Now::New | Now::Neither => there.same_bytes(&step.after),
    };
    if !safe {
        return Ok(Some(odd(place, stage)));
    }
    remove_stage(place, stage)?;
    Ok(name_it())
}

fn is_saved(ctx: &Context<'_>, record: &Record, step: &StepRecord) -> Result<bool> {
    let Some((folder, name)) = saved_folder(ctx, &record.id, step.saved.as_deref())? else {
        return Ok(false);
    };
    let path = folder.join(&name);
    let fail = |e| Error::io("what was saved cannot be read", &path, e);
    let folder = sys::open_folder(&folder).map_err(fail)?;
    let look = look_at(folder.as_fd(), name.as_os_str()).map_err(fail)?;
    Ok(look.print.same_bytes(&step.before))
}

fn odd(place: Place<'_>, stage: &SafePath) -> (PathBuf, String) {
    let words = "holds bytes that are not ours to remove";
    (place.whole(stage), words.to_owned())
}

fn remove_stage(place: Place<'_>, beside: &SafePath) -> Result<()> {
    let fail = |e| place.io(beside, e);
    let dir = match place.folders.of(beside) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(fail)?,
    };
    let partial = stage::marked(beside.name(), PARTIAL);
    for name in [beside.name(), &partial] {
        durable::remove(place.disk, Name::new(&dir, name)).map_err(fail)?;
    }
    Ok(())
}
