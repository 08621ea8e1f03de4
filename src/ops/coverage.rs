//! What can be said of each turn without looking at the workspace: the files that it changed and how well what they
//! were before is known. For `list`; names and kinds only, no content is read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::matching::{may_be_of, tie};
use crate::model::checkpoint::Checkpoint;
use crate::model::edit::{Calls, Change, Gap, GapKind, Source, State};
use crate::model::session::Session;

/// How well it is known what a file was before a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Known {
    /// The record holds it.
    Recorded,
    /// It can be worked out as long as the bytes on disk are those that the agent left.
    Reversible,
    /// It is not known.
    Unknown,
}

/// One file of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// The path, below the recorded root where it lies there.
    pub path: PathBuf,
    /// How well its state before the turn is known.
    pub known: Known,
    /// From where.
    pub source: Source,
}

/// What is known of one turn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Covered {
    /// The files, by path.
    pub files: Vec<Touched>,
    /// What is not covered.
    pub gaps: Vec<Gap>,
}

/// How much of a turn can be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// No file was changed by an edit tool, and nothing else may have changed one.
    None,
    /// All of it.
    Full,
    /// Not all of it, or not for certain.
    Partial,
}

impl Covered {
    /// How much of the turn can be taken back.
    #[must_use]
    pub fn coverage(&self) -> Coverage {
        if !self.gaps.is_empty() || self.files.iter().any(|f| f.known == Known::Unknown) {
            Coverage::Partial
        } else if self.files.is_empty() {
            Coverage::None
        } else {
            Coverage::Full
        }
    }
}

/// What is known of each turn that the calls and checkpoints tell of.
#[must_use]
pub fn of(session: &Session, calls: &Calls, checkpoints: &[Checkpoint]) -> BTreeMap<u32, Covered> {
    let mut files: BTreeMap<u32, BTreeMap<PathBuf, Touched>> = BTreeMap::new();
    let mut out: BTreeMap<u32, Covered> = BTreeMap::new();
    for gap in &calls.gaps {
        out.entry(gap.turn).or_default().gaps.push(gap.clone());
    }
    let tied = tie(session, checkpoints);
    for (index, m) in tied.iter().enumerate() {
        let Some(turn) = m.turn else {
            // One that cannot be read is said at the first turn that it may be of.
            let turn = may_be_of(session, &tied, index).next();
            if let (Some(turn), Some(_)) = (turn, &m.checkpoint.damaged) {
                out.entry(turn).or_default().gaps.push(Gap {
                    turn,
                    kind: GapKind::Checkpoint,
                    detail: format!("checkpoint {} cannot be read", m.checkpoint.turn),
                });
            }
            continue;
        };
        for snapshot in &m.checkpoint.files {
            let touched = touched(
                session,
                &snapshot.path.path,
                &snapshot.before,
                Source::Ckpt,
                &Change::Opaque,
            );
            let of_turn = files.entry(turn).or_default();
            of_turn.entry(touched.path.clone()).or_insert(touched);
        }
        let gaps = m
            .checkpoint
            .gaps
            .iter()
            .map(|(kind, detail)| (*kind, detail.clone()));
        let damaged = m.checkpoint.damaged.is_some().then(|| {
            (
                GapKind::Checkpoint,
                "its checkpoint cannot be read".to_owned(),
            )
        });
        for (kind, detail) in gaps.chain(damaged) {
            let gap = Gap { turn, kind, detail };
            out.entry(turn).or_default().gaps.push(gap);
        }
    }
    for edit in &calls.edits {
        let path = &edit.path.path;
        let touched = touched(session, path, &edit.before, edit.source, &edit.change);
        let of_turn = files.entry(edit.turn).or_default();
        // The first touch counts; a sidecar that knows it not gives way to a record that does.
        match of_turn.get_mut(&touched.path) {
            Some(known) if known.source == Source::Ckpt && touched.known < known.known => {
                *known = touched;
            }
            Some(_) => {}
            None => {
                of_turn.insert(touched.path.clone(), touched);
            }
        }
    }
    for (turn, files) in files {
        out.entry(turn).or_default().files = files.into_values().collect();
    }
    out
}

fn touched(
    session: &Session,
    path: &Path,
    before: &State,
    source: Source,
    change: &Change,
) -> Touched {
    let (known, source) = match before {
        State::Absent | State::Held(_) => (Known::Recorded, source),
        State::Unknown(_) if matches!(change, Change::Opaque) => (Known::Unknown, source),
        State::Unknown(_) => (Known::Reversible, Source::Reversed),
    };
    let root = session.root.as_deref();
    let path = root.and_then(|r| path.strip_prefix(r).ok()).unwrap_or(path);
    Touched {
        path: path.to_path_buf(),
        known,
        source,
    }
}
