//! Operations in the journals: what they replaced goes, oldest first, and with it the way back. The newest one that can
//! still be taken back stays, and so does everything of a journal in which an operation is open.

use std::path::PathBuf;

use super::removals::{Removal, Removed};
use super::remove::Done;
use super::{Policy, RECENT};
use crate::ckpt::kept;
use crate::env::Env;
use crate::format;
use crate::fsx::Disk;
use crate::ops::journal::{Journal, Operation, Status, time};

/// Why an operation stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stays {
    /// It is younger than the limit.
    Young,
    /// It is the newest one that can be taken back.
    Newest,
    /// An earlier one stays; the way back goes through both.
    Behind,
    /// An operation of this journal is open.
    Open,
}

/// One operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its id.
    pub id: String,
    /// When it was done, RFC 3339.
    pub at: String,
    /// What it replaced, in bytes on the disk.
    pub bytes: u64,
    /// Why it stays; `None` when it goes.
    pub stays: Option<Stays>,
}

/// What becomes of one journal.
#[derive(Debug, Clone)]
pub struct RootPlan {
    journal: Journal,
    /// The workspace whose journal it is.
    pub root: PathBuf,
    /// Its operations that still hold something, oldest first.
    pub items: Vec<Item>,
    /// What is freed, in bytes on the disk.
    pub freed: u64,
    /// It cannot be read.
    pub fault: Option<String>,
}

impl RootPlan {
    /// Whether anything goes.
    #[must_use]
    pub fn goes(&self) -> bool {
        self.items.iter().any(|i| i.stays.is_none())
    }
}

/// Decides about these journals.
#[must_use]
pub fn plan(journals: Vec<Journal>, policy: &Policy, env: &Env) -> Vec<RootPlan> {
    let plan = |journal: Journal| {
        let (items, fault) = match journal.log() {
            Ok(log) if log.newer.is_some() => {
                (Vec::new(), Some("a newer version wrote it".to_owned()))
            }
            Ok(log) => {
                let open = log.open().next().is_some();
                let newest = log.undo_target().map(|o| o.id.clone());
                (
                    items(
                        &journal,
                        &log.operations,
                        (open, newest.as_deref()),
                        policy,
                        env,
                    ),
                    None,
                )
            }
            Err(e) => (Vec::new(), Some(e.to_string())),
        };
        let goes = items.iter().filter(|i| i.stays.is_none());
        RootPlan {
            root: journal.root().to_path_buf(),
            freed: goes.map(|i| i.bytes).sum(),
            journal,
            items,
            fault,
        }
    };
    journals.into_iter().map(plan).collect()
}

fn items(
    journal: &Journal,
    operations: &[Operation],
    (open, newest): (bool, Option<&str>),
    policy: &Policy,
    env: &Env,
) -> Vec<Item> {
    let mut behind = false;
    let held = operations.iter().filter(|o| o.status == Status::Committed);
    held.map(|o| {
        let young = format::time(&o.at).is_none_or(|at| at >= policy.before.min(env.now - RECENT));
        let stays = if open {
            Some(Stays::Open)
        } else if Some(o.id.as_str()) == newest {
            Some(Stays::Newest)
        } else if young {
            Some(Stays::Young)
        } else {
            behind.then_some(Stays::Behind)
        };
        behind |= stays.is_some();
        Item {
            id: o.id.clone(),
            at: o.at.clone(),
            bytes: bytes(journal, &o.id),
            stays,
        }
    })
    .collect()
}

fn bytes(journal: &Journal, id: &str) -> u64 {
    let folder = journal.folder().join("saved").join(id);
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let meta = entries.filter_map(|e| e.metadata().ok());
    meta.map(|m| kept::on_disk(&m)).sum()
}

/// Removes what the plan says.
pub fn remove(plan: &[RootPlan], env: &Env, disk: &dyn Disk, done: &mut Done) {
    for root in plan.iter().filter(|r| r.goes()) {
        let (mut what, mut freed) = (Vec::new(), 0);
        let result = root.journal.hold(disk).and_then(|held| {
            for item in root.items.iter().filter(|i| i.stays.is_none()) {
                held.drop_saved(disk, &item.id, env.now)?;
                freed += item.bytes;
                what.push(Removed {
                    checkpoint: None,
                    operation: Some(item.id.clone()),
                    why: "old".to_owned(),
                });
            }
            Ok(())
        });
        if let Err(e) = result {
            done.left.push((root.journal.folder(), e.to_string()));
        }
        if !what.is_empty() {
            let folder = root.journal.folder();
            done.removals
                .push(Removal::new(time(env.now), &folder, what, freed));
        }
    }
}
