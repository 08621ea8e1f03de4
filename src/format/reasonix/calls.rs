//! What the calls of a Reasonix session did to files, as far as the transcript tells.
//!
//! ```text
//! {"role":"assistant","tool_calls":[{"id":"c1","name":"write_file","arguments":"{\"path\":\"a.rs\",\"content\":\"x\"}"}]}
//! {"role":"tool","tool_call_id":"c1","name":"write_file","content":"wrote 1 line"}
//! ```
//!
//! The transcript never holds what a file was before: that is in the checkpoints. It does hold which paths a call was for, so
//! that a turn without a checkpoint is known to be incomplete. The full list of tools is not known; a tool counts as writing
//! when its name begins with such a verb, or when the call carries a diff.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::load;
use crate::format::Trouble;
use crate::format::json::{self, Value};
use crate::model::edit::{
    Calls, Change, Content, Edit, Fidelity, Gap, GapKind, Payload, Reason, RecordedPath, Source,
    State,
};
use crate::model::session::{FileNo, Session};

/// A written content up to this many bytes is kept, for telling later whether the file is still as the agent left it.
const KEPT: usize = 1 << 20;

/// What one message has to do with calls.
#[derive(Debug, Default)]
struct Part {
    start: u64,
    calls: Vec<Call>,
    answer: Option<(String, Outcome)>,
}

#[derive(Debug)]
struct Call {
    id: Option<String>,
    act: Act,
}

#[derive(Debug)]
enum Act {
    /// Paths, and the whole content where the call gives it.
    Write(Vec<PathBuf>, Option<Vec<u8>>),
    Gap(GapKind, String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    Failed,
    /// The answer reads like an error, and is not marked as one.
    Doubtful,
}

/// Reads what the calls did, in the turns from `from` on.
///
/// # Errors
/// The session cannot be read.
pub(super) fn calls(session: &Session, from: u32) -> Result<Calls, Trouble> {
    let mut out = Calls::default();
    let Some(first) = session.turn(from) else {
        return Ok(out);
    };
    let (file, start) = (first.span.file, first.span.start);
    let loaded = load::load(session.path(), &mut |no: FileNo, raw| match raw.bytes {
        Some(bytes) if no == file && raw.start >= start => part(bytes, raw.start),
        _ => Part {
            start: raw.start,
            ..Part::default()
        },
    })?;
    out.warnings = loaded.warnings;
    let answers: HashMap<&str, Outcome> = loaded
        .messages
        .iter()
        .filter_map(|p| p.answer.as_ref().map(|(id, o)| (id.as_str(), *o)))
        .collect();
    let mut turns = session.turns.iter().skip(from as usize).peekable();
    let mut turn = from;
    for part in &loaded.messages {
        while let Some(t) = turns.next_if(|t| t.span.start <= part.start) {
            turn = t.no;
        }
        for call in &part.calls {
            let answer = call.id.as_deref().and_then(|id| answers.get(id)).copied();
            tell(call, turn, answer, &mut out);
        }
    }
    Ok(out)
}

fn tell(call: &Call, turn: u32, answer: Option<Outcome>, out: &mut Calls) {
    match &call.act {
        Act::Gap(kind, detail) => out.gaps.push(Gap {
            turn,
            kind: *kind,
            detail: detail.clone(),
        }),
        // An attempted call is not an applied one.
        Act::Write(..) if answer == Some(Outcome::Failed) => {}
        Act::Write(paths, content) => {
            for path in paths {
                out.edits.push(Edit {
                    turn,
                    call: call.id.clone(),
                    path: RecordedPath::new(path.clone()),
                    before: State::Unknown(Reason::NotRecorded),
                    source: Source::Transcript,
                    mode: None,
                    change: Change::Opaque,
                    after: after(content.as_deref(), answer),
                    during: None,
                });
            }
        }
    }
}

/// What the call left there: known only when it was given whole and was answered without complaint. The recorder may
/// have encoded it otherwise, so it is text.
fn after(content: Option<&[u8]>, answer: Option<Outcome>) -> State {
    match (content, answer) {
        (Some(bytes), Some(Outcome::Done)) => State::Held(Content {
            payload: Payload::Bytes(bytes.to_vec()),
            fidelity: Fidelity::Text,
            sha256: None,
        }),
        _ => State::Unknown(Reason::NotRecorded),
    }
}

fn part(bytes: &[u8], start: u64) -> Part {
    let mut out = Part {
        start,
        ..Part::default()
    };
    let message = Value::head(bytes);
    let role = message.get("role");
    if role.is_some_and(|r| r.is_str("tool")) {
        out.answer = answer(&message);
    } else if role.is_some_and(|r| r.is_str("assistant"))
        && let Some(calls) = message.get("tool_calls")
    {
        out.calls = calls.items().filter_map(|c| call(&c)).collect();
    }
    out
}

fn answer(message: &Value<'_>) -> Option<(String, Outcome)> {
    let id = message.get("tool_call_id")?.text()?.into_owned();
    // The first bytes of the token are enough, and a result may be long.
    let content = message.get("content").map_or(&b""[..], |c| c.raw());
    let words = content
        .strip_prefix(b"\"")
        .unwrap_or(content)
        .trim_ascii_start();
    let outcome = if message.get("tool_failure").is_some() {
        Outcome::Failed
    } else if words
        .get(..5)
        .is_some_and(|w| w.eq_ignore_ascii_case(b"error"))
    {
        Outcome::Doubtful
    } else {
        Outcome::Done
    };
    Some((id, outcome))
}

/// What a call is for; nothing when it only reads.
fn call(call: &Value<'_>) -> Option<Call> {
    if call.get("resolved_read_only").is_some_and(|v| v.is_true()) {
        return None;
    }
    let name = call.get("name")?.text()?.into_owned();
    let arguments = call.get("arguments").and_then(|a| a.bytes());
    let arguments = arguments.as_deref().and_then(Value::of);
    Some(Call {
        id: call.get("id").and_then(|i| i.text()).map(Into::into),
        act: act(&name, call, arguments.as_ref())?,
    })
}

fn act(name: &str, call: &Value<'_>, arguments: Option<&Value<'_>>) -> Option<Act> {
    if name == "bash" || name == "shell" {
        let command = arguments.and_then(|a| a.get("command")?.text());
        let detail = command.map_or_else(|| name.to_owned(), std::borrow::Cow::into_owned);
        return Some(Act::Gap(GapKind::Shell, detail));
    }
    if name.starts_with("mcp") || name.contains("__") {
        return Some(Act::Gap(GapKind::Tool, name.to_owned()));
    }
    let counted = |key: &str| call.get(key).and_then(|v| v.u64()).is_some_and(|n| n > 0);
    let shows = call.get("diff").is_some() || counted("added") || counted("removed");
    let verb = name.split('_').next().unwrap_or_default();
    if !shows && !WRITING.contains(&verb) {
        return None;
    }
    let paths = arguments.map(paths).unwrap_or_default();
    if paths.is_empty() {
        return Some(Act::Gap(GapKind::Tool, name.to_owned()));
    }
    let content = arguments
        .filter(|_| name == "write_file")
        .and_then(|a| json::string(a.get("content")?.raw(), json::Broken::Refuse))
        .filter(|c| c.len() <= KEPT)
        .map(std::borrow::Cow::into_owned);
    Some(Act::Write(paths, content))
}

/// The first words of the names of tools that write.
const WRITING: [&str; 11] = [
    "write", "edit", "multi", "move", "delete", "create", "append", "rename", "insert", "replace",
    "apply",
];

/// The arguments that name a file.
const PATHS: [&str; 9] = [
    "path",
    "file_path",
    "source",
    "destination",
    "source_path",
    "destination_path",
    "dest_path",
    "from",
    "to",
];

fn paths(arguments: &Value<'_>) -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = Vec::new();
    for (key, value) in arguments.entries() {
        if !PATHS.contains(&&*key) {
            continue;
        }
        let Some(bytes) = json::string(value.raw(), json::Broken::Refuse) else {
            continue;
        };
        let path = PathBuf::from(OsString::from_vec(bytes.into_owned()));
        if !path.as_os_str().is_empty() && !out.contains(&path) {
            out.push(path);
        }
    }
    out
}
