//! The same work on many files, with two threads from a number on where that pays (`perf.md` §5).

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::error::{Error, Kind, Result};

/// From this many items on, two threads.
const MANY: usize = 64;

/// Does `work` for each item and gives the results in order. After an error no further item is begun; of several
/// errors that of the first item is given.
pub(crate) fn map<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(usize, &T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    if items.len() < MANY {
        return items.iter().enumerate().map(|(i, t)| work(i, t)).collect();
    }
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let run = || {
        let mut done = Vec::new();
        while !failed.load(Ordering::Relaxed) {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(i) else { break };
            let result = work(i, item);
            if result.is_err() {
                failed.store(true, Ordering::Relaxed);
            }
            done.push((i, result));
        }
        done
    };
    let mut all = std::thread::scope(|s| {
        let other = std::thread::Builder::new().spawn_scoped(s, run);
        let mut all = run();
        // No second thread to be had: the first has done everything.
        if let Ok(other) = other {
            all.extend(other.join().map_err(|_| internal())?);
        }
        Ok::<_, Error>(all)
    })?;
    all.sort_by_key(|(i, _)| *i);
    all.into_iter().map(|(_, result)| result).collect()
}

fn internal() -> Error {
    Error::new(Kind::Internal, "a thread of the rewind panicked")
        .changed("not known; the next run finishes the rewind or puts everything back")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_from_two_threads() {
        let items: Vec<usize> = (0..1000).collect();
        let doubled = map(&items, |_, n| Ok(n * 2)).unwrap();
        assert!(doubled.iter().enumerate().all(|(i, n)| *n == i * 2));
    }

    #[test]
    fn an_error_ends_the_work() {
        let items: Vec<usize> = (0..1000).collect();
        let done = map(&items, |i, _| match i {
            500 => Err(Error::new(Kind::Failed, "no")),
            _ => Ok(()),
        });
        assert_eq!(done.unwrap_err().kind, Kind::Failed);
    }
}
