//! A list of messages of unknown origin: `role` and `content` on every line, as many tools export them.
//!
//! ```text
//! {"role":"user","content":"rename foo"}
//! {"role":"assistant","content":null,"tool_calls":[{"id":"c1","function":{"name":"edit","arguments":"{…}"}}]}
//! {"role":"tool","tool_call_id":"c1","content":"ok"}
//! ```
//!
//! Asked last, and only for files that the user names: what has these keys may be anything. Whose file it is nobody
//! knows, so it is only read; a description of the agent makes more of it.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::chat::{self, Action, Dialect, Known, Tool};
use super::json::Value;
use super::record::text;
use super::{Access, Alive, Card, Format, Head, Trouble};
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::Calls;
use crate::model::fork::{Fork, NewSession};
use crate::model::session::Session;

/// Messages of unknown origin.
pub struct Generic;

/// The name that stands for any agent.
pub const NAME: &str = "generic";
const WHY: &str = "it is not known which agent wrote this file, so it is only read; `rewind-formats(5)` tells how to describe the agent";

impl Dialect for Generic {
    fn prompt(&self, record: &Value<'_>) -> Option<String> {
        record.get("role").filter(|r| r.is_str("user"))?;
        let content = record.get("content")?;
        if chat::has_result(&content) {
            return None;
        }
        chat::words(&content)
    }

    fn key(&self, record: &Value<'_>) -> Option<String> {
        text(record, "id").or_else(|| text(record, "message_id"))
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
            // What failure looks like differs.
            take(Action::Result { id, done: None });
        }
    }

    fn tool(&self, name: &str) -> Option<Tool> {
        chat::common_tool(name)
    }
}

/// A message: a known role, and content or calls.
pub(super) fn message(record: &Value<'_>) -> bool {
    let roles = ["system", "developer", "user", "assistant", "tool"];
    let role = record
        .get("role")
        .is_some_and(|r| roles.iter().any(|n| r.is_str(n)));
    let content = record.member("content");
    let said = content.is_some_and(|c| c.is_string() || c.is_array() || c.is_null());
    role && (said || record.get("tool_calls").is_some())
}

impl Format for Generic {
    fn agent(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "an unknown agent"
    }

    fn access(&self) -> Access {
        Access::ReadOnly
    }

    /// `formats/agents.md` §4, row 19: every whole record is a message, and one is of a person.
    fn is(&self, head: &Head) -> bool {
        let all: Vec<bool> = head.records().map(|r| message(&r)).collect();
        // The last record may be cut by the end of the head.
        let whole = all.len().saturating_sub(1).max(1);
        !all.is_empty()
            && all.iter().take(whole).all(|m| *m)
            && head.records().any(|r| self.prompt(&r).is_some())
    }

    fn places(&self, _env: &Env, _workspace: Option<&Path>) -> Vec<PathBuf> {
        Vec::new()
    }

    fn card(&self, head: &Head) -> Card {
        Card {
            id: stem(&head.path),
            root: None,
            prompt: chat::first_prompt(head, self),
            at: head.records().find_map(|r| self.at(&r)),
        }
    }

    fn read(&self, path: &Path, _env: &Env) -> Result<Session, Trouble> {
        let known = Known {
            agent: NAME,
            id: stem(path),
            root: None,
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

    fn live(&self, _session: &Session, _env: &Env) -> Option<Alive> {
        None
    }

    fn resume(&self, _session: &Session) -> Option<String> {
        None
    }
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}
