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
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;

use super::blobs;
use super::gaps::{Doubts, Gaps};
use super::text::{Encoding, Inline};
use super::{Trouble, text};
use crate::format::json::{self, Value};
use crate::model::checkpoint::{AfterMark, Checkpoint, Snapshot};
use crate::model::edit::{Content, Fidelity, GapKind, Payload, Reason, RecordedPath, State};

/// The largest record that is read, in bytes: 32 MiB a file is the recorders' own limit.
const LARGEST: u64 = 512 << 20;

/// The newest schema whose meaning is known.
const SCHEMA: u64 = 3;

/// SHA-256 of no bytes.
const EMPTY: [u8; 32] = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24,
    0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// A value of another type than the record may hold there, or a key that is there twice: the record is damaged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wrong;

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
            ],
        )?;
        self.sane(schema, turn)?;
        let expired = flag(expired)?;
        let mut gaps = Gaps::of(gaps)?;
        let gone = expired || self.place.form == Form::Expired;
        let files = self.files(files, &gaps, gone)?;
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
            reading: self,
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

/// What one entry of `files` says, before it is decided what that means.
struct Entry<'a> {
    path: PathBuf,
    content: Option<Value<'a>>,
    encoding: Encoding,
    dest: Option<PathBuf>,
    mode: Option<u32>,
    sha256: Hash,
    blob: Hash,
    expired: bool,
    after: Option<AfterMark>,
}

/// A hash in a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hash {
    /// None, or the empty string that stands for none.
    Unset,
    /// 64 hex digits.
    Set([u8; 32]),
    /// Something else: bytes existed, and no path may be made of this.
    Bad,
}

impl Hash {
    fn of(value: Option<Value<'_>>) -> Self {
        let Some(value) = value.filter(|v| !v.is_null()) else {
            return Self::Unset;
        };
        match value.bytes() {
            Some(b) if b.is_empty() => Self::Unset,
            Some(b) => blobs::digest(&b).map_or(Self::Bad, Self::Set),
            None => Self::Bad,
        }
    }

    fn known(self) -> Option<[u8; 32]> {
        match self {
            Self::Set(d) => Some(d),
            Self::Unset | Self::Bad => None,
        }
    }
}

impl<'a> Entry<'a> {
    fn of(item: &Value<'a>) -> Result<Self, Wrong> {
        let [
            named,
            content,
            encoding,
            dest,
            mode,
            sha,
            blob,
            expired,
            after_sha,
            after_existed,
            after_mode,
        ] = members(
            item,
            [
                "path",
                "content",
                "encoding",
                "dest_path",
                "mode",
                "sha256",
                "blobRef",
                "payloadExpired",
                "afterSha256",
                "afterExisted",
                "afterMode",
            ],
        )?;
        Ok(Self {
            path: path(named)?.ok_or(Wrong)?,
            content,
            encoding: encoding_of(encoding)?,
            dest: path(dest)?,
            mode: permissions(mode),
            sha256: Hash::of(sha),
            blob: Hash::of(blob),
            expired: flag(expired)?,
            after: after(after_sha, after_existed, after_mode),
        })
    }
}

fn encoding_of(value: Option<Value<'_>>) -> Result<Encoding, Wrong> {
    match value.filter(|v| !v.is_null()) {
        None => Ok(Encoding::Unsaid),
        Some(v) => v.i64().map(Encoding::of).ok_or(Wrong),
    }
}

/// Permission bits; 0 stands for "not known". The set-id and sticky bits of a hostile record are dropped (`bugs.md` 52).
fn permissions(value: Option<Value<'_>>) -> Option<u32> {
    let bits = u32::try_from(value?.u64()? & 0o777).ok()?;
    (bits != 0).then_some(bits)
}

fn after(
    sha: Option<Value<'_>>,
    existed: Option<Value<'_>>,
    mode: Option<Value<'_>>,
) -> Option<AfterMark> {
    let existed = existed.map(|v| v.raw() == b"true");
    match (Hash::of(sha), existed) {
        (Hash::Set(d), None | Some(true)) => Some(AfterMark::File(d, permissions(mode))),
        (Hash::Unset, Some(false)) => Some(AfterMark::Absent),
        _ => None,
    }
}

/// All that decides what a path held.
struct Before<'a> {
    entry: &'a Entry<'a>,
    reading: &'a Reading<'a>,
    /// The payload file of the newest generation, where there is one.
    payload: Result<Option<PathBuf>, Reason>,
    /// Why a gap of the record puts the path in doubt.
    doubt: Option<Reason>,
    /// The record, or the entry, says that its payload was pruned.
    expired: bool,
}

impl Before<'_> {
    fn state(&self) -> State {
        let entry = self.entry;
        if entry.sha256 == Hash::Bad || entry.blob == Hash::Bad || self.content_is_wrong() {
            return State::Unknown(Reason::RecordDamaged);
        }
        if let Some(reason) = self.doubt.clone().filter(|_| self.says_empty()) {
            return State::Unknown(reason);
        }
        let stored = match self.stored() {
            Ok(content) => return State::Held(content),
            Err(reason) => reason,
        };
        if let Some(state) = self.inline() {
            return state;
        }
        if self.expired {
            return State::Unknown(Reason::Expired);
        }
        if let Some(reason) = stored {
            return State::Unknown(reason);
        }
        self.null()
    }

    fn content_is_wrong(&self) -> bool {
        self.entry
            .content
            .is_some_and(|v| !v.is_string() && !v.is_null())
    }

    /// A recorder that could not read a file has written it down as empty, with the hash of nothing.
    fn says_empty(&self) -> bool {
        self.entry.content.is_some_and(|v| v.raw() == b"\"\"")
            || self.entry.sha256 == Hash::Set(EMPTY)
            || self.entry.blob == Hash::Set(EMPTY)
    }

    /// The content stored outside of the record; an error without a reason when the record names none.
    fn stored(&self) -> Result<Content, Option<Reason>> {
        let sha256 = self.entry.sha256.known();
        let blob = self.entry.blob.known();
        let named = sha256.or(blob);
        let held = |payload, sha256| Content {
            payload,
            fidelity: Fidelity::Exact,
            sha256,
        };
        match &self.payload {
            Ok(Some(file)) => return Ok(held(Payload::File(file.clone()), named)),
            Ok(None) => {}
            Err(reason) => return Err(Some(reason.clone())),
        }
        if blob.is_some() && sha256.is_some() && blob != sha256 {
            return Err(Some(Reason::CopyDamaged));
        }
        let Some(digest) = named else {
            return Err(None);
        };
        blobs::find(self.reading.place.folder, &digest)
            .map(|payload| held(payload, Some(digest)))
            .map_err(Some)
    }

    fn inline(&self) -> Option<State> {
        let token = self.entry.content.filter(Value::is_string)?;
        let inline = text::Inline {
            token: token.raw(),
            file: self.reading.place.file,
            at: self.reading.at + token.start as u64,
            encoding: self.entry.encoding,
            sha256: self.entry.sha256.known().or(self.entry.blob.known()),
        };
        Some(Inline::state(&inline))
    }

    /// Nothing in the entry speaks of bytes.
    fn null(&self) -> State {
        // Every recorder writes the key; an entry without it was not written by one that meant "absent".
        if self.entry.content.is_none() || self.entry.dest.is_some() {
            return State::Unknown(Reason::NotRecorded);
        }
        match &self.doubt {
            Some(reason) => State::Unknown(reason.clone()),
            None => State::Absent,
        }
    }
}

/// The members of these names, whatever their case; a name that is there twice has no meaning.
pub(super) fn members<'a, const N: usize>(
    object: &Value<'a>,
    names: [&str; N],
) -> Result<[Option<Value<'a>>; N], Wrong> {
    if !object.is_object() {
        return Err(Wrong);
    }
    let mut found = [None; N];
    for (key, value) in object.entries() {
        let slot = names.iter().zip(found.iter_mut());
        if let Some((_, slot)) = slot.into_iter().find(|(name, _)| same_key(name, &key))
            && slot.replace(value).is_some()
        {
            return Err(Wrong);
        }
    }
    Ok(found)
}

/// Go folds the Kelvin sign and the long s too; a `ſha256` that was overlooked would turn a content into an absence.
fn same_key(name: &str, key: &str) -> bool {
    let fold = |c: char| match c {
        '\u{212A}' => 'k',
        '\u{17F}' => 's',
        c => c.to_ascii_lowercase(),
    };
    key.len() <= name.len() * 3 && name.chars().map(fold).eq(key.chars().map(fold))
}

/// The text of a string; nothing for null.
pub(super) fn string(value: Option<Value<'_>>) -> Result<Option<String>, Wrong> {
    match value.filter(|v| !v.is_null()) {
        None => Ok(None),
        Some(v) => v.text().map(|t| Some(t.into_owned())).ok_or(Wrong),
    }
}

/// A path; nothing for null and the empty string.
pub(super) fn path(value: Option<Value<'_>>) -> Result<Option<PathBuf>, Wrong> {
    let Some(value) = value.filter(|v| !v.is_null()) else {
        return Ok(None);
    };
    let bytes = json::string(value.raw(), json::Broken::Refuse).ok_or(Wrong)?;
    let some = !bytes.is_empty();
    Ok(some.then(|| PathBuf::from(OsString::from_vec(bytes.into_owned()))))
}

fn flag(value: Option<Value<'_>>) -> Result<bool, Wrong> {
    match value.map(|v| v.raw()) {
        None | Some(b"false" | b"null") => Ok(false),
        Some(b"true") => Ok(true),
        Some(_) => Err(Wrong),
    }
}
