//! Small files of our own that survive a kill or a power cut: made whole or not at all, or grown by one line.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::{Disk, Name, sys};

/// Opens a folder of ours, made with all its parents when missing; nobody else may enter those that are made.
///
/// # Errors
/// The disk refuses, or something that is no folder is in the way.
pub fn folder(disk: &dyn Disk, path: &Path) -> io::Result<OwnedFd> {
    let mut missing: Vec<PathBuf> = Vec::new();
    let mut at = path;
    let mut open = loop {
        match sys::open_folder(at) {
            Ok(fd) => break fd,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
        missing.push(at.to_path_buf());
        at = at.parent().ok_or(io::ErrorKind::NotFound)?;
    };
    for made in missing.iter().rev() {
        let name = made.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        open = subfolder(disk, open.as_fd(), name)?;
    }
    Ok(open)
}

/// Opens a folder of ours in another, made when missing.
///
/// # Errors
/// The disk refuses, or something that is no folder is in the way.
pub fn subfolder(disk: &dyn Disk, dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    match sys::open_by_steps(dir, Path::new(name)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        other => return other,
    }
    match disk.make_folder(Name { dir, name }) {
        // Another process was quicker.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(e),
        Ok(()) => disk.sync_folder(dir)?,
    }
    sys::open_by_steps(dir, Path::new(name))
}

/// Replaces a small file as a whole. Two at once must be kept apart by a lock of the caller.
///
/// # Errors
/// The disk refuses; the old file is still there then.
pub fn replace(disk: &dyn Disk, dir: BorrowedFd<'_>, name: &OsStr, bytes: &[u8]) -> io::Result<()> {
    let mut temp = OsString::from(".");
    temp.push(name);
    temp.push(".new");
    let temp = Name { dir, name: &temp };
    // Left by a run that was killed.
    remove(disk, temp)?;
    let file = disk.create(dir, temp.name)?;
    let done = disk
        .write(&file, bytes)
        .and_then(|()| disk.sync(&file))
        .and_then(|()| disk.rename(temp, Name { dir, name }))
        .and_then(|()| disk.sync_folder(dir));
    if done.is_err() {
        // Best effort: the error that counts is the first one, and the next replace removes what is left.
        drop(remove(disk, temp));
    }
    done
}

/// Adds one line to a log, durably. A line that a killed run left half written is closed first, so that it spoils
/// itself and not ours.
///
/// # Errors
/// The disk refuses; a part of the line may be there, which readers skip.
pub fn append(disk: &dyn Disk, dir: BorrowedFd<'_>, name: &OsStr, line: &[u8]) -> io::Result<()> {
    let file = disk.open_append(dir, name)?;
    let len = file.metadata()?.size();
    let mut bytes = Vec::with_capacity(line.len() + 2);
    if len > 0 {
        let mut last = [0];
        file.read_exact_at(&mut last, len - 1)?;
        if last != *b"\n" {
            bytes.push(b'\n');
        }
    }
    bytes.extend_from_slice(line);
    bytes.push(b'\n');
    disk.write(&file, &bytes)?;
    disk.sync(&file)?;
    if len == 0 {
        disk.sync_folder(dir)?;
    }
    Ok(())
}

/// Removes a file; that it is not there is fine.
///
/// # Errors
/// The disk refuses.
pub fn remove(disk: &dyn Disk, at: Name<'_>) -> io::Result<()> {
    match sys::stat(at.dir, at.name) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        _ => {}
    }
    match disk.unlink(at) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Removes a folder of ours and the files in it; that it is not there is fine. It has no folders in it by design, so
/// one that somebody put there stops this.
///
/// # Errors
/// The disk refuses, or the folder holds a folder.
pub fn remove_folder(disk: &dyn Disk, at: Name<'_>) -> io::Result<()> {
    let fd = match sys::open_by_steps(at.dir, Path::new(at.name)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    for name in names(fd.as_fd())? {
        remove(disk, Name::new(&fd, &name))?;
    }
    disk.remove_folder(at)
}

/// The names in a folder.
///
/// # Errors
/// It cannot be read.
pub fn names(dir: BorrowedFd<'_>) -> io::Result<Vec<OsString>> {
    use std::os::unix::ffi::OsStrExt;
    let mut all = Vec::new();
    for entry in rustix::fs::Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            all.push(OsStr::from_bytes(name).to_os_string());
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fsx::{Faulty, Real};

    #[test]
    fn a_replace_that_fails_leaves_the_old_file_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let fd = sys::open_folder(dir.path()).unwrap();
        replace(&Real::new(), fd.as_fd(), OsStr::new("a"), b"old").unwrap();
        for nth in 1.. {
            let disk = Faulty::once(nth, rustix::io::Errno::NOSPC.raw_os_error());
            let done = replace(&disk, fd.as_fd(), OsStr::new("a"), b"new");
            let now = std::fs::read(dir.path().join("a")).unwrap();
            assert_eq!(names(fd.as_fd()).unwrap(), ["a"]);
            if done.is_ok() {
                assert_eq!(now, b"new");
                return;
            }
            // Only the sync of the folder comes after the rename.
            assert!(now == b"old" || disk.asked() == nth);
        }
    }

    #[test]
    fn a_line_after_a_torn_one_stands_alone() {
        let dir = tempfile::tempdir().unwrap();
        let fd = sys::open_folder(dir.path()).unwrap();
        std::fs::write(dir.path().join("log"), "{\"a\":1}\n{\"b\":").unwrap();
        append(&Real::new(), fd.as_fd(), OsStr::new("log"), b"{}").unwrap();
        append(&Real::new(), fd.as_fd(), OsStr::new("log"), b"[]").unwrap();
        let text = std::fs::read_to_string(dir.path().join("log")).unwrap();
        assert_eq!(text, "{\"a\":1}\n{\"b\":\n{}\n[]\n");
    }

    #[test]
    fn folders_of_ours_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        folder(&Real::new(), &dir.path().join("a/b/c")).unwrap();
        let mode = |p: &str| {
            let meta = std::fs::metadata(dir.path().join(p)).unwrap();
            meta.permissions().mode() & 0o777
        };
        assert_eq!([mode("a"), mode("a/b"), mode("a/b/c")], [0o700; 3]);
    }
}
