//! Claude Code's own file backups: `file-history/<session id>/<h>@v<N>`, raw bytes, `h` the first 16 hex digits of
//! the SHA-256 of the absolute path; the lines `file-history-snapshot` (base and update) and `file-history-delta` tell
//! which backup holds which path at which prompt (`formats/claude-code.md` §4).
//!
//! Two traps are handled here. The newest 100 prompts keep their backups, older copies are pruned: a missing copy is
//! never stood in for by a neighbour (`bugs.md` 21). And after a compaction the client counts versions from 1 again
//! and **writes over** older copies of the same name (`corpus/claude/compact`): a name counts only for the prompt
//! whose `backupTime` is the newest for that name.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::super::json::Value;
use super::super::record::hex;
use super::calls::Found;
use super::place::text;
use crate::model::edit::{Content, Fidelity, Payload, Reason, Source, State};
use crate::model::session::{Session, TurnKind};

/// One entry of a map: which backup, made when, told at which offset.
#[derive(Debug, Clone)]
struct Entry {
    /// `None`: the path did not exist.
    name: Option<String>,
    made: String,
    parent: Option<String>,
    at: u64,
    base: bool,
}

/// The backups told of in the spans that are read.
#[derive(Debug, Default)]
pub(super) struct History {
    folder: Option<PathBuf>,
    root: Option<PathBuf>,
    /// The prompts of the active turns: key → number.
    prompts: HashMap<String, u32>,
    /// Turns whose prompt was queued, with the bytes that they hold: they have no map of their own.
    queued: BTreeMap<u32, (u64, u64)>,
    /// Turn → path → entry. Only the paths that are edited are looked up later, so a map is dropped with the history.
    maps: BTreeMap<u32, BTreeMap<String, Entry>>,
    /// The newest `backupTime` seen for a name, on any branch.
    newest: HashMap<String, String>,
    /// Turn → paths edited in it, until its map is cut down to them.
    edited: BTreeMap<u32, HashSet<PathBuf>>,
    /// Turns before this one have been cut down.
    passed: u32,
}

impl History {
    pub(super) fn new(session: &Session, config: Option<PathBuf>) -> Self {
        Self {
            folder: config.map(|c| c.join("file-history").join(&session.id)),
            root: session.root.clone(),
            prompts: session
                .turns
                .iter()
                .map(|t| (t.key.clone(), t.no))
                .collect(),
            queued: session
                .turns
                .iter()
                .filter(|t| t.kind == TurnKind::Queued)
                .map(|t| (t.no, (t.span.start, t.span.end)))
                .collect(),
            ..Self::default()
        }
    }

    /// Takes a `file-history-snapshot`: a base map, or an update that adds one path. The inner id is the prompt.
    pub(super) fn snapshot(&mut self, record: &Value<'_>, turn: Option<u32>, at: u64) {
        let Some(snapshot) = record.get("snapshot") else {
            return;
        };
        let base = !record.get("isSnapshotUpdate").is_some_and(|v| v.is_true());
        let owner = text(&snapshot, "messageId").and_then(|id| self.prompts.get(&id).copied());
        let Some(map) = snapshot.get("trackedFileBackups") else {
            return;
        };
        if base && let Some(owner) = owner {
            // A base told again (at a resume) replaces the one before; what the turn added stays.
            self.maps.entry(owner).or_default().retain(|_, e| !e.base);
        }
        for (path, backup) in map.entries() {
            self.entry(owner, turn, path.into_owned(), &backup, at, base);
        }
    }

    /// Takes a `file-history-delta`: one path, added if absent, never written over (`bugs.md` 20).
    pub(super) fn delta(&mut self, record: &Value<'_>, turn: Option<u32>, at: u64) {
        let owner = text(record, "snapshotMessageId").and_then(|id| self.prompts.get(&id).copied());
        if let (Some(path), Some(backup)) = (text(record, "trackingPath"), record.get("backup")) {
            self.entry(owner, turn, path, &backup, at, false);
        }
    }

    fn entry(
        &mut self,
        owner: Option<u32>,
        turn: Option<u32>,
        path: String,
        backup: &Value<'_>,
        at: u64,
        base: bool,
    ) {
        let entry = Entry {
            name: text(backup, "backupFileName"),
            made: text(backup, "backupTime").unwrap_or_default(),
            parent: text(backup, "realParentDir"),
            at,
            base,
        };
        if let Some(name) = &entry.name {
            // RFC 3339 in UTC with fixed digits: the order of the texts is the order of the times.
            let newest = self.newest.entry(name.clone()).or_default();
            if *newest < entry.made {
                newest.clone_from(&entry.made);
            }
        }
        // Told on an abandoned branch, or for a prompt that is not read: only the name counts.
        if let (Some(owner), Some(_)) = (owner, turn) {
            self.maps
                .entry(owner)
                .or_default()
                .entry(path)
                .or_insert(entry);
        }
    }

    /// Notes a path that is edited in a turn.
    pub(super) fn touched(&mut self, turn: u32, path: &Path) {
        self.edited
            .entry(turn)
            .or_default()
            .insert(path.to_path_buf());
    }

    /// Drops what the maps of turns before `turn` tell of paths that no edit of theirs names: a base map lists every
    /// file ever tracked, and a session may have thousands of them.
    pub(super) fn pass(&mut self, turn: u32) {
        // The map of the last prompt that was not queued is still needed by the queued ones behind it.
        let keep = (0..turn)
            .rev()
            .find(|t| !self.queued.contains_key(t))
            .unwrap_or(0);
        let passed = self.maps.range_mut(self.passed..keep.max(self.passed));
        for (no, map) in passed {
            let edited = self.edited.remove(no).unwrap_or_default();
            let root = self.root.as_deref();
            map.retain(|p, _| {
                edited.contains(Path::new(p)) || root.is_some_and(|r| edited.contains(&r.join(p)))
            });
        }
        self.passed = keep.max(self.passed);
    }

    /// Gives the first edit of each path in one turn the state that the backups tell.
    pub(super) fn attach(&self, found: &mut [Found]) {
        let mut seen = HashSet::new();
        for f in found {
            if !seen.insert(f.edit.path.clone()) {
                continue;
            }
            let path = f.edit.path.path.clone();
            match self
                .lookup(f.edit.turn, &path)
                .map(|e| self.state(e, &path))
            {
                Some((state @ (State::Absent | State::Held(_)), mode)) => {
                    f.edit.before = state;
                    f.edit.source = Source::Native;
                    f.edit.mode = mode;
                }
                Some((State::Unknown(reason), _)) => {
                    if matches!(f.edit.before, State::Unknown(_)) {
                        f.edit.before = State::Unknown(reason);
                    }
                }
                None => {}
            }
        }
    }

    fn lookup(&self, turn: u32, path: &Path) -> Option<&Entry> {
        if let Some((start, end)) = self.queued.get(&turn) {
            // The map of the prompt before it holds what was first touched since; only what was told inside these
            // bytes was first touched in this turn.
            let owner = (0..turn).rev().find(|t| !self.queued.contains_key(t))?;
            return self
                .in_map(owner, path)
                .filter(|e| !e.base && (*start..*end).contains(&e.at));
        }
        self.in_map(turn, path)
    }

    fn in_map(&self, turn: u32, path: &Path) -> Option<&Entry> {
        let map = self.maps.get(&turn)?;
        let relative = self.root.as_ref().and_then(|r| path.strip_prefix(r).ok());
        relative
            .and_then(Path::to_str)
            .and_then(|p| map.get(p))
            .or_else(|| path.to_str().and_then(|p| map.get(p)))
    }

    fn state(&self, entry: &Entry, path: &Path) -> (State, Option<u32>) {
        let Some(name) = &entry.name else {
            return (State::Absent, None);
        };
        let gone = (State::Unknown(Reason::CopyGone), None);
        if !is_of(name, path, entry.parent.as_deref()) || self.newest.get(name) != Some(&entry.made)
        {
            return gone;
        }
        let Some(copy) = self.folder.as_ref().map(|f| f.join(name)) else {
            return gone;
        };
        match std::fs::symlink_metadata(&copy) {
            Ok(m) if m.is_file() => {
                let content = Content {
                    payload: Payload::File(copy),
                    fidelity: Fidelity::Exact,
                    sha256: None,
                };
                (State::Held(content), Some(m.permissions().mode() & 0o777))
            }
            Ok(_) => gone,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => gone,
            Err(e) => (State::Unknown(Reason::Unreadable(e.to_string())), None),
        }
    }
}

/// Whether a backup's name is well formed and that of the path: 16 hex digits of its hash, `@v` and a number.
fn is_of(name: &str, path: &Path, parent: Option<&str>) -> bool {
    let Some((hash, version)) = name.split_once("@v") else {
        return false;
    };
    if version.is_empty() || !version.bytes().all(|b| b.is_ascii_digit()) || hash.len() != 16 {
        return false;
    }
    let real = parent.and_then(|p| path.file_name().map(|n| Path::new(p).join(n)));
    hash_of(path) == hash || real.is_some_and(|r| hash_of(&r) == hash)
}

fn hash_of(path: &Path) -> String {
    let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
    hex(digest.get(..8).unwrap_or_default())
}
