//! Claude Code sessions: `~/.claude/projects/<folder>/<session id>.jsonl`, one record a line, a tree by `uuid` and
//! `parentUuid`, append-only. Facts: `formats/claude-code.md` and `formats/measured.md`.
//!
//! ```text
//! {"type":"file-history-snapshot","messageId":"P","snapshot":{"messageId":"P","trackedFileBackups":{}},"isSnapshotUpdate":false}
//! {"parentUuid":null,"type":"user","message":{"role":"user","content":"rename total"},"uuid":"P","timestamp":"…"}
//! {"parentUuid":"P","type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"T","name":"Edit",…}]},"uuid":"A"}
//! {"parentUuid":"A","type":"user","message":{"role":"user","content":[{"tool_use_id":"T","type":"tool_result",…}]},"toolUseResult":{…},"uuid":"R"}
//! ```
//!
//! `turns` finds the turns in one pass, `branch` tells which of them the conversation still holds, `calls` reads the
//! edits, `history` the file backups, `cut` says where the file may end.

mod branch;
mod calls;
mod cut;
mod fork;
mod history;
mod kin;
mod place;
mod prompt;
mod tool;
mod turns;

use std::path::{Path, PathBuf};

pub use kin::{IFLOW, Kin, OPENCLAUDE, QODER};

use super::hooks::{self, Setup};
use super::json::Value;
use super::{Alive, Card, Format, Head, Trouble};
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::Calls;
use crate::model::fork::{Fork, NewSession};
use crate::model::session::Session;

/// Claude Code.
pub struct Claude;

impl Format for Claude {
    fn agent(&self) -> &'static str {
        "claude"
    }

    fn title(&self) -> &'static str {
        "Claude Code"
    }

    fn is(&self, head: &Head) -> bool {
        head.records().any(|r| signature(&r))
    }

    fn places(&self, env: &Env, workspace: Option<&Path>) -> Vec<PathBuf> {
        place::sessions(env, workspace)
    }

    fn card(&self, head: &Head) -> Card {
        place::card(head)
    }

    fn read(&self, path: &Path, _env: &Env) -> Result<Session, Trouble> {
        turns::read(path)
    }

    fn calls(&self, session: &Session, from: u32, env: &Env) -> Result<Calls, Trouble> {
        calls::read(session, from, env)
    }

    fn cut(&self, session: &Session, turn: u32, _env: &Env) -> Result<Vec<FileChange>, Trouble> {
        cut::cut(session, turn)
    }

    fn fork(
        &self,
        session: &Session,
        turn: u32,
        new: &NewSession,
        env: &Env,
    ) -> Result<Fork, Trouble> {
        fork::fork(session, turn, new, env)
    }

    fn live(&self, session: &Session, env: &Env) -> Option<Alive> {
        place::live(session, env)
    }

    fn hooks(&self) -> Option<Setup> {
        Some(Setup {
            user: hooks::Place {
                var: "CLAUDE_CONFIG_DIR",
                home: ".claude",
                file: "settings.json",
            },
            project: Some(".claude/settings.json"),
            form: hooks::Form::Groups {
                on: hooks::CLAUDE,
                timeout: 10,
            },
            end: Some("Stop"),
            then: None,
        })
    }

    fn resume(&self, session: &Session) -> Option<String> {
        Some(format!("claude --resume {}", session.id))
    }
}

/// `formats/agents.md` §4, row 14; rows 12 and 13 (Qwen, iFlow) look alike and are not this.
fn signature(record: &Value<'_>) -> bool {
    let Some(kind) = record.get("type").and_then(|t| t.text()) else {
        return false;
    };
    match kind.as_ref() {
        "file-history-snapshot" => record.get("snapshot").is_some(),
        "queue-operation" => record.get("operation").is_some() && session_id(record),
        "summary" => record.get("leafUuid").is_some(),
        "last-prompt" => record.member("lastPrompt").is_some() && session_id(record),
        "user" | "assistant" | "attachment" | "system" => {
            record.member("parentUuid").is_some() && session_id(record) && !gemini_like(record)
        }
        _ => false,
    }
}

/// A session id that is not of iFlow's kind.
fn session_id(record: &Value<'_>) -> bool {
    record
        .get("sessionId")
        .and_then(|s| s.text())
        .is_some_and(|s| !s.starts_with("session-"))
}

/// Qwen Code writes the same tree with Gemini's `parts`.
fn gemini_like(record: &Value<'_>) -> bool {
    record
        .get("message")
        .is_some_and(|m| m.member("parts").is_some())
}

#[cfg(test)]
mod tests;
