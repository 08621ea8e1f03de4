//! The events of `--json=lines`: one object a line on standard output, in the order in which things happen. What fails is
//! told on standard error, as with `--json`.

use serde::Serialize;

use super::json::{PathNote, PathOut, Rewind, SessionOut};

/// What will be done, before anything is: always the first.
#[derive(Debug, Clone, Serialize)]
pub struct Planned {
    /// `rewind.planned/1`.
    pub schema: &'static str,
    /// `planned`.
    pub event: &'static str,
    /// The plan, as `--dry-run --json` prints it.
    pub plan: Rewind,
}

impl Planned {
    /// The event.
    #[must_use]
    pub fn new(plan: Rewind) -> Self {
        Self {
            schema: "rewind.planned/1",
            event: "planned",
            plan,
        }
    }
}

/// A path that somebody changed since.
#[derive(Debug, Clone, Serialize)]
pub struct Differs {
    /// `rewind.conflict/1`.
    pub schema: &'static str,
    /// `conflict`.
    pub event: &'static str,
    /// Which, and how.
    #[serde(flatten)]
    pub note: PathNote,
}

impl Differs {
    /// The event.
    #[must_use]
    pub fn new(note: PathNote) -> Self {
        Self {
            schema: "rewind.conflict/1",
            event: "conflict",
            note,
        }
    }
}

/// A path that has changed. It is verified later, and put back where a later one fails.
#[derive(Debug, Clone, Serialize)]
pub struct Stepped {
    /// `rewind.step/1`.
    pub schema: &'static str,
    /// `step`.
    pub event: &'static str,
    /// How many have changed now.
    pub n: u64,
    /// How many there are.
    pub of: u64,
    /// Which: below the workspace, or a whole one for a session's file.
    #[serde(flatten)]
    pub path: PathOut,
}

impl Stepped {
    /// The event.
    #[must_use]
    pub fn new(n: u64, of: u64, path: PathOut) -> Self {
        Self {
            schema: "rewind.step/1",
            event: "step",
            n,
            of,
            path,
        }
    }
}

/// All of it is done, verified and in the journal: a front end draws anew what it shows of this session.
#[derive(Debug, Clone, Serialize)]
pub struct Rewound {
    /// `rewind.rewound/1`.
    pub schema: &'static str,
    /// `rewound`.
    pub event: &'static str,
    /// The operation, as `rewind log` names it.
    pub operation: String,
    /// The session.
    pub session: SessionOut,
    /// The turn that it went back to before.
    pub turn: u32,
    /// What went back.
    pub scope: &'static str,
    /// The turn's prompt, to be edited and sent again.
    pub prompt: String,
}

impl Rewound {
    /// The event, of what was done.
    #[must_use]
    pub fn new(done: &Rewind) -> Option<Self> {
        Some(Self {
            schema: "rewind.rewound/1",
            event: "rewound",
            operation: done.operation.clone()?,
            session: done.session.clone(),
            turn: done.turn,
            scope: done.scope,
            prompt: done.prompt.clone(),
        })
    }
}

/// The command ended without an error: always the last.
#[derive(Debug, Clone, Serialize)]
pub struct Ended<'a, T: Serialize> {
    /// `rewind.done/1`.
    pub schema: &'static str,
    /// `done`.
    pub event: &'static str,
    /// What `--json` alone prints.
    pub result: &'a T,
}

impl<'a, T: Serialize> Ended<'a, T> {
    /// The event.
    #[must_use]
    pub fn new(result: &'a T) -> Self {
        Self {
            schema: "rewind.done/1",
            event: "done",
            result,
        }
    }
}
