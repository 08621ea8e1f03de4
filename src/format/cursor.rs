//! Cursor: `~/.cursor/projects/<slug>/agent-transcripts/<uuid>/<uuid>.jsonl`, an export of its database.
//!
//! ```text
//! {"role":"user","message":{"content":[{"type":"text","text":"<user_query>\nrename foo\n</user_query>"}]}}
//! {"role":"assistant","message":{"content":[{"type":"tool_use","name":"StrReplace","input":{"path":"/home/u/app/a.py",…}}]}}
//! ```
//!
//! No ids, times or results, so of no call it is known whether it was done. Cursor does not read the file back, so its
//! conversation goes back in Cursor only (`formats/agents.md` §3.11).

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::chat::{self, Action, Dialect, Known, Tool};
use super::hooks::{self, Setup};
use super::json::Value;
use super::record::entries;
use super::{Access, Alive, Card, Format, Head, Trouble};
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::Calls;
use crate::model::fork::{Fork, NewSession};
use crate::model::session::Session;

/// Cursor.
pub struct Cursor;

const NAME: &str = "cursor";
const WHY: &str = "the transcript is an export that Cursor does not read back; go back to a checkpoint in Cursor itself";

impl Dialect for Cursor {
    fn prompt(&self, record: &Value<'_>) -> Option<String> {
        record.get("role").filter(|r| r.is_str("user"))?;
        let words = chat::words(&record.get("message")?.get("content")?)?;
        let (_, rest) = words.split_once("<user_query>")?;
        let query = rest.split_once("</user_query>").map_or(rest, |(q, _)| q);
        Some(query.trim_matches('\n').to_owned())
    }

    fn key(&self, _record: &Value<'_>) -> Option<String> {
        None
    }

    fn at(&self, _record: &Value<'_>) -> Option<DateTime<Utc>> {
        None
    }

    fn actions(&self, record: &Value<'_>, take: &mut dyn FnMut(Action<'_>)) {
        if let Some(content) = record.get("message").and_then(|m| m.get("content")) {
            chat::in_blocks(&content, take);
        }
    }

    fn tool(&self, name: &str) -> Option<Tool> {
        Some(match name {
            "StrReplace" => Tool::Replace,
            "Write" => Tool::Write,
            "Delete" => Tool::Delete,
            "ApplyPatch" => Tool::Patch,
            "EditNotebook" => Tool::Change,
            "Shell" => Tool::Shell,
            "Task" | "CallMcpTool" => Tool::Other,
            _ => return None,
        })
    }

    fn has_results(&self) -> bool {
        false
    }
}

/// Only the keys `role` and `message`.
fn shape(record: &Value<'_>) -> bool {
    let known = |key: &str| matches!(key, "role" | "message");
    record.get("role").is_some_and(|r| r.is_string())
        && record
            .get("message")
            .is_some_and(|m| m.get("content").is_some())
        && record.entries().all(|(key, _)| known(&key))
}

impl Format for Cursor {
    fn agent(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "Cursor"
    }

    fn access(&self) -> Access {
        Access::ReadOnly
    }

    /// `formats/agents.md` §4, row 16.
    fn is(&self, head: &Head) -> bool {
        let mut records = head.records().peekable();
        // The last record may be cut by the end of the head.
        records.peek().is_some_and(shape)
            && records.all(|r| shape(&r) || r.get("message").is_none())
    }

    fn places(&self, env: &Env, workspace: Option<&Path>) -> Vec<PathBuf> {
        let Some(projects) = env.home.as_ref().map(|h| h.join(".cursor/projects")) else {
            return Vec::new();
        };
        let folders = match workspace {
            Some(w) => vec![projects.join(slug(w))],
            None => entries(&projects),
        };
        let mut out: Vec<PathBuf> = folders
            .iter()
            .flat_map(|f| entries(&f.join("agent-transcripts")))
            .flat_map(|session| entries(&session))
            .filter(|p| p.extension().is_some_and(|e| e == "jsonl"))
            .collect();
        out.sort();
        out
    }

    fn card(&self, head: &Head) -> Card {
        Card {
            id: stem(&head.path),
            root: root(&head.path),
            prompt: chat::first_prompt(head, self),
            at: None,
        }
    }

    fn read(&self, path: &Path, _env: &Env) -> Result<Session, Trouble> {
        let known = Known {
            agent: NAME,
            id: stem(path),
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

    fn live(&self, _session: &Session, _env: &Env) -> Option<Alive> {
        None
    }

    fn hooks(&self) -> Option<Setup> {
        Some(Setup {
            user: hooks::Place {
                var: "",
                home: ".cursor",
                file: "hooks.json",
            },
            project: Some(".cursor/hooks.json"),
            form: hooks::Form::Flat {
                on: &[
                    ("beforeSubmitPrompt", None),
                    ("preToolUse", None),
                    ("postToolUse", None),
                ],
                command: "command",
                timeout: None,
                more: "",
            },
            end: Some("stop"),
            then: None,
        })
    }

    fn resume(&self, _session: &Session) -> Option<String> {
        None
    }
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// The name of a workspace's folder: everything but letters and digits becomes `-`, none at the start.
fn slug(workspace: &Path) -> String {
    let name = workspace.to_string_lossy();
    let name: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    name.trim_matches('-').to_owned()
}

/// So many folders are looked at for the one that a slug stands for.
const MOST: usize = 2_000;

/// The workspace of a transcript: the folder that its slug stands for, where there is exactly one.
fn root(path: &Path) -> Option<PathBuf> {
    let transcripts = |a: &&Path| a.file_name().is_some_and(|n| n == "agent-transcripts");
    let project = path.ancestors().find(transcripts)?.parent()?;
    let wanted = project.file_name()?.to_str()?;
    let mut found = None;
    let mut open = vec![PathBuf::from("/")];
    let mut looked = 0;
    while let Some(folder) = open.pop() {
        looked += 1;
        if looked > MOST {
            return None;
        }
        for entry in entries(&folder) {
            let name = slug(&entry);
            let inside = wanted
                .strip_prefix(&name)
                .is_some_and(|rest| rest.starts_with('-'));
            if !(inside || name == wanted) || !entry.is_dir() {
                continue;
            }
            if name == wanted && found.replace(entry.clone()).is_some() {
                return None;
            }
            if inside {
                open.push(entry);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_stands_for_the_only_folder_that_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("my-app")).unwrap();
        let file = base
            .join("projects")
            .join(slug(&base.join("my-app")))
            .join("agent-transcripts/x/x.jsonl");
        assert_eq!(root(&file), Some(base.join("my-app")));
        std::fs::create_dir_all(base.join("my/app")).unwrap();
        assert_eq!(root(&file), None);
    }
}
