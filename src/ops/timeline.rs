//! Joins what the transcript and the sidecar know into one story a path: what it held when the first turn at or after
//! the point touched it, what the agent last left there, what was changed from outside in between. The restore rule is
//! one for every agent and source: the earliest snapshot per path at or after the point.

use std::collections::BTreeMap;

use super::apply::each;
use super::contents::{self, Contents, measure, plain};
use super::matching::{Matched, tie};
use super::plan::{Bytes, Missing};
use super::snapshots::{Resolve, damaged, snapshots, untold};
use super::states::{Chains, Known, Reach};
use crate::fsx::hash;
use crate::fsx::tree::{FileKind, Folders, Look, Root, SafePath};
use crate::model::checkpoint::{AfterMark, Checkpoint, Prior, Snapshot};
use crate::model::edit::{Calls, Content, Edit, Fidelity, Gap, GapKind, Reason, Source, State};
use crate::model::session::Session;

/// A file's bytes as a restore would write them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Where they come from.
    pub bytes: Bytes,
    /// Their SHA-256.
    pub sha256: [u8; 32],
    /// Their number.
    pub len: u64,
}

/// What the agent last left at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Left {
    /// Not known.
    Unknown,
    /// Nothing.
    Absent,
    /// These bytes: their SHA-256.
    Bytes([u8; 32]),
    /// This text.
    Text {
        /// SHA-256 of it as it was recorded.
        as_is: [u8; 32],
        /// SHA-256 of it without byte order mark and with LF.
        plain: [u8; 32],
    },
}

/// What is known of one path from a point on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Story {
    /// Which path.
    pub path: SafePath,
    /// The first turn at or after the point that touched it.
    pub turn: u32,
    /// What it held before that turn.
    pub prior: Prior<Image>,
    /// Where that was found.
    pub source: Source,
    /// Permission bits that a checkpoint recorded.
    pub mode: Option<u32>,
    /// Permission bits for a file that is gone.
    pub mode_if_gone: Option<u32>,
    /// What the agent last left there.
    pub left: Left,
    /// Changes from outside: the turn before and the turn after.
    pub outside: Vec<(u32, u32)>,
    /// What stands there now.
    pub now: Look,
}

/// Everything from a point on.
#[derive(Debug, Default)]
pub struct Timeline {
    /// One story a path, by path.
    pub stories: Vec<Story>,
    /// Recorded paths that are none of this workspace's, or cannot be looked at.
    pub missing: Vec<Missing>,
    /// What is not covered.
    pub gaps: Vec<Gap>,
}

/// Joins the edits and the checkpoints of the turns from `from` on.
///
/// # Errors
/// [`crate::error::Kind::Internal`]: a bug of ours.
pub fn join(
    session: &Session,
    root: &Root,
    calls: &Calls,
    checkpoints: &[Checkpoint],
    from: u32,
) -> crate::error::Result<Timeline> {
    let mut out = Timeline {
        gaps: calls.gaps.clone(),
        ..Timeline::default()
    };
    let tied = tie(session, checkpoints);
    out.checkpoint_gaps(session, &tied, from);
    let mut resolve = Resolve {
        session,
        root,
        missing: BTreeMap::new(),
    };
    let edits = calls
        .edits
        .iter()
        .filter_map(|e| Some((e, resolve.path(&e.path, e.turn)?)))
        .collect();
    let contents = Contents::new(session);
    let chains = Chains::new(session, root, &contents, edits);
    let snaps = snapshots(&tied, from, &mut resolve);
    let damaged = damaged(session, &tied, from, calls);
    let untold = untold(session, &tied, from, &mut resolve);
    out.missing.extend(resolve.missing.into_values());
    let mut paths: Vec<SafePath> = chains.paths().chain(snaps.keys()).cloned().collect();
    paths.sort();
    paths.dedup();
    let folders = Folders::new(root);
    let teller = Teller {
        root,
        folders: &folders,
        contents: &contents,
        chains: &chains,
        damaged: &damaged,
        untold: &untold,
    };
    let told = each::map(&paths, |_, path| {
        Ok(teller.story(path, snaps.get(path).map_or(&[], Vec::as_slice)))
    });
    for story in told? {
        match story {
            Ok(Some(story)) => out.stories.push(story),
            Ok(None) => {}
            Err(missing) => out.missing.push(missing),
        }
    }
    Ok(out)
}

impl Timeline {
    fn checkpoint_gaps(&mut self, session: &Session, tied: &[Matched<'_>], from: u32) {
        let mut last = from;
        for m in tied {
            match m.turn {
                Some(turn) if turn >= from => {
                    last = turn;
                    for (kind, detail) in &m.checkpoint.gaps {
                        // The hook and the transcript tell of the same command.
                        let told = |g: &Gap| {
                            g.turn == turn && g.kind == *kind && detail.ends_with(&g.detail)
                        };
                        if *kind == GapKind::Shell && self.gaps.iter().any(told) {
                            continue;
                        }
                        self.gaps.push(Gap {
                            turn,
                            kind: *kind,
                            detail: detail.clone(),
                        });
                    }
                    if m.checkpoint.damaged.is_some() {
                        self.gaps.push(Gap {
                            turn,
                            kind: GapKind::Checkpoint,
                            detail: "its checkpoint cannot be read".to_owned(),
                        });
                    }
                }
                Some(_) => {}
                None if session.turns.is_empty() => {}
                None => self.gaps.push(Gap {
                    turn: last,
                    kind: GapKind::Checkpoint,
                    detail: format!(
                        "checkpoint {} {}",
                        m.checkpoint.turn,
                        match m.checkpoint.damaged {
                            Some(_) => "cannot be read",
                            None => "belongs to no turn that can be told",
                        }
                    ),
                }),
            }
        }
    }
}

/// A prior with the place where it was found and the permission bits told there, or why there is none.
type Found = Result<(Prior<Image>, Source, Option<u32>), Reason>;

struct Teller<'a> {
    root: &'a Root,
    folders: &'a Folders<'a>,
    contents: &'a Contents<'a>,
    chains: &'a Chains<'a>,
    damaged: &'a [u32],
    untold: &'a BTreeMap<SafePath, u32>,
}

impl Teller<'_> {
    /// The story of one path; an error where it cannot even be looked at.
    fn story(&self, path: &SafePath, snaps: &[(u32, &Snapshot)]) -> Result<Option<Story>, Missing> {
        let edits = self.chains.of(path);
        let first_edit = edits.first().and_then(|i| self.chains.edit(*i));
        let turns = first_edit.map(|e| e.turn).into_iter();
        let Some(turn) = turns.chain(snaps.first().map(|(t, _)| *t)).min() else {
            return Ok(None);
        };
        let now = self.folders.look(path).map_err(|e| Missing {
            path: path.as_path().to_path_buf(),
            reason: crate::fsx::tree::reason_of(&e),
            turn,
        })?;
        let (prior, source, told_mode) = match self.prior(path, turn, snaps, &now) {
            Ok(found) => found,
            Err(reason) => (Prior::Unavailable(reason), Source::Reversed, None),
        };
        let exact = source == Source::Ckpt;
        Ok(Some(Story {
            path: path.clone(),
            turn,
            prior,
            source,
            mode: told_mode.filter(|_| exact),
            mode_if_gone: told_mode,
            left: self.left(path, snaps, &now),
            outside: self.outside(path, snaps),
            now,
        }))
    }

    /// What the path held before its first turn, from the best source that has it. An unreadable record of that turn
    /// is not made up for by a later one.
    fn prior(&self, path: &SafePath, turn: u32, snaps: &[(u32, &Snapshot)], now: &Look) -> Found {
        if self.damaged.iter().any(|d| *d < turn) {
            return Err(Reason::RecordDamaged);
        }
        if self.untold.get(path).is_some_and(|t| *t < turn) {
            return Err(Reason::TurnUnknown);
        }
        let snap = snaps.first().filter(|(t, _)| *t == turn).map(|(_, s)| *s);
        let from_ckpt = snap.map(|s| self.of_snapshot(s, path, now));
        if let Some(Ok(found)) = from_ckpt {
            return Ok(found);
        }
        let first = self.chains.of(path).first().copied();
        let first = first.filter(|i| self.chains.edit(*i).is_some_and(|e| e.turn == turn));
        let from_record = first.map(|i| self.of_edit(i, path, now));
        match (from_record, from_ckpt) {
            (Some(Ok(found)), _) => Ok(found),
            (_, Some(Err(reason))) | (Some(Err(reason)), _) => Err(reason),
            (None, _) => Err(Reason::NotRecorded),
        }
    }

    fn of_snapshot(&self, snapshot: &Snapshot, path: &SafePath, now: &Look) -> Found {
        let prior = match &snapshot.before {
            State::Absent => Prior::Absent,
            State::Held(content) => {
                self.faithful(content, path, now)?;
                Prior::Bytes(self.image(Known::Named(content.clone()))?)
            }
            State::Unknown(reason) => return Err(reason.clone()),
        };
        Ok((prior, Source::Ckpt, snapshot.mode))
    }

    fn of_edit(&self, index: usize, path: &SafePath, now: &Look) -> Found {
        let edit = self.chains.edit(index).ok_or(Reason::NotRecorded)?;
        let told = match self.chains.told(index) {
            Ok(Known::Named(content)) => self
                .faithful(&content, path, now)
                .and_then(|()| self.prior_of(Known::Named(content))),
            Ok(known) => self.prior_of(known),
            Err(why) => Err(why),
        };
        match told {
            Ok(prior) => Ok((prior, edit.source, edit.mode)),
            // A text alone will not do; the edit may still be undone on the bytes that are there.
            Err(why) => match self.chains.undone(index) {
                Ok(known @ (Known::Absent | Known::Worked(..))) => {
                    Ok((self.prior_of(known)?, Source::Reversed, None))
                }
                // That it is not recorded says less than why the edit cannot be undone.
                Err(undone) if why == Reason::NotRecorded => Err(undone),
                _ => Err(why),
            },
        }
    }

    /// Whether a text can stand for the file's bytes: the recorder drops CR and byte order marks, so a file that has
    /// them now most likely had them then.
    fn faithful(&self, content: &Content, path: &SafePath, now: &Look) -> Result<(), Reason> {
        if content.fidelity == Fidelity::Exact {
            return Ok(());
        }
        let bytes = match now.print.kind {
            FileKind::File if now.print.len <= contents::MOST => {
                self.root.read(path).map_err(|e| contents::reason(&e))?
            }
            _ => Vec::new(),
        };
        let text = self.contents.load(content)?;
        if contents::keeps(&text, &bytes) {
            Ok(())
        } else {
            Err(Reason::TextOnly)
        }
    }

    fn prior_of(&self, known: Known) -> Result<Prior<Image>, Reason> {
        match known {
            Known::Absent => Ok(Prior::Absent),
            known => self.image(known).map(Prior::Bytes),
        }
    }

    fn image(&self, known: Known) -> Result<Image, Reason> {
        let (bytes, wanted) = match known {
            Known::Named(content) => (self.contents.source(&content)?, content.sha256),
            Known::Worked(bytes, _) => (Bytes::Held(bytes), None),
            Known::Absent => (Bytes::Held(Vec::new()), None),
        };
        let (len, sha256) = measure(&bytes, wanted)?;
        Ok(Image { bytes, sha256, len })
    }

    /// What the agent last left: told by whichever of sidecar and transcript saw the later turn.
    fn left(&self, path: &SafePath, snaps: &[(u32, &Snapshot)], now: &Look) -> Left {
        let last_edit = self.chains.of(path).last().copied();
        let edit_turn = last_edit.and_then(|i| self.chains.edit(i)).map(|e| e.turn);
        let marked = snaps
            .iter()
            .rev()
            .find_map(|(t, s)| s.after.as_ref().map(|a| (*t, a)));
        match (marked, last_edit) {
            (Some((turn, mark)), _) if edit_turn.is_none_or(|e| turn >= e) => match mark {
                AfterMark::Absent => Left::Absent,
                AfterMark::File(sha, _) => Left::Bytes(*sha),
            },
            (_, Some(index)) if snaps.last().is_none_or(|(t, _)| Some(*t) <= edit_turn) => {
                match self.chains.left(index, Reach::Turn) {
                    Some(known) => self.mark(&known),
                    None => self.confirmed(index, now),
                }
            }
            _ => Left::Unknown,
        }
    }

    /// What all edits together make of an earlier turn's state, where the disk holds just that. Where it does not, this
    /// proves nothing: somebody may have changed the file between two turns.
    fn confirmed(&self, index: usize, now: &Look) -> Left {
        let made = self.chains.left(index, Reach::Session);
        match made.map(|known| self.mark(&known)) {
            Some(Left::Bytes(sha) | Left::Text { as_is: sha, .. })
                if now.print.sha256 == hash::hex(&sha) =>
            {
                Left::Bytes(sha)
            }
            _ => Left::Unknown,
        }
    }

    fn mark(&self, known: &Known) -> Left {
        let (bytes, fidelity) = match known {
            Known::Absent => return Left::Absent,
            // Copilot records what it left as a hash and keeps the bytes only when it takes the file up again.
            Known::Named(Content {
                fidelity: Fidelity::Exact,
                sha256: Some(sha),
                ..
            }) => return Left::Bytes(*sha),
            Known::Worked(bytes, fidelity) => (bytes.clone(), *fidelity),
            Known::Named(content) => match self.contents.load(content) {
                Ok(bytes) => (bytes, content.fidelity),
                Err(_) => return Left::Unknown,
            },
        };
        match fidelity {
            Fidelity::Exact => Left::Bytes(hash::of_bytes(&bytes)),
            Fidelity::Text => Left::Text {
                as_is: hash::of_bytes(&bytes),
                plain: hash::of_bytes(&plain(&bytes)),
            },
        }
    }

    /// Turns between which the file was changed from outside: a later snapshot is not what the turn before left.
    fn outside(&self, path: &SafePath, snaps: &[(u32, &Snapshot)]) -> Vec<(u32, u32)> {
        let mut out = Vec::new();
        let edits = self.chains.of(path);
        for (a, b) in edits.iter().zip(edits.iter().skip(1)) {
            let turns = (self.turn_of(*a), self.turn_of(*b));
            let (Some(before), Some(after)) = turns else {
                continue;
            };
            if before == after {
                continue;
            }
            let snap = snaps.iter().find(|(t, _)| *t == after).map(|(_, s)| *s);
            let next = match snap.map(|s| &s.before) {
                Some(State::Absent) => Some(Known::Absent),
                Some(State::Held(content)) => Some(Known::Named(content.clone())),
                _ => self.chains.told(*b).ok(),
            };
            let left = self
                .chains
                .left(*a, Reach::Turn)
                .map_or(Left::Unknown, |k| self.mark(&k));
            if next.is_some_and(|n| self.differs(&left, &n)) {
                out.push((before, after));
            }
        }
        out
    }

    fn turn_of(&self, index: usize) -> Option<u32> {
        self.chains.edit(index).map(|e: &Edit| e.turn)
    }

    fn differs(&self, left: &Left, next: &Known) -> bool {
        match (left, self.mark(next)) {
            // With one side's text and the other's bytes there is nothing to compare without the bytes.
            (Left::Unknown, _)
            | (_, Left::Unknown)
            | (Left::Absent, Left::Absent)
            | (Left::Bytes(_), Left::Text { .. }) => false,
            (Left::Absent, _) | (_, Left::Absent) => true,
            (Left::Bytes(a), Left::Bytes(b))
            | (Left::Text { plain: a, .. }, Left::Text { plain: b, .. }) => *a != b,
            (Left::Text { plain: a, .. }, Left::Bytes(_)) => {
                self.text_of(next).is_some_and(|b| *a != b)
            }
        }
    }

    fn text_of(&self, known: &Known) -> Option<[u8; 32]> {
        let bytes = match known {
            Known::Absent => return None,
            Known::Worked(bytes, _) => bytes.clone(),
            Known::Named(content) => self.contents.load(content).ok()?,
        };
        Some(hash::of_bytes(&plain(&bytes)))
    }
}
