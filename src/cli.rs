//! The command line as types: names, values, help. No logic; what a flag means is decided in `cmd`. The doc comments
//! here are the only copy of the help text, and each long help ends with the exit codes that the command can give.
//! Without a command it is the picker (`cmd::pick`).

mod args;
mod exits;
mod shipped;
mod stores;
mod values;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, ValueHint};

pub use args::{Fork, Hook, Init, List, Log, Restore, Sessions, Show, Step};
pub use shipped::{Completions, Man, Shipped};
pub use stores::{Pin, Prune, Stores, Unpin, Verify};

use exits::{FORKS, MAKES, READS, READS_ONE, SETS_UP, SHOWS, WRITES, all_exit_codes, exit_codes};

use crate::ui::{Colour, Talk};

/// Take a coding agent's session back to before any of its turns
///
/// Reads the session file that the agent wrote and the copies of files that
/// stand beside it, lists the turns, and takes the code, the conversation or
/// both back to before any of them. It never touches git, and every rewind
/// can itself be undone. Without a command it lets you pick a session, a turn
/// and what goes back, shows what would change, and asks.
///
/// Example:
///   rewind
///   rewind list
///   rewind restore -1 --scope both
///   rewind undo
#[derive(Debug, Parser)]
#[command(name = "rewind", version, verbatim_doc_comment, after_long_help = all_exit_codes())]
pub struct Cli {
    /// What holds for every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do; without it, the picker.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The options that every command takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Global {
    /// Session to act on: a path, an id or a unique prefix of an id
    ///
    /// Without it: the newest session of this folder, or of the nearest parent folder that has one, whatever the agent.
    #[arg(short, long, global = true, value_name = "SESSION", value_hint = ValueHint::AnyPath)]
    pub session: Option<String>,

    /// Workspace folder to act on, when the session was recorded elsewhere
    ///
    /// The paths in the session's record are taken as lying below this folder. Needed when the folder was moved, copied,
    /// or comes from another machine; a folder that differs from the recorded one is never used without being named.
    #[arg(short, long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub workspace: Option<PathBuf>,

    /// Print JSON instead of text
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "SHAPE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "object"
    )]
    pub json: Option<Json>,

    /// When to use colour
    ///
    /// `auto` follows `NO_COLOR`, `CLICOLOR_FORCE` and whether the output is a terminal.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Colour::Auto)]
    pub color: Colour,

    /// Width of the text in columns; 0 for that of the terminal
    #[arg(
        long,
        global = true,
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub width: u16,

    /// Do not show long output with `$PAGER`
    #[arg(long, global = true)]
    pub no_pager: bool,

    /// Say less: only results and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Say more; twice for all
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
}

impl Global {
    /// How much to say, as `-q` and the number of `-v` ask for.
    #[must_use]
    pub fn talk(&self) -> Talk {
        match (self.quiet, self.verbose) {
            (true, _) => Talk::Quiet,
            (false, 0) => Talk::Normal,
            (false, 1) => Talk::Verbose,
            (false, _) => Talk::All,
        }
    }
}

/// The shape of the JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Json {
    /// One object.
    Object,
    /// One object a line, as things happen.
    Lines,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the sessions of this folder, of every agent, newest first
    ///
    /// Use it to find the session that `--session` takes. Turns are counted in the
    /// newest sessions, as far as 64 MB of files go; `?` is what was not counted.
    ///
    /// Example:
    ///   rewind sessions
    ///   rewind sessions --all --agent codex --since 7d
    #[command(verbatim_doc_comment, after_long_help = exit_codes(READS))]
    Sessions(Sessions),

    /// List the turns of a session, newest last
    ///
    /// Each turn has a number, counted from 0 and the same in every command, the
    /// agent's own id, its prompt, the files that it changed, and how much of
    /// that can be taken back.
    ///
    /// Example:
    ///   rewind list
    ///   rewind list 4f1c -n 5
    #[command(verbatim_doc_comment, after_long_help = exit_codes(READS_ONE))]
    List(List),

    /// Show what going back to before a turn would change
    ///
    /// Prints the turn's prompt, the files, the difference that a restore would
    /// make now, and what no restore covers.
    ///
    /// Example:
    ///   rewind show 3
    ///   rewind show -1 --stat
    ///   rewind show -1 --path 'src/**'
    #[command(verbatim_doc_comment, after_long_help = exit_codes(SHOWS))]
    Show(Show),

    /// Capture the files that a tool is about to change: called by an agent's hooks
    ///
    /// Reads the hook's payload from standard input, saves the files that it names
    /// beside the session, prints nothing and always ends with 0. What it could not
    /// save, `list` and `show` tell.
    ///
    /// Example:
    ///   rewind hook claude < payload.json
    #[command(verbatim_doc_comment, after_long_help = exit_codes(&[]))]
    Hook(Hook),

    /// Add our hooks to an agent's settings, so that every edit is captured beforehand
    ///
    /// Then what a file was before is known also where the agent does not record
    /// it. Keeps every other byte of the settings, comments too, and does nothing
    /// where the hooks are there already. Settings that cannot be parsed are not
    /// touched.
    ///
    /// Example:
    ///   rewind init claude
    ///   rewind init codex --project --dry-run
    #[command(verbatim_doc_comment, after_long_help = exit_codes(SETS_UP))]
    Init(Init),

    /// Show what is in force and what is set up: config, agents, hooks, problems
    ///
    /// Reads only.
    ///
    /// Example:
    ///   rewind doctor
    #[command(verbatim_doc_comment, after_long_help = exit_codes(READS))]
    Doctor,

    /// Make a workspace and a session to play with, in a temporary folder
    ///
    /// Prints the lines that lead there. Nothing of yours is touched, and the folder
    /// can be deleted at any time.
    ///
    /// Example:
    ///   eval "$(rewind demo)"
    #[command(verbatim_doc_comment, after_long_help = exit_codes(MAKES))]
    Demo,

    /// Take our hooks out of an agent's settings
    ///
    /// Settings that nobody has changed since have the same bytes as before; of
    /// others only our own entries go.
    ///
    /// Example:
    ///   rewind deinit claude
    #[command(verbatim_doc_comment, after_long_help = exit_codes(SETS_UP))]
    Deinit(Init),

    /// Take the code, the conversation or both back to before a turn
    ///
    /// Files that somebody changed since the agent wrote them stop it, unless
    /// `--on-conflict` says otherwise. What it replaces is kept, so that `rewind
    /// undo` brings it back. The turn's prompt is printed for editing.
    ///
    /// Example:
    ///   rewind restore 3 --scope code
    ///   rewind restore -1 --scope both --dry-run
    ///   rewind restore 3 --scope code -- 'src/**'
    #[command(verbatim_doc_comment, after_long_help = exit_codes(WRITES))]
    Restore(Restore),

    /// Make a new session that ends before a turn
    ///
    /// The old session is not touched. The checkpoints of the kept turns go along,
    /// the turn's prompt is printed for editing, and so is the command that goes
    /// on with the new session.
    ///
    /// Example:
    ///   rewind fork 3
    ///   rewind fork -1 --name 'another way'
    #[command(verbatim_doc_comment, after_long_help = exit_codes(FORKS))]
    Fork(Fork),

    /// Take back the last rewind of this folder
    ///
    /// Repeat it to go further back. It refuses what has changed since the
    /// rewind, unless `--on-conflict` says otherwise.
    ///
    /// Example:
    ///   rewind undo
    ///   rewind undo --dry-run
    #[command(verbatim_doc_comment, after_long_help = exit_codes(WRITES))]
    Undo(Step),

    /// Do again what the last undo took back
    ///
    /// Example:
    ///   rewind redo
    #[command(verbatim_doc_comment, after_long_help = exit_codes(WRITES))]
    Redo(Step),

    /// List the rewinds that were done in this folder, newest last
    ///
    /// Undo and redo are listed too. Use it to find the operation that `undo` and
    /// `redo` take.
    ///
    /// Example:
    ///   rewind log
    #[command(verbatim_doc_comment, after_long_help = exit_codes(READS))]
    Log(Log),

    /// What is kept.
    #[command(flatten)]
    Stores(Stores),

    /// What is installed beside the program.
    #[command(flatten)]
    Shipped(Shipped),
}

/// Whether arguments that cannot be read ask for JSON all the same, so that a script gets its error as one.
#[must_use]
pub fn asks_for_json(args: &[OsString]) -> bool {
    args.iter()
        .take_while(|a| *a != "--")
        .any(|a| a == "--json" || a.as_encoded_bytes().starts_with(b"--json="))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap::error::ErrorKind;

    use super::*;
    use crate::model::point::{OnConflict, Scope, TurnName};

    fn parse(line: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from([&["rewind"], line].concat())
    }

    fn restore(line: &[&str]) -> Restore {
        match parse(line).unwrap().command.unwrap() {
            Command::Restore(args) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_grammar_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_negative_turn_is_a_turn() {
        for (typed, meant) in [
            ("-1", TurnName::FromEnd(1)),
            ("0", TurnName::Number(0)),
            ("4f1c", TurnName::Key("4f1c".to_owned())),
        ] {
            let Command::Show(args) = parse(&["show", typed]).unwrap().command.unwrap() else {
                panic!("not show");
            };
            assert_eq!(args.turn, meant);
        }
        assert_eq!(
            restore(&["restore", "-2", "--scope", "both"]).turn,
            TurnName::FromEnd(2)
        );
    }

    #[test]
    fn a_flag_is_never_taken_for_the_turn() {
        let missing = parse(&["restore", "--yes", "--scope", "code"]).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::MissingRequiredArgument);
        let unknown = parse(&["show", "--yes"]).unwrap_err();
        assert_eq!(unknown.kind(), ErrorKind::UnknownArgument);
    }

    #[test]
    fn restore_needs_a_scope_and_fails_on_conflict_unless_told() {
        assert!(parse(&["restore", "3"]).is_err());
        let args = restore(&["restore", "3", "--scope", "code"]);
        assert_eq!(
            (args.scope, args.on_conflict),
            (Scope::Code, OnConflict::Fail)
        );
        assert!(!args.yes && !args.dry_run && !args.force);
    }

    #[test]
    fn paths_stand_behind_two_dashes_only() {
        let args = restore(&["restore", "3", "--scope", "code", "--", "src/a.rs", "-rf"]);
        assert_eq!(
            args.paths,
            [PathBuf::from("src/a.rs"), PathBuf::from("-rf")]
        );
        assert!(parse(&["restore", "3", "src/a.rs", "--scope", "code"]).is_err());
    }

    #[test]
    fn json_takes_its_shape_only_behind_an_equals_sign() {
        assert_eq!(parse(&["list"]).unwrap().global.json, None);
        let cli = parse(&["list", "--json", "abc"]).unwrap();
        assert_eq!(cli.global.json, Some(Json::Object));
        let Some(Command::List(args)) = cli.command else {
            panic!("not list");
        };
        assert_eq!(args.of.as_deref(), Some("abc"));
        let cli = parse(&["--json=lines", "log"]).unwrap();
        assert_eq!(cli.global.json, Some(Json::Lines));
    }

    #[test]
    fn global_options_stand_before_or_behind_the_command() {
        for line in [
            ["-s", "x", "-w", "d", "-vv", "list"].as_slice(),
            ["list", "-s", "x", "-w", "d", "-vv"].as_slice(),
        ] {
            let global = parse(line).unwrap().global;
            assert_eq!(global.session.as_deref(), Some("x"));
            assert_eq!(global.workspace, Some(PathBuf::from("d")));
            assert_eq!(global.verbose, 2);
        }
    }

    #[test]
    fn the_amount_of_talk_follows_the_flags() {
        for (line, talk) in [
            (["log"].as_slice(), Talk::Normal),
            (&["log", "-q"], Talk::Quiet),
            (&["log", "-v"], Talk::Verbose),
            (&["log", "-vvv"], Talk::All),
        ] {
            assert_eq!(parse(line).unwrap().global.talk(), talk);
        }
        assert!(parse(&["log", "-q", "-v"]).is_err());
    }

    #[test]
    fn a_line_that_cannot_be_read_may_still_ask_for_json() {
        let asks = |line: &[&str]| {
            let args: Vec<OsString> = line.iter().map(OsString::from).collect();
            asks_for_json(&args)
        };
        assert!(asks(&["rewind", "show", "--json"]));
        assert!(asks(&["rewind", "--json=object", "show"]));
        assert!(!asks(&["rewind", "show"]));
        assert!(!asks(&["rewind", "restore", "1", "--", "--json"]));
    }

    #[test]
    fn a_session_is_named_once() {
        let twice = parse(&["list", "abc", "-s", "def"]).unwrap_err();
        assert_eq!(twice.kind(), ErrorKind::ArgumentConflict);
    }

    #[test]
    fn no_command_is_the_picker() {
        assert!(parse(&[]).unwrap().command.is_none());
        assert!(parse(&["-s", "x"]).unwrap().command.is_none());
    }

    #[test]
    fn every_long_help_has_an_example_and_ends_with_the_exit_codes() {
        let mut root = Cli::command();
        root.build();
        let names: Vec<String> = root
            .get_subcommands()
            .map(|c| c.get_name().to_owned())
            .filter(|n| n != "help")
            .collect();
        assert_eq!(names.len(), 19);
        let mut pages = vec![("rewind".to_owned(), root.render_long_help().to_string())];
        for name in names {
            let page = root.find_subcommand_mut(&name).unwrap().render_long_help();
            pages.push((name, page.to_string()));
        }
        for (name, page) in pages {
            assert!(page.contains("Example:\n"), "{name}: {page}");
            let (_, codes) = page.rsplit_once("EXIT STATUS:\n").unwrap();
            assert!(codes.trim_start().starts_with("0  done"), "{name}: {codes}");
            assert!(
                codes.lines().all(|l| l.starts_with("  ") || l.is_empty()),
                "{name}: {codes}"
            );
        }
    }

    #[test]
    fn the_first_line_of_a_help_has_no_full_stop() {
        for command in Cli::command().get_subcommands() {
            let about = command.get_about().unwrap().to_string();
            assert!(!about.ends_with('.') && !about.contains('\n'), "{about}");
        }
    }
}
