//! Locks that the kernel holds for us, so that they die with the process and never go stale (`bugs.md` 77). A lock
//! file is never removed while it may be in use; that it is still the one at its path is checked after locking.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;

use super::{Disk, sys};

/// A lock that is held until this is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Takes the lock of this name; `None` when another process has it.
///
/// # Errors
/// The lock file cannot be made or locked.
pub fn take(disk: &dyn Disk, dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<Option<Lock>> {
    // A prune may remove the folder with the lock file between opening and locking it; then it locks nothing.
    for _ in 0..8 {
        let file = disk.open_append(dir, name)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(e)) => return Err(e),
        }
        let ours = file.metadata()?;
        match sys::stat(dir, name) {
            Ok(there) if (there.dev(), there.ino()) == (ours.dev(), ours.ino()) => {
                return Ok(Some(Lock { _file: file }));
            }
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::fsx::Real;

    #[test]
    fn a_lock_is_held_once_and_ends_with_its_holder() {
        let dir = tempfile::tempdir().unwrap();
        let fd = sys::open_folder(dir.path()).unwrap();
        let name = OsStr::new("lock");
        let first = take(&Real::new(), fd.as_fd(), name).unwrap();
        assert!(first.is_some());
        assert!(take(&Real::new(), fd.as_fd(), name).unwrap().is_none());
        drop(first);
        assert!(take(&Real::new(), fd.as_fd(), name).unwrap().is_some());
    }
}
