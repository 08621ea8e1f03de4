//! What the checkpoints of a sidecar say of each path, and where they say too little: a record that cannot be read, or
//! that is of one of several turns, keeps a later one from standing in for what it held (`bugs.md` 58).

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use super::matching::{Matched, may_be_of, one_of_several};
use super::plan::Missing;
use crate::fsx::tree::{Root, SafePath};
use crate::model::checkpoint::Snapshot;
use crate::model::edit::{Calls, RecordedPath};
use crate::model::session::Session;

/// Turns recorded paths into ones below the root; those that cannot be are kept with the reason.
pub(super) struct Resolve<'a> {
    pub(super) session: &'a Session,
    pub(super) root: &'a Root,
    pub(super) missing: BTreeMap<PathBuf, Missing>,
}

impl Resolve<'_> {
    pub(super) fn path(&mut self, path: &RecordedPath, turn: u32) -> Option<SafePath> {
        match self.root.resolve(path, self.session.root.as_deref()) {
            Ok(safe) => Some(safe),
            Err(reason) => {
                self.missing
                    .entry(path.path.clone())
                    .or_insert_with(|| Missing {
                        path: path.path.clone(),
                        reason,
                        turn,
                    });
                None
            }
        }
    }
}

/// The snapshots of each path, oldest turn first.
pub(super) fn snapshots<'a>(
    tied: &[Matched<'a>],
    from: u32,
    resolve: &mut Resolve<'_>,
) -> BTreeMap<SafePath, Vec<(u32, &'a Snapshot)>> {
    let mut out: BTreeMap<SafePath, Vec<(u32, &Snapshot)>> = BTreeMap::new();
    for m in tied {
        let Some(turn) = m.turn.filter(|t| *t >= from) else {
            continue;
        };
        for snapshot in &m.checkpoint.files {
            if let Some(path) = resolve.path(&snapshot.path, turn) {
                let of_path = out.entry(path).or_default();
                // Aliases of one path in one turn: the first touch counts (`bugs.md` 58).
                if of_path.last().is_none_or(|(t, _)| *t != turn) {
                    of_path.push((turn, snapshot));
                }
            }
        }
    }
    out
}

/// Paths of checkpoints of which it is not known to which of several turns they belong, with the first of those: what a
/// later turn found there must not stand in for what they hold.
pub(super) fn untold(
    session: &Session,
    tied: &[Matched<'_>],
    from: u32,
    resolve: &mut Resolve<'_>,
) -> BTreeMap<SafePath, u32> {
    let mut out = BTreeMap::new();
    for (index, m) in tied.iter().enumerate() {
        let Some(turn) = one_of_several(session, tied, index, from) else {
            continue;
        };
        for snapshot in &m.checkpoint.files {
            if let Some(path) = resolve.path(&snapshot.path, turn) {
                let first = out.entry(path).or_insert(turn);
                *first = turn.min(*first);
            }
        }
    }
    out
}

/// Turns whose checkpoint cannot be read and of which the transcript tells no edit: any path may have been touched in
/// them. A record that is no whole one seldom says which turn it is of, so it counts for the first that it may be of:
/// a later snapshot must not stand in for what it held (`bugs.md` 3 and 58).
pub(super) fn damaged(
    session: &Session,
    tied: &[Matched<'_>],
    from: u32,
    calls: &Calls,
) -> Vec<u32> {
    let told: HashSet<u32> = calls.edits.iter().map(|e| e.turn).collect();
    tied.iter()
        .enumerate()
        .filter(|(_, m)| m.checkpoint.damaged.is_some())
        .filter_map(|(index, _)| {
            let turns = may_be_of(session, tied, index);
            (turns.start.max(from)..turns.end).find(|t| !told.contains(t))
        })
        .collect()
}
