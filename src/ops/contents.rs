//! Loads the contents that a record names: as a source for staging, or whole where an edit is to be undone.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::plan::Bytes;
use crate::format::{json, lines};
use crate::fsx::hash;
use crate::model::edit::{Content, Payload, Reason};
use crate::model::session::{Session, Span};

/// The most bytes that are held to undo an edit or to compare texts; a larger file is a gap.
pub const MOST: u64 = 64 << 20;

/// The contents of one session, each of its files opened once.
pub struct Contents<'a> {
    session: &'a Session,
    open: Mutex<HashMap<u16, Arc<File>>>,
}

impl<'a> Contents<'a> {
    /// The contents that the records of this session name.
    #[must_use]
    pub fn new(session: &'a Session) -> Self {
        Self {
            session,
            open: Mutex::new(HashMap::new()),
        }
    }

    /// Where the bytes of a content come from.
    ///
    /// # Errors
    /// The record names a file of the session that it does not have, or lines that cannot be read.
    pub fn source(&self, content: &Content) -> Result<Bytes, Reason> {
        Ok(match &content.payload {
            Payload::File(path) => Bytes::File(path.clone()),
            Payload::Zst(path) => Bytes::Zst(path.clone()),
            Payload::TokenIn(path, start, end) => Bytes::Token(path.clone(), *start, *end),
            Payload::Bytes(bytes) => Bytes::Held(bytes.clone()),
            Payload::Token(span) => {
                Bytes::Token(self.path(*span)?.to_path_buf(), span.start, span.end)
            }
            Payload::Lines(span) => Bytes::Held(self.span(*span)?),
        })
    }

    fn path(&self, span: Span) -> Result<&'a Path, Reason> {
        let file = self.session.files.get(span.file.0 as usize);
        Ok(file.ok_or(Reason::CopyGone)?)
    }

    /// The bytes of a span of the session.
    fn span(&self, span: Span) -> Result<Vec<u8>, Reason> {
        let path = self.path(span)?;
        if path.extension().is_some_and(|e| e == "zst") || span.len() > lines::LONGEST as u64 {
            return lines::read_span(path, span.start, span.end).map_err(|e| reason(&e));
        }
        let file = self.file(span.file.0, path).map_err(|e| reason(&e))?;
        let mut bytes = vec![0; usize::try_from(span.len()).map_err(|_| Reason::TooLarge)?];
        file.read_exact_at(&mut bytes, span.start)
            .map_err(|e| reason(&e))?;
        Ok(bytes)
    }

    fn file(&self, no: u16, path: &Path) -> io::Result<Arc<File>> {
        // A poisoned lock only means that another thread panicked; the map is whole.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = open.get(&no) {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(File::open(path)?);
        open.insert(no, Arc::clone(&file));
        Ok(file)
    }

    /// The bytes of a content, checked against the hash that the record names.
    ///
    /// # Errors
    /// They are gone, cannot be read, are not those that were saved, or are more than [`MOST`].
    pub fn load(&self, content: &Content) -> Result<Vec<u8>, Reason> {
        let bytes = match &content.payload {
            Payload::Token(span) => json::string(&self.span(*span)?, json::Broken::Refuse)
                .ok_or(Reason::CopyDamaged)?
                .into_owned(),
            _ => read(&self.source(content)?)?,
        };
        match content.sha256 {
            Some(sha) if hash::of_bytes(&bytes) != sha => Err(Reason::CopyDamaged),
            _ => Ok(bytes),
        }
    }
}

fn read(source: &Bytes) -> Result<Vec<u8>, Reason> {
    let mut out = Vec::new();
    source
        .open()
        .and_then(|r| r.take(MOST + 1).read_to_end(&mut out))
        .map_err(|e| reason(&e))?;
    if out.len() as u64 > MOST {
        return Err(Reason::TooLarge);
    }
    Ok(out)
}

/// Length and SHA-256 of what a source holds.
///
/// # Errors
/// As [`Contents::load`], but for the length.
pub fn measure(source: &Bytes, wanted: Option<[u8; 32]>) -> Result<(u64, [u8; 32]), Reason> {
    let reader = source.open().map_err(|e| reason(&e))?;
    let (len, sha) = hash::of_reader(reader).map_err(|e| reason(&e))?;
    match wanted {
        Some(w) if w != sha => Err(Reason::CopyDamaged),
        _ => Ok((len, sha)),
    }
}

/// What an error on a saved copy means for the file. Only "not found" is absence.
#[must_use]
pub fn reason(e: &io::Error) -> Reason {
    match e.kind() {
        io::ErrorKind::NotFound => Reason::CopyGone,
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => Reason::CopyDamaged,
        io::ErrorKind::FileTooLarge => Reason::TooLarge,
        _ => Reason::Unreadable(e.to_string()),
    }
}

/// A text as recorders keep it: no byte order mark, line ends as LF.
#[must_use]
pub fn plain(bytes: &[u8]) -> Vec<u8> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(hit) = memchr::memmem::find(rest, b"\r\n") {
        let (line, tail) = rest.split_at(hit);
        out.extend_from_slice(line);
        rest = tail.get(1..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    out
}

/// Whether a file's bytes are such that a recorder's text of them is the bytes: UTF-8, no byte order mark, no CR.
#[must_use]
pub fn is_plain(bytes: &[u8]) -> bool {
    !bytes.starts_with(b"\xEF\xBB\xBF")
        && memchr::memchr(b'\r', bytes).is_none()
        && std::str::from_utf8(bytes).is_ok()
}

/// Whether a recorder's text can stand for the bytes before an edit, going by those of the file now: what it would have
/// dropped (CR, byte order mark) it has kept where the file has it. A text with U+FFFD may have been damaged when it
/// was recorded, whatever the file holds now (`bugs.md` 50, 51).
#[must_use]
pub fn keeps(text: &[u8], now: &[u8]) -> bool {
    let marked = |b: &[u8]| b.starts_with(b"\xEF\xBB\xBF");
    let cr = |b: &[u8]| memchr::memchr(b'\r', b).is_some();
    let utf8 = |b: &[u8]| std::str::from_utf8(b).is_ok();
    !is_replaced(text)
        && (utf8(now) || !utf8(text))
        && (!marked(now) || marked(text))
        && (!cr(now) || cr(text))
}

/// Whether a text holds U+FFFD, which decoders put in the place of bytes that they cannot read.
#[must_use]
pub fn is_replaced(text: &[u8]) -> bool {
    memchr::memmem::find(text, "\u{FFFD}".as_bytes()).is_some()
}
