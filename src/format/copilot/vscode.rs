//! What VS Code writes in the envelope of Copilot CLI: the same events, and `data.vscodeVersion` in the first one. Only
//! read: the editor keeps the conversation itself (`formats/agents.md` §3.4).

use std::path::{Path, PathBuf};

use super::super::json::Value;
use super::super::record::text;
use super::super::{Access, Alive, Card, Format, Head, Trouble, time};
use super::{calls, turns};
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::Calls;
use crate::model::fork::{Fork, NewSession};
use crate::model::session::Session;

/// Copilot in VS Code.
pub struct VsCode;

const NAME: &str = "vscode-copilot";
const WHY: &str = "VS Code keeps the conversation itself and does not read these events back; its own checkpoints go back";

fn signature(record: &Value<'_>) -> bool {
    record
        .get("type")
        .is_some_and(|t| t.is_str("session.start"))
        && record
            .get("data")
            .is_some_and(|d| d.get("sessionId").is_some() && d.get("vscodeVersion").is_some())
}

impl Format for VsCode {
    fn agent(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "Copilot in VS Code"
    }

    fn access(&self) -> Access {
        Access::ReadOnly
    }

    fn is(&self, head: &Head) -> bool {
        head.records().any(|r| signature(&r))
    }

    /// They lie in folders of the editor that differ by system and profile: a user names the file.
    fn places(&self, _env: &Env, _workspace: Option<&Path>) -> Vec<PathBuf> {
        Vec::new()
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
        Ok(Session {
            agent: NAME,
            ..turns::read(path)?
        })
    }

    fn calls(&self, session: &Session, from: u32, _env: &Env) -> Result<Calls, Trouble> {
        calls::read(session, from)
    }

    fn cut(&self, _session: &Session, _turn: u32, _env: &Env) -> Result<Vec<FileChange>, Trouble> {
        Err(Trouble::Refused {
            why: WHY.to_owned(),
        })
    }

    fn fork(&self, _: &Session, _: u32, _: &NewSession, _: &Env) -> Result<Fork, Trouble> {
        Err(Trouble::Refused {
            why: WHY.to_owned(),
        })
    }

    fn live(&self, _session: &Session, _env: &Env) -> Option<Alive> {
        None
    }

    fn resume(&self, _session: &Session) -> Option<String> {
        None
    }
}
