//! `DeepSeek` Harness: `~/.dsh/sessions/<project>/<id>/session.jsonl`, also compressed.
//!
//! ```text
//! {"type":"session","version":0,"id":"…","createdAt":"…","cwd":"/home/u/app"}
//! {"type":"user/message","seq":1,"source":{"kind":"user"},"content":"rename foo"}
//! ```
//!
//! Records are numbered without a gap (`seq`). What its tools did is not understood, and each turn says so
//! (`formats/agents.md` §3.5).

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::chat::{self, Action, Dialect, Known, Tool};
use super::json::Value;
use super::record::{entries, text};
use super::{Access, Alive, Card, Format, Head, Trouble, alive};
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::Calls;
use crate::model::fork::{Fork, NewSession};
use crate::model::session::Session;

/// `DeepSeek` Harness.
pub struct Dsh;

const NAME: &str = "dsh";
const WHY: &str =
    "sessions of DeepSeek Harness are only read: what it makes of a file that was cut is not known";

impl Dialect for Dsh {
    fn prompt(&self, record: &Value<'_>) -> Option<String> {
        record.get("type").filter(|t| t.is_str("user/message"))?;
        let source = record
            .get("source")
            .or_else(|| record.get("data")?.get("source"))?;
        source.get("kind").filter(|k| k.is_str("user"))?;
        let of = |v: &Value<'_>| {
            let names = ["content", "text", "message"].iter();
            names.clone().find_map(|n| chat::words(&v.get(n)?))
        };
        of(record).or_else(|| of(&record.get("data")?))
    }

    fn key(&self, record: &Value<'_>) -> Option<String> {
        let seq = || Some(format!("seq-{}", record.get("seq")?.u64()?));
        text(record, "id").or_else(seq)
    }

    fn at(&self, record: &Value<'_>) -> Option<DateTime<Utc>> {
        let at = record
            .get("createdAt")
            .or_else(|| record.get("timestamp"))?;
        chat::time(&at)
    }

    fn actions(&self, _record: &Value<'_>, _take: &mut dyn FnMut(Action<'_>)) {}

    fn tool(&self, _name: &str) -> Option<Tool> {
        None
    }
}

fn header(record: &Value<'_>) -> bool {
    let own = ["createdAt", "delegationDepth"];
    record.get("type").is_some_and(|t| t.is_str("session"))
        && record.get("version").is_some_and(|v| v.u64() == Some(0))
        && own.iter().any(|n| record.member(n).is_some())
}

impl Format for Dsh {
    fn agent(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "DeepSeek Harness"
    }

    fn access(&self) -> Access {
        Access::ReadOnly
    }

    /// `formats/agents.md` §4, row 4.
    fn is(&self, head: &Head) -> bool {
        head.records().next().is_some_and(|r| header(&r))
    }

    fn places(&self, env: &Env, _workspace: Option<&Path>) -> Vec<PathBuf> {
        let Some(sessions) = env.home.as_ref().map(|h| h.join(".dsh/sessions")) else {
            return Vec::new();
        };
        let names = ["session.jsonl", "session.jsonl.zst"];
        let mut out: Vec<PathBuf> = entries(&sessions)
            .iter()
            .flat_map(|project| entries(project))
            .filter_map(|folder| names.iter().map(|n| folder.join(n)).find(|p| p.is_file()))
            .collect();
        out.sort();
        out
    }

    fn card(&self, head: &Head) -> Card {
        let first = head.records().find(|r| header(r));
        Card {
            id: first
                .and_then(|r| text(&r, "id").or_else(|| text(&r, "sessionId")))
                .unwrap_or_else(|| folder_name(&head.path)),
            root: first.and_then(|r| text(&r, "cwd")).map(PathBuf::from),
            prompt: chat::first_prompt(head, self),
            at: first.and_then(|r| self.at(&r)),
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
        Ok(chat::not_understood(session, from))
    }

    fn cut(&self, _session: &Session, _turn: u32, _env: &Env) -> Result<Vec<FileChange>, Trouble> {
        chat::refuse(WHY)
    }

    fn fork(&self, _: &Session, _: u32, _: &NewSession, _: &Env) -> Result<Fork, Trouble> {
        chat::refuse(WHY)
    }

    fn live(&self, session: &Session, env: &Env) -> Option<Alive> {
        alive::at_work(&["dsh"], session.root.as_deref(), env.pid)
    }

    fn resume(&self, _session: &Session) -> Option<String> {
        None
    }
}

fn folder_name(path: &Path) -> String {
    let folder = path.parent().and_then(Path::file_name);
    folder
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default()
}
