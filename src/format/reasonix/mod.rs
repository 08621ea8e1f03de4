//! Reasonix sessions: one message a line, and since 1.x a log of events beside it that counts instead.
//!
//! ```text
//! {"role":"system","content":"You are ..."}
//! {"role":"user","content":"add a parser","createdAt":1781071402123}
//! {"role":"assistant","content":"ok","tool_calls":[{"id":"c1","name":"write_file","arguments":"{…}"}]}
//! {"role":"tool","content":"wrote 3 lines","tool_call_id":"c1","name":"write_file"}
//! ```
//!
//! A turn's key is `m` and the index of its message, which is what checkpoints call `msgIndex`. Does not cover the checkpoints
//! themselves (`ckpt::reasonix`), nor event logs of schema 2 and later, which are graphs.

mod calls;
mod cut;
mod fork;
mod live;
mod load;
mod log;
mod message;
mod meta;
mod names;
mod places;
mod values;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub use message::clean_prompt;

use self::values::{Cut, Flow, Piece};
use super::json::Value;
use super::{Alive, Card, Format, Head, Trouble};
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::Calls;
use crate::model::fork::{Fork, NewSession};
use crate::model::session::{Session, Span, Turn, TurnKind};

/// Reasonix.
pub struct Reasonix;

impl Format for Reasonix {
    fn agent(&self) -> &'static str {
        "reasonix"
    }

    fn title(&self) -> &'static str {
        "Reasonix"
    }

    fn is(&self, head: &Head) -> bool {
        if names::log_stem(&head.path).is_some() {
            return head.records().next().is_some_and(|r| is_log_record(&r));
        }
        let named_otherwise = head.path.extension().is_some_and(|e| e == "jsonl")
            && !names::is_transcript(&head.path);
        if named_otherwise {
            return false;
        }
        match look(head) {
            Seen::Other => false,
            Seen::Own => true,
            Seen::Messages => has_sidecars(&head.path, Emptiness::Filled),
            Seen::Nothing => has_sidecars(&head.path, Emptiness::Empty),
        }
    }

    fn places(&self, env: &Env, workspace: Option<&Path>) -> Vec<PathBuf> {
        places::sessions(env, workspace)
    }

    fn card(&self, head: &Head) -> Card {
        let session = names::session(&head.path);
        // What the list shows is not worth an error: without it the card is only shorter.
        let bytes = meta::read(&session).ok().flatten().unwrap_or_default();
        let meta = meta::object(&bytes);
        let text = |key: &str| meta.and_then(|m| m.get(key)?.text());
        let first = head.records().find_map(|r| message::prompt_of_user(&r));
        Card {
            id: names::id(&session),
            root: root(meta.as_ref()),
            prompt: first.or_else(|| text("preview").map(std::borrow::Cow::into_owned)),
            at: text("created_at")
                .and_then(|t| super::time(&t))
                .or_else(|| head.records().find_map(|r| message::made_at(&r))),
        }
    }

    fn read(&self, path: &Path, _env: &Env) -> Result<Session, Trouble> {
        let loaded = load::load(path, &mut |_, raw| message::Message::of(raw))?;
        let session = names::session(path);
        // An unreadable `.meta` costs the root, which the caller then asks for; the turns are still right.
        let meta = meta::read(&session).ok().flatten().unwrap_or_default();
        let len = match std::fs::metadata(&session) {
            Ok(m) => m.len(),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && loaded.log.is_some() => 0,
            Err(e) => return Err(Trouble::io(&session)(e)),
        };
        let end = loaded.log.map_or(len, |l| l.end);
        Ok(Session {
            agent: self.agent(),
            id: names::id(&session),
            root: root(meta::object(&meta).as_ref()),
            turns: turns(&loaded, end),
            files: loaded.files,
            abandoned: 0,
            len,
            warnings: loaded.warnings,
        })
    }

    fn calls(&self, session: &Session, from: u32, _env: &Env) -> Result<Calls, Trouble> {
        calls::calls(session, from)
    }

    fn cut(&self, session: &Session, turn: u32, env: &Env) -> Result<Vec<FileChange>, Trouble> {
        cut::cut(session, turn, env.now)
    }

    fn fork(
        &self,
        session: &Session,
        turn: u32,
        new: &NewSession,
        _env: &Env,
    ) -> Result<Fork, Trouble> {
        fork::fork(session, turn, new)
    }

    fn live(&self, session: &Session, env: &Env) -> Option<Alive> {
        live::live(session.path(), env.now)
    }

    /// No command is known that goes on with one session.
    fn resume(&self, _session: &Session) -> Option<String> {
        None
    }
}

/// The workspace that the `.meta` names. Paths in checkpoints would only allow a guess.
fn root(meta: Option<&Value<'_>>) -> Option<PathBuf> {
    let root = meta?.get("workspace_root")?.text()?;
    let path = PathBuf::from(root.into_owned());
    path.is_absolute().then_some(path)
}

/// The turns among the messages; the last one ends at `end`.
fn turns(loaded: &load::Loaded<message::Message>, end: u64) -> Vec<Turn> {
    let mut out: Vec<Turn> = Vec::new();
    for (index, message) in loaded.messages.iter().enumerate() {
        if let Some(prompt) = &message.prompt {
            if let Some(last) = out.last_mut() {
                last.span.end = message.start;
            }
            out.push(Turn {
                no: u32::try_from(out.len()).unwrap_or(u32::MAX),
                key: format!("m{index}"),
                prompt: prompt.clone(),
                at: message.at,
                kind: TurnKind::Prompt,
                span: Span {
                    file: loaded.file,
                    start: message.start,
                    end: end.max(message.end),
                },
                line: message.start,
                interrupted: false,
                compacted: false,
            });
        }
        if let Some(last) = out.last_mut() {
            last.interrupted |= message.interrupted;
        }
    }
    out
}

/// Whether a record is one of an event log, of any schema.
fn is_log_record(record: &Value<'_>) -> bool {
    let text = |key: &str| record.get(key).and_then(|v| v.text());
    let schema = record.get("schema_version").and_then(|v| v.u64());
    match (schema, text("type").as_deref()) {
        (Some(1), Some("replace" | "append")) => {
            record.get("revision").is_some() || record.get("messages").is_some()
        }
        (Some(n), Some(_)) => {
            n > 1 && (record.get("writer").is_some() || record.get("at").is_some())
        }
        _ => false,
    }
}

/// Keys of other agents' records that have a role too.
const FOREIGN: [&str; 7] = [
    "type",
    "uuid",
    "parentUuid",
    "message",
    "parts",
    "sessionId",
    "pinned",
];

/// Whether a record may be a message of Reasonix.
fn is_message(record: &Value<'_>) -> bool {
    let role = record.get("role").and_then(|r| r.text());
    matches!(
        role.as_deref(),
        Some("system" | "user" | "assistant" | "tool")
    ) && !FOREIGN.iter().any(|key| record.member(key).is_some())
}

/// What the head of a file holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// Nothing at all.
    Nothing,
    /// Messages that may be of anyone.
    Messages,
    /// Messages that only Reasonix writes.
    Own,
    /// Something else.
    Other,
}

/// Looks at the values of a head: they need not be lines, so its records may be halves of them.
fn look(head: &Head) -> Seen {
    let mut seen = Seen::Nothing;
    let mut one = |value: Value<'_>| {
        if !is_message(&value) {
            seen = Seen::Other;
        } else if is_own(&value) {
            seen = Seen::Own;
        } else if seen == Seen::Nothing {
            seen = Seen::Messages;
        }
        if seen == Seen::Other {
            Flow::Stop
        } else {
            Flow::On
        }
    };
    values::stream_bytes(head.bytes(), Cut::Values, &mut |piece| match piece {
        Piece::Item(raw) => raw.bytes.and_then(Value::of).map_or(Flow::On, &mut one),
        // The last one goes on behind the head; a message tells its role first.
        Piece::Torn(at) => {
            let rest = usize::try_from(at)
                .ok()
                .and_then(|at| head.bytes().get(at..));
            rest.map_or(Flow::On, |r| one(Value::head(r)))
        }
        Piece::Record(..) | Piece::Bad(_) => Flow::On,
    });
    let blank = head.bytes().iter().all(|b| super::head::lead_byte(*b));
    match seen {
        Seen::Nothing if !blank => Seen::Other,
        seen => seen,
    }
}

/// Whether a message has what only Reasonix writes. Plain role and content say nothing.
fn is_own(record: &Value<'_>) -> bool {
    let number = |key: &str| record.get(key).is_some_and(|v| v.u64().is_some());
    let has = |key: &str| record.get(key).is_some();
    let by = |who: &str| record.get("origin").is_some_and(|o| o.is_str(who));
    number("createdAt")
        || has("reasoning_content")
        || has("raw_content")
        || has("provider_content")
        || has("local_only")
        || by("user")
        || by("host")
        || record
            .get("tool_calls")
            .is_some_and(|c| c.items().any(|c| is_flat_call(&c)))
}

/// Other agents put a call's name and arguments into a `function`.
fn is_flat_call(call: &Value<'_>) -> bool {
    let text = |key: &str| call.get(key).is_some_and(|v| v.is_string());
    text("name") && text("arguments") && call.get("function").is_none()
}

/// Whether a file holds a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Emptiness {
    Empty,
    Filled,
}

/// Whether files of Reasonix stand beside the session. An empty file is told by an event log only: anything may be empty.
fn has_sidecars(path: &Path, file: Emptiness) -> bool {
    let log = names::beside(path, ".events.jsonl");
    if Head::read(&log).is_ok_and(|h| h.records().next().is_some_and(|r| is_log_record(&r))) {
        return true;
    }
    file == Emptiness::Filled
        && (meta::path(path).is_file() || names::beside(path, ".ckpt").is_dir())
}
