//! One checkpoint record: the bytes of a `turn-<N>.json` or `turns/<N>/meta.json` become a [`Checkpoint`].
//!
//! ```text
//! {"turn":1,"time":"…","prompt":"p","msgIndex":5,"files":[{"path":"a.rs","content":"x\n","encoding":0},
//!                                                         {"path":"new.rs","content":null}]}
//! ```
//!
//! The rule that everything here serves: a path is **absent** only when its entry is well formed, has `content: null`, and
//! nothing else speaks of bytes: no hash, no blob, no payload file, no expiry, no rename, no gap that names the path.
//! Anything short of that is unknown, because a wrong "absent" deletes a file. A record that is no whole, valid JSON
//! object is damaged as a whole.
//!
//! Keys are matched as Go does, whatever their case; unknown keys are left alone. Paths are bytes: a backslash stays one,
//! since on a system where it is no separator, taking it for one would name another file.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;

use super::Trouble;
use super::blobs;
use super::entry::{Before, Entry};
use super::fields::{Wrong, flag, members, path, string};
use super::gaps::{Doubts, Gaps};
use crate::format::json::Value;
use crate::model::checkpoint::{Checkpoint, Snapshot, Tree};
use crate::model::edit::{GapKind, Reason, RecordedPath, State};

/// The largest record that is read, in bytes: 32 MiB a file is the recorders' own limit.
const LARGEST: u64 = 512 << 20;

/// The newest schema whose meaning is known.
const SCHEMA: u64 = 3;

/// In which place of a sidecar a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `turn-<N>.json`.
    Root,
    /// `expired/turn-<N>.json`: what null stood for is gone.
    Expired,
    /// `turns/<N>/meta.json`, with payloads in `files/` beside it.
    Turns,
}

/// Where a record stands.
#[derive(Debug)]
pub(super) struct Place<'a> {
    /// The sidecar.
    pub(super) folder: &'a Path,
    /// The record's file.
    pub(super) file: &'a Path,
    /// The turn that its name says.
    pub(super) turn: u32,
    /// What kind of place.
    pub(super) form: Form,
}

/// A record that could be read.
#[derive(Debug)]
pub(super) struct Record {
    /// What it says.
    pub(super) checkpoint: Checkpoint,
    /// It only holds the number for older readers; the checkpoint itself is, or was, elsewhere.
    pub(super) marker: bool,
}

/// The result of looking at one record.
#[derive(Debug)]
pub(super) enum Loaded {
    /// There is none.
    Gone,
    /// It is there and cannot be used.
    Damaged(Reason),
    /// It was read.
    Whole(Box<Record>),
}

/// The record of a turn in the sidecar's own folder.
pub(super) fn root_file(folder: &Path, turn: u32) -> PathBuf {
    folder.join(format!("turn-{turn}.json"))
}

/// The turns that have a `turn-<N>.json` in a folder, in order.
pub(super) fn numbers(folder: &Path) -> Result<Vec<u32>, Trouble> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(Trouble::io(folder))? {
        let name = entry.map_err(Trouble::io(folder))?.file_name();
        out.extend(name.to_str().and_then(number));
    }
    out.sort_unstable();
    Ok(out)
}

/// The turn in a record's name; `None` for a name that no recorder gives.
fn number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("turn-")?.strip_suffix(".json")?;
    let number: u32 = digits.parse().ok()?;
    (number.to_string() == digits).then_some(number)
}

/// Reads one record.
pub(super) fn load(place: &Place<'_>) -> Loaded {
    match bytes(place.file) {
        Ok(bytes) => parse(&bytes, place).map_or(Loaded::Damaged(Reason::RecordDamaged), |r| {
            Loaded::Whole(Box::new(r))
        }),
        Err(Reason::CopyGone) => Loaded::Gone,
        Err(reason) => Loaded::Damaged(reason),
    }
}

fn bytes(file: &Path) -> Result<Vec<u8>, Reason> {
    use std::io::Read as _;
    blobs::plain_file(file)?;
    let unreadable = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => Reason::CopyGone,
        _ => Reason::Unreadable(e.to_string()),
    };
    let mut out = Vec::new();
    let input = std::fs::File::open(file).map_err(unreadable)?;
    input
        .take(LARGEST + 1)
        .read_to_end(&mut out)
        .map_err(unreadable)?;
    if out.len() as u64 > LARGEST {
        return Err(Reason::TooLarge);
    }
    Ok(out)
}

/// Reads the bytes of a record.
pub(super) fn parse(bytes: &[u8], place: &Place<'_>) -> Result<Record, Wrong> {
    let body = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    // The scanner below judges nothing that it skips; this does, so half a record is never taken for a whole one.
    serde_json::from_slice::<IgnoredAny>(body).map_err(|_| Wrong)?;
    let object = Value::of(body).filter(Value::is_object).ok_or(Wrong)?;
    let at = (bytes.len() - body.len()) as u64;
    Reading { place, at }.record(&object)
}

/// One record while it is read.
struct Reading<'a> {
    place: &'a Place<'a>,
    /// Offset in the file of the bytes that are scanned.
    at: u64,
}

impl Reading<'_> {
    fn record(&self, object: &Value<'_>) -> Result<Record, Wrong> {
        let [
            schema,
            turn,
            time,
            prompt,
            index,
            session,
            files,
            coverage,
            gaps,
            expired,
            message,
            root,
            git,
        ] = members(
            object,
            [
                "schemaVersion",
                "turn",
                "time",
                "prompt",
                "msgIndex",
                "sessionId",
                "files",
                "coverage",
                "coverageGaps",
                "expiredFilePayload",
                "messageId",
                "root",
                "git",
            ],
        )?;
        self.sane(schema, turn)?;
        let expired = flag(expired)?;
        let mut gaps = Gaps::of(gaps)?;
        let gone = expired || self.place.form == Form::Expired;
        let mut files = self.files(files, &gaps, gone)?;
        // Ours only: the folder that relative paths are relative to.
        if let Some(root) = path(root)?.filter(|r| r.is_absolute()) {
            for file in &mut files {
                file.path.base = Some(root.clone());
            }
        }
        let marker = expired && files.is_empty();
        if !marker {
            say_coverage(coverage, &mut gaps)?;
        }
        let checkpoint = Checkpoint {
            turn: self.place.turn,
            time: string(time)?.and_then(|t| crate::format::time(&t)),
            prompt: string(prompt)?.unwrap_or_default(),
            message: string(message)?.filter(|s| !s.is_empty()),
            msg_index: index.and_then(|v| v.u64()),
            session: string(session)?.filter(|s| !s.is_empty()),
            files,
            gaps: gaps.told,
            tree: tree(git)?,
            damaged: None,
        };
        Ok(Record { checkpoint, marker })
    }

    /// A schema that is not known may give null another meaning; a turn that is not that of the name belongs elsewhere.
    /// A folder's name counts more than the number inside.
    fn sane(&self, schema: Option<Value<'_>>, turn: Option<Value<'_>>) -> Result<(), Wrong> {
        let schema = schema.filter(|v| !v.is_null());
        if schema.is_some_and(|v| v.u64().is_none_or(|n| n > SCHEMA)) {
            return Err(Wrong);
        }
        let own = turn.filter(|v| !v.is_null()).map(|v| v.u64());
        match own {
            Some(n) if self.place.form != Form::Turns && n != Some(self.place.turn.into()) => {
                Err(Wrong)
            }
            _ => Ok(()),
        }
    }

    fn files(
        &self,
        value: Option<Value<'_>>,
        gaps: &Gaps,
        expired: bool,
    ) -> Result<Vec<Snapshot>, Wrong> {
        let doubts = gaps.doubts();
        let mut out = Files::default();
        if let Some(array) = value.filter(|v| !v.is_null()) {
            if !array.is_array() {
                return Err(Wrong);
            }
            for (index, item) in array.items().enumerate() {
                self.entry(&item, index, &doubts, expired, &mut out)?;
            }
        }
        // A path that was not captured has no entry: without one, a later snapshot would stand in for it.
        for (path, reason) in &gaps.uncaptured {
            out.unless_there(path, reason);
        }
        for path in std::mem::take(&mut out.moved) {
            out.unless_there(&path, &Reason::NotRecorded);
        }
        Ok(out.list)
    }

    fn entry(
        &self,
        item: &Value<'_>,
        index: usize,
        doubts: &Doubts,
        expired: bool,
        out: &mut Files,
    ) -> Result<(), Wrong> {
        if !item.is_object() {
            return Err(Wrong);
        }
        let entry = Entry::of(item)?;
        let payload = (self.place.form == Form::Turns).then(|| self.payload(index));
        let before = Before {
            entry: &entry,
            folder: self.place.folder,
            file: self.place.file,
            at: self.at,
            payload: where_there(payload),
            doubt: doubts.of(&entry.path),
            expired: expired || entry.expired,
        }
        .state();
        out.first_touch(Snapshot {
            path: RecordedPath::new(entry.path.clone()),
            before,
            mode: entry.mode,
            after: entry.after.clone(),
        });
        if let Some(dest) = &entry.dest {
            // The file went there, so what lies there now may be the only copy of it.
            out.moved.push(dest.clone());
        }
        Ok(())
    }

    /// The payload file of the entry with that index, where there is one.
    fn payload(&self, index: usize) -> Result<PathBuf, Reason> {
        let folder = self.place.file.parent().unwrap_or(Path::new(""));
        let file = folder.join("files").join(format!("{index:04}.before"));
        blobs::plain_file(&file).map(|()| file)
    }
}

/// The commits of git mode: `"git":{"top":"/w","begin":"<commit>","end":"<commit>"}`.
fn tree(git: Option<Value<'_>>) -> Result<Option<Tree>, Wrong> {
    let Some(git) = git.filter(|v| !v.is_null()) else {
        return Ok(None);
    };
    let [top, begin, end] = members(&git, ["top", "begin", "end"])?;
    let commit = |v| -> Result<Option<String>, Wrong> {
        let hex = |s: &String| s.len() >= 40 && s.bytes().all(|b| b.is_ascii_hexdigit());
        Ok(string(v)?.filter(hex))
    };
    let top = path(top)?.filter(|t| t.is_absolute());
    let (begin, end) = (commit(begin)?, commit(end)?);
    Ok(top.zip(begin).map(|(top, begin)| Tree { top, begin, end }))
}

/// Turns "there is none" into `None`, and keeps every other reason.
fn where_there(payload: Option<Result<PathBuf, Reason>>) -> Result<Option<PathBuf>, Reason> {
    match payload {
        None | Some(Err(Reason::CopyGone)) => Ok(None),
        Some(Ok(file)) => Ok(Some(file)),
        Some(Err(reason)) => Err(reason),
    }
}

/// Says what a record's own word for its coverage means, where its gaps do not.
fn say_coverage(word: Option<Value<'_>>, gaps: &mut Gaps) -> Result<(), Wrong> {
    match string(word)?.as_deref() {
        Some("none") => gaps.told.push((
            GapKind::Checkpoint,
            "no file snapshots were kept for this turn".to_owned(),
        )),
        Some("partial") if gaps.told.is_empty() => gaps.told.push((
            GapKind::Capture,
            "the recorder calls its coverage partial, without saying why".to_owned(),
        )),
        _ => {}
    }
    Ok(())
}

/// The files of a record: the first touch of a path counts, its last after-mark too.
#[derive(Default)]
struct Files {
    list: Vec<Snapshot>,
    known: HashMap<PathBuf, usize>,
    moved: Vec<PathBuf>,
}

impl Files {
    fn first_touch(&mut self, snapshot: Snapshot) {
        let known = self.known.get(&snapshot.path.path).copied();
        if let Some(first) = known.and_then(|i| self.list.get_mut(i)) {
            if snapshot.after.is_some() {
                first.after = snapshot.after;
            }
            return;
        }
        self.known
            .insert(snapshot.path.path.clone(), self.list.len());
        self.list.push(snapshot);
    }

    fn unless_there(&mut self, path: &Path, reason: &Reason) {
        if self.known.contains_key(path) {
            return;
        }
        self.first_touch(Snapshot {
            path: RecordedPath::new(path),
            before: State::Unknown(reason.clone()),
            mode: None,
            after: None,
        });
    }
}
