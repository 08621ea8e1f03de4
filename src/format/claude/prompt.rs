//! What a person typed, among all that stands in user lines (`formats/claude-code.md` §2.2, §2.4).

use super::super::json::Value;
use super::place::text;
use crate::model::session::TurnKind;

/// The prompt of a record that starts a turn, as it is handed back; `None` for every other record.
pub(super) fn prompt_of(value: &Value<'_>) -> Option<(TurnKind, String)> {
    match text(value, "type")?.as_str() {
        "attachment" => queued(value),
        "user" => user_prompt(value),
        _ => None,
    }
}

/// A prompt typed while the agent worked is an attachment, not a user line (`formats/claude-code.md` §2.2).
fn queued(value: &Value<'_>) -> Option<(TurnKind, String)> {
    let attachment = value.get("attachment")?;
    if text(&attachment, "type")? != "queued_command"
        || text(&attachment, "commandMode").as_deref() != Some("prompt")
        || !by_a_person(&attachment)
    {
        return None;
    }
    let prompt = attachment.get("prompt")?;
    Some((TurnKind::Queued, message_text(&prompt)?))
}

fn user_prompt(value: &Value<'_>) -> Option<(TurnKind, String)> {
    let flag = |name| value.get(name).is_some_and(|v| v.is_true());
    if flag("isMeta") || flag("isSidechain") || flag("isCompactSummary") || !by_a_person(value) {
        return None;
    }
    if text(value, "promptSource").as_deref() == Some("system") {
        return None;
    }
    let content = value.get("message")?.get("content")?;
    classify(&message_text(&content)?)
}

fn by_a_person(value: &Value<'_>) -> bool {
    value
        .get("origin")
        .and_then(|o| text(&o, "kind"))
        .is_none_or(|k| k == "human")
}

/// The text of a message; `None` when it carries a tool result. An image alone is a prompt without words.
fn message_text(content: &Value<'_>) -> Option<String> {
    if content.is_string() {
        return content.text().map(std::borrow::Cow::into_owned);
    }
    let mut out = String::new();
    let mut blocks = 0;
    for block in content.items() {
        match text(&block, "type").as_deref() {
            Some("tool_result") => return None,
            Some("text") => {
                let part = text(&block, "text").unwrap_or_default();
                if !is_ide_context(&part) {
                    if !out.is_empty() {
                        out.push('\n');
                    }
                    out.push_str(&part);
                    blocks += 1;
                }
            }
            Some("image" | "document") => blocks += 1,
            _ => {}
        }
    }
    (blocks > 0).then_some(out)
}

fn is_ide_context(part: &str) -> bool {
    let t = part.trim();
    [
        ("<ide_opened_file>", "</ide_opened_file>"),
        ("<ide_selection>", "</ide_selection>"),
    ]
    .iter()
    .any(|(open, close)| t.starts_with(open) && t.ends_with(close))
}

/// Text that is in a user line and was not typed by the user.
const INJECTED: [&str; 12] = [
    "<bash-stdout>",
    "<bash-stderr>",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "<task-notification>",
    "<tick>",
    "<goal>",
    "<session-start-hook>",
    INTERRUPTED,
    "<ide_opened_file>",
    "<ide_selection>",
];

const INTERRUPTED: &str = "[Request interrupted by user";

fn classify(prompt: &str) -> Option<(TurnKind, String)> {
    let lead = prompt.trim_start();
    if lead.starts_with("<command-name>") || lead.starts_with("<command-message>") {
        return Some((TurnKind::Command, command(lead)));
    }
    if lead.starts_with("<bash-input>") {
        let line = tag(lead, "bash-input").unwrap_or_default();
        return Some((TurnKind::Shell, format!("!{line}")));
    }
    if INJECTED.iter().any(|i| lead.starts_with(i)) {
        return None;
    }
    Some((TurnKind::Prompt, prompt.to_owned()))
}

/// `/name arguments`, as it was typed.
fn command(text: &str) -> String {
    let name = tag(text, "command-name")
        .or_else(|| tag(text, "command-message"))
        .unwrap_or_default();
    let slash = if name.starts_with('/') { "" } else { "/" };
    match tag(text, "command-args").filter(|a| !a.trim().is_empty()) {
        Some(args) => format!("{slash}{name} {args}"),
        None => format!("{slash}{name}"),
    }
}

fn tag<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(t, _)| t)
}

pub(super) fn is_interrupt(value: &Value<'_>) -> bool {
    value
        .get("message")
        .and_then(|m| m.get("content"))
        .and_then(|c| message_text(&c))
        .is_some_and(|t| t.trim_start().starts_with(INTERRUPTED))
}
