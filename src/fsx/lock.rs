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

/// What came of asking for the lock of an agent.
#[derive(Debug)]
pub enum Asked {
    /// The agent keeps no such lock.
    None,
    /// It is ours until this is dropped.
    Held(Lock),
    /// The agent has it.
    Busy,
}

/// Takes the lock that an agent holds on `<file>.lock` while it saves a session, where there is one (Reasonix,
/// `formats/reasonix.md` §1.9). The lock file is never made or removed by us.
///
/// # Errors
/// It is there and cannot be opened or locked.
pub fn of_agent(session: &std::path::Path) -> io::Result<Asked> {
    let mut path = session.as_os_str().to_owned();
    path.push(".lock");
    let file = match File::options().read(true).write(true).open(&path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Asked::None),
        Err(e) => return Err(e),
    };
    match file.try_lock() {
        Ok(()) => Ok(Asked::Held(Lock { _file: file })),
        Err(TryLockError::WouldBlock) => Ok(Asked::Busy),
        Err(TryLockError::Error(e)) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::fsx::Real;

    #[test]
    fn an_agents_lock_is_taken_only_where_there_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let session = dir.path().join("s.jsonl");
        assert!(matches!(of_agent(&session).unwrap(), Asked::None));
        let lock = dir.path().join("s.jsonl.lock");
        assert!(!lock.exists());
        let agent = File::create(&lock).unwrap();
        agent.try_lock().unwrap();
        assert!(matches!(of_agent(&session).unwrap(), Asked::Busy));
        drop(agent);
        assert!(matches!(of_agent(&session).unwrap(), Asked::Held(_)));
    }

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
