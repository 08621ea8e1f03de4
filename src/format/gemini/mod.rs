//! Gemini CLI: `~/.gemini/tmp/<project>/chats/session-<time>-<id8>.jsonl`, a log of folds: each line adds a message,
//! changes one that has the same `id`, or changes the list of all messages.
//!
//! ```text
//! {"sessionId":"5b0c…","projectHash":"9f…","startTime":"…","lastUpdated":"…","kind":"main"}
//! {"id":"m1","timestamp":"…","type":"user","content":[{"text":"add a test"}]}
//! {"id":"m2","timestamp":"…","type":"gemini","content":"","toolCalls":[{"id":"t1","name":"replace","status":"success",…}]}
//! {"$set":{"messages":[…],"lastUpdated":"…"}}          the list becomes this one (resume, compression, a stopped turn)
//! {"$rewindTo":"m1"}                                    this message and all later ones are dropped
//! ```
//!
//! A header is written again at every resume, into a new file when the minute is another one: so one session may lie in
//! several files of one `sessionId`, and they are read as one. Older versions wrote one JSON document with the same
//! messages; it is read, and never cut.
//!
//! Does not cover: prompts that stand only inside `$set.messages` (a summary, or a conversation brought from elsewhere);
//! the shadow repository of `/restore`, which is git's.

mod calls;
mod cut;
mod fold;
mod fork;
mod live;
mod place;
mod prompt;
mod read;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use super::hooks::{self, Setup};
use super::json::Value;
use super::{Alive, Card, Format, Head, Trouble};
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::Calls;
use crate::model::fork::{Fork, NewSession};
use crate::model::session::Session;

/// Gemini CLI.
pub struct Gemini;

const NAME: &str = "gemini";

impl Format for Gemini {
    fn agent(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "Gemini CLI"
    }

    fn is(&self, head: &Head) -> bool {
        head.records().any(|r| signature(&r)) || is_document(head.bytes())
    }

    fn places(&self, env: &Env, workspace: Option<&Path>) -> Vec<PathBuf> {
        place::sessions(env, workspace)
    }

    fn card(&self, head: &Head) -> Card {
        place::card(head)
    }

    fn read(&self, path: &Path, _env: &Env) -> Result<Session, Trouble> {
        read::read(path)
    }

    fn calls(&self, session: &Session, from: u32, _env: &Env) -> Result<Calls, Trouble> {
        calls::read(session, from)
    }

    fn cut(&self, session: &Session, turn: u32, _env: &Env) -> Result<Vec<FileChange>, Trouble> {
        cut::cut(session, turn)
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
        live::live(session, env)
    }

    fn hooks(&self) -> Option<Setup> {
        Some(Setup {
            user: hooks::Place {
                var: "GEMINI_CLI_HOME",
                home: "",
                file: ".gemini/settings.json",
            },
            project: Some(".gemini/settings.json"),
            form: hooks::Form::Groups {
                on: &[
                    ("BeforeAgent", None),
                    ("BeforeTool", Some("*")),
                    ("AfterTool", Some("*")),
                ],
                timeout: 10000,
            },
            end: Some("AfterAgent"),
            then: None,
        })
    }

    fn resume(&self, session: &Session) -> Option<String> {
        place::plain(&session.id).then(|| format!("gemini --resume {}", session.id))
    }
}

/// `formats/agents.md` §4, row 7. A record of Claude Code or Qwen has a `uuid`.
fn signature(record: &Value<'_>) -> bool {
    if record.member("uuid").is_some() {
        return false;
    }
    let has = |name| record.get(name).is_some();
    (has("sessionId") && has("projectHash"))
        || record.get("$set").is_some_and(|s| s.is_object())
        || record.get("$rewindTo").is_some_and(|s| s.is_string())
        || (record.get("type").is_some_and(|t| t.is_str("gemini")) && has("id"))
}

/// Whether these first bytes are of one JSON document, as older versions wrote: an object over several lines.
fn is_document(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let lead = bytes.iter().take_while(|b| b.is_ascii_whitespace()).count();
    let body = bytes.get(lead..).unwrap_or_default();
    let first_line = body.split(|b| *b == b'\n').next().unwrap_or_default();
    let document = Value::head(body);
    first_line.len() < body.len()
        && Value::of(first_line).is_none()
        && document.get("sessionId").is_some()
        && document.get("projectHash").is_some()
}

/// A member as text.
fn text(record: &Value<'_>, name: &str) -> Option<String> {
    record.get(name)?.text().map(std::borrow::Cow::into_owned)
}
