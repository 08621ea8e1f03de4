//! A fork of a pi session: the bytes that a cut would keep, under a new name, with the new id in the header. The real
//! client resumes it by its path (`formats/measured.md`).

use super::super::Trouble;
use super::super::record::text;
use super::super::splice::{pieces, token};
use super::header;
use crate::model::fork::{Fork, NewFile, NewSession, Piece};
use crate::model::session::Session;

pub(super) fn fork(session: &Session, keep: u64, new: &NewSession) -> Result<Fork, Trouble> {
    let id = new.v4();
    let path = session.path();
    // The time as the client writes it into names.
    let time = new.at.format("%Y-%m-%dT%H-%M-%S-%3fZ");
    let own = path.with_file_name(format!("{time}_{id}.jsonl"));
    let new_id = token(&id);
    let mut leaf = None;
    let mut body = pieces(path, (0, keep), &mut |record, swaps| {
        if header(record) {
            swaps.member(record, "id", &session.id, &new_id);
        } else if record.member("parentId").is_some() {
            leaf = text(record, "id");
        }
    })?;
    let name = title(new, leaf.as_deref());
    let named = name.is_some();
    body.extend(name);
    Ok(Fork {
        id,
        files: vec![NewFile { path: own, body }],
        rows: Vec::new(),
        named,
    })
}

/// The entry in which pi keeps a session's name; it hangs below the leaf, so the conversation stays what it was. Files
/// of version 1 have no ids and get none.
fn title(new: &NewSession, leaf: Option<&str>) -> Option<Piece> {
    let (name, leaf) = (new.name.as_deref()?, leaf?);
    let id = new.v4();
    let entry = serde_json::json!({
        "type": "session_info", "id": id.get(..8)?, "parentId": leaf,
        "timestamp": new.at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true), "name": name,
    });
    Some(Piece::text(format!("{entry}\n")))
}
