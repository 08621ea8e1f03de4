//! Reasonix's sidecar, all generations of it at once, since a session may have lived through several.
//!
//! ```text
//! turn-<N>.json             a checkpoint (v1, v2), or the marker of one in `turns/`
//! expired/turn-<N>.json     what is left of a v2 checkpoint whose payload was pruned
//! turns/<N>/meta.json       v3; counts only while `turn-<N>.json` is there, which is the tombstone rule
//! turns/<N>/files/0000.before
//! ```
//!
//! Of several records of one turn the newest counts; at the same time v3 before root before expired. A record that cannot be
//! read might have been the one that counts, so its turn is damaged, not taken from another.

use std::io;
use std::path::{Path, PathBuf};

use super::record::{self, Form, Loaded, Place};
use super::{Owner, Store, Trouble, blobs, damaged};
use crate::model::checkpoint::Checkpoint;
use crate::model::edit::{GapKind, Reason};

/// A sidecar of Reasonix.
#[derive(Debug, Clone)]
pub struct Reasonix {
    folder: PathBuf,
}

impl Reasonix {
    /// The sidecar in that folder.
    #[must_use]
    pub fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn load(&self, file: &Path, turn: u32, form: Form) -> Loaded {
        record::load(&Place {
            folder: &self.folder,
            file,
            turn,
            form,
        })
    }

    fn turn(&self, turn: u32) -> Option<Checkpoint> {
        let root = self.load(&record::root_file(&self.folder, turn), turn, Form::Root);
        let turns = self.folder.join("turns").join(turn.to_string());
        let newest = match root {
            Loaded::Gone => Loaded::Gone,
            _ => self.load(&turns.join("meta.json"), turn, Form::Turns),
        };
        let expired = record::root_file(&self.folder.join("expired"), turn);
        let expired = self.load(&expired, turn, Form::Expired);
        choose(turn, newest, root, expired, &turns)
    }
}

/// Decides which of the records of a turn counts.
fn choose(
    turn: u32,
    newest: Loaded,
    root: Loaded,
    expired: Loaded,
    turns: &Path,
) -> Option<Checkpoint> {
    let root = match root {
        Loaded::Damaged(reason) => return Some(damaged(turn, reason)),
        Loaded::Gone => None,
        Loaded::Whole(r) => Some(r),
    };
    let newest = match newest {
        // What the root record knows of the turn is kept, for telling which turn it is; its files are not.
        Loaded::Damaged(reason) => {
            return Some(without_files(turn, root.map(|r| r.checkpoint), reason));
        }
        Loaded::Gone => None,
        Loaded::Whole(r) => Some(r.checkpoint),
    };
    let (marker, older) = match root {
        Some(r) if r.marker => (Some(r.checkpoint), None),
        other => (None, other.map(|r| r.checkpoint)),
    };
    let (spare, oldest) = match expired {
        Loaded::Damaged(reason) => (Some(reason), None),
        Loaded::Gone => (None, None),
        Loaded::Whole(r) => (None, Some(r.checkpoint)),
    };
    // In the order of their rank: of two with the same time, the later one in this list counts.
    let found = [oldest, older, newest]
        .into_iter()
        .flatten()
        .max_by_key(|c| c.time);
    match (found, spare, marker) {
        (Some(found), _, _) => Some(found),
        (None, Some(reason), marker) => Some(without_files(turn, marker, reason)),
        (None, None, Some(marker)) => Some(without_files(turn, Some(marker), lost(turns))),
        (None, None, None) => None,
    }
}

fn without_files(turn: u32, known: Option<Checkpoint>, reason: Reason) -> Checkpoint {
    let mut out = known.unwrap_or_else(|| damaged(turn, Reason::RecordDamaged));
    out.files.clear();
    out.damaged = Some(reason);
    out
}

/// Why a marker stands alone: the folder was pruned, or its record never came to be written.
fn lost(turns: &Path) -> Reason {
    match std::fs::symlink_metadata(turns) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Reason::Expired,
        Err(e) => Reason::Unreadable(e.to_string()),
        Ok(_) => Reason::RecordDamaged,
    }
}

impl Store for Reasonix {
    fn owner(&self) -> Owner {
        Owner::Reasonix
    }

    fn folder(&self) -> Option<&Path> {
        Some(&self.folder)
    }

    fn checkpoints(&self, from: u32) -> Result<Vec<Checkpoint>, Trouble> {
        let mut turns = record::numbers(&self.folder)?;
        match record::numbers(&self.folder.join("expired")) {
            Ok(more) => turns.extend(more),
            Err(Trouble::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            Err(trouble) => return Err(trouble),
        }
        turns.sort_unstable();
        turns.dedup();
        let mut next = Some(0);
        let mut out = Vec::new();
        for turn in turns {
            let hole = next.filter(|n| *n < turn).map(|n| (n, turn - 1));
            next = turn.checked_add(1);
            if turn < from {
                continue;
            }
            let Some(mut checkpoint) = self.turn(turn) else {
                continue;
            };
            checkpoint.gaps.extend(hole.map(say_hole));
            out.push(checkpoint);
        }
        Ok(out)
    }
}

/// Reasonix opens a checkpoint for each turn, so a number that is missing below another was pruned or lost.
fn say_hole((first, last): (u32, u32)) -> (GapKind, String) {
    let words = if first == last {
        format!("checkpoint {first} was pruned or lost")
    } else {
        format!("checkpoints {first} to {last} were pruned or lost")
    };
    (GapKind::Checkpoint, words)
}

/// Tells who keeps a sidecar. Both write the same records, so it is told from what only one of them makes; in doubt it is
/// Reasonix's, which is only ever read.
pub(super) fn owner(folder: &Path, session: &Path) -> Result<Owner, Trouble> {
    let there = |path: &Path| std::fs::symlink_metadata(path).is_ok();
    if there(&folder.join("index.json")) {
        return Ok(Owner::Ours);
    }
    if is_theirs(folder, session) {
        return Ok(Owner::Reasonix);
    }
    for turn in record::numbers(folder)?.into_iter().take(PEEKED) {
        if says_hook(&record::root_file(folder, turn)) {
            return Ok(Owner::Ours);
        }
    }
    Ok(Owner::Reasonix)
}

/// Whether something is there that only Reasonix makes.
fn is_theirs(folder: &Path, session: &Path) -> bool {
    let there = |path: &Path| std::fs::symlink_metadata(path).is_ok();
    let mut meta = session.as_os_str().to_owned();
    meta.push(".meta");
    let names = ["transactions", "expired", "turns"];
    names.iter().any(|name| there(&folder.join(name))) || there(Path::new(&meta))
}

/// Whether our hooks may write the sidecar of a session: one of ours, or one that nobody has written yet.
pub(super) fn may_write(folder: &Path, session: &Path) -> bool {
    match owner(folder, session) {
        Ok(Owner::Ours) => true,
        Ok(Owner::Reasonix) => {
            !is_theirs(folder, session) && record::numbers(folder).is_ok_and(|n| n.is_empty())
        }
        Err(Trouble::Io { source, .. }) => {
            source.kind() == io::ErrorKind::NotFound && !is_theirs(folder, session)
        }
        Err(Trouble::NotAFolder { .. }) => false,
    }
}

/// How many records are looked into, and how many bytes of each, for telling whose they are.
const PEEKED: usize = 16;
const PEEK: u64 = 64 << 10;

/// Whether a record says that one of our hooks made it. What cannot be read says nothing; it is met again, and
/// reported, when the records are read.
fn says_hook(file: &Path) -> bool {
    use std::io::Read as _;
    let mut head = Vec::new();
    blobs::plain_file(file).is_ok()
        && std::fs::File::open(file).is_ok_and(|f| f.take(PEEK).read_to_end(&mut head).is_ok())
        && memchr::memmem::find(&head, br#""captureSource":"hook""#).is_some()
}
