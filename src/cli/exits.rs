//! The exit codes at the end of each long help: those that the command can end with.

use std::fmt::Write as _;

use crate::error::Kind;

/// What a command that changes an agent's settings can end with.
pub(super) const SETS_UP: &[Kind] = &[
    Kind::Failed,
    Kind::Usage,
    Kind::Conflict,
    Kind::Unsupported,
    Kind::Storage,
];
/// What a command that only makes something new can end with.
pub(super) const MAKES: &[Kind] = &[Kind::Failed, Kind::Usage, Kind::Storage];
/// What a command that reads no single session can end with.
pub(super) const READS: &[Kind] = &[Kind::Failed, Kind::Usage, Kind::Storage, Kind::Internal];
/// What a command that reads one session can end with.
pub(super) const READS_ONE: &[Kind] = &[
    Kind::Failed,
    Kind::Usage,
    Kind::NotFound,
    Kind::Unsupported,
    Kind::Damaged,
    Kind::Storage,
    Kind::Internal,
];
/// What a command that plans and does nothing can end with.
pub(super) const SHOWS: &[Kind] = READS_ONE;
/// What a command that changes files can end with.
pub(super) const WRITES: &[Kind] = &Kind::ALL;

/// What `prune` can end with.
pub(super) const PRUNES: &[Kind] = &[
    Kind::Failed,
    Kind::Usage,
    Kind::Partial,
    Kind::NotFound,
    Kind::Storage,
    Kind::Internal,
    Kind::Interrupted,
];
/// What `verify` can end with.
pub(super) const CHECKS: &[Kind] = &[
    Kind::Failed,
    Kind::Usage,
    Kind::NotFound,
    Kind::Damaged,
    Kind::Storage,
    Kind::Internal,
];
/// What `pin` and `unpin` can end with.
pub(super) const PINS: &[Kind] = READS_ONE;

/// What `fork` can end with.
pub(super) const FORKS: &[Kind] = &[
    Kind::Failed,
    Kind::Usage,
    Kind::Conflict,
    Kind::NotFound,
    Kind::Unsupported,
    Kind::Damaged,
    Kind::Storage,
    Kind::Internal,
];

/// What a command that prints what it has in itself can end with.
pub(super) const GIVES: &[Kind] = &[Kind::Usage, Kind::Storage, Kind::Internal];
/// What a command that writes pages into a folder can end with.
pub(super) const PAGES: &[Kind] = &[
    Kind::Failed,
    Kind::Usage,
    Kind::Conflict,
    Kind::NotFound,
    Kind::Storage,
    Kind::Internal,
];

/// What each exit code means, for the help.
fn meaning(kind: Kind) -> &'static str {
    match kind {
        Kind::Failed => "failed: nothing changed; the message says why",
        Kind::Usage => "usage: bad arguments, or no terminal and no --yes",
        Kind::Partial => "partial: done, except the named paths",
        Kind::Conflict => {
            "conflict: refused, nothing written; files changed since, or the plan is stale"
        }
        Kind::NotFound => "not-found: no such session, turn, operation or file; or ambiguous",
        Kind::Unsupported => {
            "unsupported: the format is read-only for this, or newer than this program"
        }
        Kind::Busy => "busy: a live agent or another rewind holds the session or the folder",
        Kind::Damaged => "damaged: needed bytes are missing or do not match their hash",
        Kind::Storage => "storage: no space, read-only, no permission; rolled back",
        Kind::Internal => "internal: a bug of this program",
        Kind::Interrupted => "interrupted: stopped by Ctrl-C; the next run finishes or reverts it",
    }
}

/// The end of a long help.
pub(super) fn exit_codes(kinds: &[Kind]) -> String {
    let mut text = String::from("EXIT STATUS:\n    0  done and verified, or nothing to do");
    for kind in kinds {
        // Writing to a string does not fail.
        let _ = write!(text, "\n  {:>3}  {}", kind.code(), meaning(*kind));
    }
    text
}

/// The whole table, for the help of the program itself.
pub(super) fn all_exit_codes() -> String {
    exit_codes(&Kind::ALL)
}
