//! Git mode in a capture: the whole work tree at a prompt and at the end of its turn, beside the files that calls name. What
//! cannot be stored in time is a gap, and the shell's commands are one again.

use std::io;
use std::os::fd::AsFd;

use super::current::Current;
use super::record::{GapRecord, GitRecord, Record};
use super::{Held, Hook};
use crate::format::payload::Event;
use crate::fsx::durable;
use crate::fsx::tree::Root;
use crate::git::{self, Patience, WorkTree};

/// A work tree that was stored, or why it was not.
pub(super) struct Stored {
    work: WorkTree,
    commit: io::Result<String>,
}

impl Hook<'_> {
    /// Stores the work tree, where that is wanted now.
    pub(super) fn tree(&self, current: Option<&Current>, root: Option<&Root>) -> Option<Stored> {
        let again = current.is_some_and(|c| c.is_told_again(self.payload, self.env.now));
        let wanted = match self.payload.event {
            Event::Prompt => !again,
            Event::Stop => true,
            _ => false,
        };
        if !self.git || !wanted {
            return None;
        }
        let work = WorkTree::around(root?.path(), self.sidecar)?;
        let steps = self.config.git_limit / u32::try_from(git::STEP.as_millis()).unwrap_or(1);
        let folder = durable::folder(self.disk, self.sidecar);
        let store = |_| work.snapshot("rewind", self.config.largest, Patience(steps));
        let commit = folder.and_then(store);
        Some(Stored { work, commit })
    }

    /// The tree that a turn begins with.
    pub(super) fn begins(&self, held: &Held, record: &mut Record, tree: Stored) -> io::Result<()> {
        let turn = record.turn.to_string();
        match tree.commit.and_then(|c| self.name(&tree.work, &turn, c)) {
            Ok(begin) => {
                record.git = Some(GitRecord {
                    top: tree.work.top().to_string_lossy().into_owned(),
                    begin,
                    end: None,
                });
            }
            Err(e) => record.gap(no_tree(&e)),
        }
        record.save(self.disk, held.folder.as_fd())
    }

    /// The turn ended: its tree is kept, so that what the user changes from now on is not taken for the agent's.
    pub(super) fn stop(
        &self,
        held: &Held,
        current: Option<&Current>,
        tree: Option<Stored>,
    ) -> io::Result<()> {
        let record = current.and_then(|c| Record::load(self.sidecar, c.turn));
        let (Some(mut record), Some(tree)) = (record, tree) else {
            return Ok(());
        };
        let turn = format!("{}-end", record.turn);
        let Some(git) = &mut record.git else {
            return Ok(());
        };
        // Without it the next prompt's tree stands for it.
        if let Ok(end) = tree.commit.and_then(|c| self.name(&tree.work, &turn, c)) {
            git.end = Some(end);
            return record.save(self.disk, held.folder.as_fd());
        }
        Ok(())
    }

    fn name(&self, work: &WorkTree, turn: &str, commit: String) -> io::Result<String> {
        let session = self.payload.session.as_deref().unwrap_or("unknown");
        work.name(session, turn, &commit)?;
        Ok(commit)
    }
}

fn no_tree(error: &io::Error) -> GapRecord {
    GapRecord {
        kind: "git".to_owned(),
        path: None,
        detail: Some(format!("the work tree was not stored: {error}")),
    }
}
