//! The descriptions of a config folder, read once a run; and the files that a pattern of theirs names. A description
//! that cannot be used is a [`Fault`]: said where sessions are listed, and no reason to fail.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use globset::{Glob, GlobMatcher};

use super::super::named::Named;
use super::super::record::{entries, plain};
use super::super::{ALL, Format, lines};
use super::{Described, page};
use crate::env::Env;

/// A description that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

struct Loaded {
    /// Every format, those of this folder included, in the order in which they are asked.
    order: Vec<&'static dyn Format>,
    faults: Vec<Fault>,
}

/// More than any description has.
const LONGEST: usize = 1 << 20;

fn loaded(env: &Env) -> &'static Loaded {
    static KNOWN: Mutex<Option<HashMap<Option<PathBuf>, &'static Loaded>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if let Some(loaded) = known.get(&env.config) {
        return loaded;
    }
    let new: &'static Loaded = Box::leak(Box::new(load(env.config.as_deref())));
    known.insert(env.config.clone(), new);
    new
}

/// Every format, in the order in which they are asked: described ones behind all others, so that none takes the files
/// of a known agent; only the list of messages that may be anything comes later.
#[must_use]
pub fn order(env: &Env) -> &'static [&'static dyn Format] {
    &loaded(env).order
}

/// The descriptions that cannot be used.
#[must_use]
pub fn faults(env: &Env) -> &'static [Fault] {
    &loaded(env).faults
}

fn load(config: Option<&Path>) -> Loaded {
    let mut files = config
        .map(|c| entries(&c.join("agents")))
        .unwrap_or_default();
    files.retain(|p| p.extension().is_some_and(|e| e == "toml"));
    files.sort();
    let mut faults = Vec::new();
    let mut own: Vec<&'static dyn Format> = Vec::new();
    for path in files {
        match described(&path) {
            Ok(format) => own.push(Box::leak(Box::new(format))),
            Err(why) => faults.push(Fault { path, why }),
        }
    }
    let mut order = ALL.to_vec();
    let last = order.len().saturating_sub(1);
    order.splice(last..last, own);
    Loaded { order, faults }
}

fn described(path: &Path) -> Result<Described, String> {
    let name = path
        .file_stem()
        .and_then(|s| s.to_str())
        .unwrap_or_default();
    if !plain(name) || name.chars().any(|c| c.is_ascii_uppercase()) {
        return Err("the name of the file is that of the agent: small letters, digits, `-`".into());
    }
    if ALL.iter().any(|f| f.agent() == name) || Named::of_agent(name).is_some() {
        return Err(format!("`{name}` is the name of an agent that is known"));
    }
    let bytes = lines::read_whole(path, LONGEST).map_err(|e| format!("it cannot be read: {e}"))?;
    let text = String::from_utf8(bytes).map_err(|_| "it is no UTF-8".to_owned())?;
    Ok(Described::new(name, page::read(&text)?))
}

/// So many folders deep `**` looks.
const DEEPEST: usize = 12;

/// The files that a pattern names.
pub(super) fn matching(pattern: &str, env: &Env) -> Vec<PathBuf> {
    let Some((start, rest)) = start(pattern, env) else {
        return Vec::new();
    };
    let mut found = vec![start];
    for step in rest.split('/').filter(|s| !s.is_empty()) {
        found = match step {
            "**" => found.iter().flat_map(|f| below(f)).collect(),
            _ if step.contains(['*', '?', '[', '{']) => match Glob::new(step) {
                Ok(glob) => inside(&found, &glob.compile_matcher()),
                Err(_) => Vec::new(),
            },
            _ => found.iter().map(|f| f.join(step)).collect(),
        };
    }
    found.retain(|p| p.is_file());
    found
}

/// Where a pattern begins: a folder that no part of the pattern is in, and the rest.
fn start<'p>(pattern: &'p str, env: &Env) -> Option<(PathBuf, &'p str)> {
    if let Some(rest) = pattern.strip_prefix("~/") {
        return Some((env.home.clone()?, rest));
    }
    if let Some(named) = pattern.strip_prefix('$') {
        let (name, rest) = named.split_once('/')?;
        return Some((env.cwd.join(env.var(name)?), rest));
    }
    pattern
        .starts_with('/')
        .then(|| (PathBuf::from("/"), pattern))
}

fn inside(folders: &[PathBuf], glob: &GlobMatcher) -> Vec<PathBuf> {
    let all = folders.iter().flat_map(|f| entries(f));
    let fits = |p: &PathBuf| p.file_name().is_some_and(|n| glob.is_match(n));
    all.filter(fits).collect()
}

/// The folder and all below it. Links are not followed, so that there is no circle.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut out = vec![folder.to_path_buf()];
    let mut level = out.clone();
    for _ in 0..DEEPEST {
        let real = |p: &PathBuf| p.symlink_metadata().is_ok_and(|m| m.is_dir());
        level = level.iter().flat_map(|f| entries(f)).filter(real).collect();
        if level.is_empty() {
            break;
        }
        out.extend(level.iter().cloned());
    }
    out
}
