//! What a shell shows at Tab. The scripts of `rewind completions` run the program with `COMPLETE=<shell>` and, behind
//! `--`, the words of the line; it prints one candidate a line and nothing else. A person is in the middle of a line then:
//! nothing is changed or settled, and what goes wrong gives no candidates and no words.
//!
//! ```text
//! COMPLETE=fish rewind -- rewind show ''
//! 2<TAB>1 h ago: three instead of two
//! ```

mod answer;
mod line;
mod values;

use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use clap::builder::ValueHint;
use clap::{Command, CommandFactory};
use clap_complete::{ArgValueCompleter, CompletionCandidate, Shell, engine};

use super::completions;
use crate::cli::Cli;
use crate::env::Env;
use line::Line;
use values::Kind;

/// The variable with which a shell asks.
pub const VARIABLE: &str = "COMPLETE";

/// The shell that asks, if one does. A variable of that name that means something else is nobody's question, and a command
/// that is typed while it is set is still that command.
#[must_use]
pub fn asks(args: &[OsString], shell: &OsStr) -> Option<Shell> {
    let asks = match args {
        [_] => true,
        [_, dashes, ..] => dashes == "--",
        [] => false,
    };
    Shell::from_shell_path(shell).filter(|_| asks)
}

/// Answers the shell: with candidates, or with its script where there is no line.
#[must_use]
pub fn answer(args: &[OsString], shell: Shell, env: &Env) -> String {
    let Some(words) = args.get(2..).filter(|w| !w.is_empty()) else {
        return completions::script(shell).unwrap_or_default();
    };
    Line::new(words, shell, env).map_or_else(String::new, |line| {
        let line = Arc::new(line);
        let found = candidates(&line, env);
        answer::text(shell, &line, &found, env)
    })
}

fn candidates(line: &Arc<Line>, env: &Env) -> Vec<CompletionCandidate> {
    let mut grammar = with_values(Cli::command(), line, &Arc::new(env.clone()));
    let words = line.words().to_vec();
    let found = engine::complete(&mut grammar, words, line.at(), Some(&env.cwd));
    let mut found = found.unwrap_or_default();
    let is_option = |c: &CompletionCandidate| c.get_value().as_encoded_bytes().starts_with(b"-");
    // Options are many and the same everywhere: they are for who types a dash, or where nothing else can stand.
    if line.current().is_empty() && !found.iter().all(is_option) {
        found.retain(|c| !is_option(c));
    }
    found
}

/// Gives each argument that the program knows values of its completer; the name that the help shows for the value says
/// which. So a new command that takes a `TURN` completes it without a word here.
fn with_values(command: Command, line: &Arc<Line>, env: &Arc<Env>) -> Command {
    let name = command.get_name().to_owned();
    command
        .mut_args(|arg| {
            if arg.is_last_set() && !line.is_behind_dashes() {
                return arg.value_hint(ValueHint::Other);
            }
            let shown = arg.get_value_names().and_then(<[_]>::first);
            let Some(kind) = shown.and_then(|v| Kind::of(v, &name)) else {
                return arg;
            };
            let (line, env) = (Arc::clone(line), Arc::clone(env));
            let ask = move |typed: &OsStr| values::of(kind, typed, &line, &env);
            arg.add(ArgValueCompleter::new(ask))
        })
        .mut_subcommands(|sub| with_values(sub, line, env))
}
