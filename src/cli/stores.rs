//! The commands about what is kept: how long, whether it is whole, and what must never go.

use clap::{Args, Subcommand};

use super::exits::{CHECKS, PINS, PRUNES, exit_codes};
use super::values::{bytes, turn_name, when};
use crate::model::point::TurnName;
use crate::model::when::When;

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Stores {
    /// Remove old checkpoints
    ///
    /// Of each session of this folder the checkpoints that are older than the limit
    /// go, and the contents that nothing else needs. What stays is enough for every
    /// point that is left. Sessions are never touched, nor what agents keep; those
    /// that an agent is at work on are passed over. It asks first.
    ///
    /// Example:
    ///   rewind prune --dry-run
    ///   rewind prune --all --journal --yes --quiet
    ///   rewind prune --all --max-size 5GB --yes
    #[command(verbatim_doc_comment, after_long_help = exit_codes(PRUNES))]
    Prune(Prune),

    /// Check that everything that is kept is whole
    ///
    /// Reads every checkpoint and journal of this folder and compares every stored
    /// content with its hash. Says what each damage costs: which turns, which files.
    /// Changes nothing.
    ///
    /// Example:
    ///   rewind verify
    ///   rewind verify --all --json
    #[command(verbatim_doc_comment, after_long_help = exit_codes(CHECKS))]
    Verify(Verify),

    /// Keep a point from being pruned, and give it a name
    ///
    /// The name can be typed wherever a turn is.
    ///
    /// Example:
    ///   rewind pin 3 --name before-the-move
    ///   rewind show before-the-move
    #[command(verbatim_doc_comment, after_long_help = exit_codes(PINS))]
    Pin(Pin),

    /// Take a pin away
    ///
    /// Example:
    ///   rewind unpin before-the-move
    #[command(verbatim_doc_comment, after_long_help = exit_codes(PINS))]
    Unpin(Unpin),
}

/// Arguments of `prune`.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one switch of the command line, as clap reads it"
)]
pub struct Prune {
    /// What is younger stays: `30m`, `12h`, `30d`, `4w`, or since a date or a time [default: 30d, or the config's]
    #[arg(long, value_name = "WHEN", value_parser = when())]
    pub older_than: Option<When>,

    /// Of a session that is still there keep the newest N checkpoints, whatever their age [default: 1, or the config's]
    #[arg(long, value_name = "N")]
    pub keep_last: Option<usize>,

    /// Remove the oldest, however young, until all of them take no more than this: `500MB`, `5GB`
    #[arg(long, value_name = "SIZE", value_parser = bytes())]
    pub max_size: Option<u64>,

    /// Keep everything of this session, named by its id, the start of it, or the name of a pin; may be repeated
    #[arg(long, value_name = "NAME")]
    pub keep: Vec<String>,

    /// Also the checkpoints of sessions that are gone, of whatever folder they were
    #[arg(long)]
    pub orphans: bool,

    /// Also what old rewinds replaced; they cannot be undone any more then
    #[arg(long)]
    pub journal: bool,

    /// Only the sessions of one agent
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,

    /// The sessions of all folders
    #[arg(long)]
    pub all: bool,

    /// Show what would go, and remove nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub struct Verify {
    /// Those of all folders
    #[arg(long)]
    pub all: bool,

    /// Write anew what is only derived from the rest
    #[arg(long)]
    pub repair: bool,
}

/// Arguments of `pin`.
#[derive(Debug, Args)]
pub struct Pin {
    /// Turn: its number, a negative number from the end, or its id or a unique prefix of it
    #[arg(value_name = "TURN", allow_negative_numbers = true, value_parser = turn_name())]
    pub turn: TurnName,

    /// Name by which the point can be typed
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

/// Arguments of `unpin`.
#[derive(Debug, Args)]
pub struct Unpin {
    /// Turn: the name of its pin, its number, or its id or a unique prefix of it
    #[arg(value_name = "TURN", allow_negative_numbers = true, value_parser = turn_name())]
    pub turn: TurnName,
}
