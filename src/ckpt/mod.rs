//! Checkpoint sidecars: `<session without .jsonl>.ckpt/` beside a session, ours and Reasonix's.
//!
//! ```text
//! turn-<N>.json          one checkpoint, N the 0-based turn
//! blobs/aa/bb/<sha256>   contents, raw; `<sha256>.zst` compressed (`blobs`)
//! index.json             ours only: tells it from others; never read here
//! turn-<N>.missed-<pid>.json   ours only: gaps that a hook could not write into the record (`missed`)
//! turn-<N>.pruned   ours only: the newest checkpoint that was pruned, and what it once held (`kept`)
//! expired/ turns/ transactions/    Reasonix only (`reasonix`)
//! ```
//!
//! One record reader (`record`) serves every generation, because the one question that can destroy a file, whether a
//! null means "did not exist", has one answer for all of them: only when nothing else in the record speaks of bytes.
//! Does not cover which turn of the transcript a checkpoint belongs to (`ops::timeline`), nor writing.

pub mod blobs;
mod entry;
mod fields;
mod gaps;
pub mod kept;
mod missed;
pub mod reasonix;
mod record;
mod text;

#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use crate::model::checkpoint::Checkpoint;
use crate::model::edit::Reason;

/// Why a sidecar cannot be read at all. Damage of one record is no such trouble: it is in [`Checkpoint::damaged`].
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The folder cannot be read.
    #[error("cannot read the checkpoints in `{}`", path.display())]
    Io {
        /// Which folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something else stands where the folder should be.
    #[error("`{}` is not a folder", path.display())]
    NotAFolder {
        /// Where.
        path: PathBuf,
    },
}

impl Trouble {
    /// For `map_err` on reads.
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Trouble + '_ {
        move |source| Trouble::Io {
            path: path.to_path_buf(),
            source,
        }
    }
}

/// Who keeps a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// `rewind` itself, through its hooks: it may be pruned and written.
    Ours,
    /// Reasonix: it is only read.
    Reasonix,
}

/// A place that holds checkpoints of one session.
pub trait Store {
    /// Who keeps it.
    fn owner(&self) -> Owner;

    /// The folder that it lies in, where it lies on disk.
    fn folder(&self) -> Option<&Path>;

    /// The checkpoints of the turns from `from` on, sorted by turn, one a turn. A record that cannot be read is there
    /// with its turn and [`Checkpoint::damaged`] set, so that no later snapshot stands in for its paths
    /// (`bugs.md` 58). Contents are named, not read.
    ///
    /// # Errors
    /// The folder, or a folder in it, cannot be read.
    fn checkpoints(&self, from: u32) -> Result<Vec<Checkpoint>, Trouble>;
}

/// The sidecar of a session file, whether it exists or not.
#[must_use]
pub fn sidecar(session: &Path) -> PathBuf {
    if session.extension().is_some_and(|e| e == "jsonl") {
        return session.with_extension("ckpt");
    }
    let mut name = session.as_os_str().to_owned();
    name.push(".ckpt");
    PathBuf::from(name)
}

/// Whether our hooks may write the sidecar of a session: another agent's is only read.
#[must_use]
pub fn is_ours_to_write(session: &Path) -> bool {
    reasonix::may_write(&sidecar(session), session)
}

/// The sidecar of a session whose file was not known when it was captured: in the state folder, by the session's id.
/// `None` for an id that is no name.
#[must_use]
pub fn without_session(state: &Path, id: &str) -> Option<PathBuf> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let name = !id.is_empty() && id.len() <= 128 && !id.starts_with('.') && id.bytes().all(fits);
    name.then(|| state.join("captures").join(format!("{id}.ckpt")))
}

/// Our sidecar in a folder; `None` when there is none.
#[must_use]
pub fn at(folder: PathBuf) -> Option<Ours> {
    folder.is_dir().then_some(Ours { folder })
}

/// Finds the sidecar beside a session file; `None` when there is none.
///
/// # Errors
/// It is there and cannot be read, or is no folder.
pub fn open(session: &Path) -> Result<Option<Box<dyn Store>>, Trouble> {
    let folder = sidecar(session);
    let meta = match std::fs::metadata(&folder) {
        Ok(meta) => meta,
        Err(e) if e.kind() == io::ErrorKind::NotFound && !is_link(&folder) => return Ok(None),
        Err(source) => {
            return Err(Trouble::Io {
                path: folder,
                source,
            });
        }
    };
    if !meta.is_dir() {
        return Err(Trouble::NotAFolder { path: folder });
    }
    Ok(Some(match reasonix::owner(&folder, session)? {
        Owner::Ours => Box::new(Ours { folder }),
        Owner::Reasonix => Box::new(reasonix::Reasonix::at(folder)),
    }))
}

/// A link whose target is gone is not an absent sidecar.
fn is_link(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

/// The sidecar that our hooks write: `turn-<N>.json` of schema 2 and blobs, nothing else.
#[derive(Debug, Clone)]
pub struct Ours {
    folder: PathBuf,
}

impl Ours {
    /// The sidecar in that folder.
    #[must_use]
    pub fn at(folder: PathBuf) -> Self {
        Self { folder }
    }
}

impl Store for Ours {
    fn owner(&self) -> Owner {
        Owner::Ours
    }

    fn folder(&self) -> Option<&Path> {
        Some(&self.folder)
    }

    fn checkpoints(&self, from: u32) -> Result<Vec<Checkpoint>, Trouble> {
        let turns = record::numbers(&self.folder)?;
        let mut missed = missed::read(&self.folder)?;
        let mut out = Vec::new();
        for turn in turns.into_iter().filter(|n| *n >= from) {
            let file = record::root_file(&self.folder, turn);
            let place = record::Place {
                folder: &self.folder,
                file: &file,
                turn,
                form: record::Form::Root,
            };
            match record::load(&place) {
                record::Loaded::Gone => {}
                record::Loaded::Damaged(reason) => out.push(damaged(turn, reason)),
                record::Loaded::Whole(mut r) => {
                    if let Some(missed) = missed.remove(&turn) {
                        missed.add_to(&mut r.checkpoint);
                    }
                    out.push(r.checkpoint);
                }
            }
        }
        for (turn, missed) in missed.into_iter().filter(|(t, _)| *t >= from) {
            // A record that cannot be read says more than what it does not hold.
            if out.iter().all(|c| c.turn != turn) {
                let mut alone = damaged(turn, Reason::NotRecorded);
                alone.damaged = None;
                missed.add_to(&mut alone);
                out.push(alone);
            }
        }
        let there: Vec<u32> = out.iter().map(|c| c.turn).collect();
        let pruned = self.pruned(from)?;
        out.extend(pruned.into_iter().filter(|c| !there.contains(&c.turn)));
        out.sort_by_key(|c| c.turn);
        Ok(out)
    }
}

impl Ours {
    /// What is left of checkpoints that a prune removed, or was removing when it was killed: which turns they were of, and
    /// that what they held is gone.
    fn pruned(&self, from: u32) -> Result<Vec<Checkpoint>, Trouble> {
        let listing = kept::list(&self.folder).map_err(Trouble::io(&self.folder))?;
        let pruning = listing.pruning.iter().map(|t| (*t, kept::PRUNING));
        let all = pruning.chain(listing.pruned.iter().map(|t| (*t, kept::PRUNED)));
        let left = all.filter(|(turn, _)| *turn >= from).map(|(turn, ending)| {
            let file = self.folder.join(format!("turn-{turn}.{ending}"));
            let place = record::Place {
                folder: &self.folder,
                file: &file,
                turn,
                form: record::Form::Root,
            };
            let mut left = match record::load(&place) {
                record::Loaded::Whole(r) => r.checkpoint,
                _ => damaged(turn, Reason::Expired),
            };
            left.files.clear();
            left.tree = None;
            left.damaged = None;
            let words = "the checkpoints up to here were pruned".to_owned();
            left.gaps = vec![(crate::model::edit::GapKind::Checkpoint, words)];
            left
        });
        Ok(left.collect())
    }
}

/// A checkpoint of which only the turn is known.
fn damaged(turn: u32, reason: Reason) -> Checkpoint {
    Checkpoint {
        turn,
        time: None,
        prompt: String::new(),
        message: None,
        msg_index: None,
        session: None,
        files: Vec::new(),
        gaps: Vec::new(),
        tree: None,
        damaged: Some(reason),
    }
}

/// Checkpoints held in memory, for tests of what reads a store.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    checkpoints: Vec<Checkpoint>,
}

impl Memory {
    /// A store of these checkpoints.
    #[must_use]
    pub fn of(mut checkpoints: Vec<Checkpoint>) -> Self {
        checkpoints.sort_by_key(|c| c.turn);
        Self { checkpoints }
    }
}

impl Store for Memory {
    fn owner(&self) -> Owner {
        Owner::Ours
    }

    fn folder(&self) -> Option<&Path> {
        None
    }

    fn checkpoints(&self, from: u32) -> Result<Vec<Checkpoint>, Trouble> {
        let known = self.checkpoints.iter().filter(|c| c.turn >= from);
        Ok(known.cloned().collect())
    }
}
