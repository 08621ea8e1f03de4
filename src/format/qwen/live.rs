//! How a live Qwen session shows: `~/.qwen/sessions/<pid>.json` and `<session>.runtime.json` beside the chat name a
//! process, when it began and its session (`formats/measured.md`).

use std::path::Path;

use super::super::json::Value;
use super::super::{Alive, alive};
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
    alive::recorded(&record, path)
}
