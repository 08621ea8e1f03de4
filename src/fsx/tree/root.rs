//! The workspace folder: opened once; recorded paths become paths below it or are refused.
//!
//! Does not close the race between a look and a change by itself: a folder that somebody moves away while we work
//! stays the folder that we write into.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::{FileKind, Look, SafePath, bytes_of, look_at, reason_of};
use crate::fsx::{Owner, sys};
use crate::model::edit::{Reason, RecordedPath};

/// The workspace folder, held open.
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
    fd: OwnedFd,
    id: (u64, u64),
}

impl Root {
    /// Opens the folder; its path becomes the canonical one, so that every alias of it is the same root
    /// (`bugs.md` 79).
    ///
    /// # Errors
    /// It does not exist, is no folder, or cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let fd = sys::open_folder(&path)?;
        let meta = File::from(fd.try_clone()?).metadata()?;
        Ok(Self {
            path,
            fd,
            id: (meta.dev(), meta.ino()),
        })
    }

    /// The canonical path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Device and inode.
    #[must_use]
    pub fn id(&self) -> (u64, u64) {
        self.id
    }

    /// The open folder.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Takes a relative path of plain names ([`SafePath::new`]).
    ///
    /// # Errors
    /// [`Reason::OutsideRoot`] or [`Reason::BadName`].
    pub fn safe(&self, path: &Path) -> Result<SafePath, Reason> {
        SafePath::new(path)
    }

    /// Turns a recorded path into one below this root. An absolute path is taken relative to this root where it lies
    /// below it under any name of the root, else relative to the recorded root (the folder was moved); a relative one
    /// is joined to its own base, else to the recorded root. `./a` and `d/../a` are `a`; a link on the way is refused,
    /// never followed (`bugs.md` 57, 58).
    ///
    /// # Errors
    /// [`Reason::OutsideRoot`], [`Reason::BadName`], [`Reason::NotAFile`] for a link or a file where a folder should
    /// be, [`Reason::Unreadable`].
    pub fn resolve(
        &self,
        path: &RecordedPath,
        recorded_root: Option<&Path>,
    ) -> Result<SafePath, Reason> {
        if bytes_of(&path.path).contains(&0) {
            return Err(Reason::BadName);
        }
        let recorded_root = recorded_root.filter(|r| r.is_absolute());
        let start = recorded_root.unwrap_or(&self.path);
        let base = path.base.as_deref().unwrap_or(Path::new(""));
        let spelled = start.join(base).join(&path.path);
        let (plain, left) = lexical(&spelled)?;
        let below = self.below(&plain, recorded_root)?;
        if below.as_os_str().is_empty() {
            return Err(Reason::NotAFile);
        }
        let safe = SafePath::new(&below)?;
        for folder in left {
            self.refuse_link(&folder, recorded_root)?;
        }
        match sys::open_below(self.fd(), safe.folder()) {
            Ok(_) => Ok(safe),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(safe),
            Err(e) => Err(reason_of(&e)),
        }
    }

    /// The rest of an absolute path below this root.
    fn below(&self, path: &Path, recorded_root: Option<&Path>) -> Result<PathBuf, Reason> {
        if let Ok(rest) = path.strip_prefix(&self.path) {
            return Ok(rest.to_path_buf());
        }
        if let Some(root) = recorded_root
            && let Ok(rest) = path.strip_prefix(lexical(root)?.0)
        {
            return Ok(rest.to_path_buf());
        }
        // Another name of this root: through a link, a bind mount, /tmp and /private/tmp. Only the folders above the
        // root may be reached through a link; what is below is checked name by name.
        for above in path.ancestors() {
            let same = std::fs::metadata(above).is_ok_and(|m| (m.dev(), m.ino()) == self.id);
            if same && let Ok(rest) = path.strip_prefix(above) {
                return Ok(rest.to_path_buf());
            }
        }
        Err(Reason::OutsideRoot)
    }

    /// In `d/../a`, `d` may be a link, and then the path is not `a`: which of the two was meant is not known.
    fn refuse_link(&self, folder: &Path, recorded_root: Option<&Path>) -> Result<(), Reason> {
        let Ok(below) = self.below(folder, recorded_root) else {
            return Ok(());
        };
        if below.as_os_str().is_empty() {
            return Ok(());
        }
        match sys::open_below(self.fd(), &below) {
            Ok(_) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(reason_of(&e)),
        }
    }

    /// Looks at a path. For many paths, [`Folders::look`] opens each folder once.
    ///
    /// # Errors
    /// It cannot be looked at ([`reason_of`] says why); only "not found" is absence.
    pub fn fingerprint(&self, path: &SafePath) -> io::Result<Look> {
        Folders::new(self).look(path)
    }

    /// Reads a whole file.
    ///
    /// # Errors
    /// It is no plain file, or cannot be read.
    pub fn read(&self, path: &SafePath) -> io::Result<Vec<u8>> {
        use std::io::Read;
        let dir = sys::open_below(self.fd(), path.folder())?;
        let kind = sys::stat(dir.as_fd(), path.name())?.file_type();
        if !kind.is_file() {
            return Err(io::Error::other("not a plain file"));
        }
        let mut bytes = Vec::new();
        sys::open_file(dir.as_fd(), path.name())?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Removes `.` and `..` from an absolute path as text; gives the result and the folders that a `..` left again.
fn lexical(path: &Path) -> Result<(PathBuf, Vec<PathBuf>), Reason> {
    let mut plain = PathBuf::from("/");
    let mut left = Vec::new();
    for part in path.components() {
        match part {
            Component::RootDir | Component::CurDir => {}
            Component::Prefix(_) => return Err(Reason::OutsideRoot),
            Component::ParentDir => {
                left.push(plain.clone());
                plain.pop();
            }
            Component::Normal(name) => plain.push(name),
        }
    }
    Ok((plain, left))
}

/// How many folders are held open at once; more are closed and opened again. Well below the usual limit of 1024.
const OPEN: usize = 200;

/// The folders below a root, each opened once for the length of one operation.
#[derive(Debug)]
pub struct Folders<'r> {
    root: &'r Root,
    open: Mutex<HashMap<PathBuf, Arc<OwnedFd>>>,
}

impl<'r> Folders<'r> {
    /// The folders of that root; none is open yet.
    #[must_use]
    pub fn new(root: &'r Root) -> Self {
        Self {
            root,
            open: Mutex::new(HashMap::new()),
        }
    }

    /// The root.
    #[must_use]
    pub fn root(&self) -> &'r Root {
        self.root
    }

    /// The open folder that a path stands in.
    ///
    /// # Errors
    /// It is missing, is no folder, or a link is on the way.
    pub fn of(&self, path: &SafePath) -> io::Result<Arc<OwnedFd>> {
        self.open(path.folder())
    }

    /// An open folder; the empty path is the root.
    ///
    /// # Errors
    /// As [`Folders::of`].
    pub fn open(&self, folder: &Path) -> io::Result<Arc<OwnedFd>> {
        let known = |m: &HashMap<PathBuf, Arc<OwnedFd>>| m.get(folder).cloned();
        if let Some(fd) = known(&self.open.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(fd);
        }
        let fd = Arc::new(sys::open_below(self.root.fd(), folder)?);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= OPEN {
            open.clear();
        }
        open.insert(folder.to_path_buf(), Arc::clone(&fd));
        Ok(fd)
    }

    /// Forgets a folder that was removed, so that one made in its place is not taken for it.
    pub fn forget(&self, folder: &Path) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|path, _| !path.starts_with(folder));
    }

    /// Looks at a path.
    ///
    /// # Errors
    /// As [`Root::fingerprint`].
    pub fn look(&self, path: &SafePath) -> io::Result<Look> {
        match self.of(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Look::absent()),
            Err(e) => Err(e),
            Ok(dir) => look_at(dir.as_fd(), path.name()),
        }
    }

    /// What kind of thing stands at a path, and its permission bits, without reading it.
    ///
    /// # Errors
    /// As [`Root::fingerprint`].
    pub fn glance(&self, path: &SafePath) -> io::Result<(FileKind, u32)> {
        use std::os::unix::fs::PermissionsExt;
        let dir = match self.of(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok((FileKind::Absent, 0)),
            other => other?,
        };
        match sys::stat(dir.as_fd(), path.name()) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok((FileKind::Absent, 0)),
            Err(e) => Err(e),
            Ok(meta) => Ok((
                super::look::kind_of(&meta),
                meta.permissions().mode() & 0o7777,
            )),
        }
    }
}

/// Owner and permission bits of an open folder.
pub(crate) fn owner_of(folder: &OwnedFd) -> io::Result<(Owner, u32)> {
    let meta = File::from(folder.try_clone()?).metadata()?;
    let owner = Owner {
        uid: meta.uid(),
        gid: meta.gid(),
    };
    Ok((owner, meta.mode() & 0o777))
}
