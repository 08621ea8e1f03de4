//! The new bytes, beside their targets, complete and durable before any name changes.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use super::check::{Job, Work};
use super::place::Place;
use super::{Context, FEW, each};
use crate::error::{Error, Kind, Result};
use crate::fsx::tree::{FileKind, SafePath, owner_of};
use crate::fsx::{Name, hash, stage};
use crate::ops::journal::StepRecord;
use crate::ops::plan::{Bytes, Make};

/// Folders that are synced one by one or, when there are many, by file system: by device, one folder of each.
pub(crate) type Devices = HashMap<u64, Arc<OwnedFd>>;

/// Stages everything, durably. `modes` are the permission bits of folders that an earlier operation removed.
pub(super) fn all(
    ctx: &Context<'_>,
    work: &Work<'_>,
    place: Place<'_>,
    modes: &HashMap<SafePath, u32>,
) -> Result<()> {
    for folder in &work.record.made_folders {
        make_folder(place, folder, modes.get(folder).copied())?;
    }
    let pairs: Vec<_> = work.jobs.iter().zip(&work.record.steps).collect();
    let few = pairs.len() <= FEW;
    let devices = each::map(&pairs, |_, (job, record)| {
        let Make::File { bytes, .. } = &job.step.make else {
            return Ok(None);
        };
        let Some(name) = &record.stage else {
            return Ok(None);
        };
        ctx.disk.reach("staging");
        let (file, dir) = one(job, record, bytes, name, place)?;
        let fail = |e| place.io(&record.path, e);
        if few {
            ctx.disk.sync(&file).map_err(fail)?;
            return Ok(None);
        }
        Ok(Some((file.metadata().map_err(fail)?.dev(), dir)))
    })?;
    let devices: Devices = devices.into_iter().flatten().collect();
    for dir in devices.values() {
        let fail = |e| Error::io("the new files cannot be made durable", ctx.root.path(), e);
        ctx.disk.sync_all(dir.as_fd()).map_err(fail)?;
    }
    Ok(())
}

/// Makes a folder with the permission bits that it had, else with those of the folder that it stands in: the umask of
/// this process says nothing about either.
pub(crate) fn make_folder(place: Place<'_>, path: &SafePath, mode: Option<u32>) -> Result<()> {
    let fail = |e| Error::io("a folder cannot be made", place.whole(path), e);
    let parent = place.folders.of(path).map_err(fail)?;
    match place.disk.make_folder(Name::new(&parent, path.name())) {
        // Somebody else just made it: theirs stays as it is.
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
            return place.folders.open(path.as_path()).map(drop).map_err(fail);
        }
        other => other.map_err(fail)?,
    }
    dress_folder(place, path, mode)
}

/// Gives a folder that was just made its permission bits and owner.
pub(crate) fn dress_folder(place: Place<'_>, path: &SafePath, mode: Option<u32>) -> Result<()> {
    let fail = |e| Error::io("a folder cannot be made", place.whole(path), e);
    let parent = place.folders.of(path).map_err(fail)?;
    let (owner, above) = owner_of(&parent).map_err(fail)?;
    let dir = place.folders.open(path.as_path()).map_err(fail)?;
    stage::dress(place.disk, &*dir, mode.unwrap_or(above), owner).map_err(fail)
}

fn one(
    job: &Job<'_>,
    record: &StepRecord,
    bytes: &Bytes,
    name: &SafePath,
    place: Place<'_>,
) -> Result<(File, Arc<OwnedFd>)> {
    let path = &record.path;
    let fail = |e| place.io(path, e);
    let source = bytes.open().map_err(|e| cannot_read(place, path, e))?;
    let dir = place.folders.of(name).map_err(fail)?;
    let file = place.disk.create(dir.as_fd(), name.name()).map_err(fail)?;
    let (len, sha256) = stage::fill(place.disk, &file, source).map_err(|e| match e {
        stage::Trouble::Source(e) => cannot_read(place, path, e),
        stage::Trouble::Target(e) => fail(e),
    })?;
    if len != record.after.len || hash::hex(&sha256) != record.after.sha256 {
        return Err(gone(
            place,
            path,
            "its old bytes are not those that were recorded",
        ));
    }
    let owner = match job.look.print.kind {
        FileKind::File => job.look.owner,
        _ => owner_of(&dir).map_err(fail)?.0,
    };
    stage::dress(place.disk, &file, record.after.mode, owner).map_err(fail)?;
    Ok((file, dir))
}

fn cannot_read(place: Place<'_>, path: &SafePath, e: std::io::Error) -> Error {
    if Bytes::are_gone(&e) {
        return gone(place, path, "its old bytes are gone").because(e);
    }
    Error::io(
        "the old bytes of a file cannot be read",
        place.whole(path),
        e,
    )
}

fn gone(place: Place<'_>, path: &SafePath, words: &str) -> Error {
    Error::new(
        Kind::Damaged,
        "the old bytes of a file are not there any more",
    )
    .path(place.whole(path), words)
    .hint("run `rewind verify` to see which points are whole")
}
