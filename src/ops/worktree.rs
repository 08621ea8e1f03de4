//! What the work trees of git mode add to the checkpoints: every file that differs between the beginning and the end of a
//! turn, also those that the shell changed and no call names.
//!
//! The end of a turn is the tree that was stored then, else that of the next prompt, else the files as they are now.
//! Without a tree from its end, what the user changed in between goes with the turn; the preview shows each file.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::contents::MOST;
use super::matching::tie;
use crate::ckpt::blobs;
use crate::git::{Change, Entry, WorkTree};
use crate::model::checkpoint::{AfterMark, Checkpoint, Snapshot};
use crate::model::edit::{Content, Fidelity, GapKind, Payload, Reason, RecordedPath, State};
use crate::model::session::Session;

/// The turns whose shell commands are covered by a tree.
#[must_use]
pub fn covered(session: &Session, checkpoints: &[Checkpoint]) -> HashSet<u32> {
    let tied = tie(session, checkpoints);
    let with = tied.iter().filter(|m| m.checkpoint.tree.is_some());
    with.filter_map(|m| m.turn).collect()
}

/// Adds the files that differ to the checkpoints of the turns from `from` on, and takes away the gaps that they fill.
/// Returns the turns that are covered; one whose trees cannot be had any more is not.
pub fn add(
    session: &Session,
    checkpoints: &mut [Checkpoint],
    sidecar: &Path,
    from: u32,
) -> HashSet<u32> {
    let turns: Vec<Option<u32>> = tie(session, checkpoints).iter().map(|m| m.turn).collect();
    let begins: Vec<Option<String>> = checkpoints
        .iter()
        .map(|c| c.tree.as_ref().map(|t| t.begin.clone()))
        .collect();
    let mut covered = HashSet::new();
    for (n, checkpoint) in checkpoints.iter_mut().enumerate() {
        let Some(turn) = turns.get(n).copied().flatten().filter(|t| *t >= from) else {
            continue;
        };
        let Some(tree) = checkpoint.tree.clone() else {
            continue;
        };
        let work = WorkTree::at(tree.top.clone(), sidecar);
        let next = begins.iter().skip(n + 1).flatten().next();
        let changes = match tree.end.as_ref().or(next) {
            Some(end) => work.between(&tree.begin, end),
            None => work.since(&tree.begin),
        };
        // A repository may be larger than the session's workspace.
        let ours = |c: &Change| {
            let root = session.root.as_deref();
            root.is_none_or(|r| work.top().join(&c.path).starts_with(r))
        };
        let changes = changes.map(|c| c.into_iter().filter(ours).collect::<Vec<_>>());
        if changes.and_then(|c| fill(checkpoint, &work, &c)).is_ok() {
            checkpoint.gaps.retain(|(kind, _)| *kind != GapKind::Shell);
            covered.insert(turn);
        }
    }
    covered
}

/// The contents of one turn that are held at once, in bytes; what is beyond is told to be too large.
const ALL: u64 = 512 << 20;

fn fill(checkpoint: &mut Checkpoint, work: &WorkTree, changes: &[Change]) -> std::io::Result<()> {
    let known: HashMap<_, _> = (0..)
        .zip(&checkpoint.files)
        .map(|(n, f): (usize, _)| {
            let base = f.path.base.as_deref().unwrap_or(Path::new(""));
            (base.join(&f.path.path), n)
        })
        .collect();
    let of = |c: &Change| known.get(&work.top().join(&c.path)).copied();
    // What a call named was saved before it; only what the turn left there is new.
    let before = |c: &Change| Some(c.before.clone()).filter(|_| of(c).is_none());
    let sides: Vec<[Option<Entry>; 2]> = changes
        .iter()
        .map(|c| [before(c), c.after.clone()])
        .collect();
    let ids: Vec<&str> = sides
        .iter()
        .flatten()
        .filter_map(|e| match e {
            Some(Entry::File(id, _)) => Some(id.as_str()),
            _ => None,
        })
        .collect();
    let mut found = work.blobs(&ids, MOST, ALL)?.into_iter();
    for (change, [before, after]) in changes.iter().zip(&sides) {
        let mut take = |entry: &Option<Entry>| match entry {
            Some(Entry::File(..)) => found.next().flatten(),
            _ => None,
        };
        let (before, after) = (take(before), take(after));
        let left = mark(change, after.as_deref());
        match of(change).and_then(|n| checkpoint.files.get_mut(n)) {
            Some(file) => file.after = left.or(file.after.take()),
            None => checkpoint.files.push(snapshot(change, work, before, left)),
        }
    }
    Ok(())
}

/// What the turn left at a path.
fn mark(change: &Change, after: Option<&[u8]>) -> Option<AfterMark> {
    match (&change.after, after) {
        (Some(Entry::Absent), _) => Some(AfterMark::Absent),
        (Some(Entry::File(_, mode)), Some(bytes)) => {
            Some(AfterMark::File(blobs::sha256(bytes), Some(*mode)))
        }
        _ => None,
    }
}

fn snapshot(
    change: &Change,
    work: &WorkTree,
    before: Option<Vec<u8>>,
    after: Option<AfterMark>,
) -> Snapshot {
    let (before, mode) = match (&change.before, before) {
        (Entry::Absent, _) => (State::Absent, None),
        (Entry::File(_, mode), Some(bytes)) => {
            let content = Content {
                payload: Payload::Bytes(bytes),
                fidelity: Fidelity::Exact,
                sha256: None,
            };
            (State::Held(content), Some(*mode))
        }
        (Entry::File(..), None) => (State::Unknown(Reason::TooLarge), None),
        (Entry::Other, _) => (State::Unknown(Reason::NotAFile), None),
    };
    Snapshot {
        path: RecordedPath {
            path: change.path.clone(),
            base: Some(work.top().to_path_buf()),
        },
        before,
        mode,
        after,
    }
}
