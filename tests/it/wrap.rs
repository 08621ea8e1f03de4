//! Runs of the program inside something: with variables of its own, under a umask or a limit, in a mount namespace. The
//! words of a script find the folders in `$WS`, `$STATE` and `$OUT`.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::env::{Run, TestEnv};

/// Ends a command that a test made by itself.
pub(crate) fn end(env: &TestEnv, mut command: Command) -> Run {
    let output = command.output().unwrap();
    Run {
        stdout: env.clean(&output.stdout),
        stderr: env.clean(&output.stderr),
        code: output.status.code(),
    }
}

/// Runs the program after a script of the shell, in the same process.
pub(crate) fn under(env: &TestEnv, script: &str, args: &[&str]) -> Run {
    let script = format!("{script}\nexec \"$@\"");
    end(env, scripted(env, &["sh", "-ec", &script], args))
}

/// Runs a script in a mount namespace of its own; `"$@"` is the program with its arguments. `None`, said past the test
/// runner, where this system has none.
pub(crate) fn in_mounts(env: &TestEnv, script: &str, args: &[&str]) -> Option<Run> {
    for namespace in ["-m", "-Urm"] {
        let probe = "mount -t tmpfs -o size=1m none \"$WS\"";
        let words = ["unshare", namespace, "sh", "-ec"];
        let with = |script| [&words[..], &[script]].concat();
        let probed = scripted(env, &with(probe), args).output();
        if probed.is_ok_and(|o| o.status.success()) {
            return Some(end(env, scripted(env, &with(script), args)));
        }
    }
    skipped("no mount namespace can be made");
    None
}

/// Says past the test runner that a test was not carried out.
pub(crate) fn skipped(why: &str) {
    let who = std::thread::current();
    let who = who.name().unwrap_or("a test").to_owned();
    // Nothing depends on the line being seen.
    let _ = writeln!(std::io::stderr(), "skipped: {who}: {why}");
}

fn scripted(env: &TestEnv, words: &[&str], args: &[&str]) -> Command {
    let program = env.command(args);
    let vars = program.get_envs().filter_map(|(k, v)| Some((k, v?)));
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .arg("sh")
        .arg(program.get_program())
        .args(program.get_args())
        .env_clear()
        .envs(vars)
        .env("WS", env.workspace())
        .env("STATE", env.state())
        .env("OUT", env.home().join("out"))
        .current_dir(env.workspace())
        .stdin(Stdio::null());
    command
}
