//! The rollout files of a Codex home: their names, where they lie, which is the current one of a thread.
//!
//! ```text
//! rollout-2026-12-01T02-39-07-<thread>.jsonl               the first rollout: its id is that of the thread
//! rollout-2026-12-01T03-39-56-<thread>_<rollout>.jsonl     after a revert
//! ….jsonl.zst                                              compressed; the plain file wins
//! ```

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::env::Env;

/// One rollout file, as its name tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rollout {
    pub(super) path: PathBuf,
    /// The local time in the name, `2026-12-01T02-39-07`.
    stamp: String,
    pub(super) thread: String,
    /// The id that a `history_base` names.
    pub(super) id: String,
}

/// Length of the time in a name.
const STAMP: usize = 19;

impl Rollout {
    /// Reads a file name; `None` for another file.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let stem = name.strip_suffix(".zst").unwrap_or(name);
        let rest = stem.strip_suffix(".jsonl")?.strip_prefix("rollout-")?;
        let (stamp, rest) = rest.split_at_checked(STAMP)?;
        let ids = rest.strip_prefix('-')?;
        let (thread, id) = ids.split_once('_').unwrap_or((ids, ids));
        Some(Self {
            path: path.to_path_buf(),
            stamp: stamp.to_owned(),
            thread: thread.to_owned(),
            id: id.to_owned(),
        })
    }

    /// Whether the file is compressed.
    pub(super) fn is_zst(path: &Path) -> bool {
        path.extension().is_some_and(|e| e == "zst")
    }

    /// Orders two rollouts of one thread by age. Ids of version 7 begin with the time in UTC, so they are right where
    /// the local time in the name went back an hour.
    pub(super) fn age(&self, other: &Self) -> Ordering {
        let timed = |id: &str| id.len() == 36 && id.as_bytes().get(14) == Some(&b'7');
        if timed(&self.id) && timed(&other.id) {
            return self.id.cmp(&other.id);
        }
        self.stamp
            .cmp(&other.stamp)
            .then_with(|| self.id.cmp(&other.id))
    }
}

/// What was found in a home, and what could not be looked into.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) found: Vec<Rollout>,
    pub(super) unread: Vec<(PathBuf, io::Error)>,
}

/// The Codex homes that matter: the one that a file lies in, then that of the surroundings.
pub(super) fn homes(of: Option<&Path>, env: &Env) -> Vec<PathBuf> {
    let own = of.and_then(|path| {
        let folder = path
            .ancestors()
            .find(|a| a.ends_with("sessions") || a.ends_with("archived_sessions"))?;
        Some(folder.parent()?.to_path_buf())
    });
    let mut homes: Vec<PathBuf> = own.into_iter().collect();
    homes.extend(env.dir("CODEX_HOME", ".codex"));
    homes.dedup();
    homes
}

/// Lists the rollouts of a home. Only a missing folder is an empty one.
pub(super) fn list(home: &Path) -> Listing {
    let mut listing = Listing::default();
    // Year, month, day: no deeper, so a loop of links ends.
    let mut folders = vec![
        (home.join("sessions"), 3),
        (home.join("archived_sessions"), 0),
    ];
    while let Some((folder, depth)) = folders.pop() {
        if let Err(e) = look_into(&folder, depth, &mut folders, &mut listing.found)
            && e.kind() != io::ErrorKind::NotFound
        {
            listing.unread.push((folder, e));
        }
    }
    listing
}

fn look_into(
    folder: &Path,
    depth: u8,
    folders: &mut Vec<(PathBuf, u8)>,
    found: &mut Vec<Rollout>,
) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if let Some(rollout) = Rollout::of(&path) {
            found.push(rollout);
        } else if depth > 0 && is_folder(&entry)? {
            folders.push((path, depth - 1));
        }
    }
    Ok(())
}

/// Whether it is a folder, or a link to one.
fn is_folder(entry: &fs::DirEntry) -> io::Result<bool> {
    let kind = entry.file_type()?;
    if !kind.is_symlink() {
        return Ok(kind.is_dir());
    }
    match fs::metadata(entry.path()) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        other => Ok(other?.is_dir()),
    }
}

/// Lists the rollouts beside a file: for sessions that were copied out of their home.
pub(super) fn beside(path: &Path) -> Listing {
    let mut listing = Listing::default();
    let folder = path.parent().unwrap_or(Path::new("."));
    if let Err(e) = look_into(folder, 0, &mut Vec::new(), &mut listing.found) {
        listing.unread.push((folder.to_path_buf(), e));
    }
    listing
}

/// The current rollout of each thread, newest first. A plain file wins over its compressed twin.
pub(super) fn newest_of_each_thread(all: impl Iterator<Item = Rollout>) -> Vec<PathBuf> {
    let mut threads: BTreeMap<String, Rollout> = BTreeMap::new();
    for rollout in all {
        match threads.get_mut(&rollout.thread) {
            Some(best) if wins(&rollout, best) => *best = rollout,
            Some(_) => {}
            None => {
                threads.insert(rollout.thread.clone(), rollout);
            }
        }
    }
    let mut newest: Vec<Rollout> = threads.into_values().collect();
    newest.sort_by(|a, b| b.stamp.cmp(&a.stamp).then_with(|| b.id.cmp(&a.id)));
    newest.into_iter().map(|r| r.path).collect()
}

fn wins(new: &Rollout, best: &Rollout) -> bool {
    match new.age(best) {
        Ordering::Greater => true,
        Ordering::Less => false,
        Ordering::Equal => Rollout::is_zst(&best.path) && !Rollout::is_zst(&new.path),
    }
}
