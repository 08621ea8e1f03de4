//! The settings file on disk: read back before it is changed, replaced whole with its owner and permission bits, and what it
//! held before kept in the state folder.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::{Plan, read};
use crate::env::Env;
use crate::error::Result;
use crate::format::lines;
use crate::fsx::{Disk, Name, Owner, durable, hash, stage};

/// Where the bytes of a settings file are kept.
fn place(path: &Path, env: &Env) -> Option<PathBuf> {
    let name = hash::hex(&hash::of_bytes(path.as_os_str().as_encoded_bytes()));
    env.state.as_ref().map(|s| s.join("init").join(name))
}

/// What is kept of a settings file that is as we left it.
pub(super) enum Saved {
    /// Nothing, or somebody changed it since.
    Nothing,
    /// There was no file.
    NoFile,
    /// It held these bytes.
    Bytes(Vec<u8>),
}

pub(super) fn saved(path: &Path, now: &[u8], env: &Env) -> Result<Saved> {
    let Some(folder) = place(path, env) else {
        return Ok(Saved::Nothing);
    };
    let after = read(&folder.join("after"))?;
    let own = hash::hex(&hash::of_bytes(now));
    if after.is_none_or(|a| a.trim_ascii() != own.as_bytes()) {
        return Ok(Saved::Nothing);
    }
    Ok(read(&folder.join("before"))?.map_or(Saved::NoFile, Saved::Bytes))
}

/// Keeps the bytes from before the first change; a second change of ours keeps them on.
pub(super) fn keep(plan: &Plan, env: &Env, disk: &dyn Disk) -> io::Result<()> {
    let Some(folder) = place(&plan.path, env) else {
        return Ok(());
    };
    let now = plan.before.as_deref().unwrap_or_default();
    let ours = lines::read_whole(&folder.join("after"), 1 << 10).ok();
    let chained =
        ours.is_some_and(|a| a.trim_ascii() == hash::hex(&hash::of_bytes(now)).as_bytes());
    let dir = durable::folder(disk, &folder)?;
    if !chained {
        match &plan.before {
            Some(bytes) => durable::replace(disk, dir.as_fd(), OsStr::new("before"), bytes)?,
            None => durable::remove(disk, Name::new(&dir, "before"))?,
        }
    }
    let after = plan.after.as_deref().map(|a| hash::hex(&hash::of_bytes(a)));
    let after = after.unwrap_or_default() + "\n";
    durable::replace(disk, dir.as_fd(), OsStr::new("after"), after.as_bytes())
}

/// Writes a file in the place of another, with its owner and permission bits.
pub(super) fn write(path: &Path, bytes: &[u8], disk: &dyn Disk) -> io::Result<()> {
    let (folder, name) = parts(path)?;
    let dir = durable::folder(disk, folder)?;
    let old = std::fs::metadata(path).ok();
    let temp = stage::marked(name, "rewind-new");
    let temp = Name::new(&dir, &temp);
    durable::remove(disk, temp)?;
    let file = disk.create(dir.as_fd(), temp.name)?;
    let done = disk.write(&file, bytes).and_then(|()| {
        if let Some(old) = old {
            let owner = Owner {
                uid: old.uid(),
                gid: old.gid(),
            };
            stage::dress(disk, &file, old.permissions().mode() & 0o7777, owner)?;
        }
        disk.sync(&file)?;
        disk.rename(temp, Name::new(&dir, name))?;
        disk.sync_folder(dir.as_fd())
    });
    if done.is_err() {
        // Best effort: the error that counts is the first one.
        drop(durable::remove(disk, temp));
    }
    done
}

pub(super) fn remove(path: &Path, disk: &dyn Disk) -> io::Result<()> {
    let (folder, name) = parts(path)?;
    let dir = durable::folder(disk, folder)?;
    durable::remove(disk, Name::new(&dir, name))?;
    disk.sync_folder(dir.as_fd())
}

fn parts(path: &Path) -> io::Result<(&Path, &OsStr)> {
    let parts = path.parent().zip(path.file_name());
    parts.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}
