//! What a person said, told apart from what Codex itself puts into the conversation in the person's name
//! (`formats/agents.md` §3.1 "User turn").

use std::path::PathBuf;

use super::super::json::Value;
use super::header::Mode;
use super::text;

/// How texts begin that Codex wrote itself.
const OWN: [&str; 16] = [
    "# AGENTS.md instructions",
    "<environment_context>",
    "<user_instructions>",
    "<INSTRUCTIONS>",
    "<skill>",
    "<user_shell_command>",
    "<turn_aborted>",
    "<subagent_notification>",
    "<hook_prompt",
    "<goal_context",
    "<goal>",
    "<extension_context",
    "<permissions instructions>",
    "<collaboration_mode>",
    "<skills_instructions>",
    "<multi_agent",
];

/// A message in the person's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Spoken {
    /// The person's own words; empty for a picture alone.
    Prompt(String),
    /// Codex's own words.
    Context(String),
}

impl Spoken {
    /// The person's words.
    pub(super) fn prompt(self) -> Option<String> {
        match self {
            Self::Prompt(text) => Some(text),
            Self::Context(_) => None,
        }
    }

    /// The working folder that an environment message names: in the files of 2025 it stands nowhere else.
    pub(super) fn cwd(&self) -> Option<PathBuf> {
        let Self::Context(text) = self else {
            return None;
        };
        let context = text.split_once("<environment_context>")?.1;
        let named = match context.split_once("<cwd>") {
            Some((_, rest)) => rest.split_once("</cwd>")?.0,
            None => context
                .split_once("Current working directory: ")?
                .1
                .lines()
                .next()?,
        };
        let path = PathBuf::from(named.trim());
        path.is_absolute().then_some(path)
    }
}

/// The message of a record, if it is one in the person's name. In a paginated rollout only a completed item is a
/// prompt; its response item is the same message once more.
pub(super) fn spoken(record: &Value<'_>, mode: Mode) -> Option<Spoken> {
    let payload = record.get("payload").unwrap_or(*record);
    let kind = text(&payload, "type")?;
    match kind.as_str() {
        "message" => {
            message(&payload).filter(|s| mode != Mode::Paginated || matches!(s, Spoken::Context(_)))
        }
        "item_completed" => item(&payload).map(Spoken::Prompt),
        "user_message" if mode != Mode::Paginated => event(&payload).map(Spoken::Prompt),
        _ => None,
    }
}

/// A response item `message` of the role `user`.
pub(super) fn message(payload: &Value<'_>) -> Option<Spoken> {
    if !payload.get("role")?.is_str("user") {
        return None;
    }
    let content = payload.get("content")?;
    if let Some(whole) = content.text() {
        return Some(of_parts(&[whole.into_owned()], Picture::None));
    }
    let mut parts = Vec::new();
    let mut picture = Picture::None;
    for part in content.items() {
        match text(&part, "text") {
            Some(words) if !is_image_tag(&words) => parts.push(words),
            Some(_) => {}
            None => picture = Picture::Some,
        }
    }
    (!parts.is_empty() || picture == Picture::Some).then(|| of_parts(&parts, picture))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Picture {
    None,
    Some,
}

fn of_parts(parts: &[String], picture: Picture) -> Spoken {
    let own: Vec<&str> = parts
        .iter()
        .map(String::as_str)
        .filter(|p| !is_own(p))
        .collect();
    if own.is_empty() && picture == Picture::None {
        return Spoken::Context(parts.join("\n"));
    }
    Spoken::Prompt(own.join("\n"))
}

/// Whether Codex wrote this text itself.
fn is_own(part: &str) -> bool {
    let part = part.trim_start();
    OWN.iter().any(|own| part.starts_with(own))
}

/// The text parts that only frame a picture.
fn is_image_tag(part: &str) -> bool {
    let part = part.trim();
    part.len() < 4096 && (part.starts_with("<image") || part == "</image>") && part.ends_with('>')
}

/// A completed item of the type `UserMessage`.
pub(super) fn item(payload: &Value<'_>) -> Option<String> {
    let item = payload.get("item")?;
    if !item.get("type")?.is_str("UserMessage") {
        return None;
    }
    let parts = item.get("content")?.items();
    Some(parts.filter_map(|p| text(&p, "text")).collect())
}

/// An event `user_message`.
pub(super) fn event(payload: &Value<'_>) -> Option<String> {
    text(payload, "message")
}

/// The command of a shell line that the person gave (`!`), which is no turn of its own.
pub(super) fn shell_line(spoken: &Spoken) -> Option<String> {
    let Spoken::Context(text) = spoken else {
        return None;
    };
    let rest = text.split_once("<user_shell_command>")?.1;
    let command = match rest.split_once("<command>") {
        Some((_, c)) => c.split_once("</command>").map_or(c, |(c, _)| c),
        None => rest,
    };
    Some(command.trim().lines().next().unwrap_or("").to_owned())
}
