//! What `init`, `deinit` and `doctor` print with `--json`; part of the contract in `rewind-json(5)`.

use serde::Serialize;

use super::json::{GapOut, PathNote, PathOut, SessionOut};

/// `rewind init` and `rewind deinit`.
#[derive(Debug, Clone, Serialize)]
pub struct Init {
    /// `rewind.init/1` or `rewind.deinit/1`.
    pub schema: &'static str,
    /// `planned`, `done` or `unchanged`.
    pub status: &'static str,
    /// The agent.
    pub agent: String,
    /// The settings file.
    #[serde(flatten)]
    pub path: PathOut,
    /// The events that are hooked.
    pub events: Vec<&'static str>,
    /// What the user must still do.
    pub then: Option<&'static str>,
}

/// `rewind demo`.
#[derive(Debug, Clone, Serialize)]
pub struct Demo {
    /// `rewind.demo/1`.
    pub schema: &'static str,
    /// All of it; it can be thrown away.
    pub folder: String,
    /// The workspace.
    pub workspace: String,
    /// What `CLAUDE_CONFIG_DIR` must name.
    pub claude_config_dir: String,
    /// What `REWIND_STATE_DIR` should name.
    pub rewind_state_dir: String,
}

/// `rewind doctor`.
#[derive(Debug, Clone, Serialize)]
pub struct Doctor {
    /// `rewind.doctor/1`.
    pub schema: &'static str,
    /// The settings in force.
    pub config: ConfigOut,
    /// The agents that were found.
    pub agents: Vec<AgentOut>,
    /// Files of the user's that cannot be used.
    pub faults: Vec<FaultOut>,
    /// The session that is meant here; null where there is none.
    pub session: Option<DoctorSession>,
}

/// A session, and what of it does not go back.
#[derive(Debug, Clone, Serialize)]
pub struct DoctorSession {
    /// Which.
    #[serde(flatten)]
    pub session: SessionOut,
    /// How many turns it has.
    pub turns: usize,
    /// Whether an agent is at work on it.
    pub live: bool,
    /// Why the conversation does not go back; null where it does.
    pub conversation: Option<String>,
    /// Why no code goes back; null where it does.
    pub code: Option<String>,
    /// Files that are left, back to before the first turn.
    pub missing: Vec<PathNote>,
    /// Files that somebody changed since.
    pub conflicts: Vec<PathNote>,
    /// What is not covered.
    pub gaps: Vec<GapOut>,
}

/// The settings in force.
#[derive(Debug, Clone, Serialize)]
pub struct ConfigOut {
    /// The largest file that is captured, in bytes.
    pub largest: u64,
    /// Captures are made durable.
    pub durable: bool,
    /// Git mode is on for all agents.
    pub git: bool,
    /// How long it may take.
    pub git_limit_ms: u32,
}

/// An agent that was found.
#[derive(Debug, Clone, Serialize)]
pub struct AgentOut {
    /// Its name.
    pub agent: &'static str,
    /// `on`, `git`, `off`, `none` or `unknown`.
    pub hooks: &'static str,
    /// Its settings file.
    pub settings: Option<String>,
}

/// A description of an agent that cannot be used.
#[derive(Debug, Clone, Serialize)]
pub struct FaultOut {
    /// The file.
    #[serde(flatten)]
    pub path: PathOut,
    /// What is wrong with it.
    pub why: String,
}

/// `rewind man`.
#[derive(Debug, Clone, Serialize)]
pub struct Man {
    /// `rewind.man/1`.
    pub schema: &'static str,
    /// The folder that the pages are in now; nothing where they were only printed.
    pub folder: Option<PathOut>,
    /// The pages.
    pub pages: Vec<PageOut>,
}

/// A manual page.
#[derive(Debug, Clone, Serialize)]
pub struct PageOut {
    /// The name of its file.
    pub name: String,
    /// Its source.
    pub text: String,
}

/// `rewind completions`.
#[derive(Debug, Clone, Serialize)]
pub struct Completions {
    /// `rewind.completions/1`.
    pub schema: &'static str,
    /// The shell.
    pub shell: String,
    /// The script.
    pub script: String,
}
