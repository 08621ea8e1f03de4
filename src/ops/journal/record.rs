//! What one line of the journal says. `prepared` holds all that is needed to finish the operation, to put everything
//! back, or to take it back later.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::time;
use crate::fsx::tree::{Fingerprint, SafePath, path_serde};
use crate::model::point::Scope;
use crate::ops::plan::{Act, Point, SessionMark};

/// The version of the lines.
pub(super) const SCHEMA: &str = "rewind.operation/1";
/// What all versions of the lines start with.
pub(super) const SCHEMAS: &str = "rewind.operation/";

/// One path that changes, as it was and as it is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepRecord {
    /// Which path.
    pub path: SafePath,
    /// What was there.
    pub before: Fingerprint,
    /// What is to be there.
    pub after: Fingerprint,
    /// Name of the file in `saved/<operation>/` that holds the bytes that were there; none when there were none, or
    /// when only permission bits change.
    pub saved: Option<String>,
    /// The name beside it: the new bytes before they take their place, the old ones just after; none when only
    /// permission bits change.
    pub stage: Option<SafePath>,
}

/// A folder and its permission bits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderRecord {
    /// Which folder.
    pub path: SafePath,
    /// Its permission bits.
    pub mode: u32,
}

/// A part of a session file in `saved/<operation>/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// Its name there.
    pub name: String,
    /// Where it began in the file.
    pub from: u64,
    /// Its number of bytes.
    pub len: u64,
    /// SHA-256 in hex.
    pub sha256: String,
}

/// How a session file changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionChange {
    /// Its end is cut off; the end is saved.
    Truncate,
    /// It gets more bytes.
    Extend,
    /// It is written anew; the whole of the old is saved.
    Write,
    /// It goes away; the whole is saved.
    Remove,
}

/// One session file that changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Which file, absolute, no link.
    #[serde(with = "path_serde")]
    pub path: PathBuf,
    /// What was there.
    pub before: SessionMark,
    /// What is to be there.
    pub after: SessionMark,
    /// How it changes.
    pub change: SessionChange,
    /// What is saved of it.
    pub saved: Option<Saved>,
    /// The name beside it, in the same folder: the new bytes before, the old file after.
    #[serde(with = "path_serde")]
    pub stage: PathBuf,
    /// Permission bits of the file.
    pub mode: u32,
}

/// One operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its id.
    pub id: String,
    /// When it was done, RFC 3339.
    pub at: String,
    /// Restore, undo or redo.
    pub act: Act,
    /// Where it goes.
    pub point: Point,
    /// What goes back.
    pub scope: Scope,
    /// The paths that change.
    pub steps: Vec<StepRecord>,
    /// Folders that were missing and are made, a parent before what is in it.
    pub made_folders: Vec<SafePath>,
    /// Folders that go away when the removals make them empty, deepest first.
    pub removed_folders: Vec<FolderRecord>,
    /// The session files that change.
    pub session: Vec<SessionRecord>,
}

impl Record {
    /// Whether the names in it are names. They become parts of paths, and a log can be written by anybody who owns
    /// the account.
    pub(super) fn is_sound(&self) -> bool {
        let steps = self.steps.iter().filter_map(|s| s.saved.as_deref());
        let session = self.session.iter().filter_map(|s| s.saved.as_ref());
        let beside =
            |s: &SessionRecord| s.path.is_absolute() && s.stage.parent() == s.path.parent();
        is_name(&self.id)
            && steps.chain(session.map(|s| s.name.as_str())).all(is_name)
            && self.session.iter().all(beside)
    }
}

/// Whether a text can be a name of ours in a folder.
pub(super) fn is_name(text: &str) -> bool {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    (1..=100).contains(&text.len()) && !text.starts_with('.') && text.chars().all(fine)
}

/// Something that happened to an operation.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// Nothing has changed yet; all that is needed is written down.
    Prepared(&'a Record),
    /// Names are about to change.
    Committing(&'a str, DateTime<Utc>),
    /// Done and verified; with what was left alone, if a recovery finished it.
    Committed(&'a str, DateTime<Utc>, Option<&'a str>),
    /// All is as before; with the reason.
    Aborted(&'a str, DateTime<Utc>, &'a str),
    /// What it replaced was pruned: it can no longer be taken back.
    Pruned(&'a str, DateTime<Utc>),
}

#[derive(Serialize)]
pub(super) struct Line<'a> {
    schema: &'static str,
    event: &'static str,
    #[serde(flatten)]
    body: Body<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Body<'a> {
    Whole(&'a Record),
    Short {
        id: &'a str,
        at: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'a str>,
    },
}

impl<'a> Event<'a> {
    pub(super) fn line(&self) -> Line<'a> {
        let short = |id, at, reason| Body::Short {
            id,
            at: time(at),
            reason,
        };
        let (event, body) = match *self {
            Self::Prepared(record) => ("prepared", Body::Whole(record)),
            Self::Committing(id, at) => ("committing", short(id, at, None)),
            Self::Committed(id, at, left) => ("committed", short(id, at, left)),
            Self::Aborted(id, at, why) => ("aborted", short(id, at, Some(why))),
            Self::Pruned(id, at) => ("pruned", short(id, at, None)),
        };
        Line {
            schema: SCHEMA,
            event,
            body,
        }
    }
}
