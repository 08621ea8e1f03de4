//! Where Claude Code keeps its sessions, what the head of one tells, and how a live one shows.

use std::path::{Path, PathBuf};

use super::super::json::Value;
use super::super::record::entries;
use super::super::{Alive, Card, Head, alive, time};
use super::prompt;
use crate::env::Env;
use crate::model::session::Session;

/// The folder that holds everything: `CLAUDE_CONFIG_DIR`, else `~/.claude`.
pub(super) fn config(env: &Env) -> Option<PathBuf> {
    env.dir("CLAUDE_CONFIG_DIR", ".claude")
}

/// The config folder of a session, told by where its file lies; a copy elsewhere uses the user's own.
pub(super) fn config_of(session: &Session, env: &Env) -> Option<PathBuf> {
    let projects = session.path().parent()?.parent()?;
    if projects.file_name().is_some_and(|n| n == "projects") {
        return projects.parent().map(Path::to_path_buf);
    }
    config(env)
}

/// Session files that may belong to the workspace, or all of them.
pub(super) fn sessions(env: &Env, workspace: Option<&Path>) -> Vec<PathBuf> {
    let projects = config(env).map(|c| c.join("projects"));
    projects.map_or_else(Vec::new, |p| sessions_in(env, &p, workspace))
}

/// The same below another folder of projects.
pub(super) fn sessions_in(env: &Env, projects: &Path, workspace: Option<&Path>) -> Vec<PathBuf> {
    let folders = match workspace {
        Some(w) => folders_for(env, projects, w),
        None => entries(projects),
    };
    let mut out: Vec<PathBuf> = folders
        .iter()
        .flat_map(|f| entries(f))
        .filter(|p| is_session_name(p))
        .collect();
    out.sort();
    out
}

/// `agent-*.jsonl` beside sessions are sub-agents of version 2.0, not sessions.
fn is_session_name(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "jsonl")
        && path
            .file_name()
            .and_then(|n| n.to_str())
            .is_some_and(|n| !n.starts_with("agent-"))
}

/// The folders whose name can stand for the workspace. The name loses information, so the records decide.
fn folders_for(env: &Env, projects: &Path, workspace: &Path) -> Vec<PathBuf> {
    if let Some(name) = env.var("CLAUDE_CODE_PROJECT_DIR_NAME")
        && env.var("CLAUDE_CONFIG_DIR").is_some()
    {
        return vec![projects.join(name)];
    }
    let name = encoded(workspace);
    if name.len() <= LONG {
        return vec![projects.join(name)];
    }
    // The hash behind a long name differs between versions, so every folder with the prefix may be the one.
    let prefix = format!("{}-", name.get(..LONG).unwrap_or_default());
    entries(projects)
        .into_iter()
        .filter(|p| {
            p.file_name()
                .and_then(|n| n.to_str())
                .is_some_and(|n| n.starts_with(&prefix))
        })
        .collect()
}

/// Names longer than this are cut and given a hash.
const LONG: usize = 200;

/// Every UTF-16 unit outside `[A-Za-z0-9]` becomes one `-`.
fn encoded(workspace: &Path) -> String {
    workspace
        .to_string_lossy()
        .encode_utf16()
        .map(|u| match u8::try_from(u) {
            Ok(b) if b.is_ascii_alphanumeric() => char::from(b),
            _ => '-',
        })
        .collect()
}

/// What the head of a session file tells.
pub(super) fn card(head: &Head) -> Card {
    let mut card = Card {
        id: stem(&head.path),
        ..Card::default()
    };
    for record in head.records() {
        if card.root.is_none() {
            card.root = text(&record, "cwd").map(PathBuf::from);
        }
        if card.at.is_none() {
            card.at = text(&record, "timestamp").and_then(|t| time(&t));
        }
        if card.prompt.is_none() {
            card.prompt = prompt::prompt_of(&record).map(|(_, p)| p);
        }
    }
    card
}

/// The file's name without `.jsonl` is the session's id, whatever `sessionId` says inside.
pub(super) fn stem(path: &Path) -> String {
    path.file_stem()
        .map(|s| s.to_string_lossy().into_owned())
        .unwrap_or_default()
}

pub(super) fn text(record: &Value<'_>, name: &str) -> Option<String> {
    record.get(name)?.text().map(std::borrow::Cow::into_owned)
}

/// Looks for a `sessions/<pid>.json` of a running process that names the session or its workspace: the id in it may
/// be stale, the folder is not (`formats/claude-code.md` §3.6).
pub(super) fn live(session: &Session, env: &Env) -> Option<Alive> {
    let folder = config_of(session, env)?.join("sessions");
    entries(&folder).into_iter().find_map(|path| {
        let bytes = std::fs::read(&path).ok()?;
        let record = Value::of(&bytes)?;
        let ours = text(&record, "sessionId").is_some_and(|id| id == session.id)
            || text(&record, "cwd").is_some_and(|c| session.root.as_deref() == Some(Path::new(&c)));
        alive::recorded(&record, &path).filter(|_| ours)
    })
}
