//! Where the sidecar of a session is, for a hook that knows what the agent told it: beside the session's file, or in the
//! state folder where that file is not known. An agent's word is not trusted: a path that is not of the session is not
//! used.

use std::path::{Component, Path, PathBuf};

use crate::ckpt;
use crate::env::Env;
use crate::format::{self, payload::Payload};

/// The sidecar of the session that a payload is of; `None` where it names none.
pub(super) fn sidecar(payload: &Payload, agent: Option<&str>, env: &Env) -> Option<PathBuf> {
    let id = payload.session.as_deref().filter(|i| !i.is_empty());
    let told = payload.transcript.as_deref().and_then(own);
    let told = told.filter(|t| id.is_none_or(|id| is_of(t, id)) && may_be(t, env));
    let file = told.or_else(|| located(id?, agent, payload, env));
    if let Some(file) = file
        && ckpt::is_ours_to_write(&file)
    {
        return Some(ckpt::sidecar(&file));
    }
    ckpt::without_session(env.state.as_deref()?, id?)
}

/// An absolute path without `..`; the transcript of a sub-agent is that of its parent.
fn own(path: &Path) -> Option<PathBuf> {
    let plain = |c: Component<'_>| matches!(c, Component::RootDir | Component::Normal(_));
    if !path.is_absolute() || !path.components().all(plain) || path.file_name().is_none() {
        return None;
    }
    let folder = path.parent()?;
    if folder.file_name().is_some_and(|n| n == "subagents") {
        return Some(folder.parent()?.with_extension("jsonl"));
    }
    Some(path.to_path_buf())
}

/// Whether the path names the session: agents put the id, or its first eight characters, into the file's or a folder's
/// name. Claude Code has been seen to tell of the session before (`formats/claude-code.md` §6).
fn is_of(path: &Path, id: &str) -> bool {
    let short: String = id.chars().take(8).collect();
    let parts = path.iter().rev().take(4);
    parts
        .filter_map(|p| p.to_str())
        .any(|p| p.contains(id) || (short.len() == 8 && p.contains(&short)))
}

/// A session file that is there, or may come to be in a folder of the user's own: no folder is made elsewhere.
fn may_be(path: &Path, env: &Env) -> bool {
    let below_home = env.home.as_ref().is_some_and(|h| path.starts_with(h));
    below_home || path.parent().is_some_and(Path::is_dir)
}

fn located(id: &str, agent: Option<&str>, payload: &Payload, env: &Env) -> Option<PathBuf> {
    let known = agent.and_then(|a| format::of_agent(a, env));
    let formats = match &known {
        Some(format) => std::slice::from_ref(format),
        None => format::all(env),
    };
    formats
        .iter()
        .find_map(|f| f.file_of(id, payload.cwd.as_deref(), env))
}
