//! Kimi Code: `$KIMI_CODE_HOME/sessions/wd_<folder>/<session>/agents/main/wire.jsonl`, with `file-history/` beside it
//! and `state.json` two folders up. Facts: `formats/agents.md` §3.7 and `formats/measured.md`.
//!
//! ```text
//! {"type":"metadata","protocol_version":"1.5","created_at":1796092817222}
//! {"type":"turn.prompt","input":[{"type":"text","text":"rename total"}],"origin":{"kind":"user"},"promptId":"P","turnId":0,"time":…}
//! {"type":"file_history.tracked","turnId":0,"path":"a.py","entry":{"key":"file-history/<hash>@v1","contentHash":"…"},"time":…}
//! {"type":"context.append_loop_event","event":{"type":"tool.call","toolCallId":"T","name":"Edit","args":{…}},"time":…}
//! {"type":"file_history.checkpoint","turnId":0,"phase":"end","entries":{"a.py":{"key":"file-history/<hash>@v2",…}},"time":…}
//! {"type":"context.undo","count":1,"time":…}
//! ```
//!
//! Not covered: what sub-agents did (they have wire files of their own; a gap says so), and the older Kimi CLI, whose two
//! files are another format.

mod calls;
mod fork;
mod turns;

use std::path::{Path, PathBuf};

use super::hooks::{self, Setup};
use super::json::Value;
use super::record::{entries, plain, text};
use super::splice::end_of;
use super::{Alive, Card, Format, Head, Trouble, alive};
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::Calls;
use crate::model::fork::{Fork, NewSession};
use crate::model::session::Session;

/// Kimi Code.
pub struct Kimi;

const NAME: &str = "kimi";

impl Format for Kimi {
    fn agent(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "Kimi Code"
    }

    fn is(&self, head: &Head) -> bool {
        // The older Kimi CLI writes the same first record without a time.
        head.records().next().is_some_and(|r| {
            r.get("type").is_some_and(|t| t.is_str("metadata"))
                && r.get("protocol_version").is_some()
                && r.get("created_at").is_some()
        })
    }

    fn places(&self, env: &Env, _workspace: Option<&Path>) -> Vec<PathBuf> {
        // A folder is named by a slug and a hash of the workspace; the state file of each session names it in full.
        let Some(sessions) = env
            .dir("KIMI_CODE_HOME", ".kimi-code")
            .map(|h| h.join("sessions"))
        else {
            return Vec::new();
        };
        let mut out: Vec<PathBuf> = entries(&sessions)
            .iter()
            .flat_map(|folder| entries(folder))
            .map(|session| session.join("agents/main/wire.jsonl"))
            .filter(|p| p.is_file())
            .collect();
        out.sort();
        out
    }

    fn card(&self, head: &Head) -> Card {
        let (id, root) = turns::state(&head.path);
        let mut card = Card {
            id,
            root,
            ..Card::default()
        };
        for record in head.records() {
            if card.at.is_none() {
                card.at = turns::when(&record, "created_at");
            }
            if card.root.is_none() {
                card.root = turns::folder_of(&record);
            }
            if card.prompt.is_none() {
                card.prompt = turns::prompt_of(&record);
            }
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
        let refuse = |why: String| Err(Trouble::Refused { why });
        let Some(target) = session.turn(turn) else {
            return refuse(format!("the session has no turn {turn}"));
        };
        if !turns::begins_a_line(session.path(), target.span.start)? {
            return refuse(
                "the turn does not begin a line, so the file cannot end there".to_owned(),
            );
        }
        Ok(vec![FileChange::Truncate {
            path: session.path().to_path_buf(),
            keep: target.span.start,
            len: session.len,
        }])
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

    fn file_of(&self, id: &str, _cwd: Option<&Path>, env: &Env) -> Option<PathBuf> {
        if !plain(id) {
            return None;
        }
        // One folder a workspace, each with a folder a session.
        let sessions = env.dir("KIMI_CODE_HOME", ".kimi-code")?.join("sessions");
        let own = |workspace: PathBuf| Some(workspace.join(id)).filter(|p| p.is_dir());
        let folder = entries(&sessions).into_iter().find_map(own)?;
        Some(folder.join("agents/main/wire.jsonl"))
    }

    fn live(&self, session: &Session, env: &Env) -> Option<Alive> {
        alive::at_work(&["kimi", "kimi-code"], session.root.as_deref(), env.pid)
    }

    fn hooks(&self) -> Option<Setup> {
        Some(Setup {
            user: hooks::Place {
                var: "KIMI_CODE_HOME",
                home: ".kimi-code",
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
        plain(&session.id).then(|| format!("kimi -S {}", session.id))
    }
}

/// The kind of a record and, in a loop event, of the event inside.
fn kind(record: &Value<'_>) -> String {
    text(record, "type").unwrap_or_default()
}

#[cfg(test)]
mod tests;
