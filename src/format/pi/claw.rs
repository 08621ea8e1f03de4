//! How a conversation of `OpenClaw` goes back: a `leaf` row at the end of the file names the entry that it ends with, as the
//! client's own rewind does, and every byte before stays. Its index of sessions then says nothing false.
//!
//! ```text
//! {"type":"leaf","id":"…","parentId":"<the leaf so far>","timestamp":"…","targetId":"<the new one>","appendParentId":"<the same>"}
//! ```

use std::hash::{DefaultHasher, Hash, Hasher};

use super::super::Trouble;
use super::super::json::Value;
use super::super::lines::read_span;
use super::super::record::text;
use super::tree::{Entry, Tree};
use super::turns::ends_line;
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::session::{Session, Turn};

/// The change by which the conversation ends before a turn.
///
/// # Errors
/// [`Trouble::Refused`] where an entry has no id, or the file no end; [`Trouble::Io`].
pub(super) fn rewind(
    session: &Session,
    target: &Turn,
    tree: &Tree,
    env: &Env,
) -> Result<Vec<FileChange>, Trouble> {
    let refuse = |why: &str| {
        Err(Trouble::Refused {
            why: why.to_owned(),
        })
    };
    let path = session.path();
    if !ends_line(path, session.len)? {
        return refuse("the last line of the session has no end");
    }
    let at = |start: u64| tree.entries.iter().find(|e| e.start == start);
    let (Some(prompt), Some(last)) = (at(target.line), tree.entries.last()) else {
        return refuse("the turn's entry is not in the file");
    };
    let (Some(prompt), Some(last)) = (Named::read(session, prompt)?, Named::read(session, last)?)
    else {
        return refuse("its entries have no ids, so none can be named as the last one");
    };
    let row = serde_json::json!({
        "type": "leaf", "id": fresh(session, target, tree), "parentId": last.id,
        "timestamp": env.now.to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
        "targetId": prompt.parent, "appendParentId": prompt.parent,
    });
    Ok(vec![FileChange::Append {
        path: path.to_path_buf(),
        bytes: format!("{row}\n").into_bytes(),
        len: session.len,
    }])
}

/// An entry's own id, and that of the one that it hangs below.
struct Named {
    id: String,
    parent: Option<String>,
}

impl Named {
    fn read(session: &Session, entry: &Entry) -> Result<Option<Self>, Trouble> {
        let path = session.path();
        let line = read_span(path, entry.start, entry.end).map_err(Trouble::io(path))?;
        let Some(record) = Value::of(&line) else {
            return Ok(None);
        };
        Ok(text(&record, "id").map(|id| Self {
            id,
            parent: text(&record, "parentId"),
        }))
    }
}

/// An id that no entry has.
fn fresh(session: &Session, target: &Turn, tree: &Tree) -> String {
    let mut id = String::new();
    for n in 0..=u64::from(u16::MAX) {
        let mut hasher = DefaultHasher::new();
        (session.len, &target.key, n).hash(&mut hasher);
        id = format!("{:08x}", hasher.finish() & u64::from(u32::MAX));
        if !tree.has(&id) {
            break;
        }
    }
    id
}
