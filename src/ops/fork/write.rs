//! The files of a fork on disk: each made new, filled with its pieces, synced; and what was made, for taking it back.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Disk, durable};
use crate::error::{Error, Result};
use crate::format::lines;
use crate::fsx::{self, Name, stage, sys};
use crate::model::fork::{NewFile, Piece, Row};

/// So many bytes are gathered before they are written.
const CHUNK: usize = 256 << 10;

/// What a fork has made so far.
pub(super) struct Made<'d> {
    disk: &'d dyn Disk,
    files: Vec<PathBuf>,
    /// Folders, each behind the one that holds it.
    folders: Vec<PathBuf>,
}

impl<'d> Made<'d> {
    pub(super) fn new(disk: &'d dyn Disk) -> Self {
        Self {
            disk,
            files: Vec::new(),
            folders: Vec::new(),
        }
    }

    /// Makes a file under its own name.
    pub(super) fn file(&mut self, file: &NewFile, mode: u32) -> Result<()> {
        self.folder_of(&file.path)?;
        self.fill(&file.path, &file.body, mode)
            .map_err(|e| cannot_make(&file.path, e))
    }

    /// Makes the session's own file: under another name until it is whole.
    pub(super) fn session(&mut self, file: &NewFile, mode: u32) -> Result<()> {
        self.folder_of(&file.path)?;
        let name = file.path.file_name().unwrap_or_default();
        let aside = file.path.with_file_name(stage::name(name, "fork", 0));
        self.fill(&aside, &file.body, mode)
            .and_then(|()| self.named(&aside, &file.path))
            .map_err(|e| cannot_make(&file.path, e))
    }

    /// Gives a second name to a file of ours that never changes, or copies it where that cannot be.
    pub(super) fn share(&mut self, from: &Path, to: &Path) -> Result<()> {
        self.folder_of(to)?;
        let linked = || {
            let (here, there) = (parent(from)?, parent(to)?);
            let at = Name::new(&here, from.file_name().unwrap_or_default());
            self.disk
                .link(at, Name::new(&there, to.file_name().unwrap_or_default()))
        };
        match linked() {
            Ok(()) => {
                self.files.push(to.to_path_buf());
                Ok(())
            }
            Err(e) if fsx::unlinkable(&e) => {
                let whole = [Piece::Whole(from.into())];
                self.fill(to, &whole, mode_of(from)?)
                    .map_err(|e| cannot_make(to, e))
            }
            Err(e) => Err(cannot_make(to, e)),
        }
    }

    /// Makes the folders above a path that are missing.
    fn folder_of(&mut self, path: &Path) -> Result<()> {
        let Some(folder) = path.parent() else {
            return Ok(());
        };
        let is_missing = |f: &&Path| std::fs::symlink_metadata(f).is_err();
        let missing: Vec<PathBuf> = folder
            .ancestors()
            .take_while(is_missing)
            .map(Path::to_path_buf)
            .collect();
        self.folders.extend(missing.into_iter().rev());
        durable::folder(self.disk, folder).map_err(|e| cannot_make(folder, e))?;
        Ok(())
    }

    fn fill(&mut self, path: &Path, body: &[Piece], mode: u32) -> io::Result<()> {
        let dir = parent(path)?;
        let file = self
            .disk
            .create(dir.as_fd(), path.file_name().unwrap_or_default())?;
        self.files.push(path.to_path_buf());
        let mut pour = Pour {
            disk: self.disk,
            file: &file,
            held: Vec::new(),
            from: None,
            decoded: None,
        };
        for piece in body {
            pour.piece(piece)?;
        }
        pour.flush()?;
        self.disk.chmod(file.as_fd(), mode)?;
        self.disk.sync(&file)?;
        self.disk.sync_folder(dir.as_fd())
    }

    fn named(&mut self, aside: &Path, path: &Path) -> io::Result<()> {
        let dir = parent(path)?;
        let from = Name::new(&dir, aside.file_name().unwrap_or_default());
        let to = Name::new(&dir, path.file_name().unwrap_or_default());
        fsx::put_new(self.disk, from, to)?;
        self.files.retain(|f| f != aside);
        self.files.push(path.to_path_buf());
        self.disk.sync_folder(dir.as_fd())
    }

    /// Removes what was made, the session's own file first; names what cannot be removed.
    pub(super) fn take_back(self) -> std::result::Result<(), (PathBuf, io::Error)> {
        for path in self.files.iter().rev() {
            let removed = parent(path).and_then(|dir| {
                let name = path.file_name().unwrap_or_default();
                durable::remove(self.disk, Name::new(&dir, name))
            });
            removed.map_err(|e| (path.clone(), e))?;
        }
        for path in self.folders.iter().rev() {
            // One that somebody else has put something into stays.
            if let Ok(dir) = parent(path) {
                let name = path.file_name().unwrap_or_default();
                drop(self.disk.remove_folder(Name::new(&dir, name)));
            }
        }
        Ok(())
    }
}

fn parent(path: &Path) -> io::Result<std::os::fd::OwnedFd> {
    sys::open_folder(path.parent().ok_or(io::ErrorKind::InvalidInput)?)
}

/// Permission bits of a file that is there.
pub(super) fn mode_of(path: &Path) -> Result<u32> {
    let meta = std::fs::metadata(path);
    meta.map(|m| m.mode() & 0o777)
        .map_err(|e| Error::io("the session file cannot be read", path, e))
}

/// Adds a line to a list of the agent's that is there.
pub(super) fn add_row(disk: &dyn Disk, row: &Row) -> io::Result<()> {
    if !row.path.is_file() {
        return Ok(());
    }
    let dir = parent(&row.path)?;
    let name = row.path.file_name().unwrap_or_default();
    durable::append(disk, dir.as_fd(), name, &row.line)
}

fn cannot_make(path: &Path, e: io::Error) -> Error {
    Error::io("the new session cannot be written", path, e)
}

/// Pieces on their way into a file: small ones are gathered, long ones go straight through.
struct Pour<'a> {
    disk: &'a dyn Disk,
    file: &'a File,
    held: Vec<u8>,
    /// The file that was copied from last, open.
    from: Option<(Arc<Path>, File)>,
    /// The compressed file that was copied from last, open at this offset of what it decodes to.
    decoded: Option<(Arc<Path>, Box<dyn io::Read>, u64)>,
}

impl Pour<'_> {
    fn piece(&mut self, piece: &Piece) -> io::Result<()> {
        match piece {
            Piece::Text(bytes) => self.held.extend_from_slice(bytes),
            Piece::Whole(path) => {
                let mut file = File::open(path)?;
                self.stream(&mut file)?;
            }
            Piece::Copy { from, start, end } => self.range(from, *start, *end)?,
        }
        if self.held.len() >= CHUNK {
            self.flush()?;
        }
        Ok(())
    }

    fn range(&mut self, path: &Arc<Path>, start: u64, end: u64) -> io::Result<()> {
        let len = end.saturating_sub(start);
        if path.extension().is_some_and(|e| e == "zst") {
            return self.decoded(path, start, len);
        }
        if self.from.as_ref().is_none_or(|(p, _)| p != path) {
            self.from = Some((Arc::clone(path), File::open(path)?));
        }
        let Some((_, file)) = &self.from else {
            return Ok(());
        };
        let mut at = start;
        while at < end {
            let n = usize::try_from(end - at).map_or(CHUNK, |n| n.min(CHUNK));
            let old = self.held.len();
            self.held.resize(old + n, 0);
            let space = self.held.get_mut(old..).unwrap_or_default();
            file.read_exact_at(space, at)?;
            at += n as u64;
            if self.held.len() >= CHUNK {
                self.disk.write(self.file, &self.held)?;
                self.held.clear();
            }
        }
        Ok(())
    }

    /// A range of a compressed file. Ranges come in order, so it is decoded once and not from its start for each.
    fn decoded(&mut self, path: &Arc<Path>, start: u64, len: u64) -> io::Result<()> {
        let mut open = match self.decoded.take() {
            Some((p, open, at)) if p == *path && at <= start => {
                let mut open = open;
                io::copy(&mut open.by_ref().take(start - at), &mut io::sink())?;
                open
            }
            _ => lines::open(path, start)?,
        };
        if self.stream(&mut open.by_ref().take(len))? != len {
            let short = "the session file is shorter";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, short));
        }
        self.decoded = Some((Arc::clone(path), open, start + len));
        Ok(())
    }

    fn stream(&mut self, from: &mut dyn io::Read) -> io::Result<u64> {
        let mut total = 0;
        loop {
            let n = from.take(CHUNK as u64).read_to_end(&mut self.held)?;
            if n == 0 {
                return Ok(total);
            }
            total += n as u64;
            if self.held.len() >= CHUNK {
                self.flush()?;
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.held.is_empty() {
            self.disk.write(self.file, &self.held)?;
            self.held.clear();
        }
        Ok(())
    }
}
