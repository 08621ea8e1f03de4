//! The copies that Copilot keeps: `rewind-file-snapshots/index.json` and `backups/<sha256>` beside the events.
//!
//! ```text
//! {"schema":1,"snapshots":[{"eventId":"<user.message>","files":{"<key>":{"path":"/w/a",
//!   "preimage":{"kind":"content","contentHash":"…","backupFile":"…","mode":33188},
//!   "postimage":{"kind":"absent"}}}}]}
//! ```
//!
//! A snapshot tells of a turn what each file was when it began and what it was when it ended, files that a shell command
//! made or removed included. Of what it was at the end only the hash is sure: the bytes are kept when a later turn takes
//! the same file up.

use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::super::Trouble;
use super::super::json::Value;
use super::super::record::{plain, sha256, text, unhex};
use crate::model::edit::{
    Change, Content, Edit, Fidelity, Gap, GapKind, Payload, Reason, RecordedPath, Source, State,
};
use crate::model::session::Session;

/// An index longer than this is not read.
const LONGEST: u64 = 256 << 20;

/// One file in one turn.
struct File {
    path: PathBuf,
    before: State,
    mode: Option<u32>,
    after: State,
}

/// The snapshots of the turns that are read: turn → files.
#[derive(Default)]
pub(super) struct Snapshots {
    turns: BTreeMap<u32, Vec<File>>,
    gaps: Vec<Gap>,
}

/// Reads the snapshots of the turns from `from` on. Without an index there are none.
pub(super) fn read(session: &Session, from: u32) -> Result<Snapshots, Trouble> {
    let Some(folder) = session
        .path()
        .parent()
        .map(|p| p.join("rewind-file-snapshots"))
    else {
        return Ok(Snapshots::default());
    };
    let path = folder.join("index.json");
    let mut bytes = Vec::new();
    match std::fs::File::open(&path) {
        Ok(file) => file.take(LONGEST + 1).read_to_end(&mut bytes),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Snapshots::default()),
        Err(e) => Err(e),
    }
    .map_err(Trouble::io(&path))?;
    let mut out = Snapshots::default();
    let index = Value::of(&bytes).filter(|i| {
        bytes.len() as u64 <= LONGEST && i.get("schema").and_then(|s| s.u64()) == Some(1)
    });
    let Some(index) = index else {
        out.gaps.push(Gap {
            turn: from,
            kind: GapKind::Checkpoint,
            detail: format!("`{}` is none that we know", path.display()),
        });
        return Ok(out);
    };
    let turns: BTreeMap<&str, u32> = session
        .turns
        .iter()
        .filter(|t| t.no >= from)
        .map(|t| (t.key.as_str(), t.no))
        .collect();
    for snapshot in index.get("snapshots").iter().flat_map(Value::items) {
        let turn = text(&snapshot, "eventId").and_then(|id| turns.get(id.as_str()).copied());
        if let (Some(turn), Some(files)) = (turn, snapshot.get("files")) {
            out.files(turn, &files, &folder.join("backups"));
        }
    }
    Ok(out)
}

impl Snapshots {
    fn files(&mut self, turn: u32, files: &Value<'_>, backups: &Path) {
        for (_, file) in files.entries() {
            let Some(path) = path_of(&file) else {
                self.gaps.push(Gap {
                    turn,
                    kind: GapKind::Capture,
                    detail: "a snapshot without a usable path".to_owned(),
                });
                continue;
            };
            let before = present(image(file.get("preimage").as_ref(), backups));
            let mut after = image(file.get("postimage").as_ref(), backups);
            // With its copy gone the edit may still be undone on the bytes that are there; a hash alone would bar it.
            if matches!(before, State::Unknown(_))
                && let State::Held(content) = &after
                && let Payload::File(copy) = &content.payload
                && !copy.is_file()
            {
                after = State::Unknown(Reason::NotRecorded);
            }
            let mode = file
                .get("preimage")
                .and_then(|p| p.get("mode")?.u64())
                .and_then(|m| u32::try_from(m & 0o777).ok());
            self.turns.entry(turn).or_default().push(File {
                path,
                before,
                mode,
                after,
            });
        }
    }

    /// Gives the first and the last edit of each path in a turn the states that the snapshots tell, and adds what
    /// something other than an edit tool changed.
    pub(super) fn attach(self, edits: &mut Vec<Edit>, gaps: &mut Vec<Gap>, root: Option<&Path>) {
        let full = |p: &Path| root.map_or_else(|| p.to_path_buf(), |r| r.join(p));
        for (turn, files) in self.turns {
            let mut seen = HashSet::new();
            for file in files {
                if !seen.insert(full(&file.path)) {
                    continue;
                }
                let wanted = full(&file.path);
                let of_path: Vec<usize> = (0..)
                    .zip(edits.iter())
                    .filter(|(_, e)| e.turn == turn && full(&e.path.path) == wanted)
                    .map(|(n, _)| n)
                    .collect();
                match (of_path.first(), of_path.last()) {
                    (Some(first), Some(last)) => told(edits, *first, *last, file),
                    _ => other(edits, turn, file),
                }
            }
        }
        gaps.extend(self.gaps);
        edits.sort_by_key(|e| e.turn);
    }
}

fn told(edits: &mut [Edit], first: usize, last: usize, file: File) {
    if let Some(edit) = edits.get_mut(first) {
        if let (State::Unknown(reason), State::Unknown(old)) = (&file.before, &edit.before) {
            let known = *reason != Reason::NotRecorded;
            edit.before = State::Unknown(if known { reason.clone() } else { old.clone() });
        } else if !matches!(file.before, State::Unknown(_)) {
            edit.before = file.before;
            edit.source = Source::Native;
            edit.mode = file.mode;
        }
    }
    if let Some(edit) = edits.get_mut(last)
        && !matches!(file.after, State::Unknown(_))
    {
        edit.after = file.after;
    }
}

/// A change that no edit tool made. Where the two images are one, nothing changed.
fn other(edits: &mut Vec<Edit>, turn: u32, file: File) {
    let same = match (&file.before, &file.after) {
        (State::Absent, State::Absent) => true,
        (State::Held(a), State::Held(b)) => a.sha256 == b.sha256,
        _ => false,
    };
    if same {
        return;
    }
    edits.push(Edit {
        turn,
        call: None,
        path: RecordedPath::new(file.path),
        before: file.before,
        source: Source::Native,
        mode: file.mode,
        change: Change::Opaque,
        after: file.after,
        during: None,
    });
}

/// A name that is no text is told by its bytes.
fn path_of(file: &Value<'_>) -> Option<PathBuf> {
    let path = text(file, "path").filter(|p| !p.is_empty())?;
    if !path.contains('\u{fffd}') {
        return Some(PathBuf::from(path));
    }
    let encoded = ["preimage", "postimage"]
        .iter()
        .find_map(|i| file.get(i)?.get("encodedPath"))?;
    let unix = encoded.get("encoding")?.is_str("unix-bytes");
    let bytes = unix.then(|| unhex(&text(&encoded, "data")?)).flatten()?;
    Some(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
}

fn image(image: Option<&Value<'_>>, backups: &Path) -> State {
    let unknown = State::Unknown(Reason::NotRecorded);
    let Some(image) = image else {
        return unknown;
    };
    match text(image, "kind").as_deref() {
        Some("absent") => State::Absent,
        Some("content") => {
            let hash = text(image, "contentHash").filter(|h| sha256(h).is_some());
            // A name in a record is never followed out of its folder.
            let name = text(image, "backupFile")
                .or_else(|| hash.clone())
                .filter(|n| plain(n));
            let (Some(hash), Some(name)) = (hash, name) else {
                return unknown;
            };
            State::Held(Content {
                payload: Payload::File(backups.join(name)),
                fidelity: Fidelity::Exact,
                sha256: sha256(&hash),
            })
        }
        _ => unknown,
    }
}

/// A copy that is named and gone is unknown, never a neighbour's (`bugs.md` 21).
fn present(state: State) -> State {
    let State::Held(content) = &state else {
        return state;
    };
    let Payload::File(copy) = &content.payload else {
        return state;
    };
    match std::fs::symlink_metadata(copy) {
        Ok(m) if m.is_file() => state,
        Ok(_) => State::Unknown(Reason::CopyGone),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => State::Unknown(Reason::CopyGone),
        Err(e) => State::Unknown(Reason::Unreadable(e.to_string())),
    }
}
