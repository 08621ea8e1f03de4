//! The agents' session formats. One file an agent: how its files are recognised, where they lie, what a turn is, what
//! the calls did, where a conversation may be cut, how a live session shows. Adding an agent is one such file and one
//! line in [`ALL`].
//!
//! Reading has two depths. [`Format::read`] finds the turns in one pass that leaves most lines at their head;
//! [`Format::calls`] parses the edits inside the turns that are asked for, and names contents instead of copying them.

mod alive;
pub mod antigravity;
pub mod captured;
mod chat;
pub mod claude;
pub mod codex;
pub mod copilot;
pub mod cursor;
pub mod described;
pub mod droid;
pub mod dsh;
pub mod gemini;
pub mod generic;
pub mod gptme;
pub mod grok;
mod head;
pub mod hooks;
pub mod json;
pub mod kimi;
pub mod kimi_cli;
pub mod kiro;
pub mod lines;
pub mod named;
pub mod patch;
pub mod payload;
pub mod pi;
pub mod qwen;
pub mod reasonix;
mod record;
mod splice;
pub mod vibe;

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

pub use head::Head;

use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::Calls;
use crate::model::fork::{Fork, NewSession};
use crate::model::session::Session;

/// Every format, in the order in which they are asked (`formats/agents.md` §4: signatures collide, so the order counts).
pub const ALL: &[&dyn Format] = &[
    &codex::Codex,
    &copilot::Copilot,
    &copilot::VsCode,
    &dsh::Dsh,
    &pi::Pi,
    &droid::Droid,
    &gemini::Gemini,
    &kimi::Kimi,
    &kimi_cli::KimiCli,
    &kiro::Kiro,
    &antigravity::Antigravity,
    &qwen::Qwen,
    &claude::IFLOW,
    &claude::QODER,
    &claude::OPENCLAUDE,
    &claude::Claude,
    &cursor::Cursor,
    &vibe::Vibe,
    &grok::Grok,
    &reasonix::Reasonix,
    &gptme::Gptme,
    &captured::Captured,
    &generic::Generic,
];

/// What is known of a session from the head of its file alone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Card {
    /// The session's id.
    pub id: String,
    /// The workspace folder that the agent recorded.
    pub root: Option<PathBuf>,
    /// The first prompt, where the head holds it.
    pub prompt: Option<String>,
    /// When it was started.
    pub at: Option<DateTime<Utc>>,
}

/// How a live session shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alive {
    /// The sign, in words: which file or lock says so.
    pub sign: String,
    /// The process, where known.
    pub pid: Option<u32>,
}

/// How a conversation of an agent goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Its file is cut where it is; it can be forked too.
    InPlace,
    /// Only a fork is known to be safe.
    Fork,
    /// Not at all: the agent would not read what we wrote.
    ReadOnly,
}

/// Why a format cannot do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// A file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is of a version that is newer than we know.
    #[error("{what}")]
    Newer {
        /// What was seen.
        what: String,
    },
    /// The file is of this format, and this cannot be done with it safely.
    #[error("{why}")]
    Refused {
        /// Why, and what it would break.
        why: String,
    },
    /// A cut in place is not known to be safe here, and a fork is.
    #[error("{why}")]
    ForkInstead {
        /// Why it cannot be cut where it is.
        why: String,
    },
    /// The file, or one that it builds upon, is missing or damaged beyond reading.
    #[error("{what}")]
    Broken {
        /// What is missing.
        what: String,
    },
}

impl Trouble {
    /// For `map_err` on reads.
    pub fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Trouble + '_ {
        move |source| Trouble::Io {
            path: path.to_path_buf(),
            source,
        }
    }
}

/// One agent's session format.
pub trait Format: Sync {
    /// The agent's name, as `--agent` takes it.
    fn agent(&self) -> &'static str;

    /// The agent's name, as people write it.
    fn title(&self) -> &'static str;

    /// How far a conversation of this agent can be taken back; a single session may allow less.
    fn access(&self) -> Access {
        Access::InPlace
    }

    /// Whether a file with this head is a session of this agent.
    fn is(&self, head: &Head) -> bool;

    /// Session files of this agent, newest kept first where the agent orders them. With a workspace, only places that
    /// can hold sessions of it; the caller still checks each [`Card::root`].
    fn places(&self, env: &Env, workspace: Option<&Path>) -> Vec<PathBuf>;

    /// What the head of a session file tells.
    fn card(&self, head: &Head) -> Card;

    /// Finds the turns.
    ///
    /// # Errors
    /// [`Trouble::Io`], [`Trouble::Newer`] or [`Trouble::Broken`]. Damaged lines are no error.
    fn read(&self, path: &Path, env: &Env) -> Result<Session, Trouble>;

    /// Reads what the calls did, in the turns from `from` on and no others.
    ///
    /// # Errors
    /// [`Trouble::Io`] when the file cannot be read.
    fn calls(&self, session: &Session, from: u32, env: &Env) -> Result<Calls, Trouble>;

    /// What must change on disk so that the conversation ends before this turn.
    ///
    /// # Errors
    /// [`Trouble::ForkInstead`] where a cut in place is not safe and a fork is, else [`Trouble::Refused`].
    fn cut(&self, session: &Session, turn: u32, env: &Env) -> Result<Vec<FileChange>, Trouble>;

    /// A new session with the turns before this one, which the agent resumes by its id. Changes nothing that is there.
    ///
    /// # Errors
    /// [`Trouble::Refused`] where the agent would not take it up.
    fn fork(
        &self,
        session: &Session,
        turn: u32,
        new: &NewSession,
        env: &Env,
    ) -> Result<Fork, Trouble>;

    /// Whether an agent is at work on the session now (`formats/measured.md`: no client keeps its file open).
    fn live(&self, session: &Session, env: &Env) -> Option<Alive>;

    /// The file of the session with this id, where the agent's hooks do not name it; found without looking through the
    /// agent's sessions, since it waits.
    fn file_of(&self, _id: &str, _cwd: Option<&Path>, _env: &Env) -> Option<PathBuf> {
        None
    }

    /// How the agent is told to call our hook; `None` where it has no hooks, or they are not known.
    fn hooks(&self) -> Option<hooks::Setup> {
        None
    }

    /// The command that goes on with the session, to be run in its workspace.
    fn resume(&self, session: &Session) -> Option<String>;
}

/// Every format that this user has, in the order in which they are asked.
#[must_use]
pub fn all(env: &Env) -> &'static [&'static dyn Format] {
    described::order(env)
}

/// Tells which format a file is of, by its content.
#[must_use]
pub fn detect(head: &Head, env: &Env) -> Option<&'static dyn Format> {
    all(env).iter().copied().find(|f| f.is(head))
}

/// The format of that agent.
#[must_use]
pub fn of_agent(agent: &str, env: &Env) -> Option<&'static dyn Format> {
    all(env).iter().copied().find(|f| f.agent() == agent)
}

/// Reads an RFC 3339 time.
#[must_use]
pub fn time(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text).ok().map(|t| t.to_utc())
}
