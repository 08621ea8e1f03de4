//! The door: run, and turn how it ended into an exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    // A panic is our bug; guards have run by then, and the journal is left for the next run to settle.
    ExitCode::from(std::panic::catch_unwind(rewind::run).unwrap_or_else(|_| rewind::bug()))
}
