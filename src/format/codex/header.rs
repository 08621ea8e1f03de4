//! The first record of a rollout: whose it is, where it worked, which rollout it builds on.
//!
//! ```text
//! {"type":"session_meta","payload":{"id":"<thread>","cwd":"/w","history_mode":"paginated",
//!   "history_base":{"thread_id":"<rollout>","end_ordinal_exclusive":54,"end_byte_offset":124393}}}
//! {"id":"<thread>","timestamp":"…","instructions":null}                                        (2025)
//! ```
//!
//! Only the first `session_meta` counts; later ones are the copied history of a fork.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::super::json::Value;
use super::super::{Card, Head, lines, time};
use super::{member, prompts, text};

/// How a rollout records its history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Mode {
    /// Response items are the history; rollbacks are markers.
    #[default]
    Legacy,
    /// Completed items are the history; other rollouts may build on this one by offset.
    Paginated,
    /// A mode that came after these.
    Unknown,
}

/// Where a rollout's own part begins in the one it builds on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    /// Decoded bytes.
    Byte(u64),
    /// The ordinal of the first record that is no part of it.
    Ordinal(u64),
}

/// The rollout that another one builds on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Base {
    /// Its rollout id.
    pub(super) rollout: String,
    /// How much of it.
    pub(super) end: Limit,
}

/// What the first record says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Header {
    pub(super) id: Option<String>,
    pub(super) root: Option<PathBuf>,
    pub(super) at: Option<DateTime<Utc>>,
    pub(super) mode: Mode,
    pub(super) base: Option<Base>,
    /// The thread was started by another thread, not by a person.
    pub(super) inner: bool,
}

/// Records that are looked at for the header.
const FIRST: usize = 40;

/// The types of record that only Codex writes with a `payload`.
const TYPES: [&str; 6] = [
    "session_meta",
    "response_item",
    "event_msg",
    "turn_context",
    "compacted",
    "world_state",
];

/// Whether the head is that of a rollout (`formats/agents.md` §4, rows 1 and 2).
pub(super) fn is_codex(head: &Head) -> bool {
    head.records()
        .take(5)
        .enumerate()
        .any(|(n, r)| known(&r) || (n == 0 && is_2025(&r)) || is_state(&r))
}

fn known(record: &Value<'_>) -> bool {
    let payload = member(record, "payload").is_some_and(|p| p.is_object());
    payload && member(record, "type").is_some_and(|t| TYPES.iter().any(|n| t.is_str(n)))
}

fn is_2025(record: &Value<'_>) -> bool {
    let has = |name| record.member(name).is_some();
    has("id") && has("timestamp") && has("instructions") && !has("type")
}

fn is_state(record: &Value<'_>) -> bool {
    record.get("record_type").is_some_and(|t| t.is_str("state"))
}

impl Header {
    /// Takes the record if it is a header; it may be cut short behind what matters.
    pub(super) fn of(record: &Value<'_>) -> Option<Self> {
        if member(record, "type").is_some_and(|t| t.is_str("session_meta")) {
            return Some(Self::meta(&member(record, "payload")?));
        }
        is_2025(record).then(|| Self {
            id: text(record, "id"),
            at: text(record, "timestamp").and_then(|t| time(&t)),
            ..Self::default()
        })
    }

    fn meta(payload: &Value<'_>) -> Self {
        let mode = match text(payload, "history_mode").as_deref() {
            None | Some("legacy") => Mode::Legacy,
            Some("paginated") => Mode::Paginated,
            Some(_) => Mode::Unknown,
        };
        let inner = |v: Value<'_>| v.is_str("subagent") || v.member("subagent").is_some();
        Self {
            id: text(payload, "id"),
            root: text(payload, "cwd").map(PathBuf::from),
            at: text(payload, "timestamp").and_then(|t| time(&t)),
            mode,
            base: payload.get("history_base").as_ref().and_then(Base::of),
            inner: ["source", "thread_source"]
                .iter()
                .any(|name| payload.get(name).is_some_and(inner)),
        }
    }

    /// Reads the header of a file; `None` where its first records hold none.
    ///
    /// # Errors
    /// The file cannot be read, or the header is too long to be read whole: what it builds on is then not known.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        let mut input = BufReader::new(lines::open(path, 0)?);
        let mut line = Vec::new();
        for _ in 0..FIRST {
            line.clear();
            let limit = lines::LONGEST as u64;
            let got = input.by_ref().take(limit).read_until(b'\n', &mut line)?;
            if got == 0 {
                break;
            }
            if got as u64 == limit {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let lead = line.iter().take_while(|b| **b != b'{').count();
            let record = Value::of(line.get(lead..).unwrap_or_default());
            if let Some(header) = record.as_ref().and_then(Self::of) {
                return Ok(Some(header));
            }
        }
        Ok(None)
    }
}

impl Base {
    fn of(value: &Value<'_>) -> Option<Self> {
        let end = match value.get("end_byte_offset").and_then(|v| v.u64()) {
            Some(n) => Limit::Byte(n),
            // Without either nothing is known to be kept.
            None => Limit::Ordinal(
                value
                    .get("end_ordinal_exclusive")
                    .and_then(|v| v.u64())
                    .unwrap_or(0),
            ),
        };
        Some(Self {
            rollout: text(value, "thread_id")?,
            end,
        })
    }
}

/// What the head of a rollout tells.
pub(super) fn card(head: &Head) -> Card {
    let header = head.records().find_map(|r| Header::of(&r));
    let header = header.unwrap_or_default();
    let name = super::rollouts::Rollout::of(&head.path).map(|r| r.thread);
    let said = |r: &Value<'_>| prompts::spoken(r, header.mode);
    let root = header
        .root
        .or_else(|| head.records().find_map(|r| said(&r).and_then(|s| s.cwd())));
    Card {
        id: header.id.or(name).unwrap_or_default(),
        // A thread that another thread started is no session of a person: without a root it is offered nowhere, and
        // can still be named.
        root: root.filter(|_| !header.inner),
        prompt: head
            .records()
            .find_map(|r| said(&r).and_then(prompts::Spoken::prompt)),
        at: header.at,
    }
}
