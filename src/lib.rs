//! `rewind`: the undo button for coding agents.
//!
//! Data flows one way: `ops::discover` finds sessions, `format` detects and reads them, `ops::timeline` joins what the
//! transcript and the checkpoints (`ckpt`) know, `ops::plan` decides, `ui` previews, `ops::apply` does it through
//! `fsx`, `ui` reports. `cmd` holds one file a subcommand and only wires these together. `model` is the words that all
//! of them share. Imports run the same way and a test holds them to it.

pub mod ckpt;
pub mod cli;
pub mod cmd;
pub mod env;
pub mod error;
pub mod format;
pub mod fsx;
pub mod git;
pub mod model;
pub mod ops;
pub mod ui;

use clap::Parser;

use crate::env::Env;
use crate::error::{Error, Kind};
use crate::ui::Ui;

/// Runs the program of this process; returns the exit code.
#[must_use]
pub fn run() -> u8 {
    let args = Env::args();
    if cmd::hook::is(&args) {
        return hook(&args);
    }
    if let Some(shell) = Env::completing().and_then(|s| cmd::complete::asks(&args, &s)) {
        return complete(&args, shell);
    }
    let cli = match cli::Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(e) if e.use_stderr() && cli::asks_for_json(&args) => return ui::usage_json(&e),
        Err(e) => return ui::usage(&e),
    };
    let mut env = match Env::of_process() {
        Ok(env) => env,
        Err(e) => return ui::lost(&Error::io("the working folder cannot be read", ".", e)),
    };
    let disk = fsx::Real::with_crash(env.crash.as_deref().and_then(fsx::crash::CrashPlan::parse));
    if cli.global.width > 0 {
        env.columns = Some(cli.global.width);
    }
    let mut ui = Ui::of_process(&env, cli.global.color, cli.global.talk());
    let mut ask = ui::ask::Terminal::new(ui.err_style());
    cmd::run(cli, &env, &mut ui, &mut ask, &disk)
}

/// Runs the hook of an agent, which must hear and see nothing of us: not even of a bug.
fn hook(args: &[std::ffi::OsString]) -> u8 {
    silently(|| {
        if let Ok(env) = Env::of_process() {
            let plan = env.crash.as_deref().and_then(fsx::crash::CrashPlan::parse);
            let git = args.iter().any(|a| a == "--git");
            cmd::hook::run(
                cmd::hook::agent(args),
                git,
                &env,
                &fsx::Real::with_crash(plan),
            );
        }
    })
}

/// Tells a shell what can be typed next. Words of ours, of a bug too, would stand in the middle of the person's line.
fn complete(args: &[std::ffi::OsString], shell: clap_complete::Shell) -> u8 {
    silently(|| {
        if let Ok(env) = Env::of_process() {
            ui::answer(&cmd::complete::answer(args, shell, &env));
        }
    })
}

fn silently(run: impl FnOnce() + std::panic::UnwindSafe) -> u8 {
    std::panic::set_hook(Box::new(|_| {}));
    let _ = std::panic::catch_unwind(run);
    0
}

/// The exit code for a panic: a bug of ours, said as one by the panic's own message.
#[must_use]
pub fn bug() -> u8 {
    Kind::Internal.code()
}
