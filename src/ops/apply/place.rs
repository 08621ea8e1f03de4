//! Changing one name, so that whatever somebody else writes at the same moment is still there afterwards.
//!
//! A new file takes a free name and never one that is taken; a file is replaced by an exchange of names, and the one
//! that came out is looked at before its name goes: if it is not the one that was saved, it goes back.
//!
//! What remains: a write into the old file, within the clock tick of the look and of the same length, between the look
//! and the exchange. It is not lost where the saved copy is a hard link, since that is the same file.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use crate::error::{Error, Kind, Result};
use crate::fsx::tree::{FileKind, Fingerprint, Folders, Look, SafePath, look_at};
use crate::fsx::{self, Disk, Name, sys};

/// Where names change: the disk and the folders below the root.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) folders: &'a Folders<'a>,
}

impl Place<'_> {
    /// Moves the file at `stage` to `path`, where `expect` must stand. The file that stood there is gone after this,
    /// so it must have been saved.
    pub(crate) fn put_in(
        self,
        path: &SafePath,
        stage: &SafePath,
        expect: &Fingerprint,
    ) -> Result<()> {
        let dir = self.folders.of(path).map_err(|e| self.io(path, e))?;
        let (to, from) = (Name::new(&dir, path.name()), Name::new(&dir, stage.name()));
        let now = self.still(to, path, expect)?;
        if now.print.kind == FileKind::Absent {
            return self.put_new(from, to).map_err(|e| match e.kind() {
                io::ErrorKind::AlreadyExists => self.stale(path, "was just created"),
                _ => self.io(path, e),
            });
        }
        match self.disk.exchange(from, to) {
            Ok(()) => {}
            Err(e) if fsx::unsupported(&e) => {
                return self.disk.rename(from, to).map_err(|e| self.io(path, e));
            }
            Err(e) => return Err(self.io(path, e)),
        }
        if !is_still(from, &now).map_err(|e| self.io(path, e))? {
            self.disk.exchange(from, to).map_err(|e| self.io(path, e))?;
            return Err(self.stale(path, "was just changed"));
        }
        self.disk.unlink(from).map_err(|e| self.io(path, e))
    }

    /// Removes the file at `path`, where `expect` must stand, by way of the name `stage`. It must have been saved.
    pub(crate) fn take_out(
        self,
        path: &SafePath,
        stage: &SafePath,
        expect: &Fingerprint,
    ) -> Result<()> {
        let dir = self.folders.of(path).map_err(|e| self.io(path, e))?;
        let (at, aside) = (Name::new(&dir, path.name()), Name::new(&dir, stage.name()));
        let now = self.still(at, path, expect)?;
        self.put_new(at, aside).map_err(|e| self.io(path, e))?;
        if !is_still(aside, &now).map_err(|e| self.io(path, e))? {
            self.put_new(aside, at).map_err(|e| self.io(path, e))?;
            return Err(self.stale(path, "was just changed"));
        }
        self.disk.unlink(aside).map_err(|e| self.io(path, e))
    }

    /// Sets the permission bits of the file at `path`, where `expect` must stand.
    pub(crate) fn set_mode(self, path: &SafePath, mode: u32, expect: &Fingerprint) -> Result<()> {
        let dir = self.folders.of(path).map_err(|e| self.io(path, e))?;
        let at = Name::new(&dir, path.name());
        let now = self.still(at, path, expect)?;
        let file = sys::open_file(at.dir, at.name).map_err(|e| self.io(path, e))?;
        let meta = file.metadata().map_err(|e| self.io(path, e))?;
        if !now.is_still(&meta) {
            return Err(self.stale(path, "was just changed"));
        }
        let set = self.disk.chmod(file.as_fd(), mode);
        set.map_err(|e| self.io(path, e))
    }

    /// Moves a name to a free one, on any file system.
    pub(crate) fn put_new(self, from: Name<'_>, to: Name<'_>) -> io::Result<()> {
        fsx::put_new(self.disk, from, to)
    }

    fn still(self, at: Name<'_>, path: &SafePath, expect: &Fingerprint) -> Result<Look> {
        let now = look_at(at.dir, at.name).map_err(|e| self.io(path, e))?;
        if now.print == *expect {
            return Ok(now);
        }
        Err(self.stale(path, "changed since the plan was made"))
    }

    /// The whole path, for a message.
    pub(crate) fn whole(self, path: &SafePath) -> std::path::PathBuf {
        self.folders.root().path().join(path.as_path())
    }

    pub(crate) fn io(self, path: &SafePath, e: io::Error) -> Error {
        Error::io("a file cannot be changed", self.whole(path), e)
    }

    fn stale(self, path: &SafePath, why: &str) -> Error {
        stale().path(self.whole(path), why)
    }
}

/// The error for a world that is no longer the one that was planned for.
pub(crate) fn stale() -> Error {
    Error::new(Kind::Conflict, "the plan is stale")
        .hint("run the command again to see what is there now")
}

fn is_still(at: Name<'_>, look: &Look) -> io::Result<bool> {
    Ok(look.is_still(&sys::stat(at.dir, at.name)?))
}

/// Looks at a name in a folder given by its path; links on the way to it are followed.
pub(crate) fn open_parent(path: &Path) -> io::Result<(std::os::fd::OwnedFd, &OsStr)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let parent = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    Ok((sys::open_folder(parent)?, name))
}
