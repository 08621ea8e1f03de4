//! What the calls inside the turns did to files.
//!
//! Codex tells what a patch really did in an event of its own (`patch_apply_end`, or a completed item `FileChange`); that
//! event is the truth, and the patch text of the call is used only where there is none. Everything else that can write
//! files (shell, code mode, MCP, sub-agents) leaves no record of it and becomes a gap.
//!
//! Codex leaves the files alone when it takes turns back. Edits of such turns are never used, so a path that they
//! touched cannot be undone through them: it is unknown before, and the turn before them says why.

mod changes;
mod event;
mod reader;
mod script;
mod tools;

use std::collections::HashSet;
use std::path::Path;

use super::super::Trouble;
use super::super::lines::{Visit, scan};
use super::header::Header;
use crate::model::edit::{Calls, Edit, Gap, GapKind, RecordedPath};
use crate::model::session::{FileNo, Session, Span, Warnings};
use reader::{Reader, Starts, unclear};

/// Reads the calls of the turns from `from` on.
pub(super) fn read(session: &Session, from: u32) -> Result<Calls, Trouble> {
    let mut reader = Reader::default();
    let mut warnings = Warnings::default();
    for (span, starts) in runs(session, from) {
        reader.enter(span.file, starts);
        scan_span(session, span, &mut reader, &mut warnings)?;
    }
    let mut calls = reader.finish();
    calls.warnings = warnings;
    for (turn, span) in holes(session, from)? {
        taken_back(session, turn, span, from, &mut calls)?;
    }
    Ok(calls)
}

/// The spans to read, those that join taken together: a compressed file is decoded from its start for each.
fn runs(session: &Session, from: u32) -> Vec<(Span, Starts)> {
    let mut runs: Vec<(Span, Starts)> = Vec::new();
    for turn in session.turns.iter().filter(|t| t.no >= from) {
        let start = (turn.no, turn.span.start);
        match runs.last_mut() {
            Some((span, starts)) if span.file == turn.span.file && span.end == turn.span.start => {
                span.end = turn.span.end;
                starts.push_back(start);
            }
            _ => runs.push((turn.span, Starts::from([start]))),
        }
    }
    runs
}

fn scan_span(
    session: &Session,
    span: Span,
    visit: &mut dyn Visit,
    warnings: &mut Warnings,
) -> Result<(), Trouble> {
    let Some(path) = session.files.get(usize::from(span.file.0)) else {
        return Ok(());
    };
    scan(path, span, visit, warnings).map_err(Trouble::io(path))?;
    Ok(())
}

/// The bytes behind a turn that belong to turns which Codex took back.
fn holes(session: &Session, from: u32) -> Result<Vec<(u32, Span)>, Trouble> {
    let mut holes = Vec::new();
    let next = session.turns.iter().skip(1).map(Some).chain([None]);
    let pairs = session.turns.iter().zip(next);
    for (turn, next) in pairs.filter(|(t, _)| t.no >= from) {
        let file = turn.span.file;
        let end = match next {
            Some(n) if n.span.file == file => n.span.start,
            _ if file == FileNo(0) => session.len,
            _ if same_thread(session, file)? => u64::MAX,
            _ => continue,
        };
        if turn.span.end < end {
            let span = Span {
                file,
                start: turn.span.end,
                end,
            };
            holes.push((turn.no, span));
        }
    }
    Ok(holes)
}

/// Whether the rollout above this one is of the same thread: a revert, not a fork.
fn same_thread(session: &Session, file: FileNo) -> Result<bool, Trouble> {
    let n = usize::from(file.0);
    let pair = session.files.get(n).zip(session.files.get(n - 1));
    let Some((base, above)) = pair else {
        return Ok(false);
    };
    let id = |path: &Path| -> Result<Option<String>, Trouble> {
        let header = Header::read(path).map_err(Trouble::io(path))?;
        Ok(header.and_then(|h| h.id))
    };
    Ok(id(base)? == id(above)?)
}

/// Says what turns did that Codex took back: they are not undone, and what they touched is not known before.
fn taken_back(
    session: &Session,
    turn: u32,
    span: Span,
    from: u32,
    calls: &mut Calls,
) -> Result<(), Trouble> {
    let mut reader = Reader::default();
    reader.enter(span.file, Starts::from([(turn, span.start)]));
    scan_span(session, span, &mut reader, &mut Warnings::default())?;
    let touched = reader.finish().edits;
    let mut names: Vec<String> = touched
        .iter()
        .map(|e| e.path.path.display().to_string())
        .collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        return Ok(());
    }
    let at = calls.edits.iter().take_while(|e| e.turn <= turn).count();
    let mut behind = calls.edits.split_off(at);
    let known: HashSet<RecordedPath> = calls
        .edits
        .iter()
        .filter(|e| e.turn >= from)
        .map(|e| e.path.clone())
        .collect();
    let mut walls: Vec<Edit> = Vec::new();
    for edit in touched.into_iter().filter(|e| known.contains(&e.path)) {
        if walls.iter().all(|w| w.path != edit.path) {
            walls.push(unclear(edit));
        }
    }
    calls.edits.append(&mut walls);
    calls.edits.append(&mut behind);
    calls.gaps.push(Gap {
        turn,
        kind: GapKind::Tool,
        detail: format!(
            "turns that Codex took back changed files and left them changed: {}",
            names.join(", ")
        ),
    });
    Ok(())
}
