//! GitHub Copilot CLI: `$COPILOT_HOME/session-state/<id>/events.jsonl`, one event a line, each naming the one before.
//! Facts: `formats/agents.md` §3.4 and `formats/measured.md`.
//!
//! ```text
//! {"type":"session.start","data":{"sessionId":"…","producer":"copilot-agent","context":{"cwd":"/w"}},"id":"S","timestamp":"…","parentId":null}
//! {"type":"user.message","data":{"content":"rename total","transformedContent":"…"},"id":"U","timestamp":"…","parentId":"S"}
//! {"type":"tool.execution_start","data":{"toolCallId":"T","toolName":"edit","arguments":{"path":"/w/a","old_str":"…","new_str":"…"}},…}
//! {"type":"tool.execution_complete","data":{"toolCallId":"T","success":true,…},…}
//! ```
//!
//! `turns` finds the turns, `calls` reads the edits, `snapshots` the copies that Copilot keeps beside the events. The
//! client's own way back is to end the file at an event, so that is what a cut does. Not covered: the flat files and
//! `rewind-snapshots` of older versions beyond their events, and what VS Code writes in the same envelope.

mod calls;
mod fork;
mod snapshots;
mod turns;
mod vscode;

use std::path::{Path, PathBuf};

pub use vscode::VsCode;

use super::hooks::{self, Setup};
use super::json::Value;
use super::record::{plain, text};
use super::splice::end_of;
use super::{Alive, Card, Format, Head, Trouble, alive, time};
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::Calls;
use crate::model::fork::{Fork, NewSession};
use crate::model::session::Session;

/// GitHub Copilot CLI.
pub struct Copilot;

const NAME: &str = "copilot";

impl Format for Copilot {
    fn agent(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "Copilot CLI"
    }

    fn is(&self, head: &Head) -> bool {
        head.records().any(|r| signature(&r))
    }

    fn places(&self, env: &Env, _workspace: Option<&Path>) -> Vec<PathBuf> {
        // Folders are named by session, not by workspace: every one may be of any workspace.
        let Some(state) = env
            .dir("COPILOT_HOME", ".copilot")
            .map(|h| h.join("session-state"))
        else {
            return Vec::new();
        };
        let Ok(found) = std::fs::read_dir(state) else {
            return Vec::new();
        };
        let mut out: Vec<PathBuf> = found
            .filter_map(|e| e.ok().map(|e| e.path()))
            .filter_map(|path| match path.extension() {
                Some(e) if e == "jsonl" => Some(path),
                _ => Some(path.join("events.jsonl")).filter(|p| p.is_file()),
            })
            .collect();
        out.sort();
        out
    }

    fn card(&self, head: &Head) -> Card {
        let mut card = Card::default();
        for record in head.records() {
            if signature(&record) && card.id.is_empty() {
                let start = turns::Start::of(&record);
                card.id = start.id;
                card.root = start.cwd;
                card.at = text(&record, "timestamp").and_then(|t| time(&t));
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
        if target.span.start == 0 || target.line != target.span.start {
            return refuse(
                "the turn does not begin a line, so the file cannot end there".to_owned(),
            );
        }
        let before = turn.checked_sub(1).and_then(|n| session.turn(n));
        if let Some(before) = before
            && calls::open_at_end(session, before)?
        {
            return refuse(
                "a call of the turn before has no result yet where the file would end".to_owned(),
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
        fork::fork(session, end_of(&self.cut(session, turn, env)?)?, turn, new)
    }

    fn file_of(&self, id: &str, _cwd: Option<&Path>, env: &Env) -> Option<PathBuf> {
        let home = env.dir("COPILOT_HOME", ".copilot")?;
        let folder = home
            .join("session-state")
            .join(Some(id).filter(|i| plain(i))?);
        folder.is_dir().then(|| folder.join("events.jsonl"))
    }

    fn live(&self, session: &Session, _env: &Env) -> Option<Alive> {
        let folder = session.path().parent()?;
        in_use(folder)
            .or_else(|| alive::locked(&folder.join(".hold")))
            .or_else(|| {
                let name = plain(&session.id).then(|| format!("{}.lock", session.id))?;
                alive::locked(&folder.parent()?.join(".session-operation-locks").join(name))
            })
    }

    fn hooks(&self) -> Option<Setup> {
        Some(Setup {
            user: hooks::Place {
                var: "COPILOT_HOME",
                home: ".copilot",
                file: "hooks/rewind.json",
            },
            project: Some(".github/hooks/rewind.json"),
            form: hooks::Form::Flat {
                on: &[
                    ("userPromptSubmitted", None),
                    ("preToolUse", None),
                    ("postToolUse", None),
                ],
                command: "bash",
                timeout: Some(("timeoutSec", 10)),
                more: "\"type\": \"command\", ",
            },
            end: Some("agentStop"),
            then: None,
        })
    }

    fn resume(&self, session: &Session) -> Option<String> {
        plain(&session.id).then(|| format!("copilot --resume={}", session.id))
    }
}

/// `formats/agents.md` §4, row 3; VS Code writes the same envelope and names itself.
fn signature(record: &Value<'_>) -> bool {
    record
        .get("type")
        .is_some_and(|t| t.is_str("session.start"))
        && record.get("data").is_some_and(|d| {
            d.get("sessionId").is_some()
                && d.get("vscodeVersion").is_none()
                && d.get("producer").is_none_or(|p| p.is_str("copilot-agent"))
                && (d.get("producer").is_some() || d.get("copilotVersion").is_some())
        })
}

/// `inuse.<pid>.lock` of a process that runs; what a crash leaves names one that is gone.
fn in_use(folder: &Path) -> Option<Alive> {
    std::fs::read_dir(folder).ok()?.find_map(|entry| {
        let name = entry.ok()?.file_name();
        let number = name
            .to_str()?
            .strip_prefix("inuse.")?
            .strip_suffix(".lock")?;
        let pid = number.parse().ok()?;
        alive::runs(pid).then(|| Alive {
            sign: format!("`{}` names a running process", folder.join(&name).display()),
            pid: Some(pid),
        })
    })
}

#[cfg(test)]
mod tests;
