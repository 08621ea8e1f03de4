//! What differs between systems: opening below a folder without following a link, looking at a name without opening
//! it, and making a whole file system durable. Linux has a call for each; elsewhere the nearest that is safe.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags};

fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC
}

/// Opens a folder by its whole path; links on the way are followed.
pub(crate) fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, folder_flags(), Mode::empty())?)
}

/// Opens a folder below another; a link anywhere on the way is an error.
pub(crate) fn open_below(root: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    if path.as_os_str().is_empty() {
        return Ok(rustix::fs::openat(
            root,
            ".",
            folder_flags(),
            Mode::empty(),
        )?);
    }
    #[cfg(target_os = "linux")]
    match open_beneath(root, path) {
        // An old kernel, or a sandbox that does not know the call; or (EAGAIN) a rename somewhere just now.
        Err(
            rustix::io::Errno::NOSYS
            | rustix::io::Errno::INVAL
            | rustix::io::Errno::PERM
            | rustix::io::Errno::AGAIN,
        ) => {}
        other => return Ok(other?),
    }
    open_by_steps(root, path)
}

#[cfg(target_os = "linux")]
fn open_beneath(root: BorrowedFd<'_>, path: &Path) -> rustix::io::Result<OwnedFd> {
    use rustix::fs::ResolveFlags;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(root, path, folder_flags(), Mode::empty(), resolve)
}

/// The same, one name at a time.
pub(crate) fn open_by_steps(root: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    let flags = folder_flags() | OFlags::NOFOLLOW;
    let mut at: Option<OwnedFd> = None;
    for part in path.components() {
        let Component::Normal(name) = part else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let from = at.as_ref().map_or(root, AsFd::as_fd);
        let next = rustix::fs::openat(from, name, flags, Mode::empty())?;
        at = Some(next);
    }
    at.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// What stands at a name, without opening it for reading: a FIFO or a tape would notice that. A link is not followed.
#[cfg(target_os = "linux")]
pub(crate) fn stat(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<Metadata> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    File::from(rustix::fs::openat(dir, name, flags, Mode::empty())?).metadata()
}

/// The same through the folder's own path in `/dev/fd`, where there is no `O_PATH`.
#[cfg(not(target_os = "linux"))]
pub(crate) fn stat(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<Metadata> {
    use std::os::fd::AsRawFd;
    let path = Path::new("/dev/fd")
        .join(dir.as_raw_fd().to_string())
        .join(name);
    std::fs::symlink_metadata(path)
}

/// Opens a plain file for reading; a link is not followed, and a FIFO that just took its place does not block.
pub(crate) fn open_file(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::openat(
        dir,
        name,
        flags,
        Mode::empty(),
    )?))
}

/// Makes the file system of a folder durable.
#[cfg(target_os = "linux")]
pub(crate) fn sync_all(dir: BorrowedFd<'_>) -> io::Result<()> {
    Ok(rustix::fs::syncfs(dir)?)
}

/// Makes every file system durable, where one alone cannot be named.
#[cfg(not(target_os = "linux"))]
pub(crate) fn sync_all(_dir: BorrowedFd<'_>) -> io::Result<()> {
    rustix::fs::sync();
    Ok(())
}
