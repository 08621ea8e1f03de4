//! Values inside one record of a session file: text members, and contents that are named by their place instead of
//! being copied. Shared by the formats whose edit tools take an old and a new text.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::json::Value;
use crate::model::edit::{Change, Content, Fidelity, Payload, State};
use crate::model::session::{FileNo, Oddity, Span, Turn, Warnings};

/// The text of a member, or of what a pointer leads to.
pub(super) fn text(of: &Value<'_>, name: &str) -> Option<String> {
    of.find(name)?.text().map(Cow::into_owned)
}

/// Gives each turn a key of its own: a record that a damaged file holds twice has the same id in both.
pub(super) fn apart(turns: &mut [Turn]) {
    let mut seen = HashSet::new();
    for turn in turns {
        if !seen.insert(turn.key.clone()) {
            turn.key = format!("{}@{}", turn.key, turn.line);
            seen.insert(turn.key.clone());
        }
    }
}

/// The sessions that the prompts of one file were recorded under. There may be several: a copied history keeps the ids of
/// the session that it comes from (`formats/agents.md` §8). The newest one is what the file is now.
#[derive(Debug, Default)]
pub(super) struct Owners(Vec<Owner>);

#[derive(Debug)]
struct Owner {
    id: String,
    prompts: u64,
    first: u64,
}

impl Owners {
    /// More sessions than this in one file are counted as one.
    const MOST: usize = 64;

    /// A prompt at this offset was recorded under this id.
    pub(super) fn saw(&mut self, id: Option<String>, at: u64) {
        let Some(id) = id else { return };
        let full = self.0.len() >= Self::MOST;
        let known = self.0.iter().position(|o| o.id == id || full);
        let mut owner = known.map_or_else(
            || Owner {
                id,
                prompts: 0,
                first: at,
            },
            |n| self.0.remove(n),
        );
        owner.prompts += 1;
        self.0.push(owner);
    }

    /// Says how many prompts are of another session than the newest one.
    pub(super) fn tell(&self, warnings: &mut Warnings) {
        for other in self.0.iter().rev().skip(1).rev() {
            for _ in 0..other.prompts {
                warnings.add(Oddity::OtherSession, FileNo(0), other.first);
            }
        }
    }
}

/// Where a record lies, for naming values inside it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// In a file of the session, from this offset on.
    At(FileNo, u64),
    /// Inside a string of a record, so its values have no place of their own and are copied.
    Inside,
}

impl Place {
    /// A string member as a content.
    pub(super) fn content(self, of: &Value<'_>, name: &str, fidelity: Fidelity) -> Option<Content> {
        let value = of.find(name).filter(Value::is_string)?;
        let payload = match self {
            Self::At(file, at) => Payload::Token(Span {
                file,
                start: at + value.start as u64,
                end: at + value.end as u64,
            }),
            Self::Inside => Payload::Bytes(
                super::json::string(value.raw(), super::json::Broken::Refuse)?.into_owned(),
            ),
        };
        Some(Content {
            payload,
            fidelity,
            sha256: None,
        })
    }

    /// The content that a call wrote as the whole of a file.
    pub(super) fn written(self, of: &Value<'_>, name: &str) -> Option<State> {
        self.content(of, name, Fidelity::Exact).map(State::Held)
    }

    /// A replacement of one text by another. Tools keep the line ends of the file that they edit, so only a text
    /// within one line is surely what stands in the file.
    pub(super) fn replace(self, of: &Value<'_>, names: [&str; 2], all: Occurs) -> Change {
        let [old, new] = names;
        let fidelity = if one_line(of, old) && one_line(of, new) {
            Fidelity::Exact
        } else {
            Fidelity::Text
        };
        match (
            self.content(of, old, fidelity),
            self.content(of, new, fidelity),
        ) {
            (Some(old), Some(new)) => Change::Replace {
                old,
                new,
                all: all == Occurs::Everywhere,
            },
            _ => Change::Opaque,
        }
    }
}

/// Where a text is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occurs {
    /// At its only place.
    Once,
    /// At every place.
    Everywhere,
}

fn one_line(of: &Value<'_>, name: &str) -> bool {
    of.find(name)
        .and_then(|v| v.bytes())
        .is_some_and(|b| memchr::memchr2(b'\n', b'\r', &b).is_none())
}

/// Number of the turn whose bytes hold this offset of the session's own file.
pub(super) fn turn_at(turns: &[Turn], at: u64) -> Option<u32> {
    let index = turns
        .partition_point(|t| t.span.start <= at)
        .checked_sub(1)?;
    turns.get(index).filter(|t| at < t.span.end).map(|t| t.no)
}

/// Reads a SHA-256 in hex.
pub(super) fn sha256(hex: &str) -> Option<[u8; 32]> {
    let bytes = unhex(hex)?;
    bytes.try_into().ok()
}

/// Bytes in hex.
pub(super) fn hex(bytes: &[u8]) -> String {
    let digit = |b: u8| char::from_digit(u32::from(b), 16).unwrap_or_default();
    bytes
        .iter()
        .flat_map(|b| [digit(b >> 4), digit(b & 15)])
        .collect()
}

/// Reads bytes in hex.
pub(super) fn unhex(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes();
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    digits
        .chunks_exact(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

/// Whether an id is safe in a file name and a command line: it comes from a file, so it may be anything.
pub(super) fn plain(id: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    !id.is_empty() && id.len() <= 128 && !id.starts_with('-') && id.bytes().all(fits)
}

/// What is in a folder. One that is missing or cannot be read has no sessions to offer; `doctor` is the place to say so.
pub(super) fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(found) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    found.filter_map(|e| e.ok().map(|e| e.path())).collect()
}
