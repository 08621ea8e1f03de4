//! How a live Qwen session shows: `~/.qwen/sessions/<pid>.json` and `<session>.runtime.json` beside the chat name a
//! process, when it began and its session (`formats/measured.md`).

use std::path::Path;

use super::super::Alive;
use super::super::json::Value;
use super::{entries, text};
use crate::env::Env;
use crate::model::session::Session;

pub(super) fn live(session: &Session, env: &Env) -> Option<Alive> {
    let beside = session.path().with_extension("runtime.json");
    let home = env.home.as_ref().map(|h| h.join(".qwen/sessions"));
    let listed = home.map(|h| entries(&h)).unwrap_or_default();
    std::iter::once(beside)
        .chain(listed)
        .find_map(|path| named(&path, &session.id))
}

fn named(path: &Path, id: &str) -> Option<Alive> {
    let bytes = std::fs::read(path).ok()?;
    let record = Value::of(&bytes)?;
    if text(&record, "sessionId").or_else(|| text(&record, "session_id"))? != id {
        return None;
    }
    let pid = u32::try_from(record.get("pid")?.u64()?).ok()?;
    let started = record.get("procStart").map(|s| match s.text() {
        Some(t) => t.into_owned(),
        None => String::from_utf8_lossy(s.raw()).into_owned(),
    });
    running(pid, started.as_deref()).then(|| Alive {
        sign: format!("`{}` names a running process", path.display()),
        pid: Some(pid),
    })
}

/// A process counts only when it runs **and** began when the record says: numbers are used again.
fn running(pid: u32, started: Option<&str>) -> bool {
    let stat = match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(s) => s,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && Path::new("/proc/self").exists() => {
            return false;
        }
        // No /proc here, or no permission: the record is all there is, so it is believed.
        Err(_) => return true,
    };
    let Some(wanted) = started.filter(|s| s.bytes().all(|b| b.is_ascii_digit())) else {
        return true;
    };
    // Behind the name in brackets, which may hold anything, come the fields from the third on; the 22nd is the start.
    let ticks = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_ascii_whitespace().nth(19));
    ticks.is_none_or(|t| t == wanted)
}
