//! Places where a test may kill the program, to show that the next run finds all or nothing (`bugs.md` 80).
//!
//! The wish comes from `REWIND_CRASH_AT=<name>` or `<name>:<k>` (the k-th time), read by `env` and handed down. Only a
//! build with the feature `crashpoints` obeys it.

use std::sync::atomic::{AtomicU32, Ordering};

/// Every place, in the order of an apply; a test loops over them.
pub const POINTS: &[&str] = &[
    "locked",
    "saved",
    "prepared",
    "kept",
    "staging",
    "staged",
    "session-staged",
    "synced",
    "committing",
    "placing",
    "placed-one",
    "placed",
    "removed-folders",
    "session-placing",
    "session-placed",
    "settled",
    "verified",
    "committed",
    "recovering",
    "recovered",
    "prune-marked",
    "prune-all-marked",
    "prune-blob",
    "prune-record",
    "prune-operation",
];

/// A wish to be killed at a place.
#[derive(Debug)]
pub struct CrashPlan {
    point: String,
    left: AtomicU32,
}

impl CrashPlan {
    /// Reads a wish: a name of [`POINTS`], or a name and how many times it must be reached.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (name, times) = match text.split_once(':') {
            Some((name, k)) => (name, k.parse().ok().filter(|k| *k > 0)?),
            None => (text, 1),
        };
        POINTS.contains(&name).then(|| Self {
            point: name.to_owned(),
            left: AtomicU32::new(times),
        })
    }

    /// Kills the program when this is the place and the time.
    pub(super) fn reach(&self, point: &str) {
        if point == self.point && self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            die();
        }
    }
}

/// As sudden as it gets: no guard runs, no buffer is written.
fn die() -> ! {
    #[cfg(unix)]
    {
        use rustix::process::{Signal, getpid, kill_process};
        // When even that fails, abort below does the same less well.
        let _: Result<(), _> = kill_process(getpid(), Signal::KILL);
    }
    std::process::abort()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_names_a_known_place() {
        assert!(CrashPlan::parse("prepared").is_some());
        assert!(CrashPlan::parse("placed-one:3").is_some());
        assert!(CrashPlan::parse("placed-one:0").is_none());
        assert!(CrashPlan::parse("nowhere").is_none());
        assert!(CrashPlan::parse("prepared:x").is_none());
    }
}
