//! What the types are called on the screen and in JSON. One place, so that text and JSON cannot disagree.

use crate::model::edit::{GapKind, Reason, Source};
use crate::model::point::Scope;
use crate::model::session::{Oddity, TurnKind};
use crate::ops::coverage::{Coverage, Known};
use crate::ops::plan::{Act, ConflictKind};

/// Why a content is not known.
#[must_use]
pub fn reason(reason: &Reason) -> String {
    match reason {
        Reason::NotRecorded => "what was there before is not recorded".to_owned(),
        Reason::CopyGone => "the agent's copy of it is gone".to_owned(),
        Reason::CopyDamaged => "the saved copy is not what was saved".to_owned(),
        Reason::Unreadable(why) => format!("cannot be read: {why}"),
        Reason::Expired => "its checkpoint was pruned".to_owned(),
        Reason::TooLarge => "too large to have been captured".to_owned(),
        Reason::TurnUnknown => {
            "a checkpoint that may hold it belongs to one of several turns".to_owned()
        }
        Reason::RecordDamaged => "a checkpoint that may hold it cannot be read".to_owned(),
        Reason::MaybeOverwritten => {
            "written as a new file, and the record does not say whether one was there before"
                .to_owned()
        }
        Reason::NotReversible => {
            "the edit cannot be undone for certain on the bytes that are there now".to_owned()
        }
        Reason::TextOnly => {
            "only its text is recorded, and the file has other line ends or another encoding"
                .to_owned()
        }
        Reason::OutsideRoot => "outside the workspace".to_owned(),
        Reason::NotAFile => "not a plain file now, or behind a link".to_owned(),
        Reason::HardLink => "has several names (hard links), which a restore would part".to_owned(),
        Reason::BadName => "its name may not be written".to_owned(),
    }
}

/// What happened to a path in conflict: since the agent's last edit, or since the operation that an undo takes back.
#[must_use]
pub fn conflict(kind: ConflictKind, act: &Act) -> &'static str {
    match (kind, act) {
        (ConflictKind::Changed, Act::Restore) => "changed since the agent wrote it",
        (ConflictKind::Changed, _) => "changed since",
        (ConflictKind::Deleted, Act::Restore) => "deleted since the agent wrote it",
        (ConflictKind::Deleted, _) => "deleted since",
        (ConflictKind::Created, Act::Restore) => "made since the agent removed it",
        (ConflictKind::Created, _) => "made since",
        (ConflictKind::NotAFile, _) => "not a plain file any more",
        (ConflictKind::NotKnown, _) => {
            "the record does not tell what the agent left, so it may hold work of yours"
        }
    }
}

/// The kind of a gap.
#[must_use]
pub fn gap(kind: GapKind) -> &'static str {
    match kind {
        GapKind::Shell => "shell",
        GapKind::Tool => "tool",
        GapKind::Capture => "capture",
        GapKind::Checkpoint => "checkpoint",
    }
}

/// The kind of a gap, as a person reads it.
#[must_use]
pub fn gap_text(kind: GapKind) -> &'static str {
    match kind {
        GapKind::Shell => "shell command",
        GapKind::Tool => "tool",
        GapKind::Capture => "not captured",
        GapKind::Checkpoint => "checkpoint",
    }
}

/// Where a content was found, as a person reads it.
#[must_use]
pub fn source_text(source: Source) -> &'static str {
    match source {
        Source::Ckpt => "from a checkpoint",
        Source::Native => "from the agent's copy",
        Source::Transcript => "from the transcript",
        Source::Reversed => "by undoing the edits",
    }
}

/// What an operation did.
#[must_use]
pub fn act(act: &Act) -> &'static str {
    match act {
        Act::Restore => "restore",
        Act::Undo(_) => "undo",
        Act::Redo(_) => "redo",
    }
}

/// The first line of a prompt that says something.
#[must_use]
pub fn first_line(text: &str) -> &str {
    text.trim_start().lines().next().unwrap_or_default()
}

/// A word of a command line as a shell takes it.
#[must_use]
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=@%+,:".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Where a content was found.
#[must_use]
pub fn source(source: Source) -> &'static str {
    match source {
        Source::Ckpt => "ckpt",
        Source::Native => "native",
        Source::Transcript => "transcript",
        Source::Reversed => "reversed",
    }
}

/// How well a state is known.
#[must_use]
pub fn known(known: Known) -> &'static str {
    match known {
        Known::Recorded => "recorded",
        Known::Reversible => "reversible",
        Known::Unknown => "unknown",
    }
}

/// How much of a turn can be taken back.
#[must_use]
pub fn coverage(coverage: Coverage) -> &'static str {
    match coverage {
        Coverage::None => "none",
        Coverage::Full => "full",
        Coverage::Partial => "partial",
    }
}

/// What goes back.
#[must_use]
pub fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Code => "code",
        Scope::Conversation => "conversation",
        Scope::Both => "both",
    }
}

/// How a turn was started.
#[must_use]
pub fn turn_kind(kind: TurnKind) -> &'static str {
    match kind {
        TurnKind::Prompt => "prompt",
        TurnKind::Command => "command",
        TurnKind::Shell => "shell",
        TurnKind::Queued => "queued",
    }
}

/// The name of an oddity in JSON.
#[must_use]
pub fn oddity(oddity: Oddity) -> &'static str {
    match oddity {
        Oddity::ByteOrderMark => "byte-order-mark",
        Oddity::NulHole => "nul-hole",
        Oddity::GluedRecords => "glued-records",
        Oddity::BadLine => "bad-line",
        Oddity::TornTail => "torn-tail",
        Oddity::HugeLine => "huge-line",
        Oddity::LostParent => "lost-parent",
        Oddity::BadText => "bad-text",
        Oddity::OtherSession => "other-session",
    }
}

/// An oddity in words, with how often it was seen.
#[must_use]
pub fn oddity_text(oddity: Oddity, count: u64) -> String {
    match oddity {
        Oddity::ByteOrderMark => "the file begins with a byte order mark".to_owned(),
        Oddity::NulHole => format!("{count} × a run of NUL bytes where a record should be"),
        Oddity::GluedRecords => format!("{count} × several records on one line"),
        Oddity::BadLine => format!("{count} × a line that is no record"),
        Oddity::TornTail => "the last line has no end".to_owned(),
        Oddity::HugeLine => format!("{count} × a line too long to be read"),
        Oddity::LostParent => format!("{count} × a record whose parent is not in the file"),
        Oddity::BadText => format!("{count} × a text with damaged bytes"),
        Oddity::OtherSession => {
            format!("{count} × a prompt of another session, which the same file holds")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_to_type_is_safe_to_type() {
        assert_eq!(shell_word("/home/dev/shop"), "/home/dev/shop");
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_word("my shop; rm -rf ~"), "'my shop; rm -rf ~'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
    }
}
