//! The command line as types: names, values, help. No logic; what a flag means is decided in `cmd`. The doc comments
//! here are the only copy of the help text, and each long help ends with the exit codes that the command can give.
//! Does not cover the picker (`rewind` alone), which is a usage error as long as there is none.

mod exits;
mod shipped;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, ValueHint};

use exits::{FORKS, READS, READS_ONE, SETS_UP, SHOWS, WRITES, all_exit_codes, exit_codes};
pub use shipped::{Completions, Man, Shipped};

use crate::model::point::{OnConflict, Scope, TurnName};
use crate::model::when::When;
use crate::ui::{Colour, Talk};

/// Take a coding agent's session back to before any of its turns
///
/// Reads the session file that the agent wrote and the copies of files that
/// stand beside it, lists the turns, and takes the code, the conversation or
/// both back to before any of them. It never touches git, and every rewind
/// can itself be undone.
///
/// Example:
///   rewind list
///   rewind restore -1 --scope both
///   rewind undo
#[derive(Debug, Parser)]
#[command(name = "rewind", version, verbatim_doc_comment, after_long_help = all_exit_codes())]
pub struct Cli {
    /// What holds for every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
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
    ///   rewind show -1
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

    /// What is installed beside the program.
    #[command(flatten)]
    Shipped(Shipped),
}

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
}

/// Whether arguments that cannot be read ask for JSON all the same, so that a script gets its error as one.
#[must_use]
pub fn asks_for_json(args: &[OsString]) -> bool {
    args.iter()
        .take_while(|a| *a != "--")
        .any(|a| a == "--json" || a.as_encoded_bytes().starts_with(b"--json="))
}

/// Reads a time as typed.
fn when() -> impl TypedValueParser<Value = When> {
    StringValueParser::new().try_map(|text| {
        When::parse(&text)
            .ok_or("give a span like `30m`, `12h`, `7d`, `2w`, or a date like `2026-11-01`")
    })
}

/// Reads a turn as typed; what is no number is an id.
fn turn_name() -> impl TypedValueParser<Value = TurnName> {
    StringValueParser::new().map(|text| TurnName::parse(&text))
}

// The words of the model stay free of clap; what they are called on the command line is said here.
impl ValueEnum for Scope {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Code, Self::Conversation, Self::Both]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::Code => PossibleValue::new("code").help("The files only"),
            Self::Conversation => PossibleValue::new("conversation").help("The messages only"),
            Self::Both => PossibleValue::new("both").help("Both, or neither"),
        })
    }
}

impl ValueEnum for OnConflict {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Fail, Self::Keep, Self::Overwrite, Self::Beside]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::Fail => PossibleValue::new("fail").help("Refuse, and change nothing"),
            Self::Keep => PossibleValue::new("keep").help("Leave the file, do the rest"),
            Self::Overwrite => {
                PossibleValue::new("overwrite").help("Replace it; `undo` brings it back")
            }
            Self::Beside => {
                PossibleValue::new("beside").help("Write the old content to `<name>.rewind`")
            }
        })
    }
}

impl ValueEnum for Colour {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Auto, Self::Always, Self::Never]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(match self {
            Self::Auto => "auto",
            Self::Always => "always",
            Self::Never => "never",
        }))
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap::error::ErrorKind;

    use super::*;

    fn parse(line: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from([&["rewind"], line].concat())
    }

    fn restore(line: &[&str]) -> Restore {
        match parse(line).unwrap().command {
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
            let Command::Show(args) = parse(&["show", typed]).unwrap().command else {
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
        let Command::List(args) = cli.command else {
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
    fn no_command_is_a_usage_error() {
        assert_eq!(parse(&[]).unwrap_err().exit_code(), 2);
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
        assert_eq!(names.len(), 14);
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
