//! `rewind hook`: called by an agent, which waits and takes every word for an answer. So it is taken before the arguments
//! are parsed, prints nothing (but for an agent that needs the minimal allowing answer), and ends with 0 whatever happens.

use std::ffi::OsString;
use std::io::Read;

use crate::env::Env;
use crate::ops::Disk;
use crate::ops::capture::{self, Call};
use crate::ops::config::Config;

/// More of a payload is not kept: the largest file that is captured, spelled as JSON, and as much again.
const LONGEST: u64 = 80 << 20;

/// Whether these arguments are a call of the hook, and not a question for its help.
#[must_use]
pub fn is(args: &[OsString]) -> bool {
    let asks = |a: &OsString| a == "-h" || a == "--help";
    args.get(1).is_some_and(|a| a == "hook") && !args.iter().any(asks)
}

/// The agent that these arguments name.
#[must_use]
pub fn agent(args: &[OsString]) -> Option<&str> {
    args.get(2).and_then(|a| a.to_str())
}

/// Runs the hook.
pub fn run(agent: Option<&str>, git: bool, env: &Env, disk: &dyn Disk) {
    let mut payload = Vec::new();
    let mut input = std::io::stdin().lock();
    // A payload that cannot be read is as good as none.
    let _ = input.by_ref().take(LONGEST).read_to_end(&mut payload);
    // The rest is taken all the same: an agent that cannot write it may call that an error.
    let _ = std::io::copy(&mut input, &mut std::io::sink());
    let call = Call {
        payload: &payload,
        agent,
        git,
    };
    if let Some(answer) = capture::answer(call) {
        crate::ui::answer(answer);
    }
    let _: capture::Outcome = capture::capture(call, &Config::read(env), env, disk);
}
