//! Where Reasonix keeps its sessions.
//!
//! ```text
//! ~/.reasonix/sessions/                            since 1.8.1
//! ~/.reasonix/projects/-home-a-x/sessions/         the desktop program's, one folder a workspace
//! ~/.config/reasonix/sessions/                     before
//! ```

use std::cmp::Reverse;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::names;
use crate::env::Env;

/// The session files, newest names first, recovery copies last (`bugs.md` 67).
pub(super) fn sessions(env: &Env, workspace: Option<&Path>) -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = folders(env, workspace)
        .iter()
        .flat_map(|folder| files(folder))
        .filter(|f| names::is_transcript(f))
        .filter(|f| !names::there(&names::beside(f, ".cleanup-pending.json")))
        .collect();
    out.sort_by_cached_key(|f| {
        let name = f.file_name().unwrap_or_default().to_owned();
        (is_recovery(&name), Reverse(name), f.clone())
    });
    out
}

/// A copy that Reasonix made of a session it could not save: `<stem>-recovery-<16 hex>.jsonl`.
fn is_recovery(name: &std::ffi::OsStr) -> bool {
    memchr::memmem::find(name.as_bytes(), b"-recovery-").is_some()
}

fn folders(env: &Env, workspace: Option<&Path>) -> Vec<PathBuf> {
    let mut out = Vec::new();
    if let Some(state) = state(env) {
        out.push(state.join("sessions"));
        let projects = state.join("projects");
        match workspace {
            Some(root) => out.push(projects.join(slug(root)).join("sessions")),
            None => out.extend(files(&projects).map(|p| p.join("sessions"))),
        }
    }
    out.extend(configs(env).map(|c| c.join("reasonix").join("sessions")));
    out.sort();
    out.dedup();
    out
}

fn state(env: &Env) -> Option<PathBuf> {
    let named = env.var("REASONIX_STATE_HOME").or(env.var("REASONIX_HOME"));
    match named {
        Some(folder) => Some(env.cwd.join(folder)),
        None => env.home.as_ref().map(|h| h.join(".reasonix")),
    }
}

/// The configuration folders of the old place.
fn configs(env: &Env) -> impl Iterator<Item = PathBuf> {
    let mac = env
        .home
        .as_ref()
        .map(|h| h.join("Library/Application Support"));
    [env.dir("XDG_CONFIG_HOME", ".config"), mac]
        .into_iter()
        .flatten()
}

/// The name of a workspace's folder.
fn slug(root: &Path) -> OsString {
    let bytes = root.as_os_str().as_bytes().iter();
    let dashed = bytes.map(|b| match b {
        b'/' | b'\\' | b':' => b'-',
        other => *other,
    });
    OsString::from_vec(dashed.collect())
}

/// What a folder holds. One that is missing or cannot be read holds nothing that could be offered.
fn files(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|e| Some(e.ok()?.path()))
}
