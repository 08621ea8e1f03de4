//! Where the context file of a session ends before a turn. It names no turns: its user messages are found again in the
//! wire file by their text, in order. A summary and a message that steers a running turn are user messages too and match
//! no turn; a slash command is a turn that leaves no message (`formats/agents.md` §3.6).

use std::path::PathBuf;

use super::super::Trouble;
use super::super::chat::words;
use super::super::json::{Scan, Value};
use super::super::lines::{self, Visit, Wants};
use super::super::record::text;
use super::{CONTEXT, WIRE};
use crate::model::session::{FileNo, Session, Warnings};

/// Where the context file is to end.
pub(super) struct End {
    pub(super) path: PathBuf,
    pub(super) keep: u64,
    pub(super) len: u64,
}

/// The message of a person: not one of the notes that the client writes for itself.
pub(super) fn person(record: &Value<'_>) -> Option<String> {
    record.get("role").filter(|r| r.is_str("user"))?;
    let said = words(&record.get("content")?)?;
    let note = ["<system>CHECKPOINT ", "<system-reminder>"];
    (!note.iter().any(|n| said.trim_start().starts_with(n))).then_some(said)
}

/// Where the context file ends before a turn of the wire file.
///
/// # Errors
/// [`Trouble::Refused`] where its message is not found, or not for certain; [`Trouble::Io`].
pub(super) fn before(session: &Session, turn: u32) -> Result<End, Trouble> {
    let refused = |why: &str| Trouble::Refused {
        why: why.to_owned(),
    };
    if !session.path().ends_with(WIRE) {
        return Err(refused(
            "this file is half of a session; the other half is the `wire.jsonl` beside it, which old versions did not write",
        ));
    }
    let path = session.path().with_file_name(CONTEXT);
    if !path.is_file() {
        return Err(refused(
            "the session has no `context.jsonl`, without which Kimi CLI does not go on with it",
        ));
    }
    let mut pass = Pass::default();
    let mut warnings = Warnings::default();
    let len = lines::scan(&path, lines::whole(FileNo(0)), &mut pass, &mut warnings)
        .map_err(Trouble::io(&path))?;
    let prompts: Vec<&str> = session.turns.iter().map(|t| t.prompt.trim()).collect();
    let said: Vec<&str> = pass.said.iter().map(|s| s.text.trim()).collect();
    let target = turn as usize;
    let place = |pairs: &[Option<usize>]| pairs.iter().position(|p| *p == Some(target));
    let first = place(&forward(&said, &prompts));
    let last = place(&backward(&said, &prompts));
    let (Some(first), Some(last)) = (first, last) else {
        return Err(refused(
            "the model's context no longer holds the turn: it was summarised, cleared, or is a command",
        ));
    };
    if first != last {
        return Err(refused(
            "its prompt was sent more than once, and it is not certain which of them the context holds",
        ));
    }
    let keep = pass.said.get(first).map_or(len, |s| s.from);
    Ok(End { path, keep, len })
}

/// The turn of each message, the earliest that fits.
fn forward(said: &[&str], prompts: &[&str]) -> Vec<Option<usize>> {
    let mut next = 0;
    let mut pairs = Vec::with_capacity(said.len());
    for text in said {
        let found = prompts.iter().skip(next).position(|p| p == text);
        pairs.push(found.map(|n| next + n));
        next = found.map_or(next, |n| next + n + 1);
    }
    pairs
}

/// The turn of each message, the latest that fits.
fn backward(said: &[&str], prompts: &[&str]) -> Vec<Option<usize>> {
    let mut end = prompts.len();
    let mut pairs = Vec::with_capacity(said.len());
    for text in said.iter().rev() {
        let found = prompts.iter().take(end).rposition(|p| p == text);
        pairs.push(found);
        end = found.unwrap_or(end);
    }
    pairs.reverse();
    pairs
}

/// A message of a person, and where the lines begin that announce it.
struct Said {
    text: String,
    from: u64,
}

#[derive(Default)]
struct Pass {
    said: Vec<Said>,
    /// Where a run of checkpoints begins that nothing has followed yet.
    announced: Option<u64>,
}

/// A line that the client writes before a message of a person.
fn announces(record: &Value<'_>) -> bool {
    match text(record, "role").as_deref() {
        Some("_checkpoint") => true,
        Some("user") => record
            .get("content")
            .and_then(|c| words(&c))
            .is_some_and(|t| t.trim_start().starts_with("<system>CHECKPOINT ")),
        _ => false,
    }
}

impl Visit for Pass {
    fn starts(&self) -> &'static [&'static [u8]] {
        &[]
    }

    fn wants(&mut self, _head: &[u8]) -> Scan<Wants> {
        Ok(Wants::Whole)
    }

    fn take(&mut self, record: &[u8], at: u64) {
        let Some(record) = Value::of(record) else {
            return;
        };
        if announces(&record) {
            self.announced.get_or_insert(at);
            return;
        }
        let from = self.announced.take().unwrap_or(at);
        if let Some(text) = person(&record) {
            self.said.push(Said { text, from });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_of_the_turn_with_its_text_in_order() {
        let prompts = ["a", "/help", "b", "c"];
        let said = ["summary of it", "b", "steered", "c"];
        let want = [None, Some(2), None, Some(3)];
        assert_eq!(forward(&said, &prompts), want);
        assert_eq!(backward(&said, &prompts), want);
    }

    #[test]
    fn a_prompt_that_was_sent_twice_and_is_there_once_is_not_certain() {
        assert_eq!(forward(&["a"], &["a", "a"]), [Some(0)]);
        assert_eq!(backward(&["a"], &["a", "a"]), [Some(1)]);
        let both = [Some(0), Some(1)];
        assert_eq!(forward(&["a", "a"], &["a", "a"]), both);
        assert_eq!(backward(&["a", "a"], &["a", "a"]), both);
    }
}
