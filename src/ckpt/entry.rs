//! One entry of a record's `files`: what it says that a path held. The rule of `record` is kept here.

use std::path::{Path, PathBuf};

use super::blobs;
use super::fields::{Wrong, flag, members, path, same_key};
use super::text::{Encoding, Inline};
use crate::format::json::Value;
use crate::model::checkpoint::AfterMark;
use crate::model::edit::{Content, Fidelity, Payload, Reason, State};

/// SHA-256 of no bytes.
const EMPTY: [u8; 32] = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24,
    0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// What one entry of `files` says, before it is decided what that means.
pub(super) struct Entry<'a> {
    pub(super) path: PathBuf,
    content: Option<Value<'a>>,
    encoding: Encoding,
    pub(super) dest: Option<PathBuf>,
    pub(super) mode: Option<u32>,
    sha256: Hash,
    blob: Hash,
    pub(super) expired: bool,
    pub(super) after: Option<AfterMark>,
    /// A key that is not known holds a hash: bytes that a later recorder put elsewhere.
    other_hash: bool,
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

/// The keys of an entry that are known.
const ENTRY: [&str; 11] = [
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
];

impl<'a> Entry<'a> {
    /// Reads an entry.
    pub(super) fn of(item: &Value<'a>) -> Result<Self, Wrong> {
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
        ] = members(item, ENTRY)?;
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
            other_hash: item
                .entries()
                .any(|(key, value)| is_other_hash(&key, &value)),
        })
    }
}

/// Whether a member that is not known may speak of the bytes before. Hashes of what was left behind do not.
fn is_other_hash(key: &str, value: &Value<'_>) -> bool {
    let after = key
        .get(..5)
        .is_some_and(|k| k.eq_ignore_ascii_case("after"));
    !after
        && !ENTRY.iter().any(|name| same_key(name, key))
        && matches!(Hash::of(Some(*value)), Hash::Set(_))
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
pub(super) struct Before<'a> {
    pub(super) entry: &'a Entry<'a>,
    /// The sidecar.
    pub(super) folder: &'a Path,
    /// The record's file.
    pub(super) file: &'a Path,
    /// Offset in that file of the bytes that were scanned.
    pub(super) at: u64,
    /// The payload file of the newest generation, where there is one.
    pub(super) payload: Result<Option<PathBuf>, Reason>,
    /// Why a gap of the record puts the path in doubt.
    pub(super) doubt: Option<Reason>,
    /// The record, or the entry, says that its payload was pruned.
    pub(super) expired: bool,
}

impl Before<'_> {
    /// What the path held.
    pub(super) fn state(&self) -> State {
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
        blobs::find(self.folder, &digest)
            .map(|payload| held(payload, Some(digest)))
            .map_err(Some)
    }

    fn inline(&self) -> Option<State> {
        let token = self.entry.content.filter(Value::is_string)?;
        let inline = Inline {
            token: token.raw(),
            file: self.file,
            at: self.at + token.start as u64,
            encoding: self.entry.encoding,
            sha256: self.entry.sha256.known().or(self.entry.blob.known()),
        };
        Some(Inline::state(&inline))
    }

    /// Nothing in the entry speaks of bytes.
    fn null(&self) -> State {
        // Every recorder writes the key; an entry without it was not written by one that meant "absent".
        if self.entry.content.is_none() || self.entry.dest.is_some() || self.entry.other_hash {
            return State::Unknown(Reason::NotRecorded);
        }
        match &self.doubt {
            Some(reason) => State::Unknown(reason.clone()),
            None => State::Absent,
        }
    }
}
