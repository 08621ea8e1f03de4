//! `--json=lines`: what happens, told as it happens, so that another program can drive a rewind and draw it. Does not
//! cover what is in the events (`ui::json_events`).

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};

use super::report::{self, Stage};
use super::{Context, stdout};
use crate::cli::Json;
use crate::error::{Error, Kind, Result};
use crate::ops::plan::Plan;
use crate::ops::{Root, apply, journal::Journal};
use crate::ui::json::{self, PathOut};
use crate::ui::json_events::{Differs, Ended, Planned, Rewound, Stepped};
use crate::ui::quiet_pipe;

impl Context<'_> {
    /// Whether events are asked for.
    #[must_use]
    pub fn lines(&self) -> bool {
        self.global.json == Some(Json::Lines)
    }

    /// Prints a JSON result: the object, or the last event.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn print_json(&mut self, value: &impl serde::Serialize) -> Result<()> {
        if self.lines() {
            return self.event(&Ended::new(value));
        }
        quiet_pipe(self.ui.line(json::text(value))).map_err(stdout)
    }

    /// Prints an event, at once.
    fn event(&mut self, event: &impl serde::Serialize) -> Result<()> {
        let line = self.ui.line(json::text(event));
        quiet_pipe(line.and_then(|()| self.ui.finish())).map_err(stdout)
    }

    /// Tells what is planned, and what stands in its way.
    ///
    /// # Errors
    /// Standard output cannot be written; nothing was changed.
    pub fn tell_planned(&mut self, plan: &Plan, stage: &Stage, resume: Option<&str>) -> Result<()> {
        if !self.lines() {
            return Ok(());
        }
        let rewind = report::json(plan, stage, resume.map(str::to_owned));
        let conflicts = rewind.conflicts.clone();
        self.event(&Planned::new(rewind))
            .and_then(|()| {
                conflicts
                    .into_iter()
                    .try_for_each(|c| self.event(&Differs::new(c)))
            })
            .map_err(|e| e.changed("nothing was changed"))
    }

    /// Tells that all of it is done, and ends the report.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn print_done(&mut self, plan: &Plan, id: String, resume: Option<String>) -> Result<()> {
        let done = report::json(plan, &Stage::Done(id), resume);
        if let Some(event) = Rewound::new(&done).filter(|_| self.lines()) {
            self.event(&event)?;
        }
        self.print_json(&done)
    }

    /// Does a plan; returns the operation's id, empty when there was nothing to do. Meanwhile tells how it comes on, where
    /// anybody listens.
    ///
    /// # Errors
    /// As [`apply::apply`].
    pub fn apply(&mut self, plan: &Plan, root: &Root) -> Result<String> {
        let journal = Journal::open(self.env.state.as_deref(), root)?;
        let id = self.operation_id();
        let done = if self.lines() || self.ui.draws() {
            self.apply_told(plan, (&journal, root, &id))?
        } else {
            apply::apply(plan, &self.engine(&journal, root, &id))?
        };
        self.tell_recovered(done.recovered);
        Ok(done.id.unwrap_or_default())
    }

    /// The work has a thread of its own: a reader that is slow or gone must not hold it up half way.
    fn apply_told(
        &mut self,
        plan: &Plan,
        (journal, root, id): (&Journal, &Root, &str),
    ) -> Result<apply::Applied> {
        let (disk, now) = (self.disk, self.env.now);
        let (told, changed) = mpsc::channel();
        let work = move || {
            let watch = |path: &Path| drop(told.send(path.to_path_buf()));
            let engine = apply::Context {
                disk,
                journal,
                root,
                now,
                id,
                watch: &watch,
            };
            apply::apply(plan, &engine)
        };
        std::thread::scope(|threads| {
            let builder = std::thread::Builder::new();
            let working = builder
                .spawn_scoped(threads, work)
                .map_err(|e| Error::new(Kind::Failed, "no thread can be started").because(e))?;
            let told = self.tell_steps(plan, &changed);
            match working.join() {
                // What went wrong with the work counts more than what went wrong with telling of it.
                Ok(done) => done.and_then(|applied| told.map(|()| applied)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    fn tell_steps(&mut self, plan: &Plan, changed: &Receiver<PathBuf>) -> Result<()> {
        let total = plan.steps.len() + plan.session.len();
        let total = u64::try_from(total).unwrap_or(u64::MAX);
        let progress = self.ui.progress("restoring files", Some(total));
        let mut told = Ok(());
        for (n, path) in (1..).zip(changed) {
            progress.at(n);
            if told.is_ok() && self.lines() {
                told = self.event(&Stepped::new(n, total, PathOut::new(&path)));
            }
        }
        told
    }
}
