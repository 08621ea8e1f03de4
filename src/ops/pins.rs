//! Points that the user pinned: they are never pruned, and their names can be typed where a turn is.
//!
//! ```text
//! <state>/pins.jsonl
//! {"schema":"rewind.pin/1","pin":"before-the-move","session":"5e55…","key":"8915761d…","turn":3,"at":"…"}
//! {"schema":"rewind.pin/1","unpin":true,"session":"5e55…","key":"8915761d…","turn":3,"at":"…"}
//! ```
//!
//! Lines are appended, never edited; the last one of a turn counts.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;

use serde::{Deserialize, Serialize};

use crate::env::Env;
use crate::error::{Error, Kind, Result};
use crate::format::lines;
use crate::fsx::{Disk, durable};
use crate::model::session::{Session, Turn};
use crate::ops::journal::time;

const FILE: &str = "pins.jsonl";
const SCHEMA: &str = "rewind.pin/1";
/// Nobody pins this much.
const LONGEST: usize = 16 << 20;

/// A pinned point: before a turn of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    schema: String,
    /// The name that it can be typed by.
    #[serde(rename = "pin", default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unpin: bool,
    /// The session's id.
    pub session: String,
    /// The turn's id.
    pub key: String,
    /// The turn's number when it was pinned.
    pub turn: u32,
    /// When it was pinned, RFC 3339.
    pub at: String,
}

/// All of them.
#[derive(Debug, Clone, Default)]
pub struct Pins {
    all: Vec<Pin>,
    /// The file is there and cannot be read: anything may be pinned.
    pub fault: Option<String>,
}

impl Pins {
    /// Reads them. Where they cannot be read, that is in [`Pins::fault`].
    #[must_use]
    pub fn read(env: &Env) -> Self {
        let Some(path) = env.state.as_ref().map(|s| s.join(FILE)) else {
            return Self::default();
        };
        match lines::read_whole(&path, LONGEST) {
            Ok(bytes) => Self::of(&bytes),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Self::default(),
            Err(e) => Self {
                all: Vec::new(),
                fault: Some(e.to_string()),
            },
        }
    }

    fn of(bytes: &[u8]) -> Self {
        let mut pins = Self::default();
        for line in bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
            match serde_json::from_slice::<Pin>(line) {
                Ok(pin) if pin.schema == SCHEMA => {
                    pins.all.retain(|p| !p.is_of(&pin.session, &pin.key));
                    if !pin.unpin {
                        pins.all.push(pin);
                    }
                }
                // A line that a kill cut off was never said to be pinned; of any other nothing is known.
                _ => pins.fault = Some("a line of it cannot be read".to_owned()),
            }
        }
        pins
    }

    /// Those of a session.
    pub fn of_session<'p>(&'p self, session: &'p str) -> impl Iterator<Item = &'p Pin> {
        self.all.iter().filter(move |p| p.session == session)
    }

    /// The pin of that name in a session.
    #[must_use]
    pub fn named(&self, session: &str, name: &str) -> Option<&Pin> {
        let of = |p: &&Pin| p.session == session && p.name.as_deref() == Some(name);
        self.all.iter().find(of)
    }

    /// The pin of a turn.
    #[must_use]
    pub fn of_turn(&self, session: &str, key: &str) -> Option<&Pin> {
        self.all.iter().find(|p| p.is_of(session, key))
    }

    /// Whether a pin of any session has that name.
    #[must_use]
    pub fn is_name(&self, name: &str) -> bool {
        self.all.iter().any(|p| p.name.as_deref() == Some(name))
    }
}

impl Pin {
    /// A pin that is still to be written.
    #[must_use]
    pub fn new(session: &Session, turn: &Turn, name: Option<String>, env: &Env) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            name,
            unpin: false,
            session: session.id.clone(),
            key: turn.key.clone(),
            turn: turn.no,
            at: time(env.now),
        }
    }

    /// The same, taken back.
    #[must_use]
    pub fn undone(&self, env: &Env) -> Self {
        Self {
            unpin: true,
            name: None,
            at: time(env.now),
            ..self.clone()
        }
    }

    fn is_of(&self, session: &str, key: &str) -> bool {
        self.session == session && self.key == key
    }

    /// Writes it down, durably.
    ///
    /// # Errors
    /// There is no place for it, or the disk refuses.
    pub fn write(&self, env: &Env, disk: &dyn Disk) -> Result<()> {
        let state = env.state.as_ref().ok_or_else(|| {
            Error::new(Kind::Failed, "no place is known for pins")
                .hint("set REWIND_STATE_DIR (or HOME) to an absolute path")
        })?;
        let fail = |e| Error::io("the pin cannot be written", state.join(FILE), e);
        let folder = durable::folder(disk, state).map_err(fail)?;
        let line = serde_json::to_vec(self).map_err(|e| fail(io::Error::from(e)))?;
        durable::append(disk, folder.as_fd(), OsStr::new(FILE), &line).map_err(fail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"schema":"rewind.pin/1","pin":"a","session":"s","key":"k","turn":3,"at":"2026-01-01T00:00:00.000Z"}"#;

    #[test]
    fn the_last_line_of_a_turn_counts() {
        let renamed = LINE.replace("\"a\"", "\"b\"");
        let pins = Pins::of(format!("{LINE}\n{renamed}\n").as_bytes());
        assert!(pins.named("s", "a").is_none() && pins.named("s", "b").is_some());
        let undone = LINE.replace("\"pin\":\"a\"", "\"unpin\":true");
        let pins = Pins::of(format!("{LINE}\n{undone}\n").as_bytes());
        assert_eq!(pins.of_session("s").count(), 0);
        assert!(pins.fault.is_none());
    }

    #[test]
    fn a_line_that_cannot_be_read_is_a_fault_and_hides_no_other() {
        let pins = Pins::of(format!("{LINE}\n{{\"sch").as_bytes());
        assert!(pins.named("s", "a").is_some());
        assert!(pins.fault.is_some());
    }
}
