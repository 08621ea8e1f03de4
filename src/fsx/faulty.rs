//! A disk that fails where a test wants it to: the n-th change, once or from then on. "From then on" is the same as a
//! kill, since nothing that would tidy up can do so either.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Disk, Op, Verdict};

/// How a change fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Harm {
    /// It has no effect.
    Whole,
    /// A write leaves half of its bytes.
    Torn,
}

/// A disk that fails at chosen changes.
#[derive(Debug)]
pub struct Faulty {
    first: usize,
    times: usize,
    errno: i32,
    harm: Harm,
    asked: AtomicUsize,
}

impl Faulty {
    /// Fails the `nth` change (counted from 1) and no other, with this error number of the system.
    #[must_use]
    pub fn once(nth: usize, errno: i32) -> Self {
        Self::new(nth, 1, errno, Harm::Torn)
    }

    /// Fails from the `nth` change on: as if the program had been killed there.
    #[must_use]
    pub fn dead_from(nth: usize) -> Self {
        Self::new(
            nth,
            usize::MAX,
            rustix::io::Errno::IO.raw_os_error(),
            Harm::Torn,
        )
    }

    /// Fails `times` changes from the `nth` on.
    #[must_use]
    pub fn new(nth: usize, times: usize, errno: i32, harm: Harm) -> Self {
        Self {
            first: nth,
            times,
            errno,
            harm,
            asked: AtomicUsize::new(0),
        }
    }

    /// How many changes were asked for.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Disk for Faulty {
    fn ask(&self, _op: Op) -> Verdict {
        let nth = self.asked.fetch_add(1, Ordering::SeqCst).saturating_add(1);
        if nth < self.first || nth - self.first >= self.times {
            return Verdict::Go;
        }
        let error = io::Error::from_raw_os_error(self.errno);
        match self.harm {
            // Only the first one is torn: a dead program writes nothing.
            Harm::Torn if nth == self.first => Verdict::Torn(error),
            _ => Verdict::Fail(error),
        }
    }
}
