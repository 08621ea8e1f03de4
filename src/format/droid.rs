//! Factory Droid: `~/.factory/sessions/<workspace, / as ->/<uuid>.jsonl` with `<uuid>.settings.json` beside it.
//!
//! ```text
//! {"type":"session_start","id":"d0…","title":"rename","owner":"u","version":2,"cwd":"/home/u/app"}
//! {"type":"message","id":"m1","timestamp":"…","message":{"role":"user","content":[{"type":"text","text":"rename foo"}]}}
//! {"type":"message","id":"m2","timestamp":"…","message":{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Edit","input":{…}}]}}
//! ```
//!
//! How its own rewind is stored is not known, so a conversation goes back through a fork only (`formats/agents.md` §3.8).

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::chat::{self, Action, Dialect, Known, Tool};
use super::hooks::{self, Setup};
use super::json::Value;
use super::record::{entries, plain, text};
use super::splice::{pieces, token};
use super::{Access, Alive, Card, Format, Head, Trouble, alive};
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::Calls;
use crate::model::fork::{Fork, NewFile, NewSession, Piece};
use crate::model::session::Session;

/// Factory Droid.
pub struct Droid;

const NAME: &str = "droid";

impl Dialect for Droid {
    /// Only the first text block is the prompt: later ones are contents of files and reminders.
    fn prompt(&self, record: &Value<'_>) -> Option<String> {
        let content = of_role(record, "user")?;
        if content.is_string() {
            return content.text().map(std::borrow::Cow::into_owned);
        }
        if chat::has_result(&content) {
            return None;
        }
        content
            .items()
            .find(|b| b.get("type").is_some_and(|t| t.is_str("text")))
            .and_then(|b| text(&b, "text"))
            .filter(|t| !t.trim_start().starts_with("<system-reminder>"))
    }

    fn key(&self, record: &Value<'_>) -> Option<String> {
        text(record, "id")
    }

    fn at(&self, record: &Value<'_>) -> Option<DateTime<Utc>> {
        chat::time(&record.get("timestamp")?)
    }

    fn actions(&self, record: &Value<'_>, take: &mut dyn FnMut(Action<'_>)) {
        if let Some(content) = record.get("message").and_then(|m| m.get("content")) {
            chat::in_blocks(&content, take);
        }
    }

    fn tool(&self, name: &str) -> Option<Tool> {
        Some(match name {
            "Edit" | "MultiEdit" => Tool::Replace,
            "Create" | "Write" => Tool::Write,
            "ApplyPatch" => Tool::Patch,
            "Execute" => Tool::Shell,
            "Task" => Tool::Other,
            _ if name.contains("___") || name.starts_with("mcp__") => Tool::Other,
            _ => return None,
        })
    }
}

fn of_role<'v>(record: &Value<'v>, role: &str) -> Option<Value<'v>> {
    record.get("type").filter(|t| t.is_str("message"))?;
    let message = record.get("message")?;
    message.get("role").filter(|r| r.is_str(role))?;
    message.get("content")
}

fn header(record: &Value<'_>) -> bool {
    record
        .get("type")
        .is_some_and(|t| t.is_str("session_start"))
        && record.get("id").is_some_and(|i| i.is_string())
        && record.get("cwd").is_some_and(|c| c.is_string())
}

impl Format for Droid {
    fn agent(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "Factory Droid"
    }

    fn access(&self) -> Access {
        Access::Fork
    }

    /// `formats/agents.md` §4, row 6.
    fn is(&self, head: &Head) -> bool {
        head.records().take(5).any(|r| header(&r))
    }

    fn places(&self, env: &Env, workspace: Option<&Path>) -> Vec<PathBuf> {
        let Some(all) = env.home.as_ref().map(|h| h.join(".factory/sessions")) else {
            return Vec::new();
        };
        let folders = match workspace {
            // The name loses information, so the header decides.
            Some(w) => vec![all.join(w.to_string_lossy().replace('/', "-"))],
            None => entries(&all),
        };
        let mut out: Vec<PathBuf> = folders.iter().flat_map(|f| entries(f)).collect();
        out.retain(|p| p.extension().is_some_and(|e| e == "jsonl"));
        out.sort();
        out
    }

    fn card(&self, head: &Head) -> Card {
        let first = head.records().find(|r| header(r));
        Card {
            id: first.and_then(|r| text(&r, "id")).unwrap_or_default(),
            root: first.and_then(|r| text(&r, "cwd")).map(PathBuf::from),
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
        chat::calls(session, from, self)
    }

    fn cut(&self, _session: &Session, _turn: u32, _env: &Env) -> Result<Vec<FileChange>, Trouble> {
        Err(Trouble::ForkInstead {
            why: "it is not known whether Droid goes on with a session that was cut where it is"
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
        let keep = chat::end_before(session, turn)?;
        let (path, id) = (session.path(), new.v4());
        let own = path.with_file_name(format!("{id}.jsonl"));
        let new_id = token(&id);
        let mut named = false;
        let body = pieces(path, (0, keep), &mut |record, swaps| {
            if !header(record) {
                return;
            }
            swaps.member(record, "id", &session.id, &new_id);
            if let (Some(name), Some(title)) = (&new.name, record.member("title")) {
                swaps.put(&title, &token(name));
                named = true;
            }
        })?;
        let settings = path.with_extension("settings.json");
        let mut files = Vec::new();
        if settings.is_file() {
            files.push(NewFile {
                path: own.with_extension("settings.json"),
                body: vec![Piece::Whole(settings.into())],
            });
        }
        files.push(NewFile { path: own, body });
        Ok(Fork {
            id,
            files,
            rows: Vec::new(),
            named,
        })
    }

    fn live(&self, session: &Session, env: &Env) -> Option<Alive> {
        alive::at_work(&["droid"], session.root.as_deref(), env.pid)
    }

    fn hooks(&self) -> Option<Setup> {
        Some(Setup {
            user: hooks::Place {
                var: "",
                home: ".factory",
                file: "settings.json",
            },
            project: Some(".factory/settings.json"),
            form: hooks::Form::Groups {
                on: hooks::ALL_TOOLS,
                timeout: 10,
            },
            end: Some("Stop"),
            then: None,
        })
    }

    fn resume(&self, session: &Session) -> Option<String> {
        plain(&session.id).then(|| format!("droid --resume {}", session.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(content: &str) -> Option<String> {
        let record = format!(
            r#"{{"type":"message","id":"m","message":{{"role":"user","content":{content}}}}}"#
        );
        Droid.prompt(&Value::of(record.as_bytes()).unwrap())
    }

    #[test]
    fn only_the_first_text_of_a_person_is_a_prompt() {
        let two = r#"[{"type":"text","text":"do it"},{"type":"text","text":"Contents of a:\nx"}]"#;
        assert_eq!(prompt(two).as_deref(), Some("do it"));
        let result = r#"[{"type":"tool_result","tool_use_id":"c"},{"type":"text","text":"x"}]"#;
        assert_eq!(prompt(result), None);
        let reminder = r#"[{"type":"text","text":"<system-reminder>x</system-reminder>"}]"#;
        assert_eq!(prompt(reminder), None);
    }
}
