//! A sidecar of ours as files: what stands in it, how old and how large, without reading a record. For what must be quick
//! with many checkpoints, and for what removes some.
//!
//! ```text
//! turn-<N>.json                one checkpoint
//! turn-<N>.missed-<pid>.json   gaps of it
//! turn-<N>.pruning             a checkpoint that is being removed: its blobs may be gone
//! turn-<N>.pruned              the newest one that was removed, as a record of that
//! turn-<N>.json.<why>          one that could not be read when it was to go; in `quarantine/`
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

use chrono::{DateTime, Utc};

use super::blobs::digest;

/// Where records go that cannot be read.
pub const QUARANTINE: &str = "quarantine";
/// The ending of a record that is being removed.
pub const PRUNING: &str = "pruning";
/// The ending of the newest one that was.
pub const PRUNED: &str = "pruned";

/// A SHA-256, as blobs are named.
pub type Digest = [u8; 32];

/// One checkpoint's files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Files {
    /// The record's name, where there is one.
    pub record: Option<OsString>,
    /// Names of files with its gaps.
    pub missed: Vec<OsString>,
    /// When the newest of them was written.
    pub modified: Option<DateTime<Utc>>,
    /// What they take on the disk, in bytes.
    pub bytes: u64,
    /// What the record takes of that.
    pub record_bytes: u64,
    /// One of them is no plain file.
    pub odd: bool,
}

/// What stands in a sidecar.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// The checkpoints by turn.
    pub turns: BTreeMap<u32, Files>,
    /// Those that a killed prune was removing.
    pub pruning: BTreeSet<u32>,
    /// The newest one that was removed.
    pub pruned: BTreeSet<u32>,
}

/// Lists a sidecar.
///
/// # Errors
/// It cannot be read.
pub fn list(folder: &Path) -> io::Result<Listing> {
    let mut out = Listing::default();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        match name.to_str().and_then(Name::of) {
            None => {}
            Some(Name::Pruning(turn)) => drop(out.pruning.insert(turn)),
            Some(Name::Pruned(turn)) => drop(out.pruned.insert(turn)),
            Some(found @ (Name::Record(turn) | Name::Missed(turn))) => {
                let meta = std::fs::symlink_metadata(entry.path())?;
                let files = out.turns.entry(turn).or_default();
                files.odd |= !meta.is_file();
                files.bytes += on_disk(&meta);
                files.modified = files.modified.max(meta.modified().ok().map(time));
                match found {
                    Name::Record(_) => {
                        files.record_bytes = on_disk(&meta);
                        files.record = Some(name);
                    }
                    _ => files.missed.push(name),
                }
            }
        }
    }
    Ok(out)
}

fn time(at: SystemTime) -> DateTime<Utc> {
    at.into()
}

/// What a file takes on the disk, and gives back when this name of it goes.
#[must_use]
pub fn on_disk(meta: &Metadata) -> u64 {
    if meta.is_file() && meta.nlink() > 1 {
        return 0;
    }
    meta.blocks() * 512
}

enum Name {
    Record(u32),
    Missed(u32),
    Pruning(u32),
    Pruned(u32),
}

impl Name {
    fn of(name: &str) -> Option<Self> {
        let (digits, rest) = name.strip_prefix("turn-")?.split_once('.')?;
        let turn: u32 = digits.parse().ok()?;
        if turn.to_string() != digits {
            return None;
        }
        let missed = |r: &str| {
            let pid = r.strip_prefix("missed-")?.strip_suffix(".json")?;
            pid.bytes().all(|b| b.is_ascii_digit()).then_some(())
        };
        Some(match rest {
            "json" => Self::Record(turn),
            PRUNING => Self::Pruning(turn),
            PRUNED => Self::Pruned(turn),
            other => missed(other).map(|()| Self::Missed(turn))?,
        })
    }
}

/// Whether a name is one that we give in a sidecar.
#[must_use]
pub fn is_ours(name: &str) -> bool {
    let ours = ["index.json", "current.json", "lock", "blobs", QUARANTINE];
    // What a replace leaves when it is killed is made anew by the next one.
    let staged = name.strip_prefix('.').and_then(|n| n.strip_suffix(".new"));
    ours.contains(&name) || staged.is_some() || Name::of(name).is_some()
}

/// Every SHA-256 that bytes name, whatever else they are: a record that cannot be read names its blobs all the same.
#[must_use]
pub fn named_in(bytes: &[u8]) -> BTreeSet<Digest> {
    let mut out = BTreeSet::new();
    for run in bytes.split(|b| !b.is_ascii_hexdigit()) {
        // In a longer row of digits any part may be the name.
        out.extend(run.windows(64).filter_map(digest));
    }
    out
}

/// A blob as it lies on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// What its bytes must be.
    pub digest: Digest,
    /// The folders that it is in, and its name.
    pub place: [OsString; 3],
    /// When it was written.
    pub modified: Option<DateTime<Utc>>,
    /// What it takes on the disk, in bytes.
    pub bytes: u64,
}

impl Blob {
    /// Its path below the sidecar.
    #[must_use]
    pub fn path(&self) -> std::path::PathBuf {
        let [a, b, name] = &self.place;
        Path::new("blobs").join(a).join(b).join(name)
    }
}

/// The content whose name that is, raw or compressed.
#[must_use]
pub fn content(name: &OsStr) -> Option<Digest> {
    let text = name.to_str()?;
    let hex = text.strip_suffix(".zst").unwrap_or(text);
    digest(hex.as_bytes())
}

/// The blobs of a sidecar. What is no blob by name and place, or stands behind a link, is left out.
///
/// # Errors
/// A folder cannot be read.
pub fn blobs(folder: &Path) -> io::Result<Vec<Blob>> {
    let mut out = Vec::new();
    let top = folder.join("blobs");
    for a in folders(&top)? {
        for b in folders(&top.join(&a))? {
            for entry in std::fs::read_dir(top.join(&a).join(&b))? {
                let entry = entry?;
                let name = entry.file_name();
                let Some(digest) = content(&name) else {
                    continue;
                };
                let meta = entry.metadata()?;
                if meta.is_file() {
                    out.push(Blob {
                        digest,
                        modified: meta.modified().ok().map(time),
                        bytes: on_disk(&meta),
                        place: [a.clone(), b.clone(), name],
                    });
                }
            }
        }
    }
    Ok(out)
}

/// The real folders in a folder, which may be missing.
fn folders(path: &Path) -> io::Result<Vec<OsString>> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => {}
        Ok(_) => return Ok(Vec::new()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e),
    }
    let mut out = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            out.push(entry.file_name());
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_in_whatever_bytes() {
        let name = "3b".repeat(32);
        for text in [
            format!("{{\"blobRef\":\"{name}\"}}"),
            format!("{{\"blobRef\":\"{name}"),
            format!("\0\u{ff}{}\n", name.to_uppercase()),
        ] {
            assert!(named_in(text.as_bytes()).contains(&[0x3b; 32]), "{text}");
        }
        assert!(named_in(&name.as_bytes()[1..]).is_empty());
        assert_eq!(named_in(format!("aa{name}").as_bytes()).len(), 3);
    }

    #[test]
    fn files_are_told_by_their_names_alone() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "turn-0.json",
            "turn-0.missed-7.json",
            "turn-01.json",
            "turn-3.pruning",
            "turn-2.pruned",
            "turn-4.json.tmp",
            "index.json",
        ] {
            std::fs::write(dir.path().join(name), "{}").unwrap();
        }
        let listing = list(dir.path()).unwrap();
        assert_eq!(listing.turns.keys().collect::<Vec<_>>(), [&0]);
        assert_eq!(listing.turns[&0].missed.len(), 1);
        assert!(listing.pruning.contains(&3) && listing.pruned.contains(&2));
    }

    #[test]
    fn a_folder_of_blobs_that_is_a_link_holds_none_of_ours() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(other.path(), dir.path().join("blobs")).unwrap();
        assert_eq!(blobs(dir.path()).unwrap(), []);
    }
}
