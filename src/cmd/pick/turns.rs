//! The turns to pick from, newest last and the cursor there. What a turn changed is read from the session only for turns
//! that come into view, so that the first screen of a long session is there at once.

use std::collections::BTreeMap;

use super::super::list::Mark;
use super::super::{Context, no_terminal, words};
use super::{Step, act};
use crate::env::Env;
use crate::error::{Error, Kind, Result};
use crate::model::checkpoint::Checkpoint;
use crate::ops::coverage::{self, Covered};
use crate::ops::gather::Read;
use crate::ui::ask::Answer;
use crate::ui::list::Rows;
use crate::ui::text::{count, fit, pad};
use crate::ui::{age, sanitise};

/// Below so many columns only number and prompt are shown.
pub(super) const NARROW: usize = 56;

/// Lets the user pick a turn, and then what to do with it.
pub(super) fn pick(ctx: &mut Context<'_>, read: &Read) -> Result<Step> {
    let turns = &read.session.turns;
    let id = sanitise(&read.session.id).into_owned();
    let title = read.format.title();
    if turns.is_empty() {
        return Err(
            Error::new(Kind::NotFound, format!("{title} session {id} has no turns"))
                .hint("`rewind sessions` lists the others"),
        );
    }
    let n = count(turns.len(), "turn", "turns");
    let head = format!("{title} session {id}, {n}: go back to before which one?");
    let mut rows = TurnRows::new(read, ctx.env)?;
    let mut at = turns.len() - 1;
    loop {
        match ctx.ask.choose(&head, &mut rows, at).map_err(no_terminal)? {
            Answer::Back => return Ok(Step::Back),
            Answer::Out => return Ok(Step::Out),
            Answer::This(chosen) => at = chosen,
        }
        let Some(turn) = turns.get(at) else { continue };
        match act::pick(ctx, read, turn, &rows.covered(at))? {
            Step::Back => {}
            step => return Ok(step),
        }
    }
}

/// Turns as rows.
pub(super) struct TurnRows<'a> {
    read: &'a Read,
    env: &'a Env,
    checkpoints: Vec<Checkpoint>,
    covered: BTreeMap<u32, Covered>,
    /// The first turn whose calls were read.
    known_from: usize,
}

/// So many turns more are read than asked for, at least.
const AHEAD: usize = 64;

impl<'a> TurnRows<'a> {
    pub(super) fn new(read: &'a Read, env: &'a Env) -> Result<Self> {
        Ok(Self {
            read,
            env,
            checkpoints: read.checkpoints(env)?,
            covered: BTreeMap::new(),
            known_from: read.session.turns.len(),
        })
    }

    /// What is known of a turn.
    pub(super) fn covered(&mut self, at: usize) -> Covered {
        self.know(at);
        let turn = self.read.session.turns.get(at);
        turn.and_then(|t| self.covered.get(&t.no))
            .cloned()
            .unwrap_or_default()
    }

    /// Reads the calls from a turn on. Twice as many as before, so that walking up a long list reads it twice in all.
    fn know(&mut self, at: usize) {
        if at >= self.known_from {
            return;
        }
        let all = self.read.session.turns.len();
        let twice = 2 * (all - self.known_from) + AHEAD;
        let from = at.min(all.saturating_sub(twice));
        self.known_from = from;
        let Some(first) = self.read.session.turns.get(from) else {
            return;
        };
        // What cannot be read now is told when the turn is chosen; the mark stays away.
        if let Ok(calls) = self.read.calls(first.no, self.env) {
            self.covered = coverage::of(&self.read.session, &calls, &self.checkpoints);
        }
    }

    fn line(&self, [no, age, files, mark, prompt]: [&str; 5], width: usize) -> String {
        let most = self.read.session.turns.last().map_or(0, |t| t.no);
        let digits = most.to_string().len().max("turn".len());
        let line = if width < NARROW {
            format!("{no:>digits$}  {prompt}")
        } else {
            let (age, mark) = (pad(age, 12), pad(mark, 9));
            format!("{no:>digits$}  {age}  {files:>5}  {mark}  {prompt}")
        };
        fit(&line, width).into_owned()
    }
}

impl Rows for TurnRows<'_> {
    fn count(&self) -> usize {
        self.read.session.turns.len()
    }

    fn words(&self, at: usize) -> String {
        let turn = self.read.session.turns.get(at);
        turn.map_or(String::new(), |t| {
            format!("{} {}", t.no, words::first_line(&t.prompt))
        })
    }

    fn heads(&self, width: usize) -> String {
        self.line(["turn", "age", "files", "covered", "prompt"], width)
    }

    fn row(&mut self, at: usize, width: usize) -> String {
        let covered = self.covered(at);
        let Some(turn) = self.read.session.turns.get(at) else {
            return String::new();
        };
        let files = match covered.files.len() {
            0 => String::new(),
            n => n.to_string(),
        };
        let mark = Mark::of(&covered).map_or("", |m| m.text().0);
        let age = turn.at.map_or("?".to_owned(), |t| age(t, self.env.now));
        let prompt = sanitise(words::first_line(&turn.prompt)).into_owned();
        let prompt = match prompt.as_str() {
            "" => "(no words)",
            p => p,
        };
        self.line([&turn.no.to_string(), &age, &files, mark, prompt], width)
    }
}
