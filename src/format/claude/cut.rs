//! Where a Claude Code session may end so that the client goes on from before a turn. Tried on real clients: they
//! send exactly the kept turns (`formats/measured.md`). Abandoned branches that stand behind the last kept turn go
//! with the tail, else the client would take one of them up again.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::super::Trouble;
use super::super::json::{Scan, Value};
use super::super::lines::{self, Visit, Wants};
use super::branch::locate;
use super::place::text;
use crate::model::cut::FileChange;
use crate::model::session::{FileNo, Session, Span, Turn, TurnKind, Warnings};

/// `parentUuid` stands at the start of its record; this many bytes of it are enough.
const HEAD: u64 = 64 << 10;

pub(super) fn cut(session: &Session, turn: u32) -> Result<Vec<FileChange>, Trouble> {
    let path = session.path();
    let Some(target) = session.turn(turn) else {
        return Err(Trouble::Refused {
            why: format!("there is no turn {turn}"),
        });
    };
    let before = turn.checked_sub(1).and_then(|n| session.turn(n));
    let mut keep = match before {
        Some(last) => last.span.end,
        None => first_turn(session).map_err(Trouble::io(path))?,
    };
    if let (TurnKind::Queued, Some(last)) = (target.kind, before) {
        keep = before_open_calls(session, last, keep).map_err(Trouble::io(path))?;
    }
    kept_is_whole(session, target, keep)?;
    Ok(vec![FileChange::Truncate {
        path: path.to_path_buf(),
        keep,
        len: session.len,
    }])
}

/// The start of the first turn of any branch: an abandoned first prompt goes too.
fn first_turn(session: &Session) -> std::io::Result<u64> {
    let mut pass = super::turns::Pass::default();
    lines::scan(
        session.path(),
        lines::whole(FileNo(0)),
        &mut pass,
        &mut Warnings::default(),
    )?;
    Ok(pass.candidates.first().map_or(session.len, |c| c.start))
}

/// Checks that the kept bytes end with a line and hold the record that the turn hangs below.
fn kept_is_whole(session: &Session, target: &Turn, keep: u64) -> Result<(), Trouble> {
    let path = session.path();
    let refuse = |why: &str| {
        Err(Trouble::Refused {
            why: format!(
                "{why}; to go on from there, fork the session in the agent (`--fork-session`)"
            ),
        })
    };
    let file = File::open(path).map_err(Trouble::io(path))?;
    if keep > 0 {
        let mut last = [0];
        file.read_exact_at(&mut last, keep - 1)
            .map_err(Trouble::io(path))?;
        if last != [b'\n'] {
            return refuse("the turn begins in the middle of a line, behind another record");
        }
    }
    if target.kind == TurnKind::Queued {
        return Ok(());
    }
    let head = target.span.end.min(target.line + HEAD).max(target.line);
    let record = lines::read_span(path, target.line, head).map_err(Trouble::io(path))?;
    let parent = Value::head(&record)
        .get("parentUuid")
        .and_then(|p| p.text().map(std::borrow::Cow::into_owned));
    let Some(parent) = parent else {
        return Ok(());
    };
    match locate(&file, &parent, target.line).map_err(Trouble::io(path))? {
        Some(at) if at >= keep && at < target.span.start => {
            refuse("records of a kept turn stand behind the place where the file would end")
        }
        _ => Ok(()),
    }
}

/// A queued prompt may stand between a call and its result. The file then ends before the call: a call without its
/// result, or a result without its call, is refused by the model (`formats/claude-code.md` §2.6).
fn before_open_calls(session: &Session, last: &Turn, keep: u64) -> std::io::Result<u64> {
    let mut open = OpenCalls::default();
    let span = Span {
        end: keep,
        ..last.span
    };
    lines::scan(session.path(), span, &mut open, &mut Warnings::default())?;
    Ok(open.calls.values().copied().min().unwrap_or(keep))
}

#[derive(Default)]
struct OpenCalls {
    /// Calls without a result so far, with the offset of their line.
    calls: BTreeMap<String, u64>,
}

impl Visit for OpenCalls {
    fn starts(&self) -> &'static [&'static [u8]] {
        super::turns::STARTS
    }

    fn wants(&mut self, _head: &[u8]) -> Scan<Wants> {
        Ok(Wants::Whole)
    }

    fn take(&mut self, record: &[u8], at: u64) {
        let content = Value::of(record)
            .and_then(|r| r.get("message"))
            .and_then(|m| m.get("content"));
        for block in content.iter().flat_map(Value::items) {
            match text(&block, "type").as_deref() {
                Some("tool_use") => {
                    if let Some(id) = text(&block, "id") {
                        self.calls.insert(id, at);
                    }
                }
                Some("tool_result") => {
                    if let Some(id) = text(&block, "tool_use_id") {
                        self.calls.remove(&id);
                    }
                }
                _ => {}
            }
        }
    }
}
