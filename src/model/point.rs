//! What a user names on the command line: a turn, and what is to go back.

use serde::{Deserialize, Serialize};

/// A turn as the user writes it: the number that `list` shows, a negative one from the end, or an id or its prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnName {
    /// 0-based from the start.
    Number(u32),
    /// From the end: 1 is the last turn.
    FromEnd(u32),
    /// The agent's id of the turn, or a prefix of it.
    Key(String),
}

impl TurnName {
    /// Reads a turn as typed. Anything that is no number as `list` writes them is an id: `00000001` is the start of
    /// one, and taking it for turn 1 would go to the wrong point (`bugs.md` 18).
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.starts_with('+') || (digits.len() > 1 && digits.starts_with('0')) {
            return Self::Key(text.to_owned());
        }
        if let Ok(n) = text.parse::<u32>() {
            return Self::Number(n);
        }
        match text.strip_prefix('-').map(str::parse::<u32>) {
            Some(Ok(n)) if n > 0 => Self::FromEnd(n),
            _ => Self::Key(text.to_owned()),
        }
    }
}

/// What goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The files only.
    Code,
    /// The messages only.
    Conversation,
    /// Both, or neither.
    Both,
}

impl Scope {
    /// Whether files go back.
    #[must_use]
    pub fn code(self) -> bool {
        matches!(self, Self::Code | Self::Both)
    }

    /// Whether messages go back.
    #[must_use]
    pub fn conversation(self) -> bool {
        matches!(self, Self::Conversation | Self::Both)
    }
}

/// What to do with a file that somebody changed since the agent wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnConflict {
    /// Refuse the whole restore.
    #[default]
    Fail,
    /// Leave the file as it is and restore the rest.
    Keep,
    /// Replace it; what was there goes to the journal.
    Overwrite,
    /// Write the old content beside it, as `<name>.rewind`.
    Beside,
}
