//! Antigravity CLI: below `~/.gemini/antigravity-cli/`, one step a line.
//!
//! ```text
//! {"step_index":0,"source":"USER_EXPLICIT","type":"USER_INPUT","content":"rename foo"}
//! ```
//!
//! What its steps did to files is not understood, and each turn says so. Only listed and shown (`formats/agents.md` §3.14).

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::chat::{self, Action, Dialect, Known, Tool};
use super::json::Value;
use super::record::{entries, text};
use super::{Access, Alive, Card, Format, Head, Trouble};
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::Calls;
use crate::model::fork::{Fork, NewSession};
use crate::model::session::Session;

/// Antigravity CLI.
pub struct Antigravity;

const NAME: &str = "antigravity";
const WHY: &str = "sessions of Antigravity are only listed and shown; it has a rewind of its own";

impl Dialect for Antigravity {
    fn prompt(&self, record: &Value<'_>) -> Option<String> {
        record.get("source").filter(|s| s.is_str("USER_EXPLICIT"))?;
        record.get("type").filter(|t| t.is_str("USER_INPUT"))?;
        ["content", "text", "message", "prompt"]
            .iter()
            .find_map(|name| chat::words(&record.get(name)?))
    }

    fn key(&self, record: &Value<'_>) -> Option<String> {
        let step = record.get("step_index")?.u64()?;
        Some(format!("step-{step}"))
    }

    fn at(&self, record: &Value<'_>) -> Option<DateTime<Utc>> {
        let at = record
            .get("timestamp")
            .or_else(|| record.get("created_at"))?;
        chat::time(&at)
    }

    fn actions(&self, _record: &Value<'_>, _take: &mut dyn FnMut(Action<'_>)) {}

    fn tool(&self, _name: &str) -> Option<Tool> {
        None
    }
}

impl Format for Antigravity {
    fn agent(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "Antigravity CLI"
    }

    fn access(&self) -> Access {
        Access::ReadOnly
    }

    /// `formats/agents.md` §4, row 11.
    fn is(&self, head: &Head) -> bool {
        head.records().any(|r| {
            r.get("step_index").is_some_and(|s| s.u64().is_some())
                && r.get("source").is_some_and(|s| s.is_string())
        })
    }

    fn places(&self, env: &Env, _workspace: Option<&Path>) -> Vec<PathBuf> {
        let Some(home) = env.dir("GEMINI_CLI_HOME", "") else {
            return Vec::new();
        };
        let mut out = Vec::new();
        let mut open = vec![(home.join(".gemini/antigravity-cli"), 0)];
        while let Some((folder, depth)) = open.pop() {
            for entry in entries(&folder) {
                if entry.extension().is_some_and(|e| e == "jsonl") {
                    out.push(entry);
                } else if depth < 4 && entry.is_dir() {
                    open.push((entry, depth + 1));
                }
            }
        }
        out.sort();
        out
    }

    fn card(&self, head: &Head) -> Card {
        Card {
            id: id(&head.path),
            root: head
                .records()
                .find_map(|r| text(&r, "cwd"))
                .map(PathBuf::from),
            prompt: chat::first_prompt(head, self),
            at: head.records().find_map(|r| self.at(&r)),
        }
    }

    fn read(&self, path: &Path, _env: &Env) -> Result<Session, Trouble> {
        let card = self.card(&Head::read(path).map_err(Trouble::io(path))?);
        let known = Known {
            agent: NAME,
            id: card.id,
            root: card.root,
        };
        chat::read(path, self, known)
    }

    fn calls(&self, session: &Session, from: u32, _env: &Env) -> Result<Calls, Trouble> {
        Ok(chat::not_understood(session, from))
    }

    fn cut(&self, _session: &Session, _turn: u32, _env: &Env) -> Result<Vec<FileChange>, Trouble> {
        chat::refuse(WHY)
    }

    fn fork(&self, _: &Session, _: u32, _: &NewSession, _: &Env) -> Result<Fork, Trouble> {
        chat::refuse(WHY)
    }

    fn live(&self, _session: &Session, _env: &Env) -> Option<Alive> {
        None
    }

    fn resume(&self, _session: &Session) -> Option<String> {
        None
    }
}

fn id(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}
