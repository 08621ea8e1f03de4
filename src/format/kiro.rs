//! Kiro CLI: `~/.kiro/sessions/cli/<uuid>.jsonl` and `<uuid>.json` beside it.
//!
//! ```text
//! {"version":"v1","kind":"Prompt","data":{"message_id":"m1","content":[{"kind":"text","data":"make hello.txt"}],"meta":{"timestamp":1780000000}}}
//! {"version":"v1","kind":"AssistantMessage","data":{"message_id":"m2","content":[{"kind":"toolUse","data":{"toolUseId":"t1","name":"write","input":{…}}}]}}
//! {"version":"v1","kind":"ToolResults","data":{"message_id":"m3","content":[…],"results":{"t1":{"result":{"Success":{…}}}}}}
//! ```
//!
//! The client's own rewind makes a new session, and so does ours (`formats/agents.md` §3.10).

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::chat::{self, Action, Dialect, Input, Known, Tool};
use super::json::Value;
use super::record::{entries, plain, text};
use super::splice::{document, pieces, side_file, token};
use super::{Access, Alive, Card, Format, Head, Trouble, alive};
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::Calls;
use crate::model::fork::{Fork, NewFile, NewSession, Piece};
use crate::model::session::Session;

/// Kiro CLI.
pub struct Kiro;

const NAME: &str = "kiro";

fn of_kind<'v>(record: &Value<'v>, kind: &str) -> Option<Value<'v>> {
    record.get("kind").filter(|k| k.is_str(kind))?;
    record.get("data")
}

/// The data of the content parts of one kind.
fn parts<'v>(data: &Value<'v>, kind: &'static str) -> impl Iterator<Item = Value<'v>> {
    let content = data.get("content");
    content
        .into_iter()
        .flat_map(|c| c.items().collect::<Vec<_>>())
        .filter(move |p| p.get("kind").is_some_and(|k| k.is_str(kind)))
        .filter_map(|p| p.get("data"))
}

impl Dialect for Kiro {
    fn prompt(&self, record: &Value<'_>) -> Option<String> {
        let data = of_kind(record, "Prompt")?;
        let words: Vec<String> = parts(&data, "text")
            .filter_map(|d| d.text().map(Cow::into_owned))
            .collect();
        Some(words.join("\n"))
    }

    fn key(&self, record: &Value<'_>) -> Option<String> {
        text(&record.get("data")?, "message_id")
    }

    fn at(&self, record: &Value<'_>) -> Option<DateTime<Utc>> {
        chat::time(&record.get("data")?.get("meta")?.get("timestamp")?)
    }

    fn actions(&self, record: &Value<'_>, take: &mut dyn FnMut(Action<'_>)) {
        if let Some(data) = of_kind(record, "AssistantMessage") {
            for call in parts(&data, "toolUse") {
                let (Some(name), Some(input)) = (text(&call, "name"), call.get("input")) else {
                    continue;
                };
                // One tool writes in several ways; which, its input says.
                let how = text(&input, "command").filter(|_| is_write(&name));
                let name = how.map_or(name.clone(), |how| format!("{name}:{how}"));
                if let Some(input) = Input::of(input) {
                    take(Action::Call {
                        id: text(&call, "toolUseId"),
                        name: Cow::Owned(name),
                        input,
                    });
                }
            }
        }
        if let Some(data) = of_kind(record, "ToolResults") {
            for result in parts(&data, "toolResult") {
                let Some(id) = text(&result, "toolUseId") else {
                    continue;
                };
                let told = data.get("results").and_then(|r| r.get(&id));
                let told = told.and_then(|t| t.get("result"));
                let done = match (told, text(&result, "status").as_deref()) {
                    (Some(told), _) => Some(told.get("Success").is_some()),
                    (None, Some("success")) => Some(true),
                    (None, Some("error")) => Some(false),
                    (None, _) => None,
                };
                take(Action::Result { id, done });
            }
        }
    }

    fn tool(&self, name: &str) -> Option<Tool> {
        let (tool, how) = name.split_once(':').unwrap_or((name, ""));
        if is_write(tool) {
            return Some(match how {
                "create" => Tool::Write,
                "str_replace" | "strReplace" => Tool::Replace,
                _ => Tool::Change,
            });
        }
        Some(match tool {
            "shell" | "execute_bash" | "execute_cmd" => Tool::Shell,
            "subagent" | "delegate" | "use_aws" | "aws" => Tool::Other,
            _ if tool.starts_with('@') || tool.contains("___") => Tool::Other,
            _ => return None,
        })
    }
}

fn is_write(tool: &str) -> bool {
    matches!(tool, "write" | "fs_write" | "fsWrite")
}

/// What the file beside the messages tells.
fn beside(path: &Path) -> Option<(Option<String>, Option<PathBuf>)> {
    let bytes = side_file(&path.with_extension("json")).ok()??;
    let lead = bytes.iter().take_while(|b| **b != b'{').count();
    let value = Value::of(bytes.get(lead..)?)?;
    Some((
        text(&value, "session_id"),
        text(&value, "cwd").map(PathBuf::from),
    ))
}

impl Format for Kiro {
    fn agent(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "Kiro CLI"
    }

    fn access(&self) -> Access {
        Access::Fork
    }

    /// `formats/agents.md` §4, row 10.
    fn is(&self, head: &Head) -> bool {
        head.records().any(|r| {
            r.get("version").is_some_and(|v| v.is_str("v1"))
                && r.get("kind").is_some_and(|k| k.is_string())
                && r.get("data").is_some()
        })
    }

    fn places(&self, env: &Env, _workspace: Option<&Path>) -> Vec<PathBuf> {
        let Some(home) = env.dir("KIRO_HOME", ".kiro") else {
            return Vec::new();
        };
        // Names are ids: every one may be of any workspace.
        let mut out = entries(&home.join("sessions/cli"));
        out.retain(|p| p.extension().is_some_and(|e| e == "jsonl"));
        out.sort();
        out
    }

    fn card(&self, head: &Head) -> Card {
        let (id, root) = beside(&head.path).unwrap_or_default();
        Card {
            id: id.unwrap_or_else(|| stem(&head.path)),
            root,
            prompt: chat::first_prompt(head, self),
            at: head.records().find_map(|r| self.at(&r)),
        }
    }

    fn read(&self, path: &Path, _env: &Env) -> Result<Session, Trouble> {
        let (id, root) = beside(path).unwrap_or_default();
        let known = Known {
            agent: NAME,
            id: id.unwrap_or_else(|| stem(path)),
            root,
        };
        chat::read(path, self, known)
    }

    fn calls(&self, session: &Session, from: u32, _env: &Env) -> Result<Calls, Trouble> {
        chat::calls(session, from, self)
    }

    fn cut(&self, _session: &Session, _turn: u32, _env: &Env) -> Result<Vec<FileChange>, Trouble> {
        Err(Trouble::ForkInstead {
            why: "Kiro keeps the state of a session in another file, and goes back by a new session itself"
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
        let refused = |why: &str| Trouble::Refused {
            why: why.to_owned(),
        };
        let old = side_file(&path.with_extension("json"))?.ok_or_else(|| {
            refused("the session has no `.json` file beside it, without which Kiro loads none")
        })?;
        let told = document(&old, |state, swaps| {
            swaps.set(state, "session_id", &token(&id));
            swaps.set(state, "parent_session_id", &token(&session.id));
            swaps.set(state, "session_created_reason", &token("rewind"));
        });
        let told = told.ok_or_else(|| refused("the session's `.json` file is no JSON object"))?;
        let files = vec![
            NewFile {
                path: own.with_extension("json"),
                body: vec![Piece::text(told)],
            },
            NewFile {
                path: own,
                // The messages name no session.
                body: pieces(path, (0, keep), &mut |_, _| {})?,
            },
        ];
        Ok(Fork {
            id,
            files,
            ..Fork::default()
        })
    }

    fn file_of(&self, id: &str, _cwd: Option<&Path>, env: &Env) -> Option<PathBuf> {
        let home = env.dir("KIRO_HOME", ".kiro")?;
        let name = plain(id).then(|| format!("{id}.jsonl"))?;
        let folder = home.join("sessions/cli");
        folder.is_dir().then(|| folder.join(name))
    }

    fn live(&self, session: &Session, env: &Env) -> Option<Alive> {
        alive::at_work(
            &["kiro-cli", "kiro-cli-chat"],
            session.root.as_deref(),
            env.pid,
        )
    }

    fn resume(&self, session: &Session) -> Option<String> {
        plain(&session.id).then(|| format!("kiro-cli chat --resume-id {}", session.id))
    }
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}
