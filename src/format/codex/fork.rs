//! A fork of a Codex thread: a rollout of a new thread that holds the kept records itself. One that builds on others
//! (`history_base`) is resolved: the records of the whole chain, numbered from 0, since a file that other rollouts count
//! on is never changed and a copy counts on nothing. Ids are exchanged in the records that own them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::Trouble;
use super::super::json::Value;
use super::super::splice::{Swaps, pieces, token};
use super::chain::{self, Link};
use super::header::{Header, Mode};
use crate::env::Env;
use crate::model::fork::{Fork, NewFile, NewSession, Piece};
use crate::model::session::{Session, Warnings};

pub(super) fn fork(
    session: &Session,
    turn: u32,
    new: &NewSession,
    env: &Env,
) -> Result<Fork, Trouble> {
    let Some(target) = session.turn(turn) else {
        return refuse(&format!("the session has no turn {turn}"));
    };
    let links = chain::walk(session.path(), env, &mut Warnings::default())?;
    let own = links.first().map(|l| &l.header);
    if own.is_some_and(|h| h.base.is_some()) && links.len() < 2 {
        return refuse(
            "the rollout that this one builds on (history_base) is missing, so a fork would have no beginning",
        );
    }
    if links.iter().any(|l| l.header.id.is_none()) {
        return refuse(
            "the rollout has no header that Codex still reads, so it would not resume a fork",
        );
    }
    let id = new.v7();
    let mut copy = Copy {
        session,
        new: token(&id),
        old: links.iter().filter_map(|l| l.header.id.clone()).collect(),
        numbered: own.is_some_and(|h| h.mode == Mode::Paginated),
        next: 0,
    };
    let first = usize::from(target.span.file.0);
    let mut body = copy.header(links.first())?;
    for (no, link) in links.iter().enumerate().rev() {
        if no < first {
            break;
        }
        let end = if no == first {
            target.span.start
        } else {
            link.end.unwrap_or_default()
        };
        body.extend(copy.records(&link.path, end)?);
    }
    Ok(Fork {
        files: vec![NewFile {
            path: place(session.path(), new, &id),
            body,
        }],
        id,
        ..Fork::default()
    })
}

fn refuse<T>(why: &str) -> Result<T, Trouble> {
    Err(Trouble::Refused {
        why: why.to_owned(),
    })
}

/// The canonical name in the folder of the day, of the home that the rollout lies in; beside it where it lies in none.
fn place(path: &Path, new: &NewSession, id: &str) -> PathBuf {
    let name = format!("rollout-{}-{id}.jsonl", new.at.format("%Y-%m-%dT%H-%M-%S"));
    let home = path.ancestors().skip(1).find(|a| {
        a.file_name()
            .is_some_and(|n| n == "sessions" || n == "archived_sessions")
    });
    match home {
        Some(folder) => folder
            .with_file_name("sessions")
            .join(new.at.format("%Y/%m/%d").to_string())
            .join(name),
        None => path.with_file_name(name),
    }
}

/// The copying of records from the files of the chain into one.
struct Copy<'s> {
    session: &'s Session,
    new: Arc<[u8]>,
    /// The ids of all threads of the chain.
    old: BTreeSet<String>,
    /// Whether records carry numbers.
    numbered: bool,
    next: u64,
}

impl Copy<'_> {
    /// The session's own header, as the first record of the new thread.
    fn header(&mut self, own: Option<&Link>) -> Result<Vec<Piece>, Trouble> {
        let Some(own) = own else {
            return refuse("the rollout has no header");
        };
        let end = header_end(&own.path)?;
        let (mut done, mut current) = (false, false);
        let body = pieces(&own.path, (0, end), &mut |record, swaps| {
            if done || Header::of(record).is_none() {
                swaps.leave_out();
                return;
            }
            done = true;
            self.number(record, swaps);
            if let Some(payload) = record.get("payload").filter(Value::is_object) {
                current = true;
                self.ids(&payload, &["id", "session_id"], swaps);
                self.lineage(&payload, swaps);
            }
        })?;
        if current {
            return Ok(body);
        }
        refuse("the rollout is one of 2025, which Codex of today does not resume")
    }

    /// Where it comes from is told; what it would build on is not there any more.
    fn lineage(&self, payload: &Value<'_>, swaps: &mut Swaps) {
        for member in ["history_base", "forked_from_ordinal_exclusive"] {
            if let Some(value) = payload.get(member) {
                swaps.put(&value, &b"null"[..].into());
            }
        }
        swaps.set(payload, "forked_from_id", &token(&self.session.id));
    }

    /// The records of one file up to an offset, without its header.
    fn records(&mut self, path: &Path, end: u64) -> Result<Vec<Piece>, Trouble> {
        pieces(path, (0, end), &mut |record, swaps| {
            if Header::of(record).is_some() {
                swaps.leave_out();
                return;
            }
            self.number(record, swaps);
            if let Some(payload) = record.get("payload") {
                self.ids(&payload, &["thread_id", "session_id"], swaps);
            }
        })
    }

    fn number(&mut self, record: &Value<'_>, swaps: &mut Swaps) {
        if let Some(ordinal) = record.get("ordinal").filter(|_| self.numbered) {
            if ordinal.u64() != Some(self.next) {
                swaps.put(&ordinal, &self.next.to_string().into_bytes().into());
            }
            self.next += 1;
        }
    }

    fn ids(&self, payload: &Value<'_>, members: &[&str], swaps: &mut Swaps) {
        for value in members.iter().filter_map(|m| payload.get(m)) {
            let owned = value
                .text()
                .is_some_and(|id| self.old.contains(id.as_ref()));
            if owned && value.is_string() {
                swaps.put(&value, &self.new);
            }
        }
    }
}

/// Offset behind the line of the header.
fn header_end(path: &Path) -> Result<u64, Trouble> {
    let mut line = HeaderLine::default();
    let span = super::super::lines::whole(crate::model::session::FileNo(0));
    super::super::lines::scan(path, span, &mut line, &mut Warnings::default())
        .map_err(Trouble::io(path))?;
    match line.end {
        Some(end) => Ok(end),
        None => refuse("the rollout has no header"),
    }
}

/// Finds the line of the header.
#[derive(Default)]
struct HeaderLine {
    seen: bool,
    end: Option<u64>,
}

impl super::super::lines::Visit for HeaderLine {
    fn starts(&self) -> &'static [&'static [u8]] {
        &[]
    }

    fn wants(&mut self, _head: &[u8]) -> super::super::json::Scan<super::super::lines::Wants> {
        use super::super::lines::Wants;
        Ok(if self.end.is_some() {
            Wants::No
        } else {
            Wants::Whole
        })
    }

    fn take(&mut self, record: &[u8], _at: u64) {
        self.seen |= Value::of(record).is_some_and(|r| Header::of(&r).is_some());
    }

    fn line_done(&mut self, _start: u64, end: u64) {
        if self.seen && self.end.is_none() {
            self.end = Some(end);
        }
    }
}
