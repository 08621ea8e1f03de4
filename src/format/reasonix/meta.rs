//! `<session>.jsonl.meta`: what Reasonix keeps about a session beside it.
//!
//! ```text
//! {
//!   "id": "20260610-…", "workspace_root": "/home/a/x", "revision": 7, "content_digest": "…", "turns": 3, "preview": "add …"
//! }
//! ```
//!
//! Its members are copied as they stand; only those that a shorter conversation makes wrong are left out.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::log::is_json;
use super::names;
use crate::format::Trouble;
use crate::format::json::Value;

/// A larger one is not of Reasonix.
const LARGEST: u64 = 4 << 20;

/// Derived from the messages, or about a turn that was at work: Reasonix counts them again when they are missing.
const STALE: [&str; 6] = [
    "revision",
    "content_digest",
    "schema_version",
    "turns",
    "preview",
    "in_flight_turn",
];

/// The path of the file.
pub(super) fn path(session: &Path) -> PathBuf {
    names::with(session, ".meta")
}

/// Reads it; `None` when there is none, or nothing in it.
///
/// # Errors
/// It cannot be read.
pub(super) fn read(session: &Path) -> io::Result<Option<Vec<u8>>> {
    let path = path(session);
    match std::fs::symlink_metadata(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
        Ok(m) if !m.is_file() => return Err(io::Error::other("not a plain file")),
        Ok(m) if m.len() > LARGEST => return Err(io::ErrorKind::FileTooLarge.into()),
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    std::fs::File::open(&path)?
        .take(LARGEST)
        .read_to_end(&mut bytes)?;
    let blank = bytes.iter().all(|b| *b == 0 || b.is_ascii_whitespace());
    Ok((!blank).then_some(bytes))
}

/// The object in the bytes, when they are JSON in UTF-8.
pub(super) fn object(bytes: &[u8]) -> Option<Value<'_>> {
    let body = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let value = Value::of(body).filter(|_| is_json(body))?;
    value.is_object().then_some(value)
}

/// The revision in the bytes; 0 when there is none.
pub(super) fn revision(bytes: &[u8]) -> Option<u64> {
    match object(bytes)?.get("revision") {
        None => Some(0),
        Some(v) => v.u64(),
    }
}

/// The bytes for a conversation that was cut.
///
/// # Errors
/// It is not what Reasonix writes, so nothing is known of what may be left out.
pub(super) fn after_cut(bytes: &[u8], revision: u64) -> Result<Vec<u8>, Trouble> {
    let refused = || Trouble::Refused {
        why: "the session's `.meta` file is not JSON that Reasonix writes".to_owned(),
    };
    let object = object(bytes).ok_or_else(refused)?;
    let mut members = vec![format!("  \"revision\": {revision}").into_bytes()];
    for (key, value) in object.entries() {
        let lower = key.to_ascii_lowercase();
        if STALE.contains(&&*lower) || lower.starts_with("listing_") {
            continue;
        }
        if key.contains(char::REPLACEMENT_CHARACTER) {
            return Err(refused());
        }
        let key = serde_json::to_string(&*key).map_err(|_| refused())?;
        members.push([b"  ", key.as_bytes(), b": ", value.raw()].concat());
    }
    Ok([b"{\n", &*members.join(&b",\n"[..]), b"\n}\n"].concat())
}
