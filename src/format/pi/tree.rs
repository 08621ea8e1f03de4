//! The entries of a pi session and which of them the conversation holds: the ancestry of the leaf. The leaf is the last
//! entry of the file, or what a `leaf` row of `OpenClaw` names. Files of version 1 have no ids and are one line of entries.
//!
//! Only numbers are held of an entry, so that a long file costs little memory.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::super::json::Value;
use super::super::record::text;
use crate::model::session::{FileNo, Oddity, Warnings};

/// One entry of the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// Hash of its id; the place in the file where there is none.
    pub(super) id: u64,
    parent: Option<u64>,
    /// Offset of its first byte.
    pub(super) start: u64,
    /// Offset behind its line.
    pub(super) end: u64,
}

/// All entries of a file, in its order.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) entries: Vec<Entry>,
    leaf: Leaf,
    /// What a compaction keeps: the entry that stands for the summary, the first one kept.
    compactions: Vec<(u64, u64)>,
    /// `OpenClaw` wrote rows of its own.
    pub(super) claw: bool,
}

/// Where the conversation ends.
#[derive(Debug, Clone, Copy, Default)]
enum Leaf {
    #[default]
    Root,
    Entry(u64),
}

fn number(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

impl Tree {
    /// Takes an entry; `end` is set when its line is done.
    pub(super) fn entry(&mut self, record: &Value<'_>, start: u64) {
        let side = record.get("appendMode").is_some_and(|m| m.is_str("side"));
        if record.get("type").is_some_and(|t| t.is_str("leaf")) {
            self.claw = true;
            self.leaf = text(record, "targetId").map_or(Leaf::Root, |t| Leaf::Entry(number(&t)));
            return;
        }
        let named = text(record, "id").map(|id| number(&id));
        let before = match self.leaf {
            Leaf::Root => None,
            Leaf::Entry(id) => Some(id),
        };
        let parent = match record.member("parentId") {
            Some(p) if p.is_null() => None,
            Some(p) => p.text().map(|p| number(&p)),
            // Version 1: each entry hangs below the one before.
            None => before,
        };
        let id = named.unwrap_or_else(|| number(&format!("line-{start}")));
        if record.get("type").is_some_and(|t| t.is_str("compaction"))
            && let Some(kept) = text(record, "firstKeptEntryId")
        {
            self.compactions.push((id, number(&kept)));
        }
        self.entries.push(Entry {
            id,
            parent,
            start,
            end: start,
        });
        if side {
            self.claw = true;
        } else {
            self.leaf = Leaf::Entry(id);
        }
    }

    /// Whether an entry has this id.
    pub(super) fn has(&self, id: &str) -> bool {
        let id = number(id);
        self.entries.iter().any(|e| e.id == id)
    }

    /// The line of the entries from `start` on is done.
    pub(super) fn line_done(&mut self, start: u64, end: u64) {
        for entry in self.entries.iter_mut().rev() {
            if entry.start < start {
                break;
            }
            entry.end = end;
        }
    }

    /// The entries that the conversation holds, oldest first, as places in `entries`.
    pub(super) fn active(&self, warnings: &mut Warnings) -> Vec<usize> {
        // Of entries with one id the last counts, as in pi's own map.
        let places: HashMap<u64, usize> =
            (0..).zip(&self.entries).map(|(n, e)| (e.id, n)).collect();
        let mut path = Vec::new();
        let mut next = match self.leaf {
            Leaf::Root => None,
            Leaf::Entry(id) => Some(id),
        };
        while let Some(id) = next {
            let Some(place) = places.get(&id) else {
                let at = path.last().and_then(|n: &usize| self.entries.get(*n));
                warnings.add(Oddity::LostParent, FileNo(0), at.map_or(0, |e| e.start));
                break;
            };
            // Parents stand before their children; anything else would be a ring.
            if path.last().is_some_and(|below| place >= below) {
                break;
            }
            path.push(*place);
            next = self.entries.get(*place).and_then(|e| e.parent);
        }
        path.reverse();
        path
    }

    /// The entry that this one hangs below: its end, or `None` for one that hangs below the header.
    pub(super) fn parent_end(&self, place: usize) -> Result<Option<u64>, Lost> {
        let entry = self.entries.get(place).ok_or(Lost)?;
        let Some(parent) = entry.parent else {
            return Ok(None);
        };
        let before = self.entries.get(..place).ok_or(Lost)?;
        let parent = before.iter().rev().find(|e| e.id == parent).ok_or(Lost)?;
        Ok(Some(parent.end))
    }

    /// Offset of the first entry that the last compaction on the path keeps.
    pub(super) fn kept_from(&self, active: &[usize]) -> Option<u64> {
        let on_path = |id: u64| {
            active
                .iter()
                .filter_map(|n| self.entries.get(*n))
                .find(|e| e.id == id)
        };
        self.compactions
            .iter()
            .rev()
            .find(|(own, _)| on_path(*own).is_some())
            .and_then(|(_, kept)| on_path(*kept))
            .map(|e| e.start)
    }
}

/// The entry that another one hangs below is not in the file.
pub(super) struct Lost;
