//! Why a session goes back only in part, or not at all: what the record does not hold, what somebody changed since, what
//! stands in the way of the conversation. As seen from its first turn, so that it is everything. Reads only.

use std::path::Path;

use crate::env::Env;
use crate::error::{Error, Kind, Result};
use crate::model::point::{OnConflict, Scope};
use crate::ops::gather::Read;
use crate::ops::plan::Plan;
use crate::ops::{cut, decide};

/// What was found.
#[derive(Debug)]
pub struct Diagnosis {
    /// The plan for the code, back to before the first turn; or why there is none.
    pub code: Result<Plan>,
    /// Why the conversation cannot go back to before its last turn, where it cannot.
    pub conversation: Option<Error>,
    /// The sign that an agent is at work on it.
    pub live: Option<String>,
}

/// Looks at a session.
#[must_use]
pub fn look(read: &Read, env: &Env, workspace: Option<&Path>) -> Diagnosis {
    Diagnosis {
        code: code(read, env, workspace),
        conversation: conversation(read, env).err(),
        live: read.format.live(&read.session, env).map(|a| a.sign),
    }
}

fn code(read: &Read, env: &Env, workspace: Option<&Path>) -> Result<Plan> {
    let root = read.root_to_change(env, workspace)?;
    let first = read.session.turns.first().ok_or_else(no_turns)?;
    let timeline = read.timeline(&root, first.no, env)?;
    Ok(decide::restore(
        &root,
        &read.session,
        read.point(first),
        Scope::Code,
        timeline,
        &decide::Only::new(root.path(), &env.cwd, &[])?,
        OnConflict::Keep,
    ))
}

fn conversation(read: &Read, env: &Env) -> Result<()> {
    let last = read.session.turns.last().ok_or_else(no_turns)?;
    cut::steps(read.format.cut(&read.session, last.no, env)?).map(drop)
}

fn no_turns() -> Error {
    Error::new(Kind::NotFound, "the session has no turns")
}
