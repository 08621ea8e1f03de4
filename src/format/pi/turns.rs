//! The turns of a pi session: messages of role `user` that the conversation holds. What `!` ran (`bashExecution`), what
//! extensions said (`custom`) and results of tools are none.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::super::json::{Fields, Scan, Value};
use super::super::lines::{self, Visit, Wants};
use super::super::record::{self, text};
use super::super::{Trouble, time};
use super::claw;
use super::tree::{Lost, Tree};
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::session::{FileNo, Oddity, Session, Span, Turn, TurnKind, Warnings};

/// How entries begin.
pub(super) const STARTS: &[&[u8]] = &[b"{\"type\":\""];

/// The prompt, where the entry is one of a person.
pub(super) fn prompt_of(record: &Value<'_>) -> Option<String> {
    record.get("type").filter(|t| t.is_str("message"))?;
    let message = record.get("message")?;
    message.get("role").filter(|r| r.is_str("user"))?;
    let content = message.get("content")?;
    if content.is_string() {
        return content.text().map(std::borrow::Cow::into_owned);
    }
    let parts: Vec<String> = content
        .items()
        .filter(|p| p.get("type").is_some_and(|t| t.is_str("text")))
        .filter_map(|p| text(&p, "text"))
        .collect();
    Some(parts.join("\n"))
}

/// What one pass over the file finds.
#[derive(Default)]
pub(super) struct Pass {
    pub(super) tree: Tree,
    /// Turns of every branch, with the place of their entry.
    drafts: Vec<(usize, Turn)>,
    id: String,
    cwd: Option<PathBuf>,
    version: u64,
    /// Offset behind the header.
    header_end: u64,
    /// Offset of a header behind entries: what stands before it is another session.
    again: Option<u64>,
}

pub(super) fn pass(path: &Path, warnings: &mut Warnings) -> Result<(Pass, u64), Trouble> {
    let mut pass = Pass::default();
    let end = lines::scan(path, lines::whole(FileNo(0)), &mut pass, warnings)
        .map_err(Trouble::io(path))?;
    Ok((pass, end))
}

/// Reads the turns of the active branch.
pub(super) fn read(path: &Path) -> Result<Session, Trouble> {
    let mut warnings = Warnings::default();
    let (pass, end) = pass(path, &mut warnings)?;
    if pass.version > super::VERSION {
        return Err(Trouble::Newer {
            what: format!("entries of version {} are newer than we know", pass.version),
        });
    }
    let active = pass.tree.active(&mut warnings);
    let kept = pass.tree.kept_from(&active);
    let all = pass.drafts.len();
    let other = |(_, turn): &&(usize, Turn)| pass.again.is_some_and(|at| turn.line < at);
    for (_, turn) in pass.drafts.iter().filter(other) {
        warnings.add(Oddity::OtherSession, FileNo(0), turn.line);
    }
    let mut turns: Vec<Turn> = pass
        .drafts
        .into_iter()
        .filter(|(place, _)| active.binary_search(place).is_ok())
        .map(|(_, turn)| turn)
        .collect();
    let mut next = end;
    for turn in turns.iter_mut().rev() {
        turn.span.end = next;
        next = turn.span.start;
        turn.compacted = kept.is_some_and(|k| turn.span.start < k);
    }
    for (no, turn) in (0..).zip(&mut turns) {
        turn.no = no;
    }
    record::apart(&mut turns);
    Ok(Session {
        agent: super::NAME,
        id: pass.id,
        files: vec![path.to_path_buf()],
        root: pass.cwd,
        abandoned: u32::try_from(all - turns.len()).unwrap_or(u32::MAX),
        turns,
        len: end,
        warnings,
    })
}

/// The file ends behind the entry that the turn hangs below: that is then the last one, so pi goes on from it. Entries
/// of other branches that stand behind it go with the tail.
pub(super) fn cut(session: &Session, turn: u32, env: &Env) -> Result<Vec<FileChange>, Trouble> {
    let refuse = |why: &str| {
        Err(Trouble::Refused {
            why: why.to_owned(),
        })
    };
    let path = session.path();
    let Some(target) = session.turn(turn) else {
        return refuse("the session has no such turn");
    };
    let (pass, end) = pass(path, &mut Warnings::default())?;
    if pass.tree.claw || beside_index(path) {
        return claw::rewind(session, target, &pass.tree, env);
    }
    let place = pass
        .tree
        .entries
        .iter()
        .position(|e| e.start == target.line);
    let keep = match place.map(|p| pass.tree.parent_end(p)) {
        Some(Ok(Some(end))) => end,
        Some(Ok(None)) => pass.header_end,
        Some(Err(Lost)) | None => {
            return refuse("the entry that the turn hangs below is not in the file");
        }
    };
    if end != session.len || keep == 0 || keep > target.span.start || !ends_line(path, keep)? {
        return refuse("the file cannot end at a line before the turn");
    }
    Ok(vec![FileChange::Truncate {
        path: path.to_path_buf(),
        keep,
        len: session.len,
    }])
}

pub(super) fn ends_line(path: &Path, keep: u64) -> Result<bool, Trouble> {
    let mut byte = [0];
    File::open(path)
        .and_then(|f| f.read_exact_at(&mut byte, keep.saturating_sub(1)))
        .map_err(Trouble::io(path))?;
    Ok(byte == [b'\n'])
}

/// `OpenClaw` has `sessions.json` beside its sessions.
fn beside_index(path: &Path) -> bool {
    path.parent()
        .is_some_and(|p| p.join("sessions.json").exists())
}

impl Pass {
    fn header(&mut self, record: &Value<'_>) {
        self.id = text(record, "id").unwrap_or_default();
        self.cwd = text(record, "cwd").map(PathBuf::from);
        self.version = record.get("version").and_then(|v| v.u64()).unwrap_or(1);
    }

    fn message(&mut self, record: &Value<'_>, at: u64) {
        let Some(prompt) = prompt_of(record) else {
            return;
        };
        let Some(place) = self.tree.entries.len().checked_sub(1) else {
            return;
        };
        let turn = Turn {
            no: 0,
            key: text(record, "id").unwrap_or_else(|| format!("line-{at}")),
            prompt,
            at: text(record, "timestamp").and_then(|t| time(&t)),
            kind: TurnKind::Prompt,
            span: Span {
                file: FileNo(0),
                start: at,
                end: at,
            },
            line: at,
            interrupted: false,
            compacted: false,
        };
        self.drafts.push((place, turn));
    }
}

impl Visit for Pass {
    fn starts(&self) -> &'static [&'static [u8]] {
        STARTS
    }

    fn wants(&mut self, head: &[u8]) -> Scan<Wants> {
        // Every entry counts for the tree, so every one is taken; only its first members are looked at.
        Fields::open(head, 0)?;
        Ok(Wants::Whole)
    }

    fn take(&mut self, record: &[u8], at: u64) {
        let record = Value::head(record);
        if record.get("type").is_some_and(|t| t.is_str("session")) {
            if self.tree.entries.is_empty() && self.id.is_empty() {
                self.header(&record);
            } else {
                self.again = Some(at);
            }
            return;
        }
        self.tree.entry(&record, at);
        self.message(&record, at);
    }

    fn line_done(&mut self, start: u64, end: u64) {
        if self.tree.entries.is_empty() {
            self.header_end = end;
        }
        self.tree.line_done(start, end);
    }
}
