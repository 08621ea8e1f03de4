//! Cutting a Reasonix conversation, so that every build of it agrees on where it ends.
//!
//! Without an event log the `.jsonl` is cut at the turn's message. With one, the log gets a record at its end:
//!
//! ```text
//! {"schema_version":1,"type":"replace","revision":9,"messages":[…the kept ones, byte for byte…],"writer_id":"rewind","reason":"rewind","created_at":"…"}
//! ```
//!
//! and the `.jsonl` is cut too where it holds the same messages. `.meta` loses what a shorter conversation makes wrong, derived
//! indexes go, and so do the checkpoints of the turns that went: Reasonix gives their numbers again. Whatever is not certain is
//! refused; a fork is always possible.

mod checkpoints;

use chrono::{DateTime, SecondsFormat, Utc};

use super::load::{self, LogEnd};
use super::message::Message;
use super::{meta, names};
use crate::format::Trouble;
use crate::model::cut::FileChange;
use crate::model::session::{FileNo, Session, Turn, Warnings};

/// Reasonix refuses a longer log.
const LONGEST_LOG: u64 = 128 << 20;
/// Reasonix refuses a log with more messages.
const MOST_MESSAGES: usize = 100_000;

/// A message with its bytes, as far as those are needed.
struct Kept {
    message: Message,
    raw: Option<Vec<u8>>,
}

/// What must change so that the conversation ends before this turn.
///
/// # Errors
/// [`Trouble::Refused`] when any piece of it is not certain.
pub(super) fn cut(
    session: &Session,
    turn: u32,
    now: DateTime<Utc>,
) -> Result<Vec<FileChange>, Trouble> {
    let turn = session
        .turn(turn)
        .ok_or_else(|| refused("the session has no such turn"))?;
    let loaded = load::load(session.path(), &mut |file, raw| Kept {
        message: Message::of(raw),
        raw: raw
            .bytes
            .filter(|_| file == FileNo(1) && raw.start < turn.line)
            .map(<[u8]>::to_vec),
    })?;
    let index = index_of(&loaded, turn)?;
    let old_meta = meta::read(session.path()).map_err(Trouble::io(&meta::path(session.path())))?;
    let revision = next_revision(old_meta.as_deref(), loaded.log)?;
    let mut out = Vec::new();
    let kept = loaded.messages.get(..index).unwrap_or_default();
    match loaded.log {
        Some(log) => {
            out.push(append(session, kept, log, revision, now)?);
            out.extend(matching_transcript(session, kept)?);
        }
        None => out.push(FileChange::Truncate {
            path: session.path().to_path_buf(),
            keep: turn.span.start,
            len: session.len,
        }),
    }
    if let Some(old) = old_meta {
        out.push(FileChange::Replace {
            path: meta::path(session.path()),
            bytes: meta::after_cut(&old, revision)?,
        });
    }
    for ending in [".event-index.json", ".display-index.json"] {
        let path = names::beside(session.path(), ending);
        if names::there(&path) {
            out.push(FileChange::Remove { path });
        }
    }
    let messages: Vec<&Message> = loaded.messages.iter().map(|k| &k.message).collect();
    out.extend(checkpoints::removed(session.path(), &messages, index)?);
    Ok(out)
}

fn refused(why: &str) -> Trouble {
    Trouble::ForkInstead {
        why: why.to_owned(),
    }
}

/// Finds the turn's message again; the session may have changed since it was read.
fn index_of(loaded: &load::Loaded<Kept>, turn: &Turn) -> Result<usize, Trouble> {
    let found = loaded.messages.iter().position(|k| {
        k.message.start == turn.line && k.message.prompt.as_deref() == Some(&*turn.prompt)
    });
    let index = found.filter(|i| loaded.file == turn.span.file && turn.key == format!("m{i}"));
    index.ok_or_else(|| refused("the session was changed since its turns were read"))
}

fn next_revision(meta: Option<&[u8]>, log: Option<LogEnd>) -> Result<u64, Trouble> {
    let in_meta = meta.map_or(Some(0), meta::revision);
    let in_meta =
        in_meta.ok_or_else(|| refused("the session's `.meta` file cannot be understood"))?;
    let in_log = log.map_or(0, |l| l.revision);
    in_meta
        .max(in_log)
        .checked_add(1)
        .ok_or_else(|| refused("the session's revision cannot be raised"))
}

/// The record for the end of the log.
fn append(
    session: &Session,
    kept: &[Kept],
    log: LogEnd,
    revision: u64,
    now: DateTime<Utc>,
) -> Result<FileChange, Trouble> {
    let path = names::beside(session.path(), ".events.jsonl");
    let len = std::fs::metadata(&path).map_err(Trouble::io(&path))?.len();
    let tail = tail(&path, log, len)?;
    let mut bytes = match tail {
        Tail::Ended => Vec::new(),
        Tail::Open => b"\n".to_vec(),
    };
    bytes.extend_from_slice(
        format!(
            "{{\"schema_version\":1,\"type\":\"replace\",\"revision\":{revision},\"messages\":["
        )
        .as_bytes(),
    );
    for (i, message) in kept.iter().enumerate() {
        let raw = message.raw.as_deref().filter(|r| !r.contains(&b'\n'));
        let raw = raw.ok_or_else(|| refused("a message of the event log cannot be copied"))?;
        if i > 0 {
            bytes.push(b',');
        }
        bytes.extend_from_slice(raw);
    }
    let at = now.to_rfc3339_opts(SecondsFormat::Secs, true);
    bytes.extend_from_slice(
        format!("],\"writer_id\":\"rewind\",\"reason\":\"rewind\",\"created_at\":\"{at}\"}}\n")
            .as_bytes(),
    );
    if kept.len() > MOST_MESSAGES || len.saturating_add(bytes.len() as u64) > LONGEST_LOG {
        return Err(refused("the event log would grow over what Reasonix reads"));
    }
    Ok(FileChange::Append { path, bytes, len })
}

/// How a sound log ends.
enum Tail {
    /// With a newline.
    Ended,
    /// Right behind its last record.
    Open,
}

fn tail(path: &std::path::Path, log: LogEnd, len: u64) -> Result<Tail, Trouble> {
    if log.damaged {
        return Err(refused(
            "the event log is damaged; what follows the damage would not be read",
        ));
    }
    let behind = crate::format::lines::read_span(path, log.end, len).map_err(Trouble::io(path))?;
    match &*behind {
        b"" => Ok(Tail::Open),
        b"\n" => Ok(Tail::Ended),
        _ => Err(refused("the event log does not end with a record")),
    }
}

/// The cut of the `.jsonl` beside a log, where it holds the same messages. It may hold fewer: then it stays.
fn matching_transcript(session: &Session, kept: &[Kept]) -> Result<Option<FileChange>, Trouble> {
    let path = session.path();
    let len = match std::fs::metadata(path) {
        Ok(m) => m.len(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Trouble::io(path)(e)),
    };
    let mut warnings = Warnings::default();
    let mut index = 0;
    let mut same = true;
    let starts = load::transcript(path, &mut warnings, &mut |raw| {
        let known: Option<&Kept> = kept.get(index);
        same &= known.is_none_or(|k| raw.bytes.is_some() && k.raw.as_deref() == raw.bytes);
        index += 1;
        raw.start
    })
    .map_err(Trouble::io(path))?;
    if !same || !warnings.all().is_empty() {
        return Err(refused(
            "the session's `.jsonl` does not hold the messages of its event log",
        ));
    }
    Ok(starts.get(kept.len()).map(|start| FileChange::Truncate {
        path: path.to_path_buf(),
        keep: *start,
        len,
    }))
}
