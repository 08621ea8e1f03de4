//! A fork of a Qwen Code session: the bytes that a cut would keep, under a new name, with the new id in every record.
//! Real clients resume it (`formats/measured.md`).

use super::super::Trouble;
use super::super::json::Value;
use super::super::splice::{pieces, token};
use crate::model::fork::{Fork, NewFile, NewSession};
use crate::model::session::Session;

pub(super) fn fork(session: &Session, keep: u64, new: &NewSession) -> Result<Fork, Trouble> {
    let id = new.v4();
    let path = session.path();
    let new_id = token(&id);
    let body = pieces(path, (0, keep), &mut |record, swaps| {
        if let Some(old) = record.get("sessionId").filter(Value::is_string) {
            swaps.put(&old, &new_id);
        }
    })?;
    let own = path.with_file_name(format!("{id}.jsonl"));
    Ok(Fork {
        id,
        files: vec![NewFile { path: own, body }],
        ..Fork::default()
    })
}
