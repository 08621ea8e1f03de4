//! Claude Code sessions.

use std::path::{Path, PathBuf};

use super::{Alive, Card, Format, Head, Trouble};
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::Calls;
use crate::model::session::Session;

/// Claude Code.
pub struct Claude;

impl Format for Claude {
    fn agent(&self) -> &'static str {
        "claude"
    }

    fn title(&self) -> &'static str {
        "Claude Code"
    }

    fn is(&self, _head: &Head) -> bool {
        false
    }

    fn places(&self, _env: &Env, _workspace: Option<&Path>) -> Vec<PathBuf> {
        Vec::new()
    }

    fn card(&self, _head: &Head) -> Card {
        Card::default()
    }

    fn read(&self, _path: &Path, _env: &Env) -> Result<Session, Trouble> {
        Err(Trouble::Broken {
            what: String::new(),
        })
    }

    fn calls(&self, _session: &Session, _from: u32, _env: &Env) -> Result<Calls, Trouble> {
        Ok(Calls::default())
    }

    fn cut(&self, _session: &Session, _turn: u32, _env: &Env) -> Result<Vec<FileChange>, Trouble> {
        Err(Trouble::Refused { why: String::new() })
    }

    fn live(&self, _session: &Session, _env: &Env) -> Option<Alive> {
        None
    }

    fn resume(&self, _session: &Session) -> Option<String> {
        None
    }
}
