//! The record of what prunes removed: `<state>/removals.jsonl`, one line a sidecar or journal, appended and never edited.
//!
//! ```text
//! {"schema":"rewind.removal/1","at":"…","path":"/home/dev/….ckpt","session":"5e55…","agent":"claude","freed":12288,
//!  "what":[{"checkpoint":3,"why":"old"},{"operation":"2026…","why":"old"}]}
//! ```

use std::ffi::OsStr;
use std::io::{self, BufRead as _};
use std::os::fd::AsFd;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::fsx::{Disk, durable};

/// The file in the state folder.
pub const FILE: &str = "removals.jsonl";
const SCHEMA: &str = "rewind.removal/1";

/// What was removed from one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removal {
    schema: String,
    /// When, RFC 3339.
    pub at: String,
    /// The sidecar, or the folder of the journal.
    pub path: String,
    /// The session's id, where that is known.
    pub session: Option<String>,
    /// The agent, where that is known.
    pub agent: Option<String>,
    /// How many bytes the disk got back.
    pub freed: u64,
    /// What it was.
    pub what: Vec<Removed>,
}

/// One thing that was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub struct Removed {
    /// The number of the checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<u32>,
    /// The id of the operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Why: `old`, `size`, `begun`; or `unreadable`, and then it lies in the quarantine.
    pub why: String,
}

impl Removal {
    /// A record of that time and place.
    #[must_use]
    pub fn new(at: String, path: &Path, what: Vec<Removed>, freed: u64) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            at,
            path: path.to_string_lossy().into_owned(),
            session: None,
            agent: None,
            freed,
            what,
        }
    }
}

/// Adds records, durably.
///
/// # Errors
/// The disk refuses; what was removed is removed all the same.
pub fn append(state: &Path, disk: &dyn Disk, removals: &[Removal]) -> io::Result<()> {
    if removals.is_empty() {
        return Ok(());
    }
    let folder = durable::folder(disk, state)?;
    let mut lines = Vec::new();
    for removal in removals {
        if !lines.is_empty() {
            lines.push(b'\n');
        }
        serde_json::to_writer(&mut lines, removal)?;
    }
    durable::append(disk, folder.as_fd(), OsStr::new(FILE), &lines)
}

/// The records, oldest first; lines that cannot be read are left out and counted.
///
/// # Errors
/// The file cannot be read.
pub fn read(state: &Path) -> io::Result<(Vec<Removal>, usize)> {
    let file = match std::fs::File::open(state.join(FILE)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
        other => other?,
    };
    let (mut all, mut spoiled) = (Vec::new(), 0);
    let mut reader = io::BufReader::new(file);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        match serde_json::from_slice::<Removal>(&line) {
            Ok(r) if r.schema == SCHEMA => all.push(r),
            _ if line.iter().all(u8::is_ascii_whitespace) => {}
            _ => spoiled += 1,
        }
        line.clear();
    }
    Ok((all, spoiled))
}
