//! A fork of a Qwen Code session: the bytes that a cut would keep, under a new name, with the new id in every record.
//! Real clients resume it (`formats/measured.md`).

use std::path::PathBuf;

use super::super::Trouble;
use super::super::json::Value;
use super::super::record::entries;
use super::super::splice::{pieces, token};
use super::history::folder;
use crate::model::fork::{Fork, NewFile, NewSession, Piece};
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
    let mut files = copies(session, &id);
    files.push(NewFile {
        path: path.with_file_name(format!("{id}.jsonl")),
        body,
    });
    Ok(Fork {
        id,
        files,
        ..Fork::default()
    })
}

/// The copies of files, which lie in a folder named by the session.
fn copies(session: &Session, id: &str) -> Vec<NewFile> {
    let Some(from) = folder(session) else {
        return Vec::new();
    };
    let mut all = entries(&from);
    all.retain(|p| p.symlink_metadata().is_ok_and(|m| m.is_file()));
    all.sort();
    let new = |old: PathBuf| NewFile {
        path: from
            .with_file_name(id)
            .join(old.file_name().unwrap_or_default()),
        body: vec![Piece::Whole(old.into())],
    };
    all.into_iter().map(new).collect()
}
