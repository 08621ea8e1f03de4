//! What of a `user` message is a prompt. Gemini writes three other things under that type: results of tools, its own
//! context, and the summary that a compression leaves.

use super::super::json::Value;

/// Texts that the client puts into a user message itself.
const INJECTED: [&str; 3] = ["<session_context>", "<hook_context>", "<state_snapshot>"];

/// A prompt, and how sure it is one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Prompt {
    /// A person wrote it.
    Sure(String),
    /// It looks like a command of the client (`/`, `?`), which older versions recorded: a prompt only if the model
    /// answers it.
    IfAnswered(String),
}

/// The prompt of a user message; `None` for everything else under that type.
pub(super) fn of(message: &Value<'_>) -> Option<Prompt> {
    let sent = words(&message.get("content")?)?;
    let lead = sent.trim_start();
    if lead.is_empty() || INJECTED.iter().any(|i| lead.starts_with(i)) {
        return None;
    }
    let command = lead.starts_with('/') || lead.starts_with('?');
    // What was typed, where what was sent is longer: a file named with `@` is put into the message whole.
    let typed = message
        .get("displayContent")
        .and_then(|c| words(&c))
        .filter(|t| !t.trim().is_empty());
    let prompt = typed.unwrap_or(sent);
    Some(if command {
        Prompt::IfAnswered(prompt)
    } else {
        Prompt::Sure(prompt)
    })
}

/// The text of a content: a string, one part, or a list of either. `None` when a part is a tool's result.
fn words(content: &Value<'_>) -> Option<String> {
    if content.is_string() {
        return content.text().map(std::borrow::Cow::into_owned);
    }
    if content.is_object() {
        return part(content);
    }
    let mut out = String::new();
    for item in content.items() {
        if item.is_string() {
            out.push_str(&item.text()?);
        } else {
            out.push_str(&part(&item)?);
        }
    }
    Some(out)
}

fn part(part: &Value<'_>) -> Option<String> {
    if part.get("functionResponse").is_some() {
        return None;
    }
    if let Some(text) = super::text(part, "text") {
        return Some(text);
    }
    // A picture or a file alone is a prompt without words, and is not nothing.
    let data = part.get("inlineData").or_else(|| part.get("fileData"));
    let kind = data.and_then(|d| super::text(&d, "mimeType"));
    Some(kind.map_or(String::new(), |k| format!("[{k}]")))
}
