//! Which sidecars there are: beside sessions that are found, those whose session is gone, and those in the state folder
//! of sessions whose file was not known. Only sidecars of ours: another agent's are never pruned.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::ckpt::{self, Owner, kept};
use crate::env::Env;
use crate::ops::discover::Found;

/// Folders are gone down so far in the search for sidecars whose session is gone.
const DEPTH: usize = 5;

/// One sidecar.
#[derive(Clone)]
pub struct Store {
    /// The folder.
    pub folder: PathBuf,
    /// The session that it is of, while that is there.
    pub session: Option<Found>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("folder", &self.folder)
            .field("session", &self.session.as_ref().map(|s| &s.path))
            .finish()
    }
}

/// The sidecars of these sessions.
#[must_use]
pub fn of_sessions(found: Vec<Found>, env: &Env) -> Vec<Store> {
    let mut out = Vec::new();
    let mut seen = BTreeSet::new();
    for session in found {
        let beside = ckpt::sidecar(&session.path);
        let ours = ckpt::open(&session.path);
        let ours = ours.is_ok_and(|s| s.is_some_and(|s| s.owner() == Owner::Ours));
        let state = env.state.as_deref();
        let elsewhere = state.and_then(|s| ckpt::without_session(s, &session.card.id));
        let elsewhere = elsewhere.filter(|f| is_ours(f));
        for folder in ours.then_some(beside).into_iter().chain(elsewhere) {
            if seen.insert(folder.clone()) {
                let session = Some(session.clone());
                out.push(Store { folder, session });
            }
        }
    }
    out.sort_by(|a, b| a.folder.cmp(&b.folder));
    out
}

/// The sidecars that no session among all of them has.
#[must_use]
pub fn orphans(all: &[Found], env: &Env) -> Vec<Store> {
    let had: BTreeSet<PathBuf> = of_sessions(all.to_vec(), env)
        .into_iter()
        .map(|s| s.folder)
        .collect();
    let mut found = BTreeSet::new();
    for top in tops(all, env) {
        sidecars(&top, &mut found);
    }
    if let Some(state) = &env.state {
        sidecars(&state.join("captures"), &mut found);
    }
    let gone = found.into_iter().filter(|f| !had.contains(f));
    // A session of which only its head cannot be read is there all the same.
    let gone = gone.filter(|f| !has_session(f));
    gone.map(|folder| Store {
        folder,
        session: None,
    })
    .collect()
}

/// Whether a file stands beside a sidecar that it may be of.
fn has_session(folder: &Path) -> bool {
    let jsonl = folder.with_extension("jsonl");
    let bare = folder.with_extension("");
    [jsonl, bare]
        .iter()
        .any(|f| std::fs::symlink_metadata(f).is_ok_and(|m| !m.is_dir()))
}

/// The folders that sessions lie in, one above those of each agent.
fn tops(all: &[Found], env: &Env) -> BTreeSet<PathBuf> {
    let mut tops: std::collections::BTreeMap<&str, PathBuf> = std::collections::BTreeMap::new();
    for found in all {
        let Some(parent) = found.path.parent() else {
            continue;
        };
        let above = parent.parent().unwrap_or(parent);
        let top = tops
            .entry(found.format.agent())
            .or_insert_with(|| above.to_path_buf());
        while !above.starts_with(&*top) && top.pop() {}
    }
    let home = env.home.as_deref();
    let fine = |t: &PathBuf| Some(t.as_path()) != home && t.components().count() > 2;
    tops.into_values().filter(fine).collect()
}

/// Our sidecars below a folder. No link is followed, and no sidecar gone into.
fn sidecars(top: &Path, found: &mut BTreeSet<PathBuf>) {
    let mut open = vec![(top.to_path_buf(), 0)];
    while let Some((folder, depth)) = open.pop() {
        // What cannot be read holds nothing that could be removed.
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|t| t.is_dir()) {
                continue;
            }
            let path = entry.path();
            if path.extension() == Some(OsStr::new("ckpt")) {
                if is_ours(&path) {
                    found.insert(path);
                }
            } else if depth < DEPTH {
                open.push((path, depth + 1));
            }
        }
    }
}

/// A sidecar whose session is not known is ours only where our own mark is in it, and nothing that is not ours: `.ckpt`
/// is an ending that others use too.
fn is_ours(folder: &Path) -> bool {
    let real = std::fs::symlink_metadata(folder).is_ok_and(|m| m.is_dir());
    let mark = || std::fs::read(folder.join("index.json")).is_ok_and(|b| b == b"{}\n");
    let entries = || std::fs::read_dir(folder).into_iter().flatten().flatten();
    real && mark() && entries().all(|e| e.file_name().to_str().is_some_and(kept::is_ours))
}
