//! What a prune removes and what it keeps, each with its reason; decided before anything is done, and done in the same
//! order (`remove`). A point needs the checkpoints of its own turn and of every later one, so of a session only the oldest
//! go, in one row: whatever stays for a reason keeps all that come behind it.
//!
//! Does not cover sessions themselves, nor what agents keep: those are never touched.

pub mod find;
pub mod operations;
pub mod removals;
pub mod remove;
mod sidecar;

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};

use crate::ckpt::kept::Digest;
use crate::env::Env;
use crate::ops::apply::each;
use crate::ops::pins::Pins;
use find::Store;

/// What may go.
#[derive(Debug, Clone)]
pub struct Policy {
    /// What was written before this may go.
    pub before: DateTime<Utc>,
    /// So many of the newest checkpoints of a session that is still there stay.
    pub keep_last: usize,
    /// More than this in all, in bytes, and the oldest go, however young.
    pub max_size: Option<u64>,
    /// Checkpoints of sessions that are gone may go too.
    pub orphans: bool,
    /// Ids of sessions of which everything stays.
    pub keep: Vec<String>,
}

/// A session that was written to so lately is taken for one at work.
pub const AT_WORK: TimeDelta = TimeDelta::minutes(10);
/// An operation so young needs the points that it went to.
pub const RECENT: TimeDelta = TimeDelta::days(1);

/// Why something stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keep {
    /// It is younger than the limit.
    Young,
    /// Its time is still to come: the clock is not to be trusted.
    Future,
    /// It is one of the newest of its session.
    Newest,
    /// Its turn is going on.
    Open,
    /// The user pinned it, with this name if one was given.
    Pinned(Option<String>),
    /// An operation that can still be undone went there lately.
    Operation(String),
    /// That turn stays, and needs this one.
    NeededBy(u32),
    /// An agent is at work on the session: the sign.
    Live(String),
    /// The session is gone, and nothing was said of those.
    Orphan,
    /// Named to be kept.
    Named,
    /// It cannot be looked at, or is no file.
    Odd(String),
}

/// Why something goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It is older than the limit.
    Old,
    /// All together are over the limit, and it was the oldest.
    Size,
    /// An earlier prune was killed while it removed it.
    Begun,
}

/// What becomes of one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It stays.
    Keep(Keep),
    /// It goes.
    Remove(Why),
    /// It goes to the quarantine, as it cannot be read.
    Quarantine(Why),
}

impl Verdict {
    /// Whether it leaves its place.
    #[must_use]
    pub fn goes(&self) -> bool {
        !matches!(self, Self::Keep(_))
    }
}

/// One checkpoint, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The turn, as the sidecar counts them.
    pub turn: u32,
    /// When it was last written.
    pub modified: Option<DateTime<Utc>>,
    /// What its own files take, in bytes on the disk; contents are counted with the sidecar.
    pub bytes: u64,
    /// What becomes of it.
    pub verdict: Verdict,
}

/// What becomes of one sidecar.
#[derive(Debug, Clone)]
pub struct StorePlan {
    /// Which.
    pub store: Store,
    /// Its checkpoints by turn.
    pub items: Vec<Item>,
    /// Its contents that nothing names any more then.
    pub gone: Digests,
    /// What is freed, in bytes on the disk, contents included.
    pub freed: u64,
    /// What stays, in bytes on the disk; only known where sizes were asked for.
    pub stays: u64,
    /// Nothing is left in it then, and it goes itself.
    pub whole: bool,
    /// It could not be looked at.
    pub fault: Option<String>,
}

impl StorePlan {
    /// Whether anything goes.
    #[must_use]
    pub fn goes(&self) -> bool {
        self.whole || self.items.iter().any(|i| i.verdict.goes())
    }
}

/// A whole plan.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The sidecars, by path.
    pub stores: Vec<StorePlan>,
    /// The operations, where those were asked for.
    pub operations: Vec<operations::RootPlan>,
}

impl Plan {
    /// What is freed, in bytes on the disk.
    #[must_use]
    pub fn freed(&self) -> u64 {
        let stores: u64 = self.stores.iter().map(|s| s.freed).sum();
        stores + self.operations.iter().map(|o| o.freed).sum::<u64>()
    }

    /// Whether anything goes.
    #[must_use]
    pub fn goes(&self) -> bool {
        self.stores.iter().any(StorePlan::goes)
            || self.operations.iter().any(operations::RootPlan::goes)
    }
}

/// Decides about these sidecars. Reads names and times, and records only where something goes.
#[must_use]
pub fn plan(stores: &[Store], policy: &Policy, env: &Env) -> Plan {
    let pins = Pins::read(env);
    let decided = each::map(stores, |_, store| {
        Ok(sidecar::Looked::new(store.clone(), policy, &pins, env))
    });
    let mut looked = decided.unwrap_or_default();
    if let Some(limit) = policy.max_size {
        shrink(&mut looked, limit);
    }
    Plan {
        stores: looked.into_iter().map(|l| l.plan(policy)).collect(),
        operations: Vec::new(),
    }
}

/// Takes the oldest checkpoints of all until what stays is within the limit.
fn shrink(all: &mut [sidecar::Looked], limit: u64) {
    let mut total: u64 = all.iter_mut().map(sidecar::Looked::measure).sum();
    while total > limit {
        let oldest = all
            .iter_mut()
            .filter_map(|l| l.next_soft().map(|at| (at, l)))
            .min_by_key(|(at, _)| *at);
        let Some((_, looked)) = oldest else { return };
        total = total.saturating_sub(looked.take_next());
    }
}

/// Names of contents.
pub type Digests = BTreeSet<Digest>;
