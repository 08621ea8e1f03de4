//! How an agent is told to call `rewind hook`: which of its files names hooks, in which form, for which events
//! (`formats/agents.md` §6). What is done with that is `ops::init`.

use std::path::PathBuf;

use crate::env::Env;

/// Where and how an agent's hooks are set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// The file of the user's own settings.
    pub user: Place,
    /// The file below a project's folder.
    pub project: Option<&'static str>,
    /// What stands in it.
    pub form: Form,
    /// The event at the end of a turn, for git mode.
    pub end: Option<&'static str>,
    /// What the user must still do, in a sentence.
    pub then: Option<&'static str>,
}

/// A file in an agent's home folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The variable that names the home folder; empty where there is none.
    pub var: &'static str,
    /// Where it is without the variable, below the user's home.
    pub home: &'static str,
    /// The file in it.
    pub file: &'static str,
}

impl Place {
    /// The file; `None` without a home.
    #[must_use]
    pub fn path(&self, env: &Env) -> Option<PathBuf> {
        env.dir(self.var, self.home).map(|h| h.join(self.file))
    }
}

/// An event and the tools that it is asked for; `None` where the agent takes no such pattern, or all are meant.
pub type On = (&'static str, Option<&'static str>);

/// The form in which hooks stand in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// JSON: `{"hooks":{"PreToolUse":[{"matcher":"…","hooks":[{"type":"command","command":"…","timeout":10}]}]}}`.
    Groups {
        /// The events.
        on: &'static [On],
        /// How long the agent waits, in its own unit.
        timeout: u32,
    },
    /// JSON: `{"version":1,"hooks":{"preToolUse":[{"command":"…"}]}}`, with these names for the command and the time.
    Flat {
        /// The events.
        on: &'static [On],
        /// `command` or `bash`.
        command: &'static str,
        /// The member with the time to wait, and that time.
        timeout: Option<(&'static str, u32)>,
        /// Other members of an entry, as JSON text.
        more: &'static str,
    },
    /// TOML: `[[hooks]]` with `event`, `matcher`, `command`, `timeout`.
    Tables {
        /// The events.
        on: &'static [On],
        /// How long the agent waits, in seconds.
        timeout: u32,
    },
    /// A file of our own; `{command}` in it stands for the program as a JSON string.
    Own {
        /// Its text.
        text: &'static str,
    },
}

/// The tools of agents that are modelled on Claude Code.
const CLAUDE_TOOLS: &str = "Edit|Write|MultiEdit|NotebookEdit|Bash|PowerShell|mcp__.*";

/// Hooks of Claude Code and of agents that took them over.
pub const CLAUDE: &[On] = &[
    ("UserPromptSubmit", None),
    ("PreToolUse", Some(CLAUDE_TOOLS)),
    ("PostToolUse", Some(CLAUDE_TOOLS)),
];

/// The same events for every tool.
pub const ALL_TOOLS: &[On] = &[
    ("UserPromptSubmit", None),
    ("PreToolUse", None),
    ("PostToolUse", None),
];
