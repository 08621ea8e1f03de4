//! The bytes of the files that a call is about to touch: taken, hashed and stored as blobs before the lock is asked for,
//! since their names say what they hold. What cannot be taken is a gap with its reason.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use super::record::{GapRecord, Mark};
use crate::ckpt::blobs;
use crate::fsx::tree::{FileKind, Root, SafePath, Taken, reason_of};
use crate::fsx::{Disk, Name, durable, hash, put_new};
use crate::model::edit::{Reason, RecordedPath};

/// What was found at a path that a call names.
#[derive(Debug)]
pub(super) enum Found {
    /// A file of the workspace at this moment.
    At(String, Mark),
    /// It could not be taken.
    Gap(GapRecord),
}

/// What may be captured.
pub(super) struct Limits<'a> {
    /// The largest file, in bytes.
    pub(super) largest: u64,
    /// Folders that are never captured: stores of ours and of agents.
    pub(super) never: &'a [PathBuf],
    /// Files that the user leaves out.
    pub(super) left_out: &'a globset::GlobSet,
}

/// Where blobs are stored.
pub(super) struct Blobs<'a> {
    pub(super) disk: &'a dyn Disk,
    pub(super) sidecar: &'a Path,
}

/// Takes one file; with `blobs` its bytes are stored, without only its mark is told.
pub(super) fn file(
    root: &Root,
    path: &Path,
    cwd: Option<&Path>,
    limits: &Limits<'_>,
    blobs: Option<&Blobs<'_>>,
) -> Found {
    let gap = |kind: &str, path: &Path| {
        Found::Gap(GapRecord {
            kind: kind.to_owned(),
            path: Some(path.to_string_lossy().into_owned()),
            detail: None,
        })
    };
    let recorded = RecordedPath {
        path: path.to_path_buf(),
        base: None,
    };
    // A relative path is relative to the folder that the agent is in.
    let safe = match root.resolve(&recorded, cwd.or(Some(root.path()))) {
        Ok(safe) => safe,
        Err(reason) => return gap(word(&reason), path),
    };
    let below = safe.as_path();
    let full = root.path().join(below);
    let in_git = below.iter().any(|p| p == ".git");
    if in_git || limits.never.iter().any(|n| full.starts_with(n)) {
        return gap("excluded", below);
    }
    if limits.left_out.is_match(below) {
        return gap("excluded", below);
    }
    let Some(name) = below.to_str() else {
        return gap("bad_name", below);
    };
    let taken = match root.take(&safe, limits.largest) {
        Ok(taken) => taken,
        Err(e) => return gap(word(&reason_of(&e)), below),
    };
    match taken {
        Taken::Absent => Found::At(name.to_owned(), Mark::Absent),
        Taken::TooLarge(_) => gap("oversized", below),
        Taken::NotAFile(FileKind::Link) => gap("symlink", below),
        Taken::NotAFile(_) => gap("not_a_file", below),
        Taken::Changing => gap("changing", below),
        Taken::File { bytes, mode } => {
            let sha = hash::of_bytes(&bytes);
            if let Some(blobs) = blobs
                && let Err(e) = blobs.store(&sha, &bytes)
            {
                return Found::Gap(GapRecord {
                    kind: "not_stored".to_owned(),
                    path: Some(name.to_owned()),
                    detail: Some(e.to_string()),
                });
            }
            Found::At(name.to_owned(), Mark::File(hash::hex(&sha), mode))
        }
    }
}

/// What a file is now, for a mark; `None` where that cannot be told.
pub(super) fn mark(root: &Root, path: &Path, limit: u64) -> Option<Mark> {
    let safe = SafePath::new(path).ok()?;
    match root.take(&safe, limit).ok()? {
        Taken::Absent => Some(Mark::Absent),
        Taken::File { bytes, mode } => Some(Mark::File(hash::hex(&hash::of_bytes(&bytes)), mode)),
        _ => None,
    }
}

/// The word of a gap, as readers of the sidecar know it.
fn word(reason: &Reason) -> &'static str {
    match reason {
        Reason::OutsideRoot => "outside_workspace",
        Reason::BadName => "bad_name",
        Reason::NotAFile => "symlink",
        _ => "unreadable",
    }
}

/// Compressed only where that saves a block of the disk.
const BLOCK: usize = 4096;

impl Blobs<'_> {
    /// Stores bytes under their hash; what is stored already is left alone.
    fn store(&self, sha: &[u8; 32], bytes: &[u8]) -> io::Result<()> {
        if blobs::find(self.sidecar, sha).is_ok() {
            return Ok(());
        }
        let packed = packed(bytes);
        let mut place = blobs::place(self.sidecar, sha);
        if packed.is_some() {
            let mut name = place.into_os_string();
            name.push(".zst");
            place = name.into();
        }
        let folder = place.parent().ok_or(io::ErrorKind::InvalidInput)?;
        let folder = durable::folder(self.disk, folder)?;
        let name = place.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let temp = temporary(self.sidecar, self.disk)?;
        let from = Name::new(&temp.0, &temp.1);
        let done = self.disk.create(from.dir, from.name).and_then(|file| {
            self.disk.write(&file, packed.as_deref().unwrap_or(bytes))?;
            self.disk.sync(&file)
        });
        let done = done.and_then(
            |()| match put_new(self.disk, from, Name::new(&folder, name)) {
                // Another hook stored the same bytes.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => self.disk.unlink(from),
                other => other,
            },
        );
        if done.is_err() {
            // Best effort: the next prompt sweeps what is left.
            drop(durable::remove(self.disk, from));
        }
        done
    }
}

fn packed(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.len() <= BLOCK {
        return None;
    }
    let packed = zstd::bulk::compress(bytes, 1).ok()?;
    (packed.len().div_ceil(BLOCK) < bytes.len().div_ceil(BLOCK)).then_some(packed)
}

/// A name in `tmp/` that carries this process's number.
fn temporary(
    sidecar: &Path,
    disk: &dyn Disk,
) -> io::Result<(std::os::fd::OwnedFd, std::ffi::OsString)> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let folder = durable::folder(disk, &sidecar.join("tmp"))?;
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    Ok((folder, format!("{}-{count}", std::process::id()).into()))
}

/// Removes what hooks that were killed left in `tmp/`.
pub(super) fn sweep(disk: &dyn Disk, sidecar: &Path) {
    let Ok(folder) = crate::fsx::sys::open_folder(&sidecar.join("tmp")) else {
        return;
    };
    for name in durable::names(folder.as_fd()).unwrap_or_default() {
        if !is_alive(&name) {
            // Best effort: it is swept again.
            drop(durable::remove(disk, Name::new(&folder, &name)));
        }
    }
}

/// Whether the process that a temporary name carries runs.
fn is_alive(name: &OsStr) -> bool {
    let pid = name.to_str().and_then(|n| n.split('-').next());
    pid.is_some_and(|p| Path::new("/proc").join(p).exists())
}
