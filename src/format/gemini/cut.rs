//! Where a Gemini log may end so that the client goes on from before a turn: at the prompt's own record. All that comes
//! before it folds to what the conversation was at that moment, so cutting also takes back a later compression or
//! rewind. Tried on the real client (`formats/measured.md`).

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::super::Trouble;
use super::fold::Fold;
use super::{is_document, read};
use crate::model::cut::FileChange;
use crate::model::session::{FileNo, Session, Span, Warnings};

pub(super) fn cut(session: &Session, turn: u32) -> Result<Vec<FileChange>, Trouble> {
    let path = session.path();
    let Some(target) = session.turn(turn) else {
        return refuse(format!("there is no turn {turn}"));
    };
    let head = super::super::Head::read(path).map_err(Trouble::io(path))?;
    if is_document(head.bytes()) {
        return fork_instead(
            "the session is one JSON document of an older Gemini CLI, which is only read",
        );
    }
    if target.span.file != FileNo(0) {
        return fork_instead(
            "the turn stands in an earlier file of the session, not in the one that is resumed",
        );
    }
    let keep = target.span.start;
    begins_a_line(session, keep)?;
    no_other_file_takes_over(session, keep)?;
    Ok(vec![FileChange::Truncate {
        path: path.to_path_buf(),
        keep,
        len: session.len,
    }])
}

fn refuse<T>(why: impl Into<String>) -> Result<T, Trouble> {
    Err(Trouble::Refused { why: why.into() })
}

fn fork_instead<T>(why: impl Into<String>) -> Result<T, Trouble> {
    Err(Trouble::ForkInstead { why: why.into() })
}

fn begins_a_line(session: &Session, keep: u64) -> Result<(), Trouble> {
    let Some(before) = keep.checked_sub(1) else {
        return Ok(());
    };
    let path = session.path();
    let mut last = [0];
    File::open(path)
        .and_then(|f| f.read_exact_at(&mut last, before))
        .map_err(Trouble::io(path))?;
    if last == [b'\n'] {
        return Ok(());
    }
    refuse("the turn begins in the middle of a line, behind another record")
}

/// The client resumes the newest file of the session. If the cut made another one the newest, its turns would come back.
fn no_other_file_takes_over(session: &Session, keep: u64) -> Result<(), Trouble> {
    let path = session.path();
    let mut others = read::parts(path, &mut Warnings::default())?;
    others.retain(|p| p.path != path && p.fold.resumable());
    if others.is_empty() {
        return Ok(());
    }
    let span = Span {
        file: FileNo(0),
        start: 0,
        end: keep,
    };
    let kept = Fold::of_span(path, span, &mut Warnings::default())?;
    let stays = |other: &Fold| kept.resumable() && other.updated < kept.updated;
    match others.iter().find(|o| !stays(&o.fold)) {
        None => Ok(()),
        Some(other) => fork_instead(format!(
            "the session also lies in `{}`, and Gemini would go on with that file instead of the cut one",
            other.path.display()
        )),
    }
}
