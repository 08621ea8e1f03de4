//! A fork of a Copilot CLI session: a new folder with the kept events, the workspace file, and the copies of files of the
//! kept turns. The real client resumes it by its id (`formats/measured.md`).

use std::collections::BTreeSet;
use std::path::Path;

use super::super::Trouble;
use super::super::json::Value;
use super::super::record::{plain, text};
use super::super::splice::{document, pieces, side_file, token};
use crate::model::fork::{Fork, NewFile, NewSession, Piece};
use crate::model::session::Session;

pub(super) fn fork(
    session: &Session,
    keep: u64,
    turn: u32,
    new: &NewSession,
) -> Result<Fork, Trouble> {
    let id = new.v4();
    let path = session.path();
    // A session of an older version is a single file among the folders.
    let flat = path.file_name().is_none_or(|n| n != "events.jsonl");
    let old = path.parent().unwrap_or(Path::new(""));
    let to = if flat {
        old.join(&id)
    } else {
        old.with_file_name(&id)
    };
    let mut files = Vec::new();
    let workspace = if flat {
        None
    } else {
        side_file(&old.join("workspace.yaml"))?
    };
    files.push(NewFile {
        path: to.join("workspace.yaml"),
        body: vec![Piece::text(workspace_file(
            workspace.as_deref(),
            session,
            &id,
            new,
        ))],
    });
    if !flat {
        snapshots(session, turn, (old, &to), &mut files)?;
    }
    let new_id = token(&id);
    files.push(NewFile {
        path: to.join("events.jsonl"),
        body: pieces(path, (0, keep), &mut |record, swaps| {
            let start = record
                .get("type")
                .is_some_and(|t| t.is_str("session.start"));
            if let Some(data) = record.get("data").filter(|_| start) {
                swaps.member(&data, "sessionId", &session.id, &new_id);
            }
        })?,
    });
    Ok(Fork {
        id,
        files,
        rows: Vec::new(),
        named: new.name.is_some(),
    })
}

/// The workspace file with the new id, and the new name where there is one; each other line as it was.
fn workspace_file(old: Option<&[u8]>, session: &Session, id: &str, new: &NewSession) -> Vec<u8> {
    let mut out = format!("id: {id}\n").into_bytes();
    if let Some(name) = &new.name {
        // A JSON string is a YAML string.
        let name = serde_json::Value::from(name.as_str());
        out.extend(format!("name: {name}\nuser_named: true\n").into_bytes());
    }
    let Some(old) = old else {
        let root = session.root.as_ref().map(|r| r.to_string_lossy());
        let root = serde_json::Value::from(root.unwrap_or_default());
        out.extend(format!("cwd: {root}\n").into_bytes());
        return out;
    };
    let mut drops = false;
    for line in old.split_inclusive(|b| *b == b'\n') {
        // A line that begins with white space, or is empty, belongs to the member above it.
        let member = line.first().is_some_and(|b| !b.is_ascii_whitespace());
        if member {
            drops = line.starts_with(b"id:")
                || (new.name.is_some()
                    && (line.starts_with(b"name:") || line.starts_with(b"user_named:")));
        }
        if !drops {
            out.extend_from_slice(line);
        }
    }
    out
}

/// The client's copies: those entries of the index that are of kept turns, and the backups that they name.
fn snapshots(
    session: &Session,
    turn: u32,
    (old, to): (&Path, &Path),
    files: &mut Vec<NewFile>,
) -> Result<(), Trouble> {
    let (from, to) = (
        old.join("rewind-file-snapshots"),
        to.join("rewind-file-snapshots"),
    );
    let Some(index) = side_file(&from.join("index.json"))? else {
        return Ok(());
    };
    let kept: BTreeSet<&str> = session
        .turns
        .iter()
        .take(turn as usize)
        .map(|t| t.key.as_str())
        .collect();
    let mut names = BTreeSet::new();
    let filtered = document(&index, |index, swaps| {
        let Some(all) = index.get("snapshots").filter(Value::is_array) else {
            return;
        };
        let mut list = vec![b'['];
        for snapshot in all.items() {
            if !text(&snapshot, "eventId").is_some_and(|e| kept.contains(e.as_str())) {
                continue;
            }
            backups(&snapshot, &mut names);
            if list.len() > 1 {
                list.push(b',');
            }
            list.extend_from_slice(snapshot.raw());
        }
        list.push(b']');
        swaps.put(&all, &list.into());
    });
    // An index that is none is no source of anything; the reader says so of the old session.
    let Some(filtered) = filtered else {
        return Ok(());
    };
    for name in names {
        let copy = from.join("backups").join(&name);
        if copy.is_file() {
            files.push(NewFile {
                path: to.join("backups").join(name),
                body: vec![Piece::Whole(copy.as_path().into())],
            });
        }
    }
    let tracking = from.join("tracking.json");
    if tracking.is_file() {
        files.push(NewFile {
            path: to.join("tracking.json"),
            body: vec![Piece::Whole(tracking.as_path().into())],
        });
    }
    files.push(NewFile {
        path: to.join("index.json"),
        body: vec![Piece::text(filtered)],
    });
    Ok(())
}

/// The names of the backups that a snapshot needs.
fn backups(snapshot: &Value<'_>, names: &mut BTreeSet<String>) {
    for (_, file) in snapshot.get("files").iter().flat_map(Value::entries) {
        for image in ["preimage", "postimage"].iter().filter_map(|i| file.get(i)) {
            let name = text(&image, "backupFile").or_else(|| text(&image, "contentHash"));
            names.extend(name.filter(|n| plain(n)));
        }
    }
}
