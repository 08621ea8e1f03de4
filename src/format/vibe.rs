//! Mistral Vibe: a folder a session, `~/.vibe/logs/session/session_<time>_<first 8 of the id>/`, with `messages.jsonl` and
//! `meta.json`.
//!
//! ```text
//! {"role":"user","content":"rename foo","injected":false,"message_id":"m1"}
//! {"role":"assistant","content":"","message_id":"m2","tool_calls":[{"id":"c1","function":{"name":"edit","arguments":"{…}"}}]}
//! {"role":"tool","content":"ok","name":"edit","tool_call_id":"c1","message_id":"m3"}
//! ```
//!
//! Lines have no times. The client's own rewind makes a new session, and so does ours (`formats/agents.md` §3.9).

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::chat::{self, Action, Dialect, Known, Tool};
use super::json::Value;
use super::record::{entries, plain, text};
use super::splice::{document, pieces, side_file, token};
use super::{Access, Alive, Card, Format, Head, Trouble, alive};
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::Calls;
use crate::model::fork::{Fork, NewFile, NewSession, Piece};
use crate::model::session::{Oddity, Session};

/// Mistral Vibe.
pub struct Vibe;

const NAME: &str = "vibe";

impl Dialect for Vibe {
    fn prompt(&self, record: &Value<'_>) -> Option<String> {
        record.get("role").filter(|r| r.is_str("user"))?;
        if record.get("injected").is_some_and(|i| i.is_true()) {
            return None;
        }
        chat::words(&record.get("content")?)
    }

    fn key(&self, record: &Value<'_>) -> Option<String> {
        text(record, "message_id")
    }

    fn at(&self, _record: &Value<'_>) -> Option<DateTime<Utc>> {
        None
    }

    fn actions(&self, record: &Value<'_>, take: &mut dyn FnMut(Action<'_>)) {
        chat::in_list(record, take);
        if !record.get("role").is_some_and(|r| r.is_str("tool")) {
            return;
        }
        if let Some(id) = text(record, "tool_call_id") {
            let said = record.get("content").and_then(|c| chat::words(&c));
            let said = said.unwrap_or_default();
            let failed = ["<tool_error>", "<user_cancellation>"]
                .iter()
                .any(|tag| said.trim_start().starts_with(tag));
            take(Action::Result {
                id,
                done: Some(!failed),
            });
        }
    }

    fn tool(&self, name: &str) -> Option<Tool> {
        Some(match name {
            "edit" => Tool::Replace,
            "write_file" => Tool::Write,
            // Its argument is a text of blocks, of which some may not have applied.
            "search_replace" => Tool::Change,
            "apply_patch" => Tool::Patch,
            "bash" => Tool::Shell,
            "task" => Tool::Other,
            _ if name.starts_with("mcp_") => Tool::Other,
            _ => return None,
        })
    }
}

/// What `meta.json` beside the messages tells.
#[derive(Default)]
struct Meta {
    id: Option<String>,
    root: Option<PathBuf>,
    at: Option<DateTime<Utc>>,
}

fn meta(path: &Path) -> Option<Meta> {
    let bytes = side_file(&path.with_file_name("meta.json")).ok()??;
    let lead = bytes.iter().take_while(|b| **b != b'{').count();
    let value = Value::of(bytes.get(lead..)?)?;
    let environment = value.get("environment");
    Some(Meta {
        id: text(&value, "session_id"),
        root: environment
            .and_then(|e| text(&e, "working_directory"))
            .map(PathBuf::from),
        at: value.get("start_time").and_then(|t| chat::time(&t)),
    })
}

impl Format for Vibe {
    fn agent(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "Mistral Vibe"
    }

    fn access(&self) -> Access {
        Access::Fork
    }

    /// `formats/agents.md` §4, row 17.
    fn is(&self, head: &Head) -> bool {
        let message = |r: &Value<'_>| r.get("message_id").is_some() && r.get("role").is_some();
        let injected = |r: &Value<'_>| message(r) && r.member("injected").is_some();
        head.records().any(|r| injected(&r))
            || (head.records().any(|r| message(&r))
                && meta(&head.path).is_some_and(|m| m.root.is_some()))
    }

    fn places(&self, env: &Env, _workspace: Option<&Path>) -> Vec<PathBuf> {
        let Some(home) = env.dir("VIBE_HOME", ".vibe") else {
            return Vec::new();
        };
        // Folders are named by time: every one may be of any workspace.
        let mut out: Vec<PathBuf> = entries(&home.join("logs/session"))
            .into_iter()
            .map(|folder| folder.join("messages.jsonl"))
            .filter(|p| p.is_file())
            .collect();
        out.sort();
        out
    }

    fn card(&self, head: &Head) -> Card {
        let meta = meta(&head.path).unwrap_or_default();
        Card {
            id: meta.id.unwrap_or_else(|| folder_name(&head.path)),
            root: meta.root,
            prompt: chat::first_prompt(head, self),
            at: meta.at,
        }
    }

    fn read(&self, path: &Path, _env: &Env) -> Result<Session, Trouble> {
        let meta = meta(path).unwrap_or_default();
        let known = Known {
            agent: NAME,
            id: meta.id.unwrap_or_else(|| folder_name(path)),
            root: meta.root,
        };
        chat::read(path, self, known)
    }

    fn calls(&self, session: &Session, from: u32, _env: &Env) -> Result<Calls, Trouble> {
        chat::calls(session, from, self)
    }

    fn cut(&self, _session: &Session, _turn: u32, _env: &Env) -> Result<Vec<FileChange>, Trouble> {
        Err(Trouble::ForkInstead {
            why: "Vibe counts the messages of a session in another file, and goes back by a new session itself"
                .to_owned(),
        })
    }

    fn fork(
        &self,
        session: &Session,
        turn: u32,
        new: &NewSession,
        _env: &Env,
    ) -> Result<Fork, Trouble> {
        let refused = |why: &str| Trouble::Refused {
            why: why.to_owned(),
        };
        let keep = chat::end_before(session, turn)?;
        // One line that is no JSON, and Vibe loads nothing.
        let bad = [
            Oddity::BadLine,
            Oddity::NulHole,
            Oddity::GluedRecords,
            Oddity::ByteOrderMark,
        ];
        let spoilt = session.warnings.all().iter();
        if spoilt
            .filter(|w| bad.contains(&w.oddity))
            .any(|w| w.first.1 < keep)
        {
            return Err(refused(
                "a line of the kept turns is damaged, and Vibe loads no session that has one",
            ));
        }
        let id = new.v4();
        let short = id.get(..8).unwrap_or_default();
        let name = format!("session_{}_{short}", new.at.format("%Y%m%d_%H%M%S"));
        let folder = session.path().parent().unwrap_or(Path::new(""));
        let to = folder.with_file_name(name);
        let mut messages = 0u64;
        let body = pieces(session.path(), (0, keep), &mut |record, _| {
            if !record.get("role").is_some_and(|r| r.is_str("system")) {
                messages += 1;
            }
        })?;
        let old = side_file(&folder.join("meta.json"))?.ok_or_else(|| {
            refused("the session has no `meta.json`, without which Vibe loads none")
        })?;
        let told = document(&old, |meta, swaps| {
            swaps.set(meta, "session_id", &token(&id));
            swaps.set(meta, "parent_session_id", &token(&session.id));
            let count = messages.to_string().into_bytes();
            swaps.set(meta, "total_messages", &count.into());
            if let Some(name) = &new.name {
                swaps.set(meta, "title", &token(name));
            }
        });
        let told = told.ok_or_else(|| refused("the session's `meta.json` is no JSON object"))?;
        let files = vec![
            NewFile {
                path: to.join("meta.json"),
                body: vec![Piece::text(told)],
            },
            NewFile {
                path: to.join("messages.jsonl"),
                body,
            },
        ];
        Ok(Fork {
            id,
            files,
            rows: Vec::new(),
            named: new.name.is_some(),
        })
    }

    fn live(&self, session: &Session, env: &Env) -> Option<Alive> {
        alive::at_work(&["vibe"], session.root.as_deref(), env.pid)
    }

    fn resume(&self, session: &Session) -> Option<String> {
        plain(&session.id).then(|| format!("vibe --resume {}", session.id))
    }
}

fn folder_name(path: &Path) -> String {
    let folder = path.parent().and_then(Path::file_name);
    folder
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(text: &str) -> Option<String> {
        Vibe.prompt(&Value::of(text.as_bytes()).unwrap())
    }

    #[test]
    fn an_injected_message_is_no_turn() {
        assert_eq!(
            record(r#"{"role":"user","content":"do it","injected":false}"#).as_deref(),
            Some("do it")
        );
        assert_eq!(
            record(r#"{"role":"user","content":"x","injected":true}"#),
            None
        );
        assert_eq!(record(r#"{"role":"tool","content":"x"}"#), None);
    }
}
