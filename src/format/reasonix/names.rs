//! The names beside a Reasonix session.
//!
//! ```text
//! 20260610-060322.123456000-deepseek.jsonl          the session
//! 20260610-060322.123456000-deepseek.jsonl.meta     what the list shows of it
//! 20260610-060322.123456000-deepseek.events.jsonl   the log that counts, where there is one
//! 20260610-060322.123456000-deepseek.ckpt/          checkpoints
//! ```

use std::path::{Path, PathBuf};

/// Endings of files that are no transcripts though they end in `.jsonl`.
const OTHERS: [&str; 4] = [
    ".events.jsonl",
    ".turns.jsonl",
    ".conflicts.jsonl",
    ".guardian.jsonl",
];

/// Whether a file of this name is a transcript.
pub(super) fn is_transcript(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".jsonl") && !OTHERS.iter().any(|o| name.ends_with(o))
}

/// The session that a path stands for: an event log stands for the session that it belongs to.
pub(super) fn session(path: &Path) -> PathBuf {
    match log_stem(path) {
        Some(stem) => with(stem, ".jsonl"),
        None => path.to_path_buf(),
    }
}

/// The path without `.events.jsonl`, when it is that of an event log.
pub(super) fn log_stem(path: &Path) -> Option<PathBuf> {
    let stem = path
        .extension()
        .is_some_and(|e| e == "jsonl")
        .then(|| path.with_extension(""))?;
    let log = stem.extension().is_some_and(|e| e == "events");
    log.then(|| stem.with_extension(""))
}

/// A path with more at its end.
pub(super) fn with(path: impl AsRef<Path>, more: &str) -> PathBuf {
    let mut name = path.as_ref().as_os_str().to_owned();
    name.push(more);
    PathBuf::from(name)
}

/// A file beside the session, named by its stem.
pub(super) fn beside(session: &Path, ending: &str) -> PathBuf {
    let stem = match session.extension() {
        Some(e) if e == "jsonl" => session.with_extension(""),
        _ => session.to_path_buf(),
    };
    with(stem, ending)
}

/// The session's id: its name without the last ending.
pub(super) fn id(session: &Path) -> String {
    let stem = session.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// Whether a path exists; one that cannot be looked at counts as there.
pub(super) fn there(path: &Path) -> bool {
    match std::fs::symlink_metadata(path) {
        Ok(_) => true,
        Err(e) => e.kind() != std::io::ErrorKind::NotFound,
    }
}
