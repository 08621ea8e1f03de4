//! Ties the checkpoints of a sidecar to the turns of the transcript: by the message's id where the store has it, by
//! the place of the message, else by prompt and order. Hooks may have been off for some turns, a prompt may have been
//! sent twice, a transcript may have been cut or forked since; what cannot be told is said, never guessed.

use std::collections::HashMap;
use std::ops::Range;

use chrono::{DateTime, TimeDelta, Utc};

use crate::model::checkpoint::Checkpoint;
use crate::model::session::{Session, Turn};

/// A checkpoint and the turn that it belongs to.
#[derive(Debug)]
pub struct Matched<'a> {
    /// The checkpoint.
    pub checkpoint: &'a Checkpoint,
    /// Number of the turn; `None` when that cannot be told.
    pub turn: Option<u32>,
}

/// Ties each checkpoint to its turn. No turn is given twice, and the order of the checkpoints is kept.
#[must_use]
pub fn tie<'a>(session: &Session, checkpoints: &'a [Checkpoint]) -> Vec<Matched<'a>> {
    let keys: HashMap<&str, u32> = session
        .turns
        .iter()
        .map(|t| (t.key.as_str(), t.no))
        .collect();
    let mut out: Vec<Matched<'a>> = checkpoints
        .iter()
        .map(|c| Matched {
            turn: by_id(session, &keys, c),
            checkpoint: c,
        })
        .collect();
    by_time(session, &mut out);
    by_prompt(session, &mut out);
    out
}

/// A hook is called when the prompt is sent, so the turn was written down at nearly the same time.
const AT_ONCE: TimeDelta = TimeDelta::seconds(5);

/// Ties checkpoints to the turn with their prompt that was sent at their time, where that is one turn and no other
/// checkpoint claims it: a prompt may have been sent again after the conversation went back.
fn by_time(session: &Session, matched: &mut [Matched<'_>]) {
    let claims: Vec<Option<u32>> = matched
        .iter()
        .map(|m| {
            let c = m.checkpoint;
            let open = m.turn.is_none() && c.message.is_none() && !c.prompt.is_empty();
            let time = c.time.filter(|_| open)?;
            let apart = |t: &Turn| {
                let apart = (t.at? - time).abs();
                same_prompt(&t.prompt, &c.prompt).then_some((apart, t.no))
            };
            let mut fits: Vec<_> = session.turns.iter().filter_map(apart).collect();
            fits.sort_unstable();
            let (nearest, no) = *fits.first().filter(|(a, _)| *a <= AT_ONCE)?;
            // Another one that is nearly as near may be meant as well.
            let clear = fits
                .get(1)
                .is_none_or(|(a, _)| *a > nearest * 2 + TimeDelta::seconds(1));
            clear.then_some(no)
        })
        .collect();
    for (m, claim) in matched.iter_mut().zip(&claims) {
        let alone = claims.iter().filter(|c| *c == claim).count() == 1;
        if let (Some(turn), true) = (claim, alone) {
            m.turn = Some(*turn);
        }
    }
    // Turns and checkpoints are in one order; a claim against it is none.
    let mut last = None;
    for m in matched.iter_mut() {
        match m.turn {
            Some(turn) if last.is_some_and(|l| turn <= l) && m.checkpoint.message.is_none() => {
                m.turn = None;
            }
            Some(turn) => last = Some(turn),
            None => {}
        }
    }
}

/// The turns that the checkpoint at an index may belong to: its own, else those between its neighbours' turns.
#[must_use]
pub fn may_be_of(session: &Session, tied: &[Matched<'_>], index: usize) -> Range<u32> {
    let (before, rest) = tied.split_at(index.min(tied.len()));
    if let Some(turn) = rest.first().and_then(|m| m.turn) {
        return turn..turn.saturating_add(1);
    }
    let start = before.iter().rev().find_map(|m| m.turn);
    let end = rest.iter().find_map(|m| m.turn);
    let all = u32::try_from(session.turns.len()).unwrap_or(u32::MAX);
    start.map_or(0, |t| t.saturating_add(1))..end.unwrap_or(all)
}

/// The first turn at or after `from` that a whole checkpoint may belong to when it is tied to none because its prompt stands several times.
/// One that names a message, or a prompt that no turn has, is of a turn that is gone.
#[must_use]
pub fn one_of_several(
    session: &Session,
    tied: &[Matched<'_>],
    index: usize,
    from: u32,
) -> Option<u32> {
    let m = tied.get(index).filter(|m| m.turn.is_none())?;
    let c = m.checkpoint;
    if c.message.is_some() || c.damaged.is_some() || c.prompt.is_empty() {
        return None;
    }
    may_be_of(session, tied, index).find(|no| {
        let turn = session.turn(*no).filter(|t| t.no >= from);
        turn.is_some_and(|t| same_prompt(&t.prompt, &c.prompt))
    })
}

fn by_id(session: &Session, keys: &HashMap<&str, u32>, c: &Checkpoint) -> Option<u32> {
    if let Some(message) = &c.message {
        return keys.get(message.as_str()).copied();
    }
    let key = format!("m{}", c.msg_index?);
    let turn = *keys.get(key.as_str())?;
    // An index can be stale: a compaction or a summary moved the messages (`formats/reasonix.md` §3.1).
    let prompt = &session.turn(turn)?.prompt;
    (c.prompt.is_empty() || same_prompt(prompt, &c.prompt)).then_some(turn)
}

/// Ties what is left, walking both lists once. Between two tied neighbours a prompt must stand exactly once on each
/// side to count.
fn by_prompt(session: &Session, matched: &mut [Matched<'_>]) {
    for index in 0..matched.len() {
        let Some(open) = matched
            .get(index)
            .filter(|m| m.turn.is_none() && m.checkpoint.message.is_none())
        else {
            continue;
        };
        let after = matched
            .get(..index)
            .and_then(|m| m.iter().rev().find_map(|m| m.turn));
        let before = matched
            .get(index..)
            .and_then(|m| m.iter().find_map(|m| m.turn));
        let within = |no: u32| after.is_none_or(|a| no > a) && before.is_none_or(|b| no < b);
        let prompt = &open.checkpoint.prompt;
        let time = open.checkpoint.time;
        let mut fits = session.turns.iter().filter(|t| {
            within(t.no)
                && !prompt.is_empty()
                && same_prompt(&t.prompt, prompt)
                && !is_another_time(t, time)
        });
        let first = fits.next().map(|t| t.no);
        let alone = fits.next().is_none();
        let twins = matched
            .iter()
            .filter(|m| m.turn.is_none() && same_prompt(&m.checkpoint.prompt, prompt))
            .count();
        let count = session
            .turns
            .iter()
            .filter(|t| within(t.no) && same_prompt(&t.prompt, prompt))
            .count();
        // As many checkpoints as turns with this prompt: the order tells which is which.
        if (alone || twins == count)
            && let Some(m) = matched.get_mut(index)
        {
            m.turn = first;
        }
    }
}

/// A prompt of the same words that was sent at another time is another one.
fn is_another_time(turn: &Turn, time: Option<DateTime<Utc>>) -> bool {
    let apart = turn.at.zip(time).map(|(at, time)| (at - time).abs());
    apart.is_some_and(|a| a > ANOTHER_TIME)
}

/// A prompt that was typed while the agent worked is written down later than it is sent.
const ANOTHER_TIME: TimeDelta = TimeDelta::minutes(2);

/// Whether two recordings of a prompt are of the same one: recorders trim.
fn same_prompt(a: &str, b: &str) -> bool {
    a.trim() == b.trim()
}

#[cfg(test)]
mod tests {
    use super::*;
    fn session(prompts: &[&str]) -> Session {
        let turns = prompts.iter().zip(0u32..).map(|(p, no)| Turn {
            no,
            key: format!("k{no}"),
            prompt: (*p).to_owned(),
            at: None,
            kind: crate::model::session::TurnKind::Prompt,
            span: crate::model::session::Span::default(),
            line: 0,
            interrupted: false,
            compacted: false,
        });
        Session {
            agent: "x",
            id: String::new(),
            files: Vec::new(),
            root: None,
            turns: turns.collect(),
            abandoned: 0,
            len: 0,
            warnings: crate::model::session::Warnings::default(),
        }
    }

    fn checkpoint(turn: u32, prompt: &str, message: Option<&str>) -> Checkpoint {
        Checkpoint {
            turn,
            time: None,
            prompt: prompt.to_owned(),
            message: message.map(str::to_owned),
            msg_index: None,
            session: None,
            files: Vec::new(),
            gaps: Vec::new(),
            tree: None,
            damaged: None,
        }
    }

    fn tied(prompts: &[&str], checkpoints: &[Checkpoint]) -> Vec<Option<u32>> {
        tie(&session(prompts), checkpoints)
            .iter()
            .map(|m| m.turn)
            .collect()
    }

    #[test]
    fn the_message_id_decides() {
        let c = [
            checkpoint(0, "a", Some("k1")),
            checkpoint(1, "a", Some("gone")),
        ];
        assert_eq!(tied(&["a", "a"], &c), [Some(1), None]);
    }

    #[test]
    fn turns_without_a_checkpoint_are_passed_over() {
        let c = [checkpoint(0, "a", None), checkpoint(1, "c", None)];
        assert_eq!(tied(&["a", "b", "c"], &c), [Some(0), Some(2)]);
    }

    #[test]
    fn a_prompt_sent_twice_is_told_by_order_or_not_at_all() {
        let both = [checkpoint(0, "a", None), checkpoint(1, "a", None)];
        assert_eq!(tied(&["a", "a"], &both), [Some(0), Some(1)]);
        let one = [checkpoint(0, "a", None)];
        assert_eq!(tied(&["a", "a"], &one), [None]);
    }

    #[test]
    fn a_prompt_sent_again_after_a_rewind_is_told_by_its_time() {
        let at = |s: i64| chrono::DateTime::from_timestamp(s, 0);
        let mut session = session(&["a", "b", "b"]);
        for (turn, time) in session.turns.iter_mut().zip([100, 300, 900]) {
            turn.at = at(time);
        }
        let mut c = [
            checkpoint(0, "a", None),
            checkpoint(1, "b", None),
            checkpoint(2, "b", None),
            checkpoint(3, "b", None),
        ];
        // The first `b` was taken back; the checkpoint of the third turn is not there.
        for (c, time) in c.iter_mut().zip([100, 200, 301, 600]) {
            c.time = at(time);
        }
        let turns: Vec<_> = tie(&session, &c).iter().map(|m| m.turn).collect();
        assert_eq!(turns, [Some(0), None, Some(1), None]);
    }

    #[test]
    fn a_checkpoint_without_a_turn_lies_between_its_neighbours() {
        let session = session(&["a", "b", "c", "d"]);
        let c = [
            checkpoint(0, "a", None),
            checkpoint(1, "", None),
            checkpoint(2, "d", None),
            checkpoint(3, "", None),
        ];
        let tied = tie(&session, &c);
        let ranges: Vec<_> = (0..4).map(|i| may_be_of(&session, &tied, i)).collect();
        assert_eq!(ranges, [0..1, 1..3, 3..4, 4..4]);
    }

    #[test]
    fn a_checkpoint_of_a_turn_that_is_gone_is_tied_to_none() {
        assert_eq!(tied(&["a"], &[checkpoint(0, "z", None)]), [None]);
    }
}
