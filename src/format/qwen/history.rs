//! Qwen Code's own file history: `~/.qwen/file-history/<session>/<h>@v<N>`, raw bytes, `h` the first 16 hex digits of the
//! SHA-256 of the absolute path; a record tells which copy holds which path as it was when a prompt was sent
//! (`formats/agents.md` §3.4).
//!
//! ```text
//! {…,"type":"system","subtype":"file_history_snapshot","systemPayload":{"snapshots":[{"promptId":"<session>########2",
//!   "timestamp":"…","trackedFileBackups":{"a.py":{"backupFileName":"<h>@v2","version":2,"backupTime":"…"}}}]}}
//! ```
//!
//! A snapshot names no message, so it is of the turn whose prompt was sent nearest to it, and of none where two snapshots
//! claim one. The client uses a version again after a rewind of its own and writes over the copy: a name counts only with
//! the newest time that is told of it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

use super::super::json::Value;
use super::super::record::hex;
use super::super::time;
use super::text;
use crate::model::edit::{Content, Edit, Fidelity, Payload, Reason, Source, State};
use crate::model::session::Session;

/// What a snapshot tells of one path.
#[derive(Debug, Clone)]
struct Copy {
    /// `None`: the path did not exist.
    name: Option<String>,
    made: Option<DateTime<Utc>>,
    /// The client could not make the copy, and names an older one.
    failed: bool,
}

#[derive(Debug)]
struct Snapshot {
    at: DateTime<Utc>,
    copies: BTreeMap<String, Copy>,
}

/// The snapshots of a session.
#[derive(Debug, Default)]
pub(super) struct History {
    folder: Option<PathBuf>,
    /// By prompt id; one that is told again replaces the one before.
    snapshots: BTreeMap<String, Snapshot>,
    /// The newest time that is told of a copy.
    newest: HashMap<String, DateTime<Utc>>,
}

impl History {
    pub(super) fn new(session: &Session) -> Self {
        Self {
            folder: folder(session),
            ..Self::default()
        }
    }

    pub(super) fn is(record: &Value<'_>) -> bool {
        record
            .get("subtype")
            .is_some_and(|s| s.is_str("file_history_snapshot"))
    }

    pub(super) fn take(&mut self, record: &Value<'_>) {
        let payload = record.get("systemPayload");
        let all = payload.and_then(|p| p.get("snapshots").or_else(|| p.get("snapshot")));
        let Some(all) = all else { return };
        if all.is_object() {
            self.snapshot(&all);
        }
        for one in all.items() {
            self.snapshot(&one);
        }
    }

    fn snapshot(&mut self, of: &Value<'_>) {
        let at = text(of, "timestamp").and_then(|t| time(&t));
        let (Some(prompt), Some(at)) = (text(of, "promptId"), at) else {
            return;
        };
        let mut copies = BTreeMap::new();
        for (path, backup) in of.get("trackedFileBackups").iter().flat_map(Value::entries) {
            let copy = Copy {
                name: text(&backup, "backupFileName"),
                made: text(&backup, "backupTime").and_then(|t| time(&t)),
                failed: backup.get("failed").is_some_and(|f| f.is_true()),
            };
            if let (Some(name), Some(made)) = (&copy.name, copy.made) {
                let newest = self.newest.entry(name.clone()).or_insert(made);
                *newest = (*newest).max(made);
            }
            copies.insert(path.into_owned(), copy);
        }
        self.snapshots.insert(prompt, Snapshot { at, copies });
    }

    /// Gives the first edit of each path in a turn the state that the snapshot of the turn tells.
    pub(super) fn attach(
        &self,
        session: &Session,
        edits: &mut [Edit],
        held: &dyn Fn(&Content) -> Option<Vec<u8>>,
    ) {
        let of_turn = self.turns(session);
        let mut seen = HashSet::new();
        for edit in edits {
            let first = seen.insert((edit.turn, edit.path.path.clone()));
            let snapshot = of_turn.get(&edit.turn).filter(|_| first);
            let Some(copy) = snapshot.and_then(|s| in_map(s, session, &edit.path.path)) else {
                continue;
            };
            let root = session.root.as_deref().unwrap_or(Path::new(""));
            let Some((state, mode)) = self.state(copy, &root.join(&edit.path.path)) else {
                continue;
            };
            if agrees(&state, &edit.before, held) {
                edit.before = state;
                edit.source = Source::Native;
                edit.mode = mode;
            }
        }
    }

    /// The snapshot of each turn.
    fn turns(&self, session: &Session) -> HashMap<u32, &Snapshot> {
        let mut claims: HashMap<u32, Vec<&Snapshot>> = HashMap::new();
        for snapshot in self.snapshots.values() {
            let apart = |at: DateTime<Utc>| (at - snapshot.at).abs();
            let sent = session.turns.iter().filter_map(|t| Some((t.no, t.at?)));
            if let Some((no, _)) = sent.min_by_key(|(_, at)| apart(*at)) {
                claims.entry(no).or_default().push(snapshot);
            }
        }
        let alone = |(no, all): (u32, Vec<_>)| match all.as_slice() {
            [one] => Some((no, *one)),
            _ => None,
        };
        claims.into_iter().filter_map(alone).collect()
    }

    /// What the copy tells; `None` where it tells nothing.
    fn state(&self, copy: &Copy, path: &Path) -> Option<(State, Option<u32>)> {
        if copy.failed {
            return None;
        }
        let Some(name) = &copy.name else {
            return Some((State::Absent, None));
        };
        let gone = Some((State::Unknown(Reason::CopyGone), None));
        let newest = self.newest.get(name).copied();
        if !is_of(name, path) || copy.made.is_none() || newest != copy.made {
            return gone;
        }
        let file = self.folder.as_ref()?.join(name);
        match std::fs::symlink_metadata(&file) {
            Ok(m) if m.is_file() => {
                let content = Content {
                    payload: Payload::File(file),
                    fidelity: Fidelity::Exact,
                    sha256: None,
                };
                Some((State::Held(content), Some(m.permissions().mode() & 0o777)))
            }
            Ok(_) => gone,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => gone,
            Err(e) => Some((State::Unknown(Reason::Unreadable(e.to_string())), None)),
        }
    }
}

/// Where a session's copies lie, beside `projects/<folder>/chats/<session>.jsonl`.
pub(super) fn folder(session: &Session) -> Option<PathBuf> {
    let home = session.path().ancestors().nth(4)?;
    // The id is the file's name, so it holds no separator.
    Some(home.join("file-history").join(&session.id))
}

/// Paths below the workspace are relative to it.
fn in_map<'s>(snapshot: &'s Snapshot, session: &Session, path: &Path) -> Option<&'s Copy> {
    let root = session.root.as_deref();
    let below = root.and_then(|r| path.strip_prefix(r).ok());
    let of = |p: &Path| snapshot.copies.get(p.to_str()?);
    below.and_then(of).or_else(|| of(path))
}

/// Whether a state may take the place of what the transcript tells: it is known, and where both are, they are the same
/// text. One that is not, belongs to another moment.
fn agrees(state: &State, told: &State, held: &dyn Fn(&Content) -> Option<Vec<u8>>) -> bool {
    match (state, told) {
        (State::Unknown(Reason::CopyGone), State::Unknown(Reason::NotRecorded)) => true,
        (State::Unknown(_), _) => false,
        (_, State::Unknown(_)) | (State::Absent, State::Absent) => true,
        (State::Held(copy), State::Held(told)) => {
            let (Some(copy), Some(told)) = (held(copy), held(told)) else {
                return false;
            };
            plain(&copy) == plain(&told)
        }
        _ => false,
    }
}

/// A text as the client records it: without a byte order mark, with LF.
fn plain(bytes: &[u8]) -> Vec<u8> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let text = String::from_utf8_lossy(bytes);
    text.replace("\r\n", "\n").into_bytes()
}

/// Whether a name is well formed and that of the path.
fn is_of(name: &str, path: &Path) -> bool {
    let Some((hash, version)) = name.split_once("@v") else {
        return false;
    };
    let digits = !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit());
    let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
    let own = hex(digest.get(..8).unwrap_or_default());
    digits && hash == own
}
