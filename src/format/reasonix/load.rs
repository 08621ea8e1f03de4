//! The messages of a session, from the event log where that counts, else from the `.jsonl`.

use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use super::log::{self, Stopped, is_json};
use super::names;
use super::values::{self, Cut, Flow, Piece, Raw};
use crate::format::json::Value;
use crate::format::{Trouble, lines};
use crate::model::session::{FileNo, Oddity, Warnings};

/// The messages of a session, each as what the caller wanted of it.
#[derive(Debug)]
pub(super) struct Loaded<M> {
    /// The session's own file, and the log behind it where that counts.
    pub(super) files: Vec<PathBuf>,
    /// The file that the messages lie in.
    pub(super) file: FileNo,
    /// In order; a message's place in the list is its index.
    pub(super) messages: Vec<M>,
    /// What the log tells besides, where it counts.
    pub(super) log: Option<LogEnd>,
    /// What was odd.
    pub(super) warnings: Warnings,
}

/// The state of a log after its replay.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogEnd {
    /// The highest revision.
    pub(super) revision: u64,
    /// Offset behind the last record that counted.
    pub(super) end: u64,
    /// It has bytes that do not count.
    pub(super) damaged: bool,
}

/// Reads the session that a path stands for.
///
/// # Errors
/// A file cannot be read, neither file is there, or the log is of a later schema.
pub(super) fn load<M>(
    path: &Path,
    map: &mut dyn FnMut(FileNo, Raw<'_>) -> M,
) -> Result<Loaded<M>, Trouble> {
    let session = names::session(path);
    let log_path = names::beside(&session, ".events.jsonl");
    let mut warnings = Warnings::default();
    let replayed = log::replay(&log_path, &mut |raw| map(FileNo(1), raw))?;
    if let Some(log) = replayed {
        match log.stopped {
            Some(Stopped::Bad(at)) => warnings.add(Oddity::BadLine, FileNo(1), at),
            Some(Stopped::Torn(at)) => warnings.add(Oddity::TornTail, FileNo(1), at),
            None => {}
        }
        return Ok(Loaded {
            files: vec![session, log_path],
            file: FileNo(1),
            messages: log.messages,
            log: Some(LogEnd {
                revision: log.revision,
                end: log.end,
                damaged: log.stopped.is_some(),
            }),
            warnings,
        });
    }
    let messages = transcript(&session, &mut warnings, &mut |raw| map(FileNo(0), raw))
        .map_err(Trouble::io(&session))?;
    Ok(Loaded {
        files: vec![session],
        file: FileNo(0),
        messages,
        log: None,
        warnings,
    })
}

/// How often reading begins again behind a value that swallowed what follows it.
const RESTARTS: u32 = 256;

/// Reads the values of a `.jsonl`. What is no value is counted and passed over.
///
/// # Errors
/// It cannot be read.
pub(super) fn transcript<M>(
    path: &Path,
    warnings: &mut Warnings,
    map: &mut dyn FnMut(Raw<'_>) -> M,
) -> io::Result<Vec<M>> {
    let mut out = Vec::new();
    let mut start = 0;
    for _ in 0..RESTARTS {
        let Some(broken) = run(path, start, &mut out, warnings, map)? else {
            return Ok(out);
        };
        let next = behind_line(path, broken)?;
        let oddity = match next {
            Some(_) => Oddity::BadLine,
            None => Oddity::TornTail,
        };
        warnings.add(oddity, FileNo(0), broken);
        match next {
            Some(next) => start = next,
            None => return Ok(out),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidData,
        "too many broken records",
    ))
}

/// Reads values up to one that is broken and goes on behind its line; returns where that one begins.
fn run<M>(
    path: &Path,
    start: u64,
    out: &mut Vec<M>,
    warnings: &mut Warnings,
    map: &mut dyn FnMut(Raw<'_>) -> M,
) -> io::Result<Option<u64>> {
    let mut broken = None;
    values::stream(path, start, Cut::Values, &mut |piece| match piece {
        Piece::Item(raw) => {
            let (bytes, s) = (raw.bytes, raw.start);
            let sound = bytes.is_none_or(|b| !worth_checking(b) || is_json(b));
            if bytes.is_none() {
                warnings.add(Oddity::HugeLine, FileNo(0), s);
            }
            if sound {
                out.push(map(raw));
                return Flow::On;
            }
            if bytes.is_some_and(|b| b.contains(&b'\n')) {
                broken = Some(s);
                return Flow::Stop;
            }
            warnings.add(Oddity::BadLine, FileNo(0), s);
            Flow::On
        }
        Piece::Record(..) => Flow::On,
        Piece::Bad(at) => {
            warnings.add(Oddity::BadLine, FileNo(0), at);
            Flow::On
        }
        Piece::Torn(at) => {
            broken = Some(at);
            Flow::Stop
        }
    })?;
    Ok(broken)
}

/// A value that has lines in it may be a torn one with others inside; a prompt is what the conversation may be cut at.
/// The rest, most of a session, is only passed.
fn worth_checking(bytes: &[u8]) -> bool {
    // The role comes first, so no more than the head is looked at.
    let role = || Value::head(bytes).get("role");
    memchr::memchr(b'\n', bytes).is_some() || role().is_none_or(|r| r.is_str("user"))
}

/// The offset behind the line that holds this offset; `None` when the file ends in it.
fn behind_line(path: &Path, at: u64) -> io::Result<Option<u64>> {
    let mut input = io::BufReader::new(lines::open(path, at)?);
    let mut passed = 0;
    loop {
        let chunk = input.fill_buf()?;
        if chunk.is_empty() {
            return Ok(None);
        }
        if let Some(n) = memchr::memchr(b'\n', chunk) {
            return Ok(Some(at + passed + n as u64 + 1));
        }
        let n = chunk.len();
        passed += n as u64;
        input.consume(n);
    }
}
