//! The checkpoints that go along with a fork: those of the kept turns, in a sidecar of the new session. Their blobs are
//! shared by hard link, since a blob never changes; a record is copied with the new session's id in it.

use std::path::{Path, PathBuf};

use super::write::{Made, mode_of};
use crate::ckpt::{self, Owner};
use crate::error::{Error, Kind, Result};
use crate::format::json::Value;
use crate::model::checkpoint::Checkpoint;
use crate::model::edit::{Payload, State};
use crate::model::fork::{NewFile, Piece};
use crate::model::session::Session;
use crate::ops::gather::Read;
use crate::ops::matching;

/// The checkpoints of our sidecar that belong to the turns before this one, or may. Those of an agent are its format's.
pub(super) fn kept(read: &Read, turn: u32) -> Result<Vec<Checkpoint>> {
    let Some(store) = ckpt::open(read.session.path())? else {
        return Ok(Vec::new());
    };
    if store.owner() != Owner::Ours {
        return Ok(Vec::new());
    }
    let all = store.checkpoints(0)?;
    let tied = matching::tie(&read.session, &all);
    let mut kept = Vec::new();
    for (index, m) in tied.iter().enumerate() {
        let keeps = match m.turn {
            Some(of) => of < turn,
            // One that names a message which is not there is of a turn that is gone.
            None if m.checkpoint.message.is_some() => false,
            None => matching::may_be_of(&read.session, &tied, index).start < turn,
        };
        if keeps {
            kept.push(m.checkpoint.clone());
        }
    }
    Ok(kept)
}

/// Writes them beside the new session's file.
pub(super) fn all(
    checkpoints: &[Checkpoint],
    session: &Session,
    (own, id): (&Path, &str),
    made: &mut Made<'_>,
) -> Result<()> {
    if checkpoints.is_empty() {
        return Ok(());
    }
    let (from, to) = (ckpt::sidecar(session.path()), ckpt::sidecar(own));
    for blob in checkpoints.iter().flat_map(|c| blobs(c, &from)) {
        let place = to.join(&blob);
        if !place.exists() {
            made.share(&from.join(&blob), &place)?;
        }
    }
    for c in checkpoints {
        let name = format!("turn-{}.json", c.turn);
        let record = from.join(&name);
        let file = NewFile {
            body: vec![Piece::text(renamed(&record, id)?)],
            path: to.join(name),
        };
        made.file(&file, mode_of(&record)?)?;
    }
    // What tells our sidecar from others where no record does.
    let index = NewFile {
        path: to.join("index.json"),
        body: vec![Piece::text(b"{}\n")],
    };
    made.file(&index, 0o600)
}

/// The blobs that a checkpoint needs, as paths below the sidecar.
fn blobs(checkpoint: &Checkpoint, sidecar: &Path) -> Vec<PathBuf> {
    let held = checkpoint.files.iter().filter_map(|f| match &f.before {
        State::Held(content) => Some(&content.payload),
        _ => None,
    });
    let mut out: Vec<PathBuf> = held
        .filter_map(|payload| match payload {
            Payload::File(path) | Payload::Zst(path) => path.strip_prefix(sidecar).ok(),
            _ => None,
        })
        .map(Path::to_path_buf)
        .collect();
    out.sort();
    out.dedup();
    out
}

/// The record with the new session's id where it names one.
fn renamed(record: &Path, id: &str) -> Result<Vec<u8>> {
    let fail = |e| Error::io("a checkpoint cannot be read", record, e);
    let mut bytes = std::fs::read(record).map_err(fail)?;
    let place = Value::of(&bytes)
        .and_then(|r| r.get("sessionId"))
        .filter(Value::is_string)
        .map(|v| v.start..v.end);
    if let Some(place) = place {
        let token = serde_json::to_vec(id)
            .map_err(|e| Error::new(Kind::Internal, "an id cannot be written").because(e))?;
        bytes.splice(place, token);
    }
    Ok(bytes)
}
