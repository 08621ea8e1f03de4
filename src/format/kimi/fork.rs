//! A fork of a Kimi Code session: a new folder with the state file, the kept part of the wire file and the copies of
//! files; and a line in the index. The real client resumes it (`formats/measured.md`).

use std::path::{Path, PathBuf};

use super::super::Trouble;
use super::super::json::Value;
use super::super::record::entries;
use super::super::splice::{Swaps, document, pieces, side_file, token};
use crate::model::fork::{Fork, NewFile, NewSession, Piece, Row};
use crate::model::session::Session;

pub(super) fn fork(session: &Session, keep: u64, new: &NewSession) -> Result<Fork, Trouble> {
    let id = format!("session_{}", new.v4());
    let refused = |why: &str| Trouble::Refused {
        why: why.to_owned(),
    };
    let folder = folder_of(session.path())
        .ok_or_else(|| refused("the session's file is not in a folder of Kimi Code"))?;
    let to = folder.with_file_name(&id);
    let state = side_file(&folder.join("state.json"))?
        .and_then(|old| {
            document(&old, |state, swaps| {
                renamed(state, swaps, (session, &to), new);
            })
        })
        .ok_or_else(|| refused("the session's `state.json` is missing or no JSON object"))?;
    let main = to.join("agents/main");
    let mut files = vec![NewFile {
        path: to.join("state.json"),
        body: vec![Piece::text(state)],
    }];
    files.extend(copies(session.path(), &main));
    files.push(NewFile {
        path: main.join("wire.jsonl"),
        // The wire file names no session.
        body: pieces(session.path(), (0, keep), &mut |_, _| {})?,
    });
    Ok(Fork {
        rows: row(&folder, &to, &id, session),
        id,
        files,
        named: new.name.is_some(),
    })
}

/// The folder of a session whose wire file is `<session>/agents/main/wire.jsonl`.
fn folder_of(wire: &Path) -> Option<PathBuf> {
    let main = wire.parent().filter(|p| p.ends_with("agents/main"))?;
    Some(main.parent()?.parent()?.to_path_buf())
}

/// The state file's members that name the session: its id, the folder of each agent, and its name.
fn renamed(
    state: &Value<'_>,
    swaps: &mut Swaps,
    (session, to): (&Session, &Path),
    new: &NewSession,
) {
    let id = to.file_name().unwrap_or_default().to_string_lossy();
    if let Some(old) = state.get("id") {
        swaps.put(&old, &token(&id));
    }
    for (name, agent) in state.get("agents").iter().flat_map(Value::entries) {
        if let Some(home) = agent.get("homedir") {
            let home_now = to.join("agents").join(name.as_ref());
            swaps.put(&home, &token(&home_now.to_string_lossy()));
        }
    }
    swaps.set(state, "forkedFrom", &token(&session.id));
    if let Some(name) = &new.name {
        swaps.set(state, "title", &token(name));
        swaps.set(state, "isCustomTitle", &b"true"[..].into());
    }
}

/// The copies of files, which lie beside the wire file; a name there is made of the content, so all may go along.
fn copies(wire: &Path, main: &Path) -> Vec<NewFile> {
    let from = wire.with_file_name("file-history");
    let mut names = entries(&from);
    names.sort();
    let plain = names.into_iter().filter(|p| p.is_file());
    plain
        .filter_map(|copy| {
            Some(NewFile {
                path: main.join("file-history").join(copy.file_name()?),
                body: vec![Piece::Whole(copy.as_path().into())],
            })
        })
        .collect()
}

/// The line of the index, which stands above the folders of the workspaces.
fn row(folder: &Path, to: &Path, id: &str, session: &Session) -> Vec<Row> {
    let home = folder.ancestors().nth(3);
    let line = serde_json::json!({
        "sessionId": id, "sessionDir": to.to_string_lossy(),
        "workDir": session.root.as_ref().map(|r| r.to_string_lossy()),
    });
    home.map(|home| Row {
        path: home.join("session_index.jsonl"),
        line: line.to_string().into_bytes(),
    })
    .into_iter()
    .collect()
}
