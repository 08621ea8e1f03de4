//! A fork of a Claude Code session: the bytes that a cut would keep, under a new name, with the new id in each record
//! that names its session. Tried on real clients: they resume it and send exactly the kept turns
//! (`formats/measured.md`). The client's copies of files go along, which its own fork forgets; they are copied, since it
//! writes over copies in place after a compaction.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::super::json::Value;
use super::super::splice::{Swaps, end_of, pieces, token};
use super::super::{Head, Trouble};
use super::place::{self, text};
use crate::env::Env;
use crate::model::fork::{Fork, NewFile, NewSession, Piece};
use crate::model::session::Session;

pub(super) fn fork(
    session: &Session,
    turn: u32,
    new: &NewSession,
    env: &Env,
) -> Result<Fork, Trouble> {
    let id = new.v4();
    let path = session.path();
    let keep = end_of(&super::cut::cut(session, turn)?)?;
    let own = path.with_file_name(format!("{id}.jsonl"));
    let mut copies = Copies::default();
    let mut body = renamed(path, (0, keep), &id, &mut |r| copies.see(r, Part::Kept))?;
    // What comes later may have written over a copy; then it is not what the kept turns mean by its name.
    renamed(path, (keep, session.len), &id, &mut |r| {
        copies.see(r, Part::Left);
    })?;
    body.extend(title(new, &id));
    let mut files = copies.files(session, &id, env);
    files.extend(sub_agents(session, turn, &own, &id)?);
    files.push(NewFile { path: own, body });
    Ok(Fork {
        id,
        files,
        rows: Vec::new(),
        named: new.name.is_some(),
    })
}

/// A range of a transcript, each record naming the new session.
fn renamed(
    path: &Path,
    range: (u64, u64),
    id: &str,
    see: &mut dyn FnMut(&Value<'_>),
) -> Result<Vec<Piece>, Trouble> {
    let id = token(id);
    pieces(path, range, &mut |record: &Value<'_>, swaps: &mut Swaps| {
        if let Some(old) = record.get("sessionId").filter(Value::is_string) {
            swaps.put(&old, &id);
        }
        see(record);
    })
}

/// The record in which the client keeps a name that the user gave; the last one counts (`formats/claude-code.md` §2).
fn title(new: &NewSession, id: &str) -> Option<Piece> {
    let name = new.name.as_deref()?;
    let record = serde_json::json!({"type": "custom-title", "customTitle": name, "sessionId": id});
    Some(Piece::text(format!("{record}\n")))
}

/// The side of the cut that a record lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Kept,
    Left,
}

/// The copies of files that the kept records name: name → when it was made, as they tell it and as the whole file does.
#[derive(Debug, Default)]
struct Copies(BTreeMap<String, (String, String)>);

impl Copies {
    fn see(&mut self, record: &Value<'_>, part: Part) {
        if let Some(backup) = record.get("backup") {
            self.note(&backup, part);
        }
        let map = record
            .get("snapshot")
            .and_then(|s| s.get("trackedFileBackups"));
        for (_, backup) in map.iter().flat_map(Value::entries) {
            self.note(&backup, part);
        }
    }

    fn note(&mut self, backup: &Value<'_>, part: Part) {
        let Some(name) = text(backup, "backupFileName") else {
            return;
        };
        let made = text(backup, "backupTime").unwrap_or_default();
        let newer = |old: &mut String| {
            if *old < made {
                old.clone_from(&made);
            }
        };
        match part {
            Part::Kept => {
                let (kept, all) = self.0.entry(name).or_default();
                newer(kept);
                newer(all);
            }
            Part::Left => {
                if let Some((_, all)) = self.0.get_mut(&name) {
                    newer(all);
                }
            }
        }
    }

    /// The copies that still are what the kept records mean, for the new session.
    fn files(&self, session: &Session, id: &str, env: &Env) -> Vec<NewFile> {
        let Some(all) = place::config_of(session, env).map(|c| c.join("file-history")) else {
            return Vec::new();
        };
        let (from, to) = (all.join(&session.id), all.join(id));
        let still = self.0.iter().filter(|(_, (kept, all))| kept == all);
        still
            .filter(|(name, _)| is_plain(name) && from.join(name).is_file())
            .map(|(name, _)| NewFile {
                path: to.join(name),
                body: vec![Piece::Whole(from.join(name).into())],
            })
            .collect()
    }
}

/// A name that leads out of its folder is none of a copy.
fn is_plain(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|n| n == name)
}

/// The transcripts of sub-agents that began before the turn, under the new session's folder.
fn sub_agents(session: &Session, turn: u32, own: &Path, id: &str) -> Result<Vec<NewFile>, Trouble> {
    let until = session.turn(turn).and_then(|t| t.at);
    let folder = session.path().with_extension("").join("subagents");
    let to = own.with_extension("").join("subagents");
    let mut out = Vec::new();
    for path in session.files.iter().skip(1) {
        let head = Head::read(path).map_err(Trouble::io(path))?;
        let began = place::card(&head).at;
        if began
            .zip(until)
            .is_some_and(|(began, until)| began >= until)
        {
            continue;
        }
        let name = path.file_name().map(PathBuf::from).unwrap_or_default();
        let below = path.strip_prefix(&folder).map_or(name, Path::to_path_buf);
        let len = std::fs::metadata(path).map_err(Trouble::io(path))?.len();
        let meta = path.with_extension("meta.json");
        if meta.is_file() {
            out.push(NewFile {
                path: to.join(below.with_extension("meta.json")),
                body: vec![Piece::Whole(meta.into())],
            });
        }
        out.push(NewFile {
            path: to.join(below),
            body: renamed(path, (0, len), id, &mut |_| {})?,
        });
    }
    Ok(out)
}
