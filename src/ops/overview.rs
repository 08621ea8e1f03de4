//! What `sessions` tells of each session beyond its head: how many turns, and whether an agent is at work on it. Turns
//! need the whole file and signs of life a look at every process, so both are asked for the newest sessions only, as
//! far as a budget goes: with ten thousand sessions the answer must come at once. What was not asked is not known.

use super::apply::each;
use super::discover::Found;
use crate::env::Env;
use crate::model::session::{Session, Warnings};

/// So many bytes of session files are read for counting turns.
const BYTES: u64 = 64 << 20;
/// Of so many sessions it is asked whether they are live.
const NEWEST: usize = 50;

/// A session and what was asked.
pub struct Overview {
    /// The session.
    pub found: Found,
    /// How many turns it has, where that was asked and could be read.
    pub turns: Option<usize>,
    /// Whether an agent is at work on it, where that was asked.
    pub live: Option<bool>,
}

/// Looks at sessions that are sorted newest first.
#[must_use]
pub fn of(found: Vec<Found>, env: &Env) -> Vec<Overview> {
    let mut left = BYTES;
    let plan: Vec<(Found, bool, bool)> = found
        .into_iter()
        .enumerate()
        .map(|(at, found)| {
            let reads = found.len <= left;
            if reads {
                left -= found.len;
            }
            (found, reads, at < NEWEST)
        })
        .collect();
    let told = each::map(&plan, |_, (found, reads, asks)| {
        let session = match reads {
            true => found.format.read(&found.path, env).ok(),
            false => None,
        };
        let turns = session.as_ref().map(|s| s.turns.len());
        let first = session.as_ref().and_then(|s| s.turns.first());
        // The head of a file that builds upon another one holds a later prompt.
        let first = first.map(|t| t.prompt.clone());
        let live = asks.then(|| {
            let session = session.unwrap_or_else(|| bare(found));
            found.format.live(&session, env).is_some()
        });
        Ok((turns, live, first))
    });
    let told = told.unwrap_or_default();
    plan.into_iter()
        .zip(told)
        .map(|((mut found, ..), (turns, live, first))| {
            found.card.prompt = first.or(found.card.prompt);
            Overview { found, turns, live }
        })
        .collect()
}

/// A session as far as its head tells: enough to ask whether somebody is at work on it.
pub(super) fn bare(found: &Found) -> Session {
    Session {
        agent: found.format.agent(),
        id: found.card.id.clone(),
        files: vec![found.path.clone()],
        root: found.card.root.clone(),
        turns: Vec::new(),
        abandoned: 0,
        len: found.len,
        warnings: Warnings::default(),
    }
}
