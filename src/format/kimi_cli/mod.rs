//! The older Kimi CLI: `$KIMI_SHARE_DIR/sessions/<MD5 of the workspace>/<session>/` with `wire.jsonl` (all events, with
//! times) and `context.jsonl` (what the model sees), and `kimi.json` above, which names the workspaces.
//!
//! ```text
//! wire:     {"type":"metadata","protocol_version":"1.8"}
//!           {"timestamp":1780000000.1,"message":{"type":"TurnBegin","payload":{"user_input":"rename foo"}}}
//!           {"timestamp":1780000002.0,"message":{"type":"ToolCall","payload":{"type":"function","id":"T","function":{…}}}}
//!           {"timestamp":1780000003.0,"message":{"type":"ToolResult","payload":{"tool_call_id":"T","return_value":{"is_error":false}}}}
//! context:  {"role":"_checkpoint","id":0}
//!           {"role":"user","content":"rename foo"}
//! ```
//!
//! A session is both files, and its turns are those of the wire file: the context loses turns when it is summarised. Both
//! are cut before the same prompt (`align`), as the client's own undo does. A `context.jsonl` without the other file, as
//! old versions left it, is only read.

mod align;

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use md5::{Digest, Md5};

use super::chat::{self, Action, Dialect, Input, Known, Tool};
use super::hooks::{self, Setup};
use super::json::Value;
use super::record::{entries, hex, plain, text};
use super::splice::{document, pieces, side_file, token};
use super::{Alive, Card, Format, Head, Trouble, alive};
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::Calls;
use crate::model::fork::{Fork, NewFile, NewSession, Piece};
use crate::model::session::Session;

/// Kimi CLI.
pub struct KimiCli;

const NAME: &str = "kimi-cli";
const WIRE: &str = "wire.jsonl";
const CONTEXT: &str = "context.jsonl";

/// The records of `wire.jsonl`.
struct Wire;

/// The records of `context.jsonl`.
struct Context;

/// The event of a record; that of a sub-agent stands inside one of its parent's.
fn event<'v>(record: &Value<'v>) -> Option<Value<'v>> {
    let message = record.get("message")?;
    if message
        .get("type")
        .is_some_and(|t| t.is_str("SubagentEvent"))
    {
        return message.get("payload")?.get("event");
    }
    Some(message)
}

/// The prompt that begins a turn.
fn begun(record: &Value<'_>) -> Option<String> {
    let message = record.get("message")?;
    message.get("type").filter(|t| t.is_str("TurnBegin"))?;
    chat::words(&message.get("payload")?.get("user_input")?)
}

impl Dialect for Wire {
    fn prompt(&self, record: &Value<'_>) -> Option<String> {
        begun(record)
    }

    fn key(&self, _record: &Value<'_>) -> Option<String> {
        None
    }

    fn at(&self, record: &Value<'_>) -> Option<DateTime<Utc>> {
        chat::time(&record.get("timestamp")?)
    }

    fn actions(&self, record: &Value<'_>, take: &mut dyn FnMut(Action<'_>)) {
        let Some(event) = event(record) else { return };
        let Some(payload) = event.get("payload") else {
            return;
        };
        match text(&event, "type").as_deref() {
            Some("ToolCall") => {
                let Some(function) = payload.get("function") else {
                    return;
                };
                let input = function.get("arguments").and_then(Input::of);
                if let (Some(name), Some(input)) = (text(&function, "name"), input) {
                    take(Action::Call {
                        id: text(&payload, "id"),
                        name: name.into(),
                        input,
                    });
                }
            }
            Some("ToolResult") => {
                let failed = payload.get("return_value").and_then(|r| r.get("is_error"));
                if let Some(id) = text(&payload, "tool_call_id") {
                    take(Action::Result {
                        id,
                        done: failed.map(|f| !f.is_true()),
                    });
                }
            }
            _ => {}
        }
    }

    fn tool(&self, name: &str) -> Option<Tool> {
        tool(name)
    }
}

impl Dialect for Context {
    fn prompt(&self, record: &Value<'_>) -> Option<String> {
        align::person(record)
    }

    fn key(&self, _record: &Value<'_>) -> Option<String> {
        None
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
            let failed = said.is_some_and(|s| s.starts_with("<system>ERROR:"));
            take(Action::Result {
                id,
                done: Some(!failed),
            });
        }
    }

    fn tool(&self, name: &str) -> Option<Tool> {
        tool(name)
    }
}

fn tool(name: &str) -> Option<Tool> {
    Some(match name {
        "StrReplaceFile" => Tool::Replace,
        "WriteFile" => Tool::Write,
        "Shell" => Tool::Shell,
        "Task" | "Agent" | "CreateSubagent" => Tool::Other,
        // The client's own tools are in capitals; what a server offers is named as the server likes.
        _ if !name.starts_with(|c: char| c.is_ascii_uppercase()) => Tool::Other,
        _ => return None,
    })
}

/// Which of the two files a record is of.
fn dialect(head: &Head) -> &'static dyn Dialect {
    if head.records().any(is_wire) {
        &Wire
    } else {
        &Context
    }
}

fn is_wire(record: Value<'_>) -> bool {
    record.get("type").is_some_and(|t| t.is_str("metadata"))
        && record.get("protocol_version").is_some()
        && record.get("created_at").is_none()
}

fn is_context(record: Value<'_>) -> bool {
    let own = ["_system_prompt", "_checkpoint", "_usage"];
    record
        .get("role")
        .is_some_and(|r| own.iter().any(|o| r.is_str(o)))
}

/// The id of a session: its folder.
fn id(path: &Path) -> String {
    let folder = path.parent().and_then(Path::file_name);
    folder
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// The name of the folder that holds the sessions of a workspace.
fn folder_of(workspace: &[u8]) -> String {
    hex(&Md5::digest(workspace))
}

/// The workspace, which `kimi.json` three folders up names in full.
fn root(path: &Path) -> Option<PathBuf> {
    let folder = path.parent()?.parent()?;
    let name = folder.file_name()?.to_str()?;
    let bytes = side_file(&folder.parent()?.with_file_name("kimi.json")).ok()??;
    let lead = bytes.iter().take_while(|b| b.is_ascii_whitespace()).count();
    let known = Value::of(bytes.get(lead..)?)?;
    let mut dirs = known.get("work_dirs").into_iter();
    dirs.by_ref()
        .flat_map(|d| d.items().collect::<Vec<_>>())
        .filter_map(|d| text(&d, "path"))
        // A workspace on another machine has its kind before the hash.
        .find(|path| name == folder_of(path.as_bytes()))
        .map(PathBuf::from)
}

impl Format for KimiCli {
    fn agent(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "Kimi CLI"
    }

    /// `formats/agents.md` §4, rows 8 and 9.
    fn is(&self, head: &Head) -> bool {
        head.records().next().is_some_and(is_wire) || head.records().any(is_context)
    }

    fn places(&self, env: &Env, workspace: Option<&Path>) -> Vec<PathBuf> {
        let Some(all) = env
            .dir("KIMI_SHARE_DIR", ".kimi")
            .map(|h| h.join("sessions"))
        else {
            return Vec::new();
        };
        let folders = match workspace {
            Some(w) => vec![all.join(folder_of(w.as_os_str().as_encoded_bytes()))],
            None => entries(&all),
        };
        let own = |session: &PathBuf| {
            let file = |name| Some(session.join(name)).filter(|p: &PathBuf| p.is_file());
            file(WIRE).or_else(|| file(CONTEXT))
        };
        let sessions: Vec<PathBuf> = folders.iter().flat_map(|f| entries(f)).collect();
        let mut out: Vec<PathBuf> = sessions.iter().filter_map(own).collect();
        out.sort();
        out
    }

    fn card(&self, head: &Head) -> Card {
        let dialect = dialect(head);
        Card {
            id: id(&head.path),
            root: root(&head.path),
            prompt: chat::first_prompt(head, dialect),
            at: head.records().find_map(|r| dialect.at(&r)),
        }
    }

    fn read(&self, path: &Path, _env: &Env) -> Result<Session, Trouble> {
        let known = Known {
            agent: NAME,
            id: id(path),
            root: root(path),
        };
        let head = Head::read(path).map_err(Trouble::io(path))?;
        chat::read(path, dialect(&head), known)
    }

    fn calls(&self, session: &Session, from: u32, _env: &Env) -> Result<Calls, Trouble> {
        let head = Head::read(session.path()).map_err(Trouble::io(session.path()))?;
        chat::calls(session, from, dialect(&head))
    }

    fn cut(&self, session: &Session, turn: u32, _env: &Env) -> Result<Vec<FileChange>, Trouble> {
        let wire = chat::end_before(session, turn)?;
        let context = align::before(session, turn)?;
        Ok(vec![
            FileChange::Truncate {
                path: session.path().to_path_buf(),
                keep: wire,
                len: session.len,
            },
            FileChange::Truncate {
                path: context.path,
                keep: context.keep,
                len: context.len,
            },
        ])
    }

    fn fork(
        &self,
        session: &Session,
        turn: u32,
        new: &NewSession,
        _env: &Env,
    ) -> Result<Fork, Trouble> {
        let wire = chat::end_before(session, turn)?;
        let context = align::before(session, turn)?;
        let id = new.v4();
        let folder = session.path().parent().unwrap_or(Path::new(""));
        let to = folder.with_file_name(&id);
        // Neither file names the session.
        let copied = |from: &Path, keep| pieces(from, (0, keep), &mut |_, _| {});
        let mut files = Vec::new();
        let mut named = false;
        if let Some(old) = side_file(&folder.join("state.json"))? {
            let told = document(&old, |state, swaps| {
                if let Some(name) = &new.name {
                    swaps.set(state, "custom_title", &token(name));
                    named = true;
                }
            });
            files.push(NewFile {
                path: to.join("state.json"),
                body: vec![Piece::text(told.unwrap_or(old))],
            });
        }
        files.push(NewFile {
            path: to.join(CONTEXT),
            body: copied(&context.path, context.keep)?,
        });
        files.push(NewFile {
            path: to.join(WIRE),
            body: copied(session.path(), wire)?,
        });
        Ok(Fork {
            id,
            files,
            rows: Vec::new(),
            named,
        })
    }

    fn file_of(&self, id: &str, cwd: Option<&Path>, env: &Env) -> Option<PathBuf> {
        let sessions = env.dir("KIMI_SHARE_DIR", ".kimi")?.join("sessions");
        let workspace = folder_of(cwd?.as_os_str().as_encoded_bytes());
        let folder = sessions
            .join(workspace)
            .join(Some(id).filter(|i| plain(i))?);
        folder.is_dir().then(|| folder.join(WIRE))
    }

    fn live(&self, session: &Session, env: &Env) -> Option<Alive> {
        alive::at_work(&["kimi", "kimi-cli"], session.root.as_deref(), env.pid)
    }

    fn hooks(&self) -> Option<Setup> {
        Some(Setup {
            user: hooks::Place {
                var: "KIMI_SHARE_DIR",
                home: ".kimi",
                file: "config.toml",
            },
            project: None,
            form: hooks::Form::Tables {
                on: hooks::ALL_TOOLS,
                timeout: 10,
            },
            end: Some("Stop"),
            then: None,
        })
    }

    fn resume(&self, session: &Session) -> Option<String> {
        plain(&session.id).then(|| format!("kimi --session {}", session.id))
    }
}
