//! pi and its kin: `$PI_CODING_AGENT_DIR/sessions/--<folder>--/<time>_<id>.jsonl`, one entry a line, a tree by `id` and
//! `parentId`. Oh-My-Pi and Prime write the same files below their own homes, `OpenClaw` nearly the same. Facts:
//! `formats/agents.md` §3.5 and `formats/measured.md`.
//!
//! ```text
//! {"type":"session","version":3,"id":"…","timestamp":"…","cwd":"/w"}
//! {"type":"message","id":"a1","parentId":null,"timestamp":"…","message":{"role":"user","content":[{"type":"text","text":"rename total"}]}}
//! {"type":"message","id":"a2","parentId":"a1","timestamp":"…","message":{"role":"assistant","content":[{"type":"toolCall","id":"T","name":"edit","arguments":{…}}]}}
//! {"type":"message","id":"a3","parentId":"a2","timestamp":"…","message":{"role":"toolResult","toolCallId":"T","isError":false,…}}
//! ```
//!
//! `tree` reads the entries and tells which the conversation holds, `turns` the turns, `calls` the edits. pi keeps no
//! copies: an edit is undone from its two texts, and what a `write` replaced is lost. Not covered: the session files of
//! `DeepSeek` Harness, which begin alike (`version` 0).

mod calls;
mod claw;
mod fork;
mod tree;
mod turns;

use std::path::{Path, PathBuf};

use super::hooks::{self, Setup};
use super::json::Value;
use super::record::{entries, plain, text};
use super::splice::end_of;
use super::{Alive, Card, Format, Head, Trouble, alive, time};
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::Calls;
use crate::model::fork::{Fork, NewSession};
use crate::model::session::Session;

/// pi.
pub struct Pi;

const NAME: &str = "pi";

/// The newest version of the entries that is known.
const VERSION: u64 = 3;

impl Format for Pi {
    fn agent(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "pi"
    }

    fn is(&self, head: &Head) -> bool {
        head.records().next().is_some_and(|r| header(&r))
    }

    fn places(&self, env: &Env, workspace: Option<&Path>) -> Vec<PathBuf> {
        let mut out = Vec::new();
        let own = env.dir("PI_CODING_AGENT_DIR", ".pi/agent");
        if let (Some(home), Some(workspace)) = (&own, workspace) {
            out.extend(entries(&home.join("sessions").join(folder_name(workspace))));
        }
        // How the others name a workspace's folder is not known for all of their versions.
        let all = own
            .filter(|_| workspace.is_none())
            .into_iter()
            .chain(kin(env));
        for home in all {
            let folders = entries(&home.join("sessions"));
            out.extend(folders.iter().flat_map(|f| entries(f)));
        }
        for agent in claws(env).iter().flat_map(|c| entries(&c.join("agents"))) {
            out.extend(entries(&agent.join("sessions")));
        }
        out.retain(|p| is_session_name(p));
        out.sort();
        out
    }

    fn card(&self, head: &Head) -> Card {
        let mut card = Card::default();
        for record in head.records() {
            if header(&record) && card.id.is_empty() {
                card.id = text(&record, "id").unwrap_or_default();
                card.root = text(&record, "cwd").map(PathBuf::from);
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

    fn calls(&self, session: &Session, from: u32, env: &Env) -> Result<Calls, Trouble> {
        calls::read(session, from, env)
    }

    fn cut(&self, session: &Session, turn: u32, env: &Env) -> Result<Vec<FileChange>, Trouble> {
        turns::cut(session, turn, env)
    }

    fn fork(
        &self,
        session: &Session,
        turn: u32,
        new: &NewSession,
        env: &Env,
    ) -> Result<Fork, Trouble> {
        let cut = self.cut(session, turn, env)?;
        if matches!(cut.as_slice(), [FileChange::Append { .. }]) {
            return Err(Trouble::Refused {
                why:
                    "OpenClaw goes on with the sessions of its index only, and a fork is not in it"
                        .to_owned(),
            });
        }
        fork::fork(session, end_of(&cut)?, new)
    }

    fn live(&self, session: &Session, env: &Env) -> Option<Alive> {
        let names = ["pi", "omp", "prime", "openclaw"];
        alive::at_work(&names, session.root.as_deref(), env.pid)
    }

    fn hooks(&self) -> Option<Setup> {
        Some(Setup {
            user: hooks::Place {
                var: "PI_CODING_AGENT_DIR",
                home: ".pi/agent",
                file: "extensions/rewind.ts",
            },
            project: Some(".pi/extensions/rewind.ts"),
            form: hooks::Form::Own {
                text: include_str!("extension.ts"),
            },
            end: None,
            then: None,
        })
    }

    fn resume(&self, session: &Session) -> Option<String> {
        // Its kin have the same option; what their program is called the file does not say.
        let ours = session.path().components().any(|c| {
            matches!(
                c.as_os_str().to_str(),
                Some(".omp" | ".prime" | ".openclaw" | ".clawdbot")
            )
        });
        (!ours && plain(&session.id)).then(|| format!("pi --session {}", session.id))
    }
}

/// `formats/agents.md` §4, rows 4 and 5.
fn header(record: &Value<'_>) -> bool {
    record.get("type").is_some_and(|t| t.is_str("session"))
        && record.get("id").is_some_and(|i| i.is_string())
        && record.get("cwd").is_some_and(|c| c.is_string())
        && record.get("createdAt").is_none()
        && record
            .get("version")
            .is_none_or(|v| v.u64().is_some_and(|n| n > 0))
}

/// The homes of the programs that are pi under another name.
fn kin(env: &Env) -> Vec<PathBuf> {
    let homes = [".omp/agent", ".prime/agent"].iter();
    homes
        .filter_map(|name| env.home.as_ref().map(|h| h.join(name)))
        .collect()
}

/// The homes of `OpenClaw`.
fn claws(env: &Env) -> Vec<PathBuf> {
    let old = env.home.as_ref().map(|h| h.join(".clawdbot"));
    [env.dir("OPENCLAW_STATE_DIR", ".openclaw"), old]
        .into_iter()
        .flatten()
        .collect()
}

/// `--` around the path, its separators turned into `-`. The name loses information, so the header decides.
fn folder_name(workspace: &Path) -> String {
    let path = workspace.to_string_lossy();
    let inner = path.trim_start_matches('/').replace(['/', '\\', ':'], "-");
    format!("--{inner}--")
}

fn is_session_name(path: &Path) -> bool {
    let inner = path.file_stem().map(Path::new).and_then(Path::extension);
    path.extension().is_some_and(|e| e == "jsonl") && inner.is_none_or(|i| i != "trajectory")
}

#[cfg(test)]
mod tests;
