//! Qwen Code: `~/.qwen/projects/<cwd>/chats/<session id>.jsonl`, one record a line, a tree by `uuid` and `parentUuid`.
//! The newest record is the leaf; what hangs between it and the root is the conversation.
//!
//! ```text
//! {"uuid":"u1","parentUuid":null,"sessionId":"a1b2…","type":"user","cwd":"/w","message":{"role":"user","parts":[{"text":"add a test"}]}}
//! {"uuid":"u2","parentUuid":"u1",…,"type":"assistant","message":{"role":"model","parts":[{"functionCall":{"id":"c1","name":"edit",…}}]}}
//! {"uuid":"u3","parentUuid":"u2",…,"type":"tool_result",…,"toolCallResult":{"callId":"c1","status":"success","resultDisplay":{…}}}
//! {"uuid":"u4","parentUuid":"u0",…,"type":"system","subtype":"rewind","systemPayload":{"truncatedCount":2}}
//! ```
//!
//! `calls` reads what the calls did, `history` the copies of files that the client keeps. Not covered: what sub-agents did.

mod calls;
mod fork;
mod history;
mod live;
#[cfg(test)]
mod tests;
mod turns;

use std::path::{Path, PathBuf};

use super::hooks::{self, Setup};
use super::json::Value;
use super::record::entries;
use super::splice::end_of;
use super::{Alive, Card, Format, Head, Trouble, time};
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::Calls;
use crate::model::fork::{Fork, NewSession};
use crate::model::session::Session;

/// Qwen Code.
pub struct Qwen;

const NAME: &str = "qwen";

impl Format for Qwen {
    fn agent(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "Qwen Code"
    }

    fn is(&self, head: &Head) -> bool {
        head.records().any(|r| signature(&r))
    }

    fn places(&self, env: &Env, workspace: Option<&Path>) -> Vec<PathBuf> {
        let Some(projects) = env.home.as_ref().map(|h| h.join(".qwen/projects")) else {
            return Vec::new();
        };
        let name = workspace.map(encoded);
        let mut out: Vec<PathBuf> = entries(&projects)
            .into_iter()
            .filter(|p| name.as_deref().is_none_or(|n| is_named(p, n)))
            .flat_map(|p| entries(&p.join("chats")))
            .filter(|p| p.extension().is_some_and(|e| e == "jsonl"))
            .collect();
        out.sort();
        out
    }

    fn card(&self, head: &Head) -> Card {
        let mut card = Card {
            id: stem(&head.path),
            ..Card::default()
        };
        for record in head.records() {
            card.root = card
                .root
                .or_else(|| text(&record, "cwd").map(PathBuf::from));
            card.at = card
                .at
                .or_else(|| text(&record, "timestamp").and_then(|t| time(&t)));
            card.prompt = card.prompt.or_else(|| turns::prompt(&record));
        }
        card
    }

    fn read(&self, path: &Path, _env: &Env) -> Result<Session, Trouble> {
        turns::read(path)
    }

    fn calls(&self, session: &Session, from: u32, _env: &Env) -> Result<Calls, Trouble> {
        calls::read(session, from)
    }

    fn cut(&self, session: &Session, turn: u32, _env: &Env) -> Result<Vec<FileChange>, Trouble> {
        turns::cut(session, turn)
    }

    fn fork(
        &self,
        session: &Session,
        turn: u32,
        new: &NewSession,
        env: &Env,
    ) -> Result<Fork, Trouble> {
        fork::fork(session, end_of(&self.cut(session, turn, env)?)?, new)
    }

    fn live(&self, session: &Session, env: &Env) -> Option<Alive> {
        live::live(session, env)
    }

    fn hooks(&self) -> Option<Setup> {
        Some(Setup {
            user: hooks::Place {
                var: "",
                home: ".qwen",
                file: "settings.json",
            },
            project: Some(".qwen/settings.json"),
            form: hooks::Form::Groups {
                on: hooks::ALL_TOOLS,
                timeout: 10000,
            },
            end: Some("Stop"),
            then: None,
        })
    }

    fn resume(&self, session: &Session) -> Option<String> {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        let plain = !session.id.starts_with('-') && session.id.bytes().all(fits);
        plain.then(|| format!("qwen --resume {}", session.id))
    }
}

/// `formats/agents.md` §4, row 12: Claude Code's tree with Gemini's `parts`, or a record that only Qwen writes.
fn signature(record: &Value<'_>) -> bool {
    let tree = record.get("uuid").is_some() && record.member("parentUuid").is_some();
    let parts = record
        .get("message")
        .is_some_and(|m| m.member("parts").is_some());
    let own = text(record, "subtype").is_some_and(|s| {
        matches!(
            s.as_str(),
            "attribution_snapshot" | "file_history_snapshot" | "ui_telemetry"
        )
    });
    tree && (parts || own)
}

/// The file's name without `.jsonl` is the session's id.
fn stem(path: &Path) -> String {
    path.file_stem()
        .map(|s| s.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// The folder's name loses information, so the records decide; some systems write it in lower case.
fn is_named(project: &Path, name: &str) -> bool {
    project
        .file_name()
        .is_some_and(|n| n.to_string_lossy().eq_ignore_ascii_case(name))
}

fn encoded(workspace: &Path) -> String {
    workspace
        .to_string_lossy()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect()
}

/// A member as text.
fn text(record: &Value<'_>, name: &str) -> Option<String> {
    record.get(name)?.text().map(std::borrow::Cow::into_owned)
}
