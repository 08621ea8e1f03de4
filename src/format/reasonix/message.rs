//! One message of a Reasonix session, and whether it opens a turn.
//!
//! ```text
//! {"role":"user","origin":"user","content":"<active-goal>…</active-goal>\nadd a parser","raw_content":"add a parser"}
//! ```
//!
//! A turn is a message that a person sent. Reasonix writes many more with the role `user`: approvals, summaries, notes of
//! the host, words typed while it works. `origin` tells since the third generation; before, only the first words do.

use chrono::{DateTime, Utc};

use super::values::Raw;
use crate::format::json::Value;

/// What is known of one message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Message {
    /// Offset of its first byte.
    pub(super) start: u64,
    /// Offset behind its last byte.
    pub(super) end: u64,
    /// The prompt, cleaned, when it opens a turn.
    pub(super) prompt: Option<String>,
    /// When it was made.
    pub(super) at: Option<DateTime<Utc>>,
    /// The agent was stopped in it.
    pub(super) interrupted: bool,
}

impl Message {
    /// Reads a message, or as much as a turn needs of it; without bytes it is one that is too long.
    pub(super) fn of(raw: Raw<'_>) -> Self {
        let mut out = Self {
            start: raw.start,
            end: raw.end,
            ..Self::default()
        };
        let Some(bytes) = raw.bytes else {
            return out;
        };
        // Most messages are left at their role; this key stands at their end, if at all.
        out.interrupted = memchr::memmem::find(bytes, b"\"interrupted_turn\":").is_some();
        let value = Value::head(bytes);
        if value.get("role").is_some_and(|r| r.is_str("user")) {
            out.at = made_at(&value);
            out.prompt = prompt(&value);
        }
        out
    }
}

/// The time in a message.
pub(super) fn made_at(value: &Value<'_>) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_millis(value.get("createdAt")?.i64()?)
}

/// The prompt of a user message that opens a turn.
pub(super) fn prompt(value: &Value<'_>) -> Option<String> {
    let is = |key: &str| value.get(key).is_some_and(|v| v.is_true());
    if is("local_only") || is("host_authored") {
        return None;
    }
    let origin = value.get("origin");
    if origin.is_some_and(|o| o.is_str("host")) {
        return None;
    }
    // In the time between two layouts `content` was the person's text beside `provider_content`.
    let raw = match value.get("provider_content") {
        Some(_) => None,
        None => value.get("raw_content"),
    };
    let text = raw
        .or(value.get("content"))
        .and_then(|v| v.text())
        .unwrap_or_default();
    let clean = clean_prompt(&text);
    let by_person = origin.is_some_and(|o| o.is_str("user"));
    if clean.starts_with(STEER) || (!by_person && HOST.iter().any(|h| clean.starts_with(h))) {
        return None;
    }
    Some(clean)
}

/// Words of the person while the agent was at work: they open no checkpoint.
const STEER: &str = "[Mid-turn steer queued by the user.";

/// How messages begin that Reasonix itself wrote in the person's role.
const HOST: [&str; 10] = [
    "Plan approved — plan mode is off",
    "Host final-answer readiness check failed",
    "You are already in the executor phase",
    "The previous assistant response was interrupted",
    "The previous assistant response finished without",
    "<compaction-summary>",
    "Summary of the later conversation (compacted from here on):",
    "Summary of earlier conversation (compacted up to here):",
    "Continue pursuing the active goal",
    "No tool calls in recent turns.",
];

/// Blocks that Reasonix puts before a prompt.
const LEADING: [&str; 10] = [
    "response-language",
    "reasoning-language",
    "memory-update",
    "background-jobs",
    "active-goal",
    "autoresearch-runtime",
    "hook-context",
    "capability-route",
    "interrupted-turn-recovery",
    "execution-policy",
];

/// Blocks that it puts behind one.
const TRAILING: [&str; 5] = [
    "delivery",
    "delivery-policy",
    "execution-policy",
    "memory-recall",
    "memory-update",
];

/// Returns a prompt as the person wrote it: without the blocks that Reasonix put around it.
#[must_use]
pub fn clean_prompt(text: &str) -> String {
    let mut text = text.trim();
    // Each step shortens the text, so this ends; the bound is for a prompt of a million empty blocks.
    for _ in 0..1000 {
        let shorter = without_leading(text)
            .or_else(|| without_plan_mark(text))
            .or_else(|| without_trailing(text));
        match shorter {
            Some(shorter) => text = shorter.trim(),
            None => break,
        }
    }
    source_event(text).unwrap_or_else(|| text.to_owned())
}

fn without_leading(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('<')?;
    let name = LEADING.iter().find(|name| {
        let behind = inner.strip_prefix(**name);
        behind.is_some_and(|b| b.starts_with(['>', ' ', '\n']))
    })?;
    let close = format!("</{name}>");
    let end = text.find(&close)?;
    text.get(end + close.len()..)
}

fn without_plan_mark(text: &str) -> Option<&str> {
    let end = text.strip_prefix("[Plan mode")?.find(']')?;
    text.get("[Plan mode".len() + end + 1..)
}

fn without_trailing(text: &str) -> Option<&str> {
    let name = TRAILING.iter().find(|name| {
        let inner = text.strip_suffix('>');
        let before = inner.and_then(|t| t.strip_suffix(**name));
        before.is_some_and(|b| b.ends_with("</"))
    })?;
    // A prompt that is nothing but such a block was written by the person.
    let start = text.rfind(&format!("<{name}"))?;
    text.get(..start).filter(|t| !t.trim().is_empty())
}

/// The person's text inside a wrapper that was once sent in its place.
fn source_event(text: &str) -> Option<String> {
    let body = text.strip_prefix("<memory-compiler-execution>")?;
    if let Some((_, rest)) = body.split_once("<source_event>") {
        let (event, _) = rest.split_once("</source_event>")?;
        return Some(event.trim().to_owned());
    }
    let start = body.find('{')?;
    let event = Value::of(body.as_bytes().get(start..)?)?.get("source_event")?;
    Some(event.text()?.trim().to_owned())
}

/// The prompt of a message, when it is a person's.
pub(super) fn prompt_of_user(value: &Value<'_>) -> Option<String> {
    let user = value.get("role").is_some_and(|r| r.is_str("user"));
    user.then(|| prompt(value)).flatten()
}
