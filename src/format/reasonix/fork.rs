//! A fork of a Reasonix session: the messages before the turn as a new `.jsonl`, and a `.meta` that names where it comes
//! from. No event log is made, as Reasonix itself makes none (`formats/reasonix.md` §3.3), and its checkpoints do not go
//! along: it would give their numbers again.

use chrono::SecondsFormat;
use serde_json::json;

use super::message::Message;
use super::{load, meta};
use crate::format::Trouble;
use crate::model::fork::{Fork, NewFile, NewSession, Piece};
use crate::model::session::{FileNo, Session, Turn};

/// The longest label in a new name, in bytes.
const LABEL: usize = 80;

pub(super) fn fork(session: &Session, turn: u32, new: &NewSession) -> Result<Fork, Trouble> {
    let target = session
        .turn(turn)
        .ok_or_else(|| refused("the session has no such turn"))?;
    let (index, body) = messages(session, target)?;
    // The time has nine digits in names; those that the clock does not tell come from the id, so that two forks differ.
    let nanos = new.at.timestamp_subsec_millis() * 1_000_000 + new.seed.as_fields().0 % 1_000_000;
    let id = format!(
        "{}.{nanos:09}-{}",
        new.at.format("%Y%m%d-%H%M%S"),
        label(session)
    );
    let own = session.path().with_file_name(format!("{id}.jsonl"));
    let meta = NewFile {
        path: meta::path(&own),
        body: vec![Piece::text(told(session, target, (&id, index), new)?)],
    };
    Ok(Fork {
        id,
        files: vec![meta, NewFile { path: own, body }],
        rows: Vec::new(),
        named: new.name.is_some(),
    })
}

fn refused(why: &str) -> Trouble {
    Trouble::Refused {
        why: why.to_owned(),
    }
}

/// How many messages come before the turn, and their bytes.
fn messages(session: &Session, turn: &Turn) -> Result<(usize, Vec<Piece>), Trouble> {
    let loaded = load::load(session.path(), &mut |_, raw| {
        let whole = raw.bytes.filter(|b| !b.contains(&b'\n'));
        (Message::of(raw), whole.map(<[u8]>::len))
    })?;
    let index = loaded
        .messages
        .iter()
        .position(|(m, _)| m.start == turn.line && m.prompt.as_deref() == Some(&*turn.prompt));
    let index = index.filter(|_| loaded.file == turn.span.file);
    let index =
        index.ok_or_else(|| refused("the session was changed since its turns were read"))?;
    let path = loaded.files.get(usize::from(loaded.file.0));
    let path = path.ok_or_else(|| refused("the session's file is not known"))?;
    if loaded.file == FileNo(0) {
        let all = Piece::Copy {
            from: path.as_path().into(),
            start: 0,
            end: turn.span.start,
        };
        return Ok((index, vec![all]));
    }
    let mut body = Vec::new();
    for (message, len) in loaded.messages.iter().take(index) {
        let len = len.ok_or_else(|| refused("a message of the event log cannot be copied"))?;
        body.push(Piece::Copy {
            from: path.as_path().into(),
            start: message.start,
            end: message.start + len as u64,
        });
        body.push(Piece::text(b"\n"));
    }
    Ok((index, body))
}

/// The label behind the time in the session's name.
fn label(session: &Session) -> String {
    let timed = |t: &str| t.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let mut parts = session.id.splitn(3, '-');
    let label = match (parts.next(), parts.next(), parts.next()) {
        (Some(day), Some(time), Some(label)) if timed(day) && timed(time) => label,
        _ => "session",
    };
    label
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        .take(LABEL)
        .collect()
}

/// The new `.meta`: what the old one says of the workspace and the model, and where the session comes from.
fn told(
    session: &Session,
    turn: &Turn,
    (id, index): (&str, usize),
    new: &NewSession,
) -> Result<Vec<u8>, Trouble> {
    let at = new.at.to_rfc3339_opts(SecondsFormat::Secs, true);
    let mut members = vec![
        ("id", json!(id)),
        ("parent_id", json!(session.id)),
        ("fork_turn", json!(turn.no)),
        ("fork_message_index", json!(index)),
        ("created_at", json!(at)),
        ("updated_at", json!(at)),
    ];
    members.extend(new.name.as_ref().map(|n| ("name", json!(n))));
    let mut lines: Vec<Vec<u8>> = members
        .iter()
        .map(|(key, value)| format!("  \"{key}\": {value}").into_bytes())
        .collect();
    let path = meta::path(session.path());
    let old = meta::read(session.path()).map_err(Trouble::io(&path))?;
    let old = old.unwrap_or_default();
    if let Some(object) = meta::object(&old) {
        for name in KEPT {
            if let Some(value) = object.get(name) {
                lines.push([format!("  \"{name}\": ").as_bytes(), value.raw()].concat());
            }
        }
    }
    Ok([b"{\n", &*lines.join(&b",\n"[..]), b"\n}\n"].concat())
}

/// What holds for the fork as for the session that it comes from.
const KEPT: [&str; 10] = [
    "scope",
    "workspace_root",
    "topic_id",
    "topic_title",
    "model",
    "token_mode",
    "agent_preset",
    "quality_floor",
    "mode",
    "tool_approval_mode",
];
