//! What can be said of each turn without looking at the workspace: the files that it changed and how well what they
//! were before is known. For `list`; names and kinds only, no content is read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::matching::{may_be_of, tie};
use super::worktree;
use crate::model::checkpoint::Checkpoint;
use crate::model::edit::{Calls, Change, Edit, Gap, GapKind, Reason, Source, State};
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
    let mut all = Gathering {
        session,
        files: BTreeMap::new(),
        gaps: calls.gaps.clone(),
    };
    let tied = tie(session, checkpoints);
    for (index, m) in tied.iter().enumerate() {
        match (m.turn, &m.checkpoint.damaged) {
            (Some(turn), _) => all.checkpoint(turn, m.checkpoint),
            // One that cannot be read is said at the first turn that it may be of.
            (None, Some(_)) => {
                if let Some(turn) = may_be_of(session, &tied, index).next() {
                    let words = format!("checkpoint {} cannot be read", m.checkpoint.turn);
                    all.gap(turn, GapKind::Checkpoint, words);
                }
            }
            (None, None) => {}
        }
    }
    for edit in &calls.edits {
        all.edit(edit);
    }
    let covered = worktree::covered(session, checkpoints);
    let filled = |g: &Gap| g.kind == GapKind::Shell && covered.contains(&g.turn);
    all.gaps.retain(|g| !filled(g));
    all.covered()
}

struct Gathering<'a> {
    session: &'a Session,
    files: BTreeMap<u32, BTreeMap<PathBuf, Touched>>,
    gaps: Vec<Gap>,
}

impl Gathering<'_> {
    fn gap(&mut self, turn: u32, kind: GapKind, detail: String) {
        self.gaps.push(Gap { turn, kind, detail });
    }

    fn checkpoint(&mut self, turn: u32, checkpoint: &Checkpoint) {
        for snapshot in &checkpoint.files {
            let path = &snapshot.path.path;
            let before = &snapshot.before;
            let touched = touched(self.session, path, before, Source::Ckpt, &Change::Opaque);
            let of_turn = self.files.entry(turn).or_default();
            of_turn.entry(touched.path.clone()).or_insert(touched);
        }
        for (kind, detail) in &checkpoint.gaps {
            self.gap(turn, *kind, detail.clone());
        }
        if checkpoint.damaged.is_some() {
            let words = "its checkpoint cannot be read".to_owned();
            self.gap(turn, GapKind::Checkpoint, words);
        }
    }

    /// The first touch counts; a sidecar that knows it not gives way to a record that does.
    fn edit(&mut self, edit: &Edit) {
        let path = &edit.path.path;
        let touched = touched(self.session, path, &edit.before, edit.source, &edit.change);
        let of_turn = self.files.entry(edit.turn).or_default();
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

    fn covered(self) -> BTreeMap<u32, Covered> {
        let mut out: BTreeMap<u32, Covered> = BTreeMap::new();
        for gap in self.gaps {
            out.entry(gap.turn).or_default().gaps.push(gap);
        }
        for (turn, files) in self.files {
            out.entry(turn).or_default().files = files.into_values().collect();
        }
        out
    }
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
        // The file's birth time tells, as long as the file is the one that the call made.
        State::Unknown(Reason::MaybeOverwritten) => (Known::Reversible, Source::Reversed),
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
