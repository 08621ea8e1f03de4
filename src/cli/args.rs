//! What each command takes. The doc comments are the help text.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::values::{turn_name, when};
use crate::model::point::{OnConflict, Scope, TurnName};
use crate::model::when::When;

/// Arguments of `hook`.
#[derive(Debug, Args)]
pub struct Hook {
    /// The agent that calls
    #[arg(value_name = "AGENT")]
    pub agent: Option<String>,

    /// Store the whole work tree at each prompt, as a commit that no branch holds
    #[arg(long)]
    pub git: bool,
}

/// Arguments of `init` and `deinit`.
#[derive(Debug, Args)]
pub struct Init {
    /// The agent
    #[arg(value_name = "AGENT")]
    pub agent: String,

    /// The settings of the project in this folder, or in that of `--workspace`, instead of your own
    #[arg(long)]
    pub project: bool,

    /// Also store the whole work tree at each prompt with git, so that what the shell did to files can be taken back
    ///
    /// Each is a commit under `refs/rewind/` that no branch holds. HEAD, the index, stash, hooks and config stay as they
    /// are, and ignored files are left out.
    #[arg(long)]
    pub git: bool,

    /// Show what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `sessions`.
#[derive(Debug, Args)]
pub struct Sessions {
    /// List the sessions of all folders
    #[arg(long)]
    pub all: bool,

    /// List the sessions of one agent only
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,

    /// List only the sessions that were written since: `30m`, `12h`, `7d`, `2w` ago, a date or a time
    #[arg(long, value_name = "WHEN", value_parser = when())]
    pub since: Option<When>,
}

/// Arguments of `list`.
#[derive(Debug, Args)]
pub struct List {
    /// Session to list; the same as `--session`
    #[arg(value_name = "SESSION", value_hint = ValueHint::AnyPath, conflicts_with = "session")]
    pub of: Option<String>,

    /// List the last N turns only
    #[arg(short = 'n', long = "last", value_name = "N")]
    pub last: Option<usize>,
}

/// Arguments of `show`.
#[derive(Debug, Args)]
pub struct Show {
    /// Turn: its number, a negative number from the end, or its id or a unique prefix of it
    #[arg(value_name = "TURN", allow_negative_numbers = true, value_parser = turn_name())]
    pub turn: TurnName,

    /// Count the lines of each file instead of showing them
    #[arg(long, conflicts_with_all = ["patch", "json"])]
    pub stat: bool,

    /// Show the differences and nothing else
    #[arg(long, conflicts_with = "json")]
    pub patch: bool,

    /// Only this file, or the files that a glob fits; may be given several times
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub path: Vec<PathBuf>,
}

/// Arguments of `restore`.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one switch of the command line, as clap reads it"
)]
pub struct Restore {
    /// Turn to go back to before: its number, a negative number from the end, or its id or a unique prefix of it
    #[arg(value_name = "TURN", allow_negative_numbers = true, value_parser = turn_name())]
    pub turn: TurnName,

    /// What goes back
    #[arg(long, value_enum, value_name = "SCOPE")]
    pub scope: Scope,

    /// What to do with a file that somebody changed since the agent wrote it
    #[arg(long, value_enum, value_name = "HOW", default_value_t = OnConflict::Fail)]
    pub on_conflict: OnConflict,

    /// Show what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,

    /// Cut the conversation even though an agent seems to be at work on it
    #[arg(long)]
    pub force: bool,

    /// Print the turn's prompt, and nothing else, on standard output
    #[arg(long, conflicts_with = "json")]
    pub print_prompt: bool,

    /// Write the turn's prompt to a file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub prompt_out: Option<PathBuf>,

    /// Ask the terminal to put the turn's prompt on the clipboard
    ///
    /// With the escape sequence OSC 52, which works over ssh too. A terminal that does not know it, or does not allow
    /// it, does nothing, and nobody is told.
    #[arg(long)]
    pub copy: bool,

    /// Only these files: paths below the workspace, or globs
    #[arg(last = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
}

/// Arguments of `fork`.
#[derive(Debug, Args)]
pub struct Fork {
    /// Turn that the new session ends before: its number, a negative number from the end, or its id or a unique prefix of it
    #[arg(value_name = "TURN", allow_negative_numbers = true, value_parser = turn_name())]
    pub turn: TurnName,

    /// Name of the new session, where the agent keeps names
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Show what would be made, and make nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
}

/// Arguments of `undo` and `redo`.
#[derive(Debug, Args)]
pub struct Step {
    /// Operation, as `rewind log` names it; without it the newest
    #[arg(value_name = "OPERATION")]
    pub operation: Option<String>,

    /// What goes back, of what the operation changed
    #[arg(long, value_enum, value_name = "SCOPE", default_value_t = Scope::Both)]
    pub scope: Scope,

    /// What to do with a file that changed since
    #[arg(long, value_enum, value_name = "HOW", default_value_t = OnConflict::Fail)]
    pub on_conflict: OnConflict,

    /// Show what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
}

/// Arguments of `log`.
#[derive(Debug, Args)]
pub struct Log {
    /// List the last N operations only
    #[arg(short = 'n', long = "last", value_name = "N")]
    pub last: Option<usize>,

    /// List what `prune` removed instead, of all folders
    #[arg(long)]
    pub prune: bool,
}
