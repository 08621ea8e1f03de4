//! The only place that changes files: stage, replace, link, remove, sync, lock. Paths below the workspace are
//! `tree::SafePath`; everything goes through a [`Disk`], so that a test can make any single operation fail, and each
//! is relative to an open folder, so that no link on the way is followed (`bugs.md` 57).
//!
//! Does not cover what is to be changed and in which order (`ops::apply`), and no recovery (`ops::recover`).

pub mod crash;
pub mod durable;
pub mod faulty;
pub mod hash;
pub mod lock;
pub mod stage;
pub(crate) mod sys;
pub mod tree;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags, Uid};

pub use faulty::Faulty;

/// The kinds of change, as [`Disk::ask`] is asked about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// A file is created.
    Create,
    /// Bytes are written.
    Write,
    /// Permission bits are set.
    Mode,
    /// Owner and group are set.
    Owner,
    /// A file's bytes are made durable.
    Sync,
    /// A whole file system is made durable.
    SyncAll,
    /// A folder's names are made durable.
    SyncFolder,
    /// A hard link is made.
    Link,
    /// A name is moved.
    Rename,
    /// Two names change places.
    Exchange,
    /// A name is removed.
    Unlink,
    /// A folder is made.
    MakeFolder,
    /// An empty folder is removed.
    RemoveFolder,
}

/// What a [`Disk`] says to a change.
#[derive(Debug)]
pub enum Verdict {
    /// Do it.
    Go,
    /// It fails and has no effect.
    Fail(io::Error),
    /// It fails after half of it was done; for a write, after half of the bytes.
    Torn(io::Error),
}

/// Who owns a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// A disk that can be changed. Every method is one system call and nothing else, so that "the n-th change fails" and
/// "killed at the n-th change" are the whole list of what can go wrong.
pub trait Disk: Sync {
    /// Whether the next change goes through.
    fn ask(&self, op: Op) -> Verdict;

    /// Marks a place where a test may kill the program ([`crash::POINTS`]).
    fn reach(&self, _point: &'static str) {}

    /// Creates a file that must not exist, readable by its owner alone until its mode is set.
    ///
    /// # Errors
    /// The name is taken (also by a link), or the disk refuses.
    fn create(&self, dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<File> {
        go(self.ask(Op::Create))?;
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(dir, name, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(File::from(fd))
    }

    /// Opens a file of ours for appending, created when missing; nobody else may read it.
    ///
    /// # Errors
    /// The disk refuses.
    fn open_append(&self, dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<File> {
        go(self.ask(Op::Create))?;
        let flags = OFlags::CREATE
            | OFlags::APPEND
            | OFlags::NOFOLLOW
            | OFlags::RDWR
            | OFlags::CLOEXEC
            | OFlags::NONBLOCK;
        let fd = rustix::fs::openat(dir, name, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(File::from(fd))
    }

    /// Writes all of the bytes.
    ///
    /// # Errors
    /// The disk refuses; some of the bytes may have been written.
    fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        match self.ask(Op::Write) {
            Verdict::Go => file.write_all(bytes),
            Verdict::Fail(e) => Err(e),
            Verdict::Torn(e) => {
                let half = bytes.get(..bytes.len() / 2).unwrap_or_default();
                file.write_all(half)?;
                Err(e)
            }
        }
    }

    /// Copies `len` bytes from one file to another, from where each stands, inside the kernel where that is possible
    /// (a file system with shared extents then copies nothing).
    ///
    /// # Errors
    /// The disk refuses, or the source is shorter than that.
    fn copy(&self, from: &File, mut to: &File, len: u64) -> io::Result<()> {
        let (len, end) = match self.ask(Op::Write) {
            Verdict::Go => (len, None),
            Verdict::Fail(e) => return Err(e),
            Verdict::Torn(e) => (len / 2, Some(e)),
        };
        let copied = io::copy(&mut from.take(len), &mut to)?;
        match end {
            Some(e) => Err(e),
            None if copied == len => Ok(()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Sets the permission bits, whatever the umask.
    ///
    /// # Errors
    /// The disk refuses.
    fn chmod(&self, file: BorrowedFd<'_>, mode: u32) -> io::Result<()> {
        go(self.ask(Op::Mode))?;
        Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode & 0o777))?)
    }

    /// Sets owner and group.
    ///
    /// # Errors
    /// The disk refuses, or this user may not give files away.
    fn chown(&self, file: BorrowedFd<'_>, owner: Owner) -> io::Result<()> {
        go(self.ask(Op::Owner))?;
        let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
        Ok(rustix::fs::fchown(file, Some(uid), Some(gid))?)
    }

    /// Makes a file's bytes durable.
    ///
    /// # Errors
    /// The disk could not write them.
    fn sync(&self, file: &File) -> io::Result<()> {
        go(self.ask(Op::Sync))?;
        file.sync_data()
    }

    /// Makes everything on the file system of this folder durable.
    ///
    /// # Errors
    /// The disk could not write it.
    fn sync_all(&self, dir: BorrowedFd<'_>) -> io::Result<()> {
        go(self.ask(Op::SyncAll))?;
        sys::sync_all(dir)
    }

    /// Makes the names in a folder durable.
    ///
    /// # Errors
    /// The disk could not write them. A file system that cannot sync folders is no error.
    fn sync_folder(&self, dir: BorrowedFd<'_>) -> io::Result<()> {
        go(self.ask(Op::SyncFolder))?;
        match rustix::fs::fsync(dir) {
            Err(rustix::io::Errno::INVAL) => Ok(()),
            other => Ok(other?),
        }
    }

    /// Gives a file a second name; a link is not followed.
    ///
    /// # Errors
    /// The name is taken, the two are on different file systems, or the disk refuses.
    fn link(&self, from: Name<'_>, to: Name<'_>) -> io::Result<()> {
        go(self.ask(Op::Link))?;
        let none = AtFlags::empty();
        Ok(rustix::fs::linkat(
            from.dir, from.name, to.dir, to.name, none,
        )?)
    }

    /// Moves a name, over whatever is there.
    ///
    /// # Errors
    /// The disk refuses.
    fn rename(&self, from: Name<'_>, to: Name<'_>) -> io::Result<()> {
        go(self.ask(Op::Rename))?;
        Ok(rustix::fs::renameat(from.dir, from.name, to.dir, to.name)?)
    }

    /// Moves a name to one that must be free.
    ///
    /// # Errors
    /// The name is taken, the file system cannot promise it ([`unsupported`]), or the disk refuses.
    fn rename_new(&self, from: Name<'_>, to: Name<'_>) -> io::Result<()> {
        go(self.ask(Op::Rename))?;
        let flags = RenameFlags::NOREPLACE;
        Ok(rustix::fs::renameat_with(
            from.dir, from.name, to.dir, to.name, flags,
        )?)
    }

    /// Lets two names change places.
    ///
    /// # Errors
    /// One is missing, the file system cannot do it ([`unsupported`]), or the disk refuses.
    fn exchange(&self, one: Name<'_>, other: Name<'_>) -> io::Result<()> {
        go(self.ask(Op::Exchange))?;
        let flags = RenameFlags::EXCHANGE;
        Ok(rustix::fs::renameat_with(
            one.dir, one.name, other.dir, other.name, flags,
        )?)
    }

    /// Removes the name of a file.
    ///
    /// # Errors
    /// It is missing, a folder, or the disk refuses.
    fn unlink(&self, at: Name<'_>) -> io::Result<()> {
        go(self.ask(Op::Unlink))?;
        Ok(rustix::fs::unlinkat(at.dir, at.name, AtFlags::empty())?)
    }

    /// Makes a folder that only its owner may enter until its mode is set.
    ///
    /// # Errors
    /// The name is taken, or the disk refuses.
    fn make_folder(&self, at: Name<'_>) -> io::Result<()> {
        go(self.ask(Op::MakeFolder))?;
        Ok(rustix::fs::mkdirat(at.dir, at.name, Mode::RWXU)?)
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// It is missing, not empty, no folder, or the disk refuses.
    fn remove_folder(&self, at: Name<'_>) -> io::Result<()> {
        go(self.ask(Op::RemoveFolder))?;
        Ok(rustix::fs::unlinkat(at.dir, at.name, AtFlags::REMOVEDIR)?)
    }
}

fn go(verdict: Verdict) -> io::Result<()> {
    match verdict {
        Verdict::Go => Ok(()),
        Verdict::Fail(e) | Verdict::Torn(e) => Err(e),
    }
}

/// A name in an open folder.
#[derive(Debug, Clone, Copy)]
pub struct Name<'a> {
    /// The folder.
    pub dir: BorrowedFd<'a>,
    /// The name; one plain component.
    pub name: &'a OsStr,
}

impl<'a> Name<'a> {
    /// A name in that folder.
    pub fn new(dir: &'a impl AsFd, name: &'a (impl AsRef<OsStr> + ?Sized)) -> Self {
        Self {
            dir: dir.as_fd(),
            name: name.as_ref(),
        }
    }
}

/// The disk of the machine.
#[derive(Debug, Default)]
pub struct Real {
    crash: Option<crash::CrashPlan>,
}

impl Real {
    /// The disk as it is.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The disk as it is, and the program is killed at the planned place. Without the feature `crashpoints` the plan
    /// is ignored.
    #[must_use]
    pub fn with_crash(plan: Option<crash::CrashPlan>) -> Self {
        Self { crash: plan }
    }
}

impl Disk for Real {
    fn ask(&self, _op: Op) -> Verdict {
        Verdict::Go
    }

    fn reach(&self, point: &'static str) {
        if cfg!(feature = "crashpoints")
            && let Some(plan) = &self.crash
        {
            plan.reach(point);
        }
    }
}

/// A disk that makes nothing durable: what is written survives the end of this process, and of the machine only when the
/// system gets round to it. For captures, which an agent waits for; their hashes tell what a power cut took.
pub struct Unsynced<'d>(pub &'d dyn Disk);

impl Disk for Unsynced<'_> {
    fn ask(&self, op: Op) -> Verdict {
        self.0.ask(op)
    }

    fn reach(&self, point: &'static str) {
        self.0.reach(point);
    }

    fn sync(&self, _file: &File) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self, _dir: BorrowedFd<'_>) -> io::Result<()> {
        Ok(())
    }

    fn sync_folder(&self, _dir: BorrowedFd<'_>) -> io::Result<()> {
        Ok(())
    }
}

/// Whether an error says that this file system or kernel cannot do such a thing at all, so that another way is tried.
#[must_use]
pub fn unsupported(e: &io::Error) -> bool {
    use rustix::io::Errno;
    let known = [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP, Errno::NOTSUP];
    known
        .iter()
        .any(|k| e.raw_os_error() == Some(k.raw_os_error()))
}

/// Whether an error says that no hard link can be made between two places, so that bytes are copied instead: another
/// file system, one without hard links, too many links, or a kernel that protects the files of others.
#[must_use]
pub fn unlinkable(e: &io::Error) -> bool {
    use rustix::io::Errno;
    let known = [Errno::XDEV, Errno::PERM, Errno::ACCESS, Errno::MLINK];
    unsupported(e)
        || known
            .iter()
            .any(|k| e.raw_os_error() == Some(k.raw_os_error()))
}

/// Moves a name to a free one, on any file system.
///
/// # Errors
/// The name is taken, or the disk refuses.
pub fn put_new(disk: &dyn Disk, from: Name<'_>, to: Name<'_>) -> io::Result<()> {
    match disk.rename_new(from, to) {
        Err(e) if unsupported(&e) => {}
        other => return other,
    }
    match disk.link(from, to) {
        Ok(()) => return disk.unlink(from),
        Err(e) if unlinkable(&e) => {}
        Err(e) => return Err(e),
    }
    // Neither is to be had (an old FAT): the name may be taken between the look and the rename.
    match sys::stat(to.dir, to.name) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => disk.rename(from, to),
        Err(e) => Err(e),
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
    }
}

/// Makes a file that nobody else may read; one that is there already is left alone.
///
/// # Errors
/// It is there already, or cannot be made.
pub fn new_file(path: &std::path::Path) -> io::Result<std::fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}
