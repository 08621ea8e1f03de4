//! The commands that give out what is installed beside the program: its manual pages and the shells' completions.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use clap_complete::Shell;

use super::exits::{GIVES, PAGES, exit_codes};

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Shipped {
    /// Print the manual page, or write all manual pages into a folder
    ///
    /// The pages are those of this very program: `rewind(1)` and one a command. A
    /// page that is in the folder already is replaced; a file of that name that is
    /// no page of ours is not, and then nothing is written.
    ///
    /// Example:
    ///   rewind man | man -l -
    ///   rewind man --out ~/.local/share/man/man1
    #[command(verbatim_doc_comment, after_long_help = exit_codes(PAGES))]
    Man(Man),

    /// Print the script that lets a shell complete command lines of this program
    ///
    /// The script asks the program each time, so sessions, turns, operations and
    /// agents are completed too.
    ///
    /// Example:
    ///   source <(rewind completions bash)
    ///   rewind completions fish > ~/.config/fish/completions/rewind.fish
    #[command(verbatim_doc_comment, after_long_help = exit_codes(GIVES))]
    Completions(Completions),
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct Man {
    /// Write all pages into this folder, which must be there
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: Shell,
}
