//! Codex CLI: `$CODEX_HOME/sessions/Y/M/D/rollout-<time>-<thread>[_<rollout>].jsonl[.zst]` and `archived_sessions/`.
//!
//! ```text
//! {"timestamp":"…","ordinal":0,"type":"session_meta","payload":{"id":"<thread>","cwd":"/w","history_mode":"paginated"}}
//! {"timestamp":"…","ordinal":1,"type":"event_msg","payload":{"type":"task_started","turn_id":"t1"}}
//! {"timestamp":"…","ordinal":2,"type":"response_item","payload":{"type":"message","role":"user","content":[…]}}
//! {"timestamp":"…","ordinal":3,"type":"event_msg","payload":{"type":"item_completed","turn_id":"t1","item":{…}}}
//! ```
//!
//! Three generations are read: bare response items (2025), legacy (`response_item` and `patch_apply_end`) and paginated
//! (`item_completed`). A thread may be spread over several rollouts that build on each other by byte offset
//! (`history_base`), so a file that another one needs is never cut.
//!
//! Codex keeps no copies of files: what an edit replaced comes back only by undoing its recorded diff. Its database is
//! never opened; without it the newest rollout of a thread counts as the current one.

mod calls;
mod chain;
mod cut;
mod fork;
mod header;
mod look;
mod prompts;
mod rollouts;
#[cfg(test)]
mod tests;
mod turns;

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::hooks::{self, Setup};
use super::json::{Fields, Value};
use super::{Alive, Card, Format, Head, Trouble};
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::Calls;
use crate::model::fork::{Fork, NewSession};
use crate::model::session::Session;

/// Codex.
pub struct Codex;

const NAME: &str = "codex";

impl Format for Codex {
    fn agent(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "Codex"
    }

    fn is(&self, head: &Head) -> bool {
        header::is_codex(head)
    }

    fn places(&self, env: &Env, _workspace: Option<&Path>) -> Vec<PathBuf> {
        // The folders are named by date, not by workspace: every rollout may be of any workspace.
        let homes = rollouts::homes(None, env);
        rollouts::newest_of_each_thread(homes.iter().flat_map(|h| rollouts::list(h).found))
    }

    fn card(&self, head: &Head) -> Card {
        header::card(head)
    }

    fn read(&self, path: &Path, env: &Env) -> Result<Session, Trouble> {
        chain::read(path, env)
    }

    fn calls(&self, session: &Session, from: u32, _env: &Env) -> Result<Calls, Trouble> {
        calls::read(session, from)
    }

    fn cut(&self, session: &Session, turn: u32, env: &Env) -> Result<Vec<FileChange>, Trouble> {
        cut::plan(session, turn, env)
    }

    fn fork(
        &self,
        session: &Session,
        turn: u32,
        new: &NewSession,
        env: &Env,
    ) -> Result<Fork, Trouble> {
        fork::fork(session, turn, new, env)
    }

    fn live(&self, session: &Session, env: &Env) -> Option<Alive> {
        rollouts::homes(Some(session.path()), env)
            .iter()
            .find_map(|home| locked(home, &session.id))
    }

    fn hooks(&self) -> Option<Setup> {
        Some(Setup {
            user: hooks::Place {
                var: "CODEX_HOME",
                home: ".codex",
                file: "hooks.json",
            },
            project: Some(".codex/hooks.json"),
            form: hooks::Form::Groups {
                on: hooks::ALL_TOOLS,
                timeout: 10,
            },
            end: Some("Stop"),
            then: Some(
                "start Codex, type `/hooks` and trust them: until then it leaves them out without a word",
            ),
        })
    }

    fn resume(&self, session: &Session) -> Option<String> {
        plain(&session.id).then(|| format!("codex resume {}", session.id))
    }
}

/// Whether an id is safe in a file name and a command line: it comes from a file, so it may be anything.
fn plain(id: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    !id.is_empty() && id.len() <= 128 && !id.starts_with('-') && id.bytes().all(fits)
}

/// A thread that Codex works on has a kernel lock on its lock file; the file alone means nothing (`formats/measured.md`,
/// "How a live session shows"). The file is opened for reading only and the lock is given back at once.
fn locked(home: &Path, thread: &str) -> Option<Alive> {
    if !plain(thread) {
        return None;
    }
    let path = home
        .join("thread-writer-locks")
        .join(format!("{thread}.lock"));
    let said = |what: &str| {
        Some(Alive {
            sign: format!("{what} `{}`", path.display()),
            pid: None,
        })
    };
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
        Err(e) => return said(&format!("cannot tell ({e}) from")),
    };
    match file.try_lock_shared() {
        Ok(()) => {
            // Should this fail, closing the file gives the lock back all the same.
            let _ = file.unlock();
            None
        }
        Err(TryLockError::WouldBlock) => said("Codex holds the lock"),
        Err(TryLockError::Error(e)) => said(&format!("cannot tell ({e}) from")),
    }
}

/// A member of a record that may be cut short behind it.
fn member<'a>(record: &Value<'a>, name: &str) -> Option<Value<'a>> {
    let mut fields = Fields::open(record.raw(), 0).ok()?;
    while let Ok(Some(field)) = fields.pull() {
        if field.is(name) {
            return field
                .value()
                .ok()
                .or_else(|| Some(Value::head(record.raw().get(field.at..)?)));
        }
    }
    None
}

/// The text of a member.
fn text(value: &Value<'_>, name: &str) -> Option<String> {
    Some(value.get(name)?.text()?.into_owned())
}
