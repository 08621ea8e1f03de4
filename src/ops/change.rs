//! Undoes and redoes one recorded change on bytes that are known. Strict: an answer only where there is no other one.

use crate::format::patch;
use crate::model::edit::{Change, Content};

/// Looks up the bytes of a content that a change names.
pub type Look<'a> = dyn Fn(&Content) -> Option<Vec<u8>> + 'a;

/// Returns the bytes before a change, given those after it; `None` where that is not certain.
#[must_use]
pub fn undo(change: &Change, after: &[u8], look: &Look<'_>) -> Option<Vec<u8>> {
    match change {
        Change::Replace { old, new, all } => unreplace(after, &look(old)?, &look(new)?, *all),
        Change::Hunks(diff) => patch::undo_hunks(&look(diff)?, after),
        Change::Several(changes) => {
            let mut bytes = after.to_vec();
            for change in changes.iter().rev() {
                bytes = undo(change, &bytes, look)?;
            }
            Some(bytes)
        }
        Change::AnyOf(ways) => agreed(ways.iter().filter_map(|w| undo(w, after, look))),
        Change::Opaque | Change::MovedFrom(..) | Change::MovedTo(..) => None,
    }
}

/// Returns the bytes after a change, given those before it; `None` where that is not certain.
#[must_use]
pub fn redo(change: &Change, before: &[u8], look: &Look<'_>) -> Option<Vec<u8>> {
    match change {
        Change::Replace { old, new, all } => replace(before, &look(old)?, &look(new)?, *all),
        Change::Hunks(diff) => patch::redo_hunks(&look(diff)?, before),
        Change::Several(changes) => {
            let mut bytes = before.to_vec();
            for change in changes {
                bytes = redo(change, &bytes, look)?;
            }
            Some(bytes)
        }
        Change::AnyOf(ways) => agreed(ways.iter().filter_map(|w| redo(w, before, look))),
        Change::Opaque | Change::MovedFrom(..) | Change::MovedTo(..) => None,
    }
}

/// The one answer that all ways give.
fn agreed(mut answers: impl Iterator<Item = Vec<u8>>) -> Option<Vec<u8>> {
    let first = answers.next()?;
    answers.all(|a| a == first).then_some(first)
}

/// The agents refuse to replace a text that stands more than once, so the old one stood once before and the new one
/// must stand once now. After a replace-all nobody can tell which of the new ones were there before.
fn unreplace(after: &[u8], old: &[u8], new: &[u8], all: bool) -> Option<Vec<u8>> {
    if all || new.is_empty() || count(after, new) != 1 {
        return None;
    }
    let before = swap(after, new, old)?;
    (old.is_empty() || count(&before, old) == 1).then_some(before)
}

fn replace(before: &[u8], old: &[u8], new: &[u8], all: bool) -> Option<Vec<u8>> {
    if old.is_empty() {
        return before.is_empty().then(|| new.to_vec());
    }
    if !all {
        return (count(before, old) == 1).then(|| swap(before, old, new))?;
    }
    let mut out = Vec::with_capacity(before.len());
    let mut rest = before;
    while let Some(hit) = memchr::memmem::find(rest, old) {
        let (plain, tail) = rest.split_at(hit);
        out.extend_from_slice(plain);
        out.extend_from_slice(new);
        rest = tail.get(old.len()..)?;
    }
    out.extend_from_slice(rest);
    (rest.len() != before.len()).then_some(out)
}

/// How often a text stands in the bytes, overlapping ones included; two is as good as more.
fn count(bytes: &[u8], text: &[u8]) -> usize {
    let Some(first) = memchr::memmem::find(bytes, text) else {
        return 0;
    };
    let rest = bytes.get(first + 1..).unwrap_or_default();
    1 + usize::from(memchr::memmem::find(rest, text).is_some())
}

fn swap(bytes: &[u8], from: &[u8], to: &[u8]) -> Option<Vec<u8>> {
    let hit = memchr::memmem::find(bytes, from)?;
    let mut out = bytes.get(..hit)?.to_vec();
    out.extend_from_slice(to);
    out.extend_from_slice(bytes.get(hit + from.len()..)?);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::edit::{Fidelity, Payload};

    fn content(bytes: &str) -> Content {
        Content {
            payload: Payload::Bytes(bytes.into()),
            fidelity: Fidelity::Exact,
            sha256: None,
        }
    }

    fn look(content: &Content) -> Option<Vec<u8>> {
        match &content.payload {
            Payload::Bytes(b) => Some(b.clone()),
            _ => None,
        }
    }

    fn change(old: &str, new: &str, all: bool) -> Change {
        Change::Replace {
            old: content(old),
            new: content(new),
            all,
        }
    }

    fn back(old: &str, new: &str, all: bool, after: &str) -> Option<String> {
        undo(&change(old, new, all), after.as_bytes(), &look).map(|b| String::from_utf8(b).unwrap())
    }

    #[test]
    fn a_single_replacement_is_undone() {
        assert_eq!(back("a", "b", false, "xbz").as_deref(), Some("xaz"));
    }

    #[test]
    fn what_could_have_two_answers_is_not_undone() {
        assert_eq!(back("a", "b", false, "bb"), None, "which of the two was it");
        assert_eq!(back("a", "", false, "xz"), None, "where did it stand");
        assert_eq!(
            back("a", "b", true, "bxb"),
            None,
            "which of them were there"
        );
        assert_eq!(
            back("aa", "ba", false, "aba"),
            None,
            "the old text would stand twice"
        );
        assert_eq!(
            back("a", "b", false, "xz"),
            None,
            "the new text is not there"
        );
    }

    #[test]
    fn a_replacement_is_done_as_the_agent_does_it() {
        let run = |old, new, all, before: &str| {
            redo(&change(old, new, all), before.as_bytes(), &look)
                .map(|b| String::from_utf8(b).unwrap())
        };
        assert_eq!(run("a", "b", true, "aXa").as_deref(), Some("bXb"));
        assert_eq!(run("a", "b", false, "aXa"), None);
        assert_eq!(run("", "new", false, "").as_deref(), Some("new"));
        assert_eq!(run("", "new", false, "x"), None);
    }

    #[test]
    fn several_ways_must_agree() {
        let ways = |w: Vec<Change>| undo(&Change::AnyOf(w), b"xbz", &look);
        assert_eq!(
            ways(vec![Change::Opaque, change("a", "b", false)]).as_deref(),
            Some(&b"xaz"[..])
        );
        assert_eq!(
            ways(vec![change("a", "b", false), change("c", "b", false)]),
            None
        );
    }
}
