//! One line of progress on standard error, for work that takes longer than a person waits without asking. Drawn only
//! where a person looks (a terminal, not quiet). Has no clock: the caller says how long the work has taken.

use std::time::Duration;

use super::Ui;

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_millis(500);
/// The line is drawn again after this.
const PACE: Duration = Duration::from_millis(100);

/// Progress of one piece of work.
#[derive(Debug)]
pub struct Progress {
    what: &'static str,
    total: u64,
    drawn: Option<Duration>,
}

impl Progress {
    /// Progress of a piece of work with that many parts, all told; `what` names the work, such as `restoring files`.
    #[must_use]
    pub fn new(what: &'static str, total: u64) -> Self {
        Self {
            what,
            total,
            drawn: None,
        }
    }

    /// Shows that so many parts are done after that time.
    pub fn at(&mut self, done: u64, elapsed: Duration, ui: &mut Ui) {
        if self.is_due(elapsed) {
            self.drawn = Some(elapsed);
            ui.draw(&self.line(done));
        }
    }

    /// Takes the line away.
    pub fn clear(self, ui: &mut Ui) {
        if self.drawn.is_some() {
            ui.draw("");
        }
    }

    fn is_due(&self, elapsed: Duration) -> bool {
        elapsed >= self.drawn.map_or(PATIENCE, |last| last + PACE)
    }

    fn line(&self, done: u64) -> String {
        let part = done.min(self.total).saturating_mul(100);
        let percent = part.checked_div(self.total).unwrap_or(100);
        format!("{}: {done} of {} ({percent} %)", self.what, self.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_work_shows_nothing_and_long_work_is_drawn_at_a_pace() {
        let mut progress = Progress::new("restoring files", 10);
        let due = |p: &Progress, ms| p.is_due(Duration::from_millis(ms));
        assert!(!due(&progress, 499));
        assert!(due(&progress, 500));
        progress.drawn = Some(Duration::from_millis(500));
        assert!(!due(&progress, 599));
        assert!(due(&progress, 600));
    }

    #[test]
    fn the_line_names_work_parts_and_share() {
        let line = |done, total| Progress::new("staging", total).line(done);
        assert_eq!(line(3, 12), "staging: 3 of 12 (25 %)");
        assert_eq!(line(0, 0), "staging: 0 of 0 (100 %)");
        assert_eq!(
            line(u64::MAX, 1),
            format!("staging: {} of 1 (100 %)", u64::MAX)
        );
    }
}
