//! The turn that is being captured: `current.json` of the sidecar, a few hundred bytes, so that a capture costs the same
//! after one turn and after ten thousand. It is derived: without it the newest `turn-<N>.json` is found by its name.
//!
//! ```text
//! {"turn":3,"id":"<the agent's id of the turn>","prompt":"<SHA-256>","stamp":"…","opened":"…","root":"/w","ended":false}
//! ```

use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::format::payload::Payload;
use crate::fsx::{Disk, durable, hash};

/// The name of the file.
const NAME: &str = "current.json";

/// The turn that is being captured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Current {
    /// Its number in the sidecar.
    pub(super) turn: u32,
    /// The agent, where the hook was set up with its name: a session of which nothing else is known is told by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    id: Option<String>,
    prompt: String,
    stamp: Option<String>,
    opened: DateTime<Utc>,
    /// The workspace folder, fixed by the session's first event: an agent may change into another one.
    pub(super) root: Option<String>,
    /// An agent that tells of no prompts has ended it.
    #[serde(default)]
    pub(super) ended: bool,
}

/// A prompt that is told of again by a second hook comes within this time; a person is not that quick.
const TWICE: TimeDelta = TimeDelta::seconds(1);

impl Current {
    /// Opens a turn.
    pub(super) fn open(
        (turn, agent): (u32, Option<&str>),
        payload: &Payload,
        root: Option<String>,
        now: DateTime<Utc>,
    ) -> Self {
        Self {
            turn,
            agent: agent.map(str::to_owned),
            id: payload.turn.as_ref().map(|t| t.text().to_owned()),
            prompt: digest(payload),
            stamp: payload.stamp.clone(),
            opened: now,
            root,
            ended: false,
        }
    }

    /// Whether a prompt event is of this turn: an agent asks before every request of a turn (Qwen), or two hooks tell of
    /// one prompt.
    pub(super) fn is_told_again(&self, payload: &Payload, now: DateTime<Utc>) -> bool {
        if let (Some(own), Some(new)) = (&self.id, &payload.turn) {
            return own == new.text();
        }
        if payload
            .prompt
            .as_deref()
            .is_none_or(|p| p.trim().is_empty())
        {
            return true;
        }
        let same = self.prompt == digest(payload);
        match (&self.stamp, &payload.stamp) {
            (Some(own), Some(new)) => same && own == new,
            _ => same && (now - self.opened).abs() < TWICE,
        }
    }

    /// Whether a tool event names another turn than this one.
    pub(super) fn is_other(&self, payload: &Payload) -> bool {
        use crate::format::payload::TurnId;
        match (&self.id, &payload.turn) {
            (Some(own), Some(TurnId::OfTranscript(id))) => own != id,
            _ => self.ended,
        }
    }

    /// Reads it; `None` when it is missing or damaged.
    pub(super) fn load(sidecar: &Path) -> Option<Self> {
        let path = sidecar.join(NAME);
        let bytes = crate::format::lines::read_whole(&path, 1 << 20).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Writes it.
    ///
    /// # Errors
    /// The disk refuses.
    pub(super) fn save(&self, disk: &dyn Disk, sidecar: BorrowedFd<'_>) -> std::io::Result<()> {
        durable::replace(disk, sidecar, OsStr::new(NAME), &serde_json::to_vec(self)?)
    }
}

fn digest(payload: &Payload) -> String {
    let prompt = payload.prompt.as_deref().unwrap_or_default().trim();
    hash::hex(&hash::of_bytes(prompt.as_bytes()))
}

/// The number behind the newest checkpoint of a sidecar.
pub(super) fn next(names: &[std::ffi::OsString]) -> u32 {
    let number = |n: &std::ffi::OsString| -> Option<u32> {
        let name = n.to_str()?.strip_prefix("turn-")?;
        name.split('.').next()?.parse().ok()
    };
    let newest = names.iter().filter_map(number).max();
    newest.map_or(0, |n| n.saturating_add(1))
}
