//! Agents that write Claude Code's records: told from it by the folder that their sessions lie in, iFlow also by its ids.
//! Read by the same reader, and only read: whether they go on with a file that was cut was not tried
//! (`formats/agents.md` §3.12).

use std::path::{Path, PathBuf};

use super::super::json::Value;
use super::super::{Access, Alive, Card, Format, Head, Trouble};
use super::{calls, place, turns};
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::Calls;
use crate::model::fork::{Fork, NewSession};
use crate::model::session::Session;

/// One of them.
pub struct Kin {
    agent: &'static str,
    title: &'static str,
    /// Its folder below home.
    home: &'static str,
    why: &'static str,
}

/// iFlow CLI.
pub const IFLOW: Kin = Kin {
    agent: "iflow",
    title: "iFlow",
    home: ".iflow",
    why: "whether iFlow goes on with a session that was cut or copied was not tried, so its sessions are only read",
};

/// Qoder.
pub const QODER: Kin = Kin {
    agent: "qoder",
    title: "Qoder",
    home: ".qoder",
    why: "whether Qoder goes on with a session that was cut or copied was not tried, so its sessions are only read",
};

/// `OpenClaude`.
pub const OPENCLAUDE: Kin = Kin {
    agent: "openclaude",
    title: "OpenClaude",
    home: ".openclaude",
    why: "whether OpenClaude goes on with a session that was cut or copied was not tried, so its sessions are only read",
};

impl Kin {
    fn projects(&self, env: &Env) -> Option<PathBuf> {
        Some(env.home.as_ref()?.join(self.home).join("projects"))
    }

    fn refuse<T>(&self) -> Result<T, Trouble> {
        Err(Trouble::Refused {
            why: self.why.to_owned(),
        })
    }
}

/// iFlow's ids begin so wherever the file lies (`formats/agents.md` §4, row 13).
fn iflow_id(record: &Value<'_>) -> bool {
    record.member("parentUuid").is_some()
        && place::text(record, "sessionId").is_some_and(|id| id.starts_with("session-"))
}

impl Format for Kin {
    fn agent(&self) -> &'static str {
        self.agent
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn access(&self) -> Access {
        Access::ReadOnly
    }

    fn is(&self, head: &Head) -> bool {
        if self.agent == IFLOW.agent && head.records().any(|r| iflow_id(&r)) {
            return true;
        }
        let below = |c: std::path::Component<'_>| c.as_os_str() == self.home;
        head.path.components().any(below) && head.records().any(|r| super::signature(&r))
    }

    fn places(&self, env: &Env, workspace: Option<&Path>) -> Vec<PathBuf> {
        let projects = self.projects(env);
        projects.map_or_else(Vec::new, |p| place::sessions_in(env, &p, workspace))
    }

    fn card(&self, head: &Head) -> Card {
        place::card(head)
    }

    fn read(&self, path: &Path, _env: &Env) -> Result<Session, Trouble> {
        Ok(Session {
            agent: self.agent,
            ..turns::read(path)?
        })
    }

    fn calls(&self, session: &Session, from: u32, env: &Env) -> Result<Calls, Trouble> {
        calls::read(session, from, env)
    }

    fn cut(&self, _session: &Session, _turn: u32, _env: &Env) -> Result<Vec<FileChange>, Trouble> {
        self.refuse()
    }

    fn fork(&self, _: &Session, _: u32, _: &NewSession, _: &Env) -> Result<Fork, Trouble> {
        self.refuse()
    }

    fn live(&self, session: &Session, env: &Env) -> Option<Alive> {
        super::super::alive::at_work(&[self.agent], session.root.as_deref(), env.pid)
    }

    fn resume(&self, _session: &Session) -> Option<String> {
        None
    }
}
