//! Where Gemini CLI keeps its sessions, and which workspace they are of: the file holds only a hash of it, so the
//! folder's `.project_root`, `projects.json` or a path that has this hash tells.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::super::json::Value;
use super::super::record::hex;
use super::super::{Card, Head, time};
use super::fold::workspace_in;
use super::prompt::{self, Prompt};
use super::{read, text};
use crate::env::Env;

/// Session files that may belong to the workspace, or all of them; one file a session.
pub(super) fn sessions(env: &Env, workspace: Option<&Path>) -> Vec<PathBuf> {
    let Some(home) = home(env) else {
        return Vec::new();
    };
    let mut out = Vec::new();
    for project in entries(&home.join("tmp")) {
        let chats = project.join("chats");
        let mine = workspace.is_none_or(|w| may_be_of(&project, w));
        if mine {
            out.extend(one_a_session(&chats));
        }
    }
    out.sort();
    out
}

/// `GEMINI_CLI_HOME` takes the place of the home folder, not of the folder in it.
fn home(env: &Env) -> Option<PathBuf> {
    env.dir("GEMINI_CLI_HOME", "").map(|h| h.join(".gemini"))
}

/// A folder that is missing or cannot be read has no sessions to offer; `doctor` is the place to say so.
pub(super) fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(found) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut out: Vec<PathBuf> = found.filter_map(|e| e.ok().map(|e| e.path())).collect();
    out.sort();
    out
}

/// Whether a project folder can be that of the workspace. One that nothing tells of is kept: its records decide.
fn may_be_of(project: &Path, workspace: &Path) -> bool {
    let told = told_root(project).or_else(|| listed_root(project));
    if let Some(root) = told {
        return root == workspace || canonical(&root) == canonical(workspace);
    }
    let name = project.file_name().map(|n| n.to_string_lossy());
    name.is_none_or(|n| n.len() != 64 || n == hash_of(workspace))
}

fn canonical(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

/// The session files of a folder, without those that another file of the same session stands for.
fn one_a_session(chats: &Path) -> Vec<PathBuf> {
    let files: Vec<PathBuf> = entries(chats)
        .into_iter()
        .filter(|p| is_session_name(p))
        .collect();
    let mut named: HashMap<Option<&str>, usize> = HashMap::new();
    for file in &files {
        *named.entry(short(file)).or_default() += 1;
    }
    let alone = |f: &Path| named.get(&short(f)).is_none_or(|n| *n < 2);
    let mut out = Vec::new();
    for file in &files {
        if alone(file) || read::own(file).is_ok_and(|own| own == *file) {
            out.push(file.clone());
        }
    }
    out
}

/// Other files of the same folder that may be of the same session: the name ends with the first digits of its id.
pub(super) fn same_short_id(path: &Path) -> Vec<PathBuf> {
    let Some(folder) = path.parent().filter(|_| is_session_name(path)) else {
        return Vec::new();
    };
    entries(folder)
        .into_iter()
        .filter(|p| is_session_name(p) && short(p) == short(path) && p != path)
        .collect()
}

fn is_session_name(path: &Path) -> bool {
    let named = path
        .extension()
        .is_some_and(|e| e == "jsonl" || e == "json");
    named
        && path
            .file_name()
            .and_then(|n| n.to_str())
            .is_some_and(|n| n.starts_with("session-"))
}

/// The last part of the name: the first eight digits of the session's id.
fn short(path: &Path) -> Option<&str> {
    path.file_stem()?.to_str()?.rsplit('-').next()
}

/// Transcripts of the session's sub-agents: `chats/<session id>/<id>.jsonl`.
pub(super) fn sub_agents(path: &Path, id: &str) -> Vec<PathBuf> {
    let Some(folder) = path.parent().filter(|_| plain(id)) else {
        return Vec::new();
    };
    entries(&folder.join(id))
        .into_iter()
        .filter(|p| p.extension().is_some_and(|e| e == "jsonl"))
        .collect()
}

/// Whether an id is safe in a file name and a command line: it comes from a file, so it may be anything.
pub(super) fn plain(id: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    !id.is_empty() && id.len() <= 128 && !id.starts_with('-') && id.bytes().all(fits)
}

/// What the head of a session file tells.
pub(super) fn card(head: &Head) -> Card {
    let mut card = Card::default();
    let mut hash = None;
    let mut context = None;
    let document = Value::head(head.bytes());
    let whole = super::is_document(head.bytes()).then_some(document);
    for record in head.records().chain(whole) {
        if let Some(id) = text(&record, "sessionId").filter(|_| card.id.is_empty()) {
            card.id = id;
            hash = text(&record, "projectHash");
            card.at = text(&record, "startTime").and_then(|t| time(&t));
        }
        let list = record.get("$set").and_then(|s| s.get("messages"));
        let told = list.or_else(|| record.get("messages"));
        for message in told.iter().flat_map(Value::items).take(8) {
            context = context.or_else(|| workspace_in(&message));
        }
        let mut own = std::iter::once(record).chain(told.iter().flat_map(Value::items).take(8));
        card.prompt = card.prompt.or_else(|| own.find_map(|m| first_prompt(&m)));
    }
    card.root = root(&head.path, hash.as_deref(), context.as_deref());
    card
}

fn first_prompt(message: &Value<'_>) -> Option<String> {
    if !message.get("type").is_some_and(|t| t.is_str("user")) {
        return None;
    }
    match prompt::of(message)? {
        Prompt::Sure(p) | Prompt::IfAnswered(p) => Some(p),
    }
}

/// The workspace of a session file. A folder named beside the file is believed; any other only when its hash is the
/// recorded one.
pub(super) fn root(path: &Path, hash: Option<&str>, context: Option<&str>) -> Option<PathBuf> {
    let chats = |a: &&Path| a.file_name().is_some_and(|n| n == "chats");
    let project = path.ancestors().find(chats).and_then(Path::parent);
    let has_hash = |p: &PathBuf| hash.is_some_and(|h| h == hash_of(p));
    project
        .and_then(told_root)
        .or_else(|| project.and_then(listed_root))
        .or_else(|| context.map(PathBuf::from).filter(has_hash))
}

/// `<project>/.project_root`.
fn told_root(project: &Path) -> Option<PathBuf> {
    let told = std::fs::read_to_string(project.join(".project_root")).ok()?;
    let told = told.trim_end_matches(['\r', '\n']);
    (!told.is_empty()).then(|| PathBuf::from(told))
}

/// `~/.gemini/projects.json`: `{"projects":{"/path":"slug"}}`; in older versions the folder is named by the hash.
fn listed_root(project: &Path) -> Option<PathBuf> {
    let name = project.file_name()?.to_str()?;
    let bytes = std::fs::read(project.parent()?.parent()?.join("projects.json")).ok()?;
    let projects = Value::of(&bytes)?.get("projects")?;
    projects
        .entries()
        .find(|(path, slug)| slug.is_str(name) || hash_of(Path::new(path.as_ref())) == name)
        .map(|(path, _)| PathBuf::from(path.into_owned()))
}

/// SHA-256 of a path, in hex.
pub(super) fn hash_of(path: &Path) -> String {
    hex(&Sha256::digest(path.as_os_str().as_encoded_bytes()))
}
