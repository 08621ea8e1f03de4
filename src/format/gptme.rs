//! gptme: `~/.local/share/gptme/logs/<name>/conversation.jsonl`, one message a line; other branches in `branches/`.
//!
//! ```text
//! {"role":"user","content":"rename foo","timestamp":"2026-03-02T10:00:00.123456"}
//! {"role":"assistant","content":"```save a.py\nbar()\n```","timestamp":"…"}
//! ```
//!
//! Calls are code blocks in the text of an answer, and nothing says for certain whether one was done. Only read: what gptme
//! makes of a log that was cut was not tried (`formats/agents.md` §3.14).

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::chat::{self, Action, Dialect, Input, Known, Tool};
use super::generic::message;
use super::json::Value;
use super::record::entries;
use super::{Access, Alive, Card, Format, Head, Trouble, alive};
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::Calls;
use crate::model::fork::{Fork, NewSession};
use crate::model::session::Session;

/// gptme.
pub struct Gptme;

const NAME: &str = "gptme";
const WHY: &str =
    "sessions of gptme are only read; `/undo` or `/edit` in gptme takes messages back";

impl Dialect for Gptme {
    fn prompt(&self, record: &Value<'_>) -> Option<String> {
        record.get("role").filter(|r| r.is_str("user"))?;
        chat::words(&record.get("content")?)
    }

    fn key(&self, _record: &Value<'_>) -> Option<String> {
        None
    }

    fn at(&self, record: &Value<'_>) -> Option<DateTime<Utc>> {
        chat::time(&record.get("timestamp")?)
    }

    fn actions(&self, record: &Value<'_>, take: &mut dyn FnMut(Action<'_>)) {
        if !record.get("role").is_some_and(|r| r.is_str("assistant")) {
            return;
        }
        let said = record.get("content").and_then(|c| chat::words(&c));
        for line in said.unwrap_or_default().lines() {
            let Some(opening) = line.strip_prefix("```") else {
                continue;
            };
            let (tool, rest) = opening.split_once(' ').unwrap_or((opening, ""));
            let input = serde_json::json!({"path": rest.trim(), "command": opening.trim()});
            take(Action::Call {
                id: None,
                name: Cow::Owned(tool.trim().to_owned()),
                input: Input::Text(Cow::Owned(input.to_string().into_bytes())),
            });
        }
    }

    fn tool(&self, name: &str) -> Option<Tool> {
        Some(match name {
            "save" | "append" | "patch" | "morph" => Tool::Change,
            "shell" | "tmux" | "ipython" => Tool::Shell,
            _ => return None,
        })
    }

    fn has_results(&self) -> bool {
        false
    }
}

impl Format for Gptme {
    fn agent(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "gptme"
    }

    fn access(&self) -> Access {
        Access::ReadOnly
    }

    /// `formats/agents.md` §4, row 19: messages with a time in text; the name of the file, or a key of its own, tells them
    /// from those of others.
    fn is(&self, head: &Head) -> bool {
        let own = |r: &Value<'_>| message(r) && r.get("timestamp").is_some_and(|t| t.is_string());
        let named = head
            .path
            .file_name()
            .is_some_and(|n| n == "conversation.jsonl");
        let marked = || head.records().any(|r| r.member("pinned").is_some());
        let all: Vec<bool> = head.records().map(|r| own(&r)).collect();
        let whole = all.len().saturating_sub(1).max(1);
        !all.is_empty() && all.iter().take(whole).all(|m| *m) && (named || marked())
    }

    fn places(&self, env: &Env, _workspace: Option<&Path>) -> Vec<PathBuf> {
        let Some(data) = env.dir("XDG_DATA_HOME", ".local/share") else {
            return Vec::new();
        };
        let mut out: Vec<PathBuf> = entries(&data.join("gptme/logs"))
            .into_iter()
            .map(|folder| folder.join("conversation.jsonl"))
            .filter(|p| p.is_file())
            .collect();
        out.sort();
        out
    }

    fn card(&self, head: &Head) -> Card {
        Card {
            id: id(&head.path),
            root: root(&head.path),
            prompt: chat::first_prompt(head, self),
            at: head.records().find_map(|r| self.at(&r)),
        }
    }

    fn read(&self, path: &Path, _env: &Env) -> Result<Session, Trouble> {
        let known = Known {
            agent: NAME,
            id: id(path),
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
        alive::at_work(&["gptme"], session.root.as_deref(), env.pid)
    }

    fn resume(&self, _session: &Session) -> Option<String> {
        None
    }
}

/// The folder's name.
fn id(path: &Path) -> String {
    let folder = path.parent().and_then(Path::file_name);
    folder
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// `workspace` in the conversation's folder is a link to the folder that it works in, unless it is a folder of its own.
fn root(path: &Path) -> Option<PathBuf> {
    let link = path.with_file_name("workspace");
    std::fs::read_link(link).ok().filter(|p| p.is_absolute())
}
