//! `rewind completions`: the script that a shell loads, once; for each Tab it asks the program (`complete`).

use std::io;

use clap_complete::Shell;
use clap_complete::env::Shells;

use super::{Context, Outcome, complete};
use crate::cli;
use crate::error::{Error, Kind, Result};
use crate::ui::json;

/// The program is called by its name and found where the shell finds it: a path would be that of one machine.
const NAME: &str = "rewind";

/// bash takes each candidate for a pattern of files, and one of 5.0 takes its backslashes away where a file fits: what was
/// quoted would stand in the line as it is.
const NO_PATTERNS: (&str, &str) = (
    "    local IFS=$'\\013'\n",
    r#"    local IFS=$'\013'
    if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
        local -
        set -o noglob
    fi
"#,
);

/// zsh loads a file of its function path at the first Tab and takes it for the function's body.
const FROM_FPATH: &str = r#"
# Loaded from the function path, this file is the completion itself: it answers the first Tab too.
if [[ "${funcstack[1]-}" == _rewind ]]; then
    _clap_dynamic_completer_rewind "$@"
fi
"#;

/// Runs the command.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(ctx: &mut Context<'_>, args: &cli::Completions) -> Result<Outcome> {
    let script = script(args.shell).map_err(|e| {
        Error::new(Kind::Internal, "the script cannot be made")
            .changed("nothing was changed")
            .because(e)
    })?;
    if ctx.json() {
        ctx.print_json(&json::Completions {
            schema: "rewind.completions/1",
            shell: args.shell.to_string(),
            script,
        })?;
    } else {
        ctx.print(&script)?;
    }
    Ok(Outcome::Done)
}

/// The script.
///
/// # Errors
/// Nothing is known of that shell.
pub fn script(shell: Shell) -> io::Result<String> {
    let shells = Shells::builtins();
    let engine = shells.completer(&shell.to_string());
    let engine = engine.ok_or(io::ErrorKind::Unsupported)?;
    let mut bytes = Vec::new();
    engine.write_registration(complete::VARIABLE, NAME, NAME, NAME, &mut bytes)?;
    let text = String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData)?;
    let text = text.trim();
    Ok(match shell {
        Shell::Bash => text.replace(NO_PATTERNS.0, NO_PATTERNS.1) + "\n",
        Shell::Zsh => format!("{text}\n{FROM_FPATH}"),
        _ => format!("{text}\n"),
    })
}
