//! Gaps of a record: what the recorder said that it did not cover.
//!
//! ```text
//! "coverageGaps":[{"reason":"oversized","path":"big.bin","detail":"64 MiB"}]     Reasonix
//! "coverageGaps":[{"kind":"shell","detail":"make"}]                              ours
//! ```
//!
//! A gap that names a path is more than talk: it puts in doubt what the record says of that path. A recorder that could
//! not read a file has been seen to write it down as empty (`bugs.md` 12), and one may as well write it down as absent.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::fields::{Wrong, members, path, string};
use crate::format::json::Value;
use crate::model::edit::{GapKind, Reason};

/// The gaps of one record.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// Kind and words, for the checkpoint.
    pub(super) told: Vec<(GapKind, String)>,
    /// Paths that were not captured, and why, in the order of the record.
    pub(super) uncaptured: Vec<(PathBuf, Reason)>,
}

impl Gaps {
    /// Reads the array of gaps.
    pub(super) fn of(value: Option<Value<'_>>) -> Result<Self, Wrong> {
        let mut gaps = Self::default();
        let Some(value) = value.filter(|v| !v.is_null()) else {
            return Ok(gaps);
        };
        if !value.is_array() {
            return Err(Wrong);
        }
        for item in value.items() {
            gaps.take(&item)?;
        }
        Ok(gaps)
    }

    fn take(&mut self, item: &Value<'_>) -> Result<(), Wrong> {
        let [reason, kind, detail, tool, named] =
            members(item, ["reason", "kind", "detail", "tool", "path"])?;
        let reason = string(reason)?.or(string(kind)?).unwrap_or_default();
        let sort = Sort::of(&reason);
        if let (Some(path), Some(why)) = (path(named)?, sort.reason(&reason)) {
            self.uncaptured.push((path, why));
        }
        if let Some(kind) = sort.kind() {
            // The kind says it already.
            let word = Some(reason).filter(|r| !matches!(r.as_str(), "shell" | "tool"));
            let parts = [word, string(tool)?, string(named)?, string(detail)?];
            let words: Vec<String> = parts
                .into_iter()
                .flatten()
                .filter(|w| !w.is_empty())
                .collect();
            self.told.push((kind, words.join(": ")));
        }
        Ok(())
    }

    /// The paths in doubt.
    pub(super) fn doubts(&self) -> Doubts {
        let mut doubts = Doubts::default();
        for (path, reason) in &self.uncaptured {
            let name = path.file_name().unwrap_or_default().to_owned();
            let same = doubts.0.entry(name).or_default();
            same.push((path.clone(), reason.clone()));
        }
        doubts
    }
}

/// The paths that gaps put in doubt, by their last name.
#[derive(Debug, Default)]
pub(super) struct Doubts(HashMap<OsString, Vec<(PathBuf, Reason)>>);

impl Doubts {
    /// Why a path is in doubt. A gap may name it from the root and an entry from the workspace, or the other way round.
    pub(super) fn of(&self, path: &Path) -> Option<Reason> {
        let same = self.0.get(path.file_name().unwrap_or_default())?;
        same.iter()
            .take(MOST_OF_A_NAME)
            .find(|(gap, _)| gap.ends_with(path) || path.ends_with(gap))
            .or(same.get(MOST_OF_A_NAME))
            .map(|(_, reason)| reason.clone())
    }
}

/// With more gaps of one name than this, every path of that name is in doubt: no record is compared for hours.
const MOST_OF_A_NAME: usize = 64;

/// What a gap's word means here.
enum Sort {
    /// A shell command.
    Shell,
    /// Another tool, a hook, a writer in the background.
    Tool,
    /// The recorder could not capture a file.
    Capture,
    /// A path outside of the workspace: said, and never a reason to doubt a file inside.
    Outside,
    /// The payload was pruned.
    Expired,
    /// No file of the project is concerned.
    Nothing,
}

impl Sort {
    fn of(word: &str) -> Self {
        match word {
            "bash_side_effect" | "shell" => Self::Shell,
            "git" | "hook_write" | "mcp_external" | "background_writer_cross_turn" | "tool" => {
                Self::Tool
            }
            "outside_workspace" => Self::Outside,
            "expired_file_payload" | "checkpoint" => Self::Expired,
            "scratch" | "legacy_unverified" => Self::Nothing,
            // A word that is not known here is taken for the worst that it can mean.
            _ => Self::Capture,
        }
    }

    fn kind(&self) -> Option<GapKind> {
        match self {
            Self::Shell => Some(GapKind::Shell),
            Self::Tool => Some(GapKind::Tool),
            Self::Capture | Self::Outside => Some(GapKind::Capture),
            Self::Expired => Some(GapKind::Checkpoint),
            Self::Nothing => None,
        }
    }

    /// Why the path that the gap names is not known; `None` when the gap does not say so.
    fn reason(&self, word: &str) -> Option<Reason> {
        match self {
            Self::Capture => Some(match word {
                "oversized" => Reason::TooLarge,
                "hardlink" => Reason::HardLink,
                "symlink" => Reason::NotAFile,
                "unreadable" => Reason::Unreadable("the recorder could not read it".to_owned()),
                _ => Reason::NotRecorded,
            }),
            Self::Expired => Some(Reason::Expired),
            Self::Shell | Self::Tool | Self::Outside | Self::Nothing => None,
        }
    }
}
