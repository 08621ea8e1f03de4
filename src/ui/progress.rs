//! One line of progress on standard error, for work that takes longer than a person waits without asking. Drawn only
//! where a person looks (a terminal that understands it, not quiet), and taken away at the end.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_millis(500);
/// The line is drawn again after this.
const PACE: Duration = Duration::from_millis(100);

/// Progress of one piece of work, until it is dropped.
#[derive(Debug)]
pub struct Progress(Option<Line>);

#[derive(Debug)]
struct Line {
    bar: ProgressBar,
    /// Closed when the work ends.
    ends: Option<Sender<()>>,
    /// Waits until the work is worth a line.
    waits: Option<JoinHandle<()>>,
}

impl Progress {
    /// Progress that nobody sees.
    pub(super) fn unseen() -> Self {
        Self(None)
    }

    /// Progress of a piece of work: `what` names it, such as `restoring files`; `total` is the number of its parts, where
    /// that is known.
    pub(super) fn start(what: &'static str, total: Option<u64>) -> Self {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden())
            .with_style(style(total.is_some()))
            .with_message(what);
        let (ends, ended) = mpsc::channel::<()>();
        let shown = bar.clone();
        let wait = move || {
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(PACE);
            }
        };
        // Without a thread to spare there is no line, and the work goes on.
        let waits = Builder::new().spawn(wait).ok();
        Self(Some(Line {
            bar,
            ends: Some(ends),
            waits,
        }))
    }

    /// So many parts are done.
    pub fn at(&self, done: u64) {
        if let Some(line) = &self.0 {
            line.bar.set_position(done);
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        drop(self.ends.take());
        if let Some(waits) = self.waits.take() {
            // It does nothing that can panic, and what it may have drawn goes in any case.
            let _ = waits.join();
        }
        self.bar.finish_and_clear();
    }
}

fn words(counted: bool) -> &'static str {
    if counted {
        "{msg}: {pos} of {len} ({percent} %)"
    } else {
        "{msg} … {elapsed}"
    }
}

fn style(counted: bool) -> ProgressStyle {
    ProgressStyle::with_template(words(counted))
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_ends_soon_is_never_drawn_and_leaves_no_thread() {
        let progress = Progress::start("restoring files", Some(10));
        progress.at(3);
        let bar = progress.0.as_ref().unwrap().bar.clone();
        drop(progress);
        assert!(bar.is_hidden() && bar.is_finished());
    }

    #[test]
    fn the_words_of_both_kinds_can_be_read() {
        for counted in [true, false] {
            assert!(ProgressStyle::with_template(words(counted)).is_ok());
        }
    }
}
