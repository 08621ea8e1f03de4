//! What `init`, `deinit` and `doctor` print with `--json`; part of the contract in `rewind-json(5)`.

use serde::Serialize;

use super::json::PathOut;

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
