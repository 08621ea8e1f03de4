//! What an agent's hook is told: one JSON object on standard input, in whatever spelling. Most agents write it as Claude
//! Code does, some in camelCase, some with the tool's input as JSON text; what is shaped like one of them is read like it
//! (`formats/agents.md` §6, `corpus/hooks`).
//!
//! ```text
//! {"session_id":"s1","transcript_path":"/…/s1.jsonl","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"Edit","tool_input":{"file_path":"/w/a.py",…},"tool_use_id":"c1"}
//! {"sessionId":"s1","timestamp":1780000000000,"cwd":"/w","toolName":"edit","toolArgs":"{\"path\":\"/w/a.py\"}"}
//! ```
//!
//! A payload is data of an agent, so hostile: paths and texts are taken as they are and never acted upon here.

mod touch;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use super::json::Value;
use super::record::text;

pub use touch::Touch;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A prompt was sent: a turn begins.
    Prompt,
    /// A tool is about to run.
    Before,
    /// A tool has run.
    After,
    /// The turn ended, at an agent that tells of no prompts.
    TurnEnd,
    /// The turn ended; the next prompt begins another one.
    Stop,
    /// Anything else.
    Other,
}

/// One call of the hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// What happened.
    pub event: Event,
    /// The session's id.
    pub session: Option<String>,
    /// The session's file, as the agent names it.
    pub transcript: Option<PathBuf>,
    /// The folder that the agent works in.
    pub cwd: Option<PathBuf>,
    /// The prompt.
    pub prompt: Option<String>,
    /// The agent's id of the turn.
    pub turn: Option<TurnId>,
    /// The agent's own time of the event, as it wrote it.
    pub stamp: Option<String>,
    /// The id of the call.
    pub call: Option<String>,
    /// What the call touches.
    pub touch: Touch,
    /// The agent waits for this answer (Cline).
    pub answer: Option<&'static str>,
}

/// An agent's id of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnId {
    /// The transcript has it too: it ties the checkpoint to its turn.
    OfTranscript(String),
    /// It only tells two prompts apart.
    OfHook(String),
}

impl TurnId {
    /// The id.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::OfTranscript(id) | Self::OfHook(id) => id,
        }
    }
}

/// The minimal answer of an agent that needs one.
const CLINE: &str = "{\"cancel\":false}\n";

/// Reads a payload; `None` for what is no JSON object.
#[must_use]
pub fn read(bytes: &[u8]) -> Option<Payload> {
    let body = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let lead = body.iter().take_while(|b| b.is_ascii_whitespace()).count();
    let object = Value::of(body.get(lead..)?).filter(Value::is_object)?;
    let first = |names: &[&str]| names.iter().find_map(|n| text(&object, n));
    let name = first(&["hook_event_name", "hookEventName", "hookName", "event"]);
    // Cline keeps what is of one event in a member of its own.
    let inner = ["preToolUse", "postToolUse", "userPromptSubmit"]
        .iter()
        .find_map(|n| object.get(n))
        .filter(Value::is_object)
        .unwrap_or(object);
    let tool = ["tool_name", "toolName", "tool"]
        .iter()
        .find_map(|n| text(&inner, n));
    let prompt = inner.get("prompt").and_then(|p| words(&p));
    let event = match &name {
        Some(name) => named(name),
        None => shaped(&object, tool.is_some(), prompt.is_some()),
    };
    let cline = object.get("taskId").is_some() || object.get("hookName").is_some();
    Some(Payload {
        event,
        session: first(&["session_id", "sessionId", "conversation_id", "taskId"]),
        transcript: first(&["transcript_path", "transcriptPath"]).map(PathBuf::from),
        cwd: first(&["cwd"])
            .or_else(|| folder(&object))
            .map(PathBuf::from),
        prompt,
        turn: turn(&object),
        stamp: object
            .get("timestamp")
            .map(|t| String::from_utf8_lossy(t.raw()).into_owned()),
        call: first(&["tool_use_id", "toolUseId", "tool_call_id", "toolCallId"]),
        touch: tool.map_or(Touch::Nothing, |t| touch::of(&t, &inner)),
        answer: cline.then_some(CLINE),
    })
}

/// The first of several workspace folders.
fn folder(object: &Value<'_>) -> Option<String> {
    let roots = object
        .get("workspace_roots")
        .or_else(|| object.get("workspaceRoots"))?;
    let first = roots.items().next()?;
    first.text().map(std::borrow::Cow::into_owned)
}

fn turn(object: &Value<'_>) -> Option<TurnId> {
    // Codex names turns so in its rollouts too.
    if let Some(id) = text(object, "turn_id").filter(|i| !i.is_empty()) {
        return Some(TurnId::OfTranscript(id));
    }
    let names = ["prompt_id", "promptId", "generation_id"];
    let id = names.iter().find_map(|n| text(object, n));
    id.filter(|i| !i.is_empty()).map(TurnId::OfHook)
}

/// The event of that name, in whatever spelling.
fn named(name: &str) -> Event {
    let plain: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    match plain.as_str() {
        "userpromptsubmit"
        | "userpromptsubmitted"
        | "beforeagent"
        | "beforesubmitprompt"
        | "promptsubmit"
        | "turnstarted" => Event::Prompt,
        "pretooluse" | "beforetool" | "beforetooluse" | "toolcall" => Event::Before,
        "posttooluse" | "posttoolusefailure" | "aftertool" | "aftertooluse" | "afterfileedit"
        | "toolresult" => Event::After,
        "postagentturn" => Event::TurnEnd,
        "stop" | "afteragent" | "agentstop" | "sessionend" => Event::Stop,
        _ => Event::Other,
    }
}

/// The event of a payload that does not name it, as Copilot writes them.
fn shaped(object: &Value<'_>, has_tool: bool, has_prompt: bool) -> Event {
    let kind = text(object, "type").map_or(Event::Other, |t| named(&t));
    let result = ["toolResult", "tool_result", "tool_response", "tool_output"];
    let ended = result.iter().any(|n| object.member(n).is_some());
    match (has_tool, has_prompt) {
        _ if kind != Event::Other => kind,
        (true, _) if ended => Event::After,
        (true, _) => Event::Before,
        // A session that starts with a prompt tells of it twice.
        (false, true) if object.get("initialPrompt").is_none() => Event::Prompt,
        _ => Event::Other,
    }
}

/// A prompt: a string, or a list of parts.
fn words(value: &Value<'_>) -> Option<String> {
    if value.is_string() {
        return value.text().map(std::borrow::Cow::into_owned);
    }
    if !value.is_array() {
        return None;
    }
    let parts: Vec<String> = value.items().filter_map(|p| text(&p, "text")).collect();
    Some(parts.join("\n"))
}
