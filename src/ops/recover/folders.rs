//! The folders that an operation makes and removes, and making names durable.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use crate::error::{Error, Result};
use crate::fsx::tree::{FileKind, SafePath, reason_of};
use crate::fsx::{Name, durable};
use crate::model::edit::Reason;
use crate::ops::apply::place::Place;
use crate::ops::apply::{Context, FEW, staging};
use crate::ops::journal::Record;

/// Removes the folders that the removals made empty; one that is not empty stays.
pub(crate) fn remove_folders(place: Place<'_>, record: &Record) -> Result<()> {
    for folder in &record.removed_folders {
        remove_empty(place, &folder.path)?;
    }
    Ok(())
}

pub(super) fn remove_empty(place: Place<'_>, folder: &SafePath) -> Result<()> {
    let fail = |e| Error::io("an empty folder cannot be removed", place.whole(folder), e);
    let parent = match place.folders.of(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(fail)?,
    };
    place.folders.forget(folder.as_path());
    match place.disk.remove_folder(Name::new(&parent, folder.name())) {
        Ok(()) => Ok(()),
        Err(e) => match e.kind() {
            io::ErrorKind::NotFound
            | io::ErrorKind::DirectoryNotEmpty
            | io::ErrorKind::AlreadyExists
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::ResourceBusy => Ok(()),
            _ => Err(fail(e)),
        },
    }
}

/// Folders that were removed come back with their permission bits, before the files in them.
pub(super) fn make_folders_again(place: Place<'_>, record: &Record) -> Result<()> {
    for folder in record.removed_folders.iter().rev() {
        let seen = place.folders.glance(&folder.path);
        let (kind, mode) = seen.map_err(|e| place.io(&folder.path, e))?;
        let path = &folder.path;
        if kind == FileKind::Absent {
            staging::make_folder(place, path, Some(folder.mode))?;
        } else if kind == FileKind::Dir && mode == 0o700 && is_empty(place, path)? {
            // Made by a recovery that was killed before it set the permission bits.
            staging::dress_folder(place, path, Some(folder.mode))?;
        }
    }
    Ok(())
}

fn is_empty(place: Place<'_>, folder: &SafePath) -> Result<bool> {
    let open = place.folders.open(folder.as_path());
    let names = open.and_then(|dir| durable::names(dir.as_fd()));
    Ok(names.map_err(|e| place.io(folder, e))?.is_empty())
}

/// Makes all names that an operation changes durable.
pub(crate) fn sync_names(ctx: &Context<'_>, place: Place<'_>, record: &Record) -> Result<()> {
    let mut touched: BTreeSet<&Path> = record.steps.iter().map(|s| s.path.folder()).collect();
    touched.extend(record.made_folders.iter().map(SafePath::folder));
    touched.extend(record.removed_folders.iter().map(|f| f.path.folder()));
    let fail = |path: &Path, e| Error::io("a folder cannot be made durable", path, e);
    let few = touched.len() <= FEW && record.steps.len() <= FEW;
    let mut devices = HashMap::new();
    for path in touched {
        let dir = match place.folders.open(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            // Left alone, and named, where it matters.
            Err(e) if reason_of(&e) == Reason::NotAFile => {
                continue;
            }
            other => other.map_err(|e| fail(path, e))?,
        };
        if few {
            ctx.disk
                .sync_folder(dir.as_fd())
                .map_err(|e| fail(path, e))?;
        } else {
            let device = rustix::fs::fstat(&*dir).map_err(|e| fail(path, e.into()))?;
            devices.insert(device.st_dev, dir);
        }
    }
    for dir in devices.values() {
        let synced = ctx.disk.sync_all(dir.as_fd());
        synced.map_err(|e| fail(ctx.root.path(), e))?;
    }
    Ok(())
}
