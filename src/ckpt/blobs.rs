//! Blobs: contents stored under the SHA-256 of their bytes, raw or compressed.
//!
//! ```text
//! blobs/3b/64/3b64…        raw bytes
//! blobs/3b/64/3b64….zst    the same bytes, zstd
//! ```
//!
//! The name is the only thing that says what the bytes must be, so it is checked whenever they are used. A name that
//! is not exactly 64 hex digits is never turned into a path.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::format::{json, lines};
use crate::model::edit::{Content, Payload, Reason};

/// Reads a SHA-256 in hex; `None` for anything but 64 hex digits.
#[must_use]
pub fn digest(hex: &[u8]) -> Option<[u8; 32]> {
    if hex.len() != 64 {
        return None;
    }
    let mut out = [0; 32];
    for (byte, pair) in out.iter_mut().zip(hex.chunks_exact(2)) {
        let high = char::from(*pair.first()?).to_digit(16)?;
        let low = char::from(*pair.get(1)?).to_digit(16)?;
        *byte = u8::try_from(high * 16 + low).ok()?;
    }
    Some(out)
}

/// Writes a SHA-256 in hex, as blobs are named.
#[must_use]
pub fn hex(digest: &[u8; 32]) -> String {
    use std::fmt::Write as _;
    digest.iter().fold(String::with_capacity(64), |mut s, b| {
        // Writing to a String cannot fail.
        let _ = write!(s, "{b:02x}");
        s
    })
}

/// SHA-256 of bytes at hand.
#[must_use]
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Where the blob lies in a sidecar when it is stored raw.
#[must_use]
pub fn place(sidecar: &Path, digest: &[u8; 32]) -> PathBuf {
    let name = hex(digest);
    let (a, rest) = name.split_at(2);
    let (b, _) = rest.split_at(2);
    sidecar.join("blobs").join(a).join(b).join(&name)
}

/// Finds a blob, by looking at its name only.
///
/// # Errors
/// [`Reason::CopyGone`] when there is none; [`Reason::Unreadable`] when it cannot be looked at.
pub fn find(sidecar: &Path, digest: &[u8; 32]) -> Result<Payload, Reason> {
    let raw = place(sidecar, digest);
    match plain_file(&raw) {
        Err(Reason::CopyGone) => {}
        found => return found.map(|()| Payload::File(raw)),
    }
    let mut zst = raw.into_os_string();
    zst.push(".zst");
    let zst = PathBuf::from(zst);
    plain_file(&zst).map(|()| Payload::Zst(zst))
}

/// Whether a plain file stands there. A link is refused (it may lead anywhere), and so is a FIFO, whose opening
/// would wait for ever.
///
/// # Errors
/// As [`find`].
pub(super) fn plain_file(path: &Path) -> Result<(), Reason> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_file() => Ok(()),
        Ok(_) => Err(Reason::Unreadable("not a plain file".to_owned())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Err(Reason::CopyGone),
        Err(e) => Err(Reason::Unreadable(e.to_string())),
    }
}

/// Reads a content of a sidecar, up to `limit` bytes, and checks it against the hash that the record names.
///
/// # Errors
/// Why its bytes cannot be had.
pub fn read(content: &Content, limit: u64) -> Result<Vec<u8>, Reason> {
    let bytes = match &content.payload {
        Payload::Bytes(b) => b.clone(),
        Payload::File(path) => whole(path, limit, Packing::Raw)?,
        Payload::Zst(path) => whole(path, limit, Packing::Zstd)?,
        Payload::TokenIn(path, start, end) => token(path, *start, *end)?,
        // Places in a session file: no sidecar names them.
        Payload::Token(_) | Payload::Lines(_) => return Err(Reason::NotRecorded),
    };
    if bytes.len() as u64 > limit {
        return Err(Reason::TooLarge);
    }
    match content.sha256 {
        Some(named) if named != sha256(&bytes) => Err(Reason::CopyDamaged),
        _ => Ok(bytes),
    }
}

#[derive(Clone, Copy)]
enum Packing {
    Raw,
    Zstd,
}

fn whole(path: &Path, limit: u64, packing: Packing) -> Result<Vec<u8>, Reason> {
    plain_file(path)?;
    let damaged = |e: io::Error| match packing {
        Packing::Raw => Reason::Unreadable(e.to_string()),
        Packing::Zstd => Reason::CopyDamaged,
    };
    let file = std::fs::File::open(path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => Reason::CopyGone,
        _ => Reason::Unreadable(e.to_string()),
    })?;
    let mut input: Box<dyn Read> = match packing {
        Packing::Raw => Box::new(file),
        Packing::Zstd => Box::new(zstd::stream::read::Decoder::new(file).map_err(damaged)?),
    };
    let mut out = Vec::new();
    input
        .by_ref()
        .take(limit.saturating_add(1))
        .read_to_end(&mut out)
        .map_err(damaged)?;
    Ok(out)
}

fn token(path: &Path, start: u64, end: u64) -> Result<Vec<u8>, Reason> {
    plain_file(path)?;
    let token = lines::read_span(path, start, end).map_err(|e| match e.kind() {
        io::ErrorKind::UnexpectedEof => Reason::CopyDamaged,
        _ => Reason::Unreadable(e.to_string()),
    })?;
    json::string(&token, json::Broken::Refuse)
        .map(std::borrow::Cow::into_owned)
        .ok_or(Reason::CopyDamaged)
}
