//! Grok Build: `~/.grok/sessions/<workspace, URL-encoded>/<id>/` with `chat_history.jsonl`, `updates.jsonl` and `summary.json`.
//!
//! ```text
//! {"role":"user","content":"rename foo","prompt_index":0}
//! {"role":"user","content":"<system-reminder>…","synthetic_reason":"reminder"}
//! ```
//!
//! The turns are those of `chat_history.jsonl`; `updates.jsonl` stands for it. Its own checkpoints
//! (`rewind_points.jsonl`) are not read. Only listed and shown (`formats/agents.md` §3.13).

use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::chat::{self, Action, Dialect, Known, Tool};
use super::json::Value;
use super::record::{entries, text};
use super::{Access, Alive, Card, Format, Head, Trouble, alive};
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::Calls;
use crate::model::fork::{Fork, NewSession};
use crate::model::session::Session;

/// Grok Build.
pub struct Grok;

const NAME: &str = "grok";
const WHY: &str = "Grok keeps several files of a session in step, so they are only read; `/rewind` in Grok goes back";

impl Dialect for Grok {
    fn prompt(&self, record: &Value<'_>) -> Option<String> {
        record.get("role").filter(|r| r.is_str("user"))?;
        if record.get("synthetic_reason").is_some() {
            return None;
        }
        let content = record.get("content")?;
        if chat::has_result(&content) {
            return None;
        }
        chat::words(&content)
    }

    fn key(&self, record: &Value<'_>) -> Option<String> {
        let index = || Some(format!("prompt-{}", record.get("prompt_index")?.u64()?));
        text(record, "id").or_else(index)
    }

    fn at(&self, record: &Value<'_>) -> Option<DateTime<Utc>> {
        let at = record
            .get("timestamp")
            .or_else(|| record.get("created_at"))?;
        chat::time(&at)
    }

    fn actions(&self, record: &Value<'_>, take: &mut dyn FnMut(Action<'_>)) {
        chat::in_list(record, take);
        if let Some(content) = record.get("content") {
            chat::in_blocks(&content, take);
        }
        let answers = record.get("role").is_some_and(|r| r.is_str("tool"));
        if let Some(id) = text(record, "tool_call_id").filter(|_| answers) {
            take(Action::Result { id, done: None });
        }
    }

    fn tool(&self, name: &str) -> Option<Tool> {
        chat::common_tool(name)
    }
}

fn update(record: &Value<'_>) -> bool {
    record
        .get("method")
        .is_some_and(|m| m.is_str("session/update"))
        || record.get("update").is_some_and(|u| u.is_object())
}

impl Format for Grok {
    fn agent(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "Grok Build"
    }

    fn access(&self) -> Access {
        Access::ReadOnly
    }

    /// `formats/agents.md` §4, row 18.
    fn is(&self, head: &Head) -> bool {
        let told = |r: &Value<'_>| {
            r.get("role").is_some()
                && (r.get("prompt_index").is_some() || r.get("synthetic_reason").is_some())
        };
        head.records().any(|r| told(&r) || update(&r))
    }

    fn places(&self, env: &Env, _workspace: Option<&Path>) -> Vec<PathBuf> {
        let Some(sessions) = env.home.as_ref().map(|h| h.join(".grok/sessions")) else {
            return Vec::new();
        };
        let mut out: Vec<PathBuf> = entries(&sessions)
            .iter()
            .flat_map(|folder| entries(folder))
            .map(|session| session.join("chat_history.jsonl"))
            .filter(|p| p.is_file())
            .collect();
        out.sort();
        out
    }

    fn card(&self, head: &Head) -> Card {
        Card {
            id: named(&head.path, 1).unwrap_or_default(),
            root: root(&head.path),
            prompt: chat::first_prompt(head, self),
            at: head.records().find_map(|r| self.at(&r)),
        }
    }

    fn read(&self, path: &Path, _env: &Env) -> Result<Session, Trouble> {
        let history = path.with_file_name("chat_history.jsonl");
        let updates = path.file_name().is_some_and(|n| n == "updates.jsonl");
        let path = if updates && history.is_file() {
            &history
        } else {
            path
        };
        let known = Known {
            agent: NAME,
            id: named(path, 1).unwrap_or_default(),
            root: root(path),
        };
        chat::read(path, self, known)
    }

    fn calls(&self, session: &Session, from: u32, _env: &Env) -> Result<Calls, Trouble> {
        chat::calls(session, from, self)
    }

    fn cut(&self, _session: &Session, _turn: u32, _env: &Env) -> Result<Vec<FileChange>, Trouble> {
        chat::refuse(WHY)
    }

    fn fork(&self, _: &Session, _: u32, _: &NewSession, _: &Env) -> Result<Fork, Trouble> {
        chat::refuse(WHY)
    }

    fn live(&self, session: &Session, env: &Env) -> Option<Alive> {
        alive::at_work(&["grok"], session.root.as_deref(), env.pid)
    }

    fn resume(&self, _session: &Session) -> Option<String> {
        None
    }
}

/// The name of the folder so many steps up.
fn named(path: &Path, up: usize) -> Option<String> {
    let name = path.ancestors().nth(up)?.file_name()?;
    Some(name.to_string_lossy().into_owned())
}

/// The workspace, from the name of the folder two steps up.
fn root(path: &Path) -> Option<PathBuf> {
    let name = named(path, 2)?;
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        rest = more;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(more.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = more.get(2..)?;
    }
    let path = PathBuf::from(std::ffi::OsString::from_vec(bytes));
    path.is_absolute().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_names_the_workspace() {
        let file =
            Path::new("/h/.grok/sessions/%2Fhome%2Fu%2Fgr%C3%B6%C3%9Fe/s1/chat_history.jsonl");
        assert_eq!(root(file), Some(PathBuf::from("/home/u/größe")));
        assert_eq!(root(Path::new("/x/%2/s/c.jsonl")), None);
    }
}
