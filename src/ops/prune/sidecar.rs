//! One sidecar: what must stay in it, how far the row of the oldest goes, and what that frees.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use chrono::{DateTime, TimeDelta, Utc};

use super::find::Store;
use super::{AT_WORK, Digests, Item, Keep, Policy, RECENT, StorePlan, Verdict, Why};
use crate::ckpt::kept::{self, Listing};
use crate::ckpt::{self, Store as _};
use crate::env::Env;
use crate::format::json::Value;
use crate::format::{lines, time};
use crate::ops::gather::Read;
use crate::ops::journal::{Journal, Status};
use crate::ops::matching::{Matched, tie};
use crate::ops::pins::Pins;
use crate::ops::{gather, overview};

/// A sidecar that was looked at.
pub(super) struct Looked {
    store: Store,
    listing: Listing,
    /// Why a turn stays whatever its age.
    hard: BTreeMap<u32, Keep>,
    /// Why it stays for its age.
    soft: BTreeMap<u32, Keep>,
    /// The turns below this one go.
    end: u32,
    /// From here on they go for the size.
    size_from: Option<u32>,
    /// Nothing goes, and why.
    all: Option<Keep>,
    fault: Option<String>,
    /// What each turn names, where that was read.
    refs: BTreeMap<u32, Digests>,
    /// Records that are no whole ones.
    unreadable: BTreeSet<u32>,
    /// Something lies in quarantine.
    doubt: bool,
    blobs: Vec<kept::Blob>,
    measured: bool,
    now: DateTime<Utc>,
}

impl Looked {
    pub(super) fn new(store: Store, policy: &Policy, pins: &Pins, env: &Env) -> Self {
        let (listing, fault) = match kept::list(&store.folder) {
            Ok(listing) => (listing, None),
            Err(e) => (Listing::default(), Some(e.to_string())),
        };
        let mut looked = Self {
            store,
            listing,
            hard: BTreeMap::new(),
            soft: BTreeMap::new(),
            end: 0,
            size_from: None,
            all: None,
            fault,
            refs: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            doubt: false,
            blobs: Vec::new(),
            measured: false,
            now: env.now,
        };
        looked.by_age(policy, env);
        looked.end = looked.first_kept();
        // Only where something would go is it worth asking who needs it.
        let begun = !looked.listing.pruning.is_empty();
        if looked.goes() || policy.max_size.is_some() || begun || looked.store.session.is_none() {
            looked.all = looked.nothing_goes(policy, pins, env);
            looked.by_need(pins, env);
            looked.end = looked.first_kept();
        }
        if looked.all.is_some() || looked.fault.is_some() {
            looked.end = 0;
        } else if looked.goes() || begun {
            looked.read_refs();
        }
        looked
    }

    fn goes(&self) -> bool {
        self.listing.turns.range(..self.end).next().is_some()
    }

    fn first_kept(&self) -> u32 {
        let hard = self.hard.keys().next().copied();
        let soft = self.soft.keys().next().copied();
        match (hard, soft) {
            (Some(a), Some(b)) => a.min(b),
            (one, other) => one.or(other).unwrap_or(u32::MAX),
        }
    }

    fn by_age(&mut self, policy: &Policy, env: &Env) {
        let newest: Vec<u32> = self.listing.turns.keys().rev().copied().collect();
        let there = self.store.session.is_some();
        let open = open_turn(&self.store.folder);
        for (at, turn) in newest.into_iter().enumerate() {
            let Some(files) = self.listing.turns.get(&turn) else {
                continue;
            };
            let future = files.modified.is_some_and(|m| m > env.now + AT_WORK);
            let young = files.modified.is_none_or(|m| m >= policy.before);
            if files.odd {
                self.hard
                    .insert(turn, Keep::Odd("it is no plain file".to_owned()));
            } else if there && Some(turn) == open {
                self.hard.insert(turn, Keep::Open);
            } else if there && at < policy.keep_last {
                self.hard.insert(turn, Keep::Newest);
            } else if future {
                self.hard.insert(turn, Keep::Future);
            } else if young {
                self.soft.insert(turn, Keep::Young);
            }
        }
    }

    /// Why nothing of it goes at all.
    fn nothing_goes(&self, policy: &Policy, pins: &Pins, env: &Env) -> Option<Keep> {
        if let Some(why) = &pins.fault {
            return Some(Keep::Odd(format!("the pins cannot be read: {why}")));
        }
        let Some(found) = &self.store.session else {
            if !policy.orphans {
                return Some(Keep::Orphan);
            }
            // Whose it was stands in its records; one that is pinned is not for the taking.
            let ids = self.session_ids();
            let pinned = ids.iter().find_map(|id| pins.of_session(id).next());
            return pinned.map(|p| Keep::Pinned(p.name.clone()));
        };
        if policy.keep.iter().any(|k| found.card.id.starts_with(k)) {
            return Some(Keep::Named);
        }
        if let Some(at) = found.modified
            && at > env.now - AT_WORK
        {
            return Some(Keep::Live("its file was just written".to_owned()));
        }
        let live = found.format.live(&overview::bare(found), env);
        live.map(|a| Keep::Live(a.sign))
    }

    /// Points that somebody needs: a pin, or an operation that went there lately.
    fn by_need(&mut self, pins: &Pins, env: &Env) {
        let Some(found) = self.store.session.clone() else {
            return;
        };
        let mut points: Vec<(u32, Keep)> = pins
            .of_session(&found.card.id)
            .map(|p| (p.turn, Keep::Pinned(p.name.clone())))
            .collect();
        points.extend(operations(&found, env));
        if points.is_empty() || self.listing.turns.is_empty() {
            return;
        }
        let read = Read::new(&found, env);
        let store = ckpt::at(self.store.folder.clone());
        let (Ok(read), Some(store)) = (read, store) else {
            // Which of its checkpoints the point needs cannot be told.
            self.all = self.all.take().or_else(|| points.pop().map(|(_, why)| why));
            return;
        };
        let checkpoints = store.checkpoints(0).unwrap_or_default();
        let tied = tie(&read.session, &checkpoints);
        for (turn, why) in points {
            // One of which the turn is not known may be needed too.
            let needs = |m: &&Matched<'_>| m.turn.is_none_or(|t| t >= turn);
            if let Some(first) = tied.iter().filter(needs).map(|m| m.checkpoint.turn).min() {
                self.hard.entry(first).or_insert(why);
            }
        }
    }

    /// The ids of sessions that its records name; two of them are enough to look at.
    fn session_ids(&self) -> BTreeSet<String> {
        let records = self
            .listing
            .turns
            .values()
            .filter_map(|f| f.record.as_ref());
        let told = records.take(2).filter_map(|name| {
            let bytes = lines::read_whole(&self.store.folder.join(name), lines::LONGEST).ok()?;
            let record = Value::of(&bytes)?;
            Some(record.get("sessionId")?.text()?.into_owned())
        });
        let stem = self.store.folder.file_stem();
        let name = stem.map(|s| s.to_string_lossy().into_owned());
        told.chain(name).collect()
    }

    /// What it takes on the disk, in bytes, without what goes already.
    pub(super) fn measure(&mut self) -> u64 {
        if !self.measured {
            self.read_refs();
        }
        self.sizes().1
    }

    /// Reads what the turns name, and lists the blobs.
    fn read_refs(&mut self) {
        self.measured = true;
        let folder = self.store.folder.clone();
        match kept::blobs(&folder) {
            Ok(blobs) => self.blobs = blobs,
            Err(e) => self.fault = Some(e.to_string()),
        }
        for (turn, files) in &self.listing.turns {
            let Some(name) = &files.record else { continue };
            match fs::read(folder.join(name)) {
                Ok(bytes) => {
                    if serde_json::from_slice::<Whole>(&bytes).is_err() {
                        self.unreadable.insert(*turn);
                    }
                    self.refs.insert(*turn, kept::named_in(&bytes));
                }
                Err(e) => {
                    let why = Keep::Odd(format!("it cannot be read: {e}"));
                    self.hard.insert(*turn, why);
                }
            }
        }
        let quarantine = fs::read_dir(folder.join(kept::QUARANTINE));
        self.doubt = quarantine.is_ok_and(|mut d| d.next().is_some());
        self.end = self.end.min(self.first_hard());
        if self.fault.is_some() {
            self.end = 0;
        }
    }

    fn first_hard(&self) -> u32 {
        self.hard.keys().next().copied().unwrap_or(u32::MAX)
    }

    /// What goes and what stays, in bytes on the disk.
    fn sizes(&self) -> (u64, u64) {
        let gone = self.gone_blobs();
        let of =
            |range: &mut dyn Iterator<Item = &kept::Files>| range.map(|f| f.bytes).sum::<u64>();
        let going = self.listing.turns.range(..self.end);
        // What goes to the quarantine frees nothing.
        let mut freed = of(&mut going
            .filter(|(t, _)| !self.unreadable.contains(t))
            .map(|(_, f)| f));
        let mut stays = of(&mut self.listing.turns.range(self.end..).map(|(_, f)| f));
        for blob in &self.blobs {
            if gone.contains(&blob.digest) {
                freed += blob.bytes;
            } else {
                stays += blob.bytes;
            }
        }
        (freed, stays)
    }

    /// The blobs that nothing names that stays. None where a record cannot be read, now or earlier: what it named is not
    /// known (`bugs.md` 62). One that was just written may be named in a moment.
    fn gone_blobs(&self) -> Digests {
        if self.doubt || !self.unreadable.is_empty() {
            return Digests::new();
        }
        let stay = self.refs.range(self.end..);
        let named: Digests = stay.flat_map(|(_, refs)| refs.iter().copied()).collect();
        let old = |b: &&kept::Blob| b.modified.is_some_and(|m| m < self.now - SETTLED);
        let all = self.blobs.iter().filter(old).map(|b| b.digest);
        all.filter(|d| !named.contains(d)).collect()
    }

    /// The time of the next one that may go for the size, if any may.
    pub(super) fn next_soft(&self) -> Option<DateTime<Utc>> {
        if self.all.is_some() || self.fault.is_some() {
            return None;
        }
        let hard = self.first_hard();
        let (turn, files) = self.listing.turns.range(self.end..).next()?;
        (*turn < hard).then(|| files.modified.unwrap_or(DateTime::<Utc>::MAX_UTC))
    }

    /// Takes it; returns what that frees.
    pub(super) fn take_next(&mut self) -> u64 {
        let Some((turn, _)) = self.listing.turns.range(self.end..).next() else {
            return 0;
        };
        let turn = *turn;
        let (before, _) = self.sizes();
        self.size_from.get_or_insert(turn);
        self.end = turn.saturating_add(1);
        self.sizes().0.saturating_sub(before)
    }

    /// What becomes of each.
    pub(super) fn plan(self, policy: &Policy) -> StorePlan {
        let items = self.items();
        let (mut freed, stays) = if self.measured { self.sizes() } else { (0, 0) };
        let empty = items
            .iter()
            .all(|i| matches!(i.verdict, Verdict::Remove(_)));
        let gone = self.store.session.is_none() && policy.orphans;
        let old = self.listing.turns.is_empty() || self.goes();
        let whole =
            empty && gone && old && !self.doubt && self.all.is_none() && self.fault.is_none();
        if !whole {
            freed = freed.saturating_sub(self.newest_record());
        }
        StorePlan {
            whole,
            gone: if self.measured {
                self.gone_blobs()
            } else {
                Digests::new()
            },
            store: self.store,
            items,
            freed,
            stays,
            fault: self.fault,
        }
    }

    /// What the newest record that goes takes: it stays as a record of that.
    fn newest_record(&self) -> u64 {
        let going = self.listing.turns.range(..self.end).rev();
        let mut read = going.filter(|(t, f)| f.record.is_some() && !self.unreadable.contains(t));
        read.next().map_or(0, |(_, f)| f.record_bytes)
    }

    fn items(&self) -> Vec<Item> {
        let first = self.listing.turns.range(self.end..).next().map(|(t, _)| *t);
        let mut items: Vec<Item> = self
            .listing
            .turns
            .iter()
            .map(|(turn, files)| Item {
                turn: *turn,
                modified: files.modified,
                bytes: files.bytes,
                verdict: self.verdict(*turn, first),
            })
            .collect();
        let begun = self.listing.pruning.iter().filter(|_| self.all.is_none());
        items.extend(begun.map(|turn| Item {
            turn: *turn,
            modified: None,
            bytes: 0,
            verdict: Verdict::Remove(Why::Begun),
        }));
        items.sort_by_key(|i| i.turn);
        items
    }

    fn verdict(&self, turn: u32, first: Option<u32>) -> Verdict {
        if let Some(why) = &self.all {
            return Verdict::Keep(why.clone());
        }
        if turn >= self.end {
            let own = self.hard.get(&turn).or_else(|| self.soft.get(&turn));
            let needed = || Keep::NeededBy(first.unwrap_or(turn));
            return Verdict::Keep(own.cloned().unwrap_or_else(needed));
        }
        let why = match self.size_from {
            Some(from) if turn >= from => Why::Size,
            _ => Why::Old,
        };
        if self.unreadable.contains(&turn) {
            return Verdict::Quarantine(why);
        }
        Verdict::Remove(why)
    }
}

/// As much of a record as shows that it is whole.
#[derive(serde::Deserialize)]
struct Whole {
    #[expect(dead_code, reason = "that it is there is all that is asked")]
    files: Vec<serde::de::IgnoredAny>,
}

/// A blob that is younger may belong to a record that is still to be written.
const SETTLED: TimeDelta = TimeDelta::hours(1);

/// The turn that a hook would add to.
fn open_turn(folder: &std::path::Path) -> Option<u32> {
    let bytes = lines::read_whole(&folder.join("current.json"), 1 << 20).ok()?;
    let turn = Value::of(&bytes)?.get("turn")?.u64()?;
    u32::try_from(turn).ok()
}

/// The points that operations on the session's workspace went to lately, or that are still open.
fn operations(found: &crate::ops::discover::Found, env: &Env) -> Vec<(u32, Keep)> {
    let root = found
        .card
        .root
        .as_deref()
        .and_then(|r| gather::open_root(r).ok());
    let journal = root.and_then(|r| Journal::open(env.state.as_deref(), &r).ok());
    let Some(log) = journal.and_then(|j| j.log().ok()) else {
        return Vec::new();
    };
    let since = env.now - RECENT;
    let recent = log.operations.into_iter().filter(|o| {
        let open = matches!(o.status, Status::Prepared | Status::Committing);
        let young = time(&o.at).is_none_or(|at| at >= since);
        o.point.session == found.card.id && (open || (young && o.status == Status::Committed))
    });
    recent
        .map(|o| (o.point.turn, Keep::Operation(o.id)))
        .collect()
}
