//! The folder of an operation's saved bytes: filled under one name, kept under another, so that what a killed run was
//! still filling can be told and removed.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use super::Context;
use crate::error::{Error, Result};
use crate::fsx::tree::{FileKind, look_at, reason_of};
use crate::fsx::{Name, durable, sys};
use crate::model::edit::Reason;
use crate::ops::apply::each;
use crate::ops::apply::place::Place;
use crate::ops::journal::{Held, Record};

/// Where an operation's saved file lies: in its folder, or in the one that was still being filled.
pub(crate) fn saved_folder(
    ctx: &Context<'_>,
    id: &str,
    name: Option<&str>,
) -> Result<Option<(PathBuf, PathBuf)>> {
    let Some(name) = name else { return Ok(None) };
    let kept = ctx.journal.saved(id, name);
    let filling = Path::new(&Held::filling(id)).to_path_buf();
    let filling = ctx.journal.folder().join("saved").join(filling).join(name);
    for path in [kept, filling] {
        match std::fs::symlink_metadata(&path) {
            Ok(_) => {
                let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
                return Ok(Some((folder, name.into())));
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(Error::io("what was saved cannot be read", path, e)),
        }
    }
    Ok(None)
}

/// Drops each saved name whose file still stands in the tree: the bytes are there, and a file with two names is one
/// that no later restore would replace. Somebody who wrote into the file meanwhile wrote into both names.
pub(super) fn part(ctx: &Context<'_>, place: Place<'_>, record: &Record) -> Result<()> {
    each::map(&record.steps, |_, step| {
        let Some((folder, name)) = saved_folder(ctx, &record.id, step.saved.as_deref())? else {
            return Ok(());
        };
        let path = folder.join(&name);
        let fail = |e| Error::io("what was saved cannot be removed", &path, e);
        let there = match place.folders.look(&step.path) {
            Err(e) if reason_of(&e) == Reason::NotAFile => return Ok(()),
            other => other.map_err(|e| place.io(&step.path, e))?,
        };
        let folder = sys::open_folder(&folder).map_err(fail)?;
        let at = Name::new(&folder, &name);
        let saved = look_at(at.dir, at.name).map_err(fail)?;
        if there.print.kind == FileKind::File && there.id == saved.id {
            ctx.disk.unlink(at).map_err(fail)?;
        }
        Ok(())
    })
    .map(drop)
}

/// Gives the saved folder its lasting name.
pub(crate) fn keep_saved(ctx: &Context<'_>, held: &Held, id: &str) -> Result<()> {
    move_saved(ctx, held, (&Held::filling(id), OsStr::new(id)))
}

/// Removes the saved folder of an operation that changed nothing. By way of the name that a later run sweeps, so that
/// a kill in between leaves nothing for ever.
pub(super) fn drop_saved(ctx: &Context<'_>, held: &Held, id: &str) -> Result<()> {
    let filling = Held::filling(id);
    move_saved(ctx, held, (OsStr::new(id), &filling))?;
    let removed = durable::remove_folder(ctx.disk, Name::new(held.saved(), &filling));
    removed.map_err(|e| Error::io("what was saved cannot be removed", ctx.journal.folder(), e))
}

fn move_saved(ctx: &Context<'_>, held: &Held, (from, to): (&OsStr, &OsStr)) -> Result<()> {
    let fail = |e| {
        Error::io(
            "the journal's folder cannot be used",
            ctx.journal.folder(),
            e,
        )
    };
    let (from, to) = (Name::new(held.saved(), from), Name::new(held.saved(), to));
    match sys::stat(from.dir, from.name) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(fail)?,
    };
    ctx.disk.rename(from, to).map_err(fail)?;
    ctx.disk.sync_folder(held.saved().as_fd()).map_err(fail)
}
