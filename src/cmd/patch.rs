//! What a plan changes in the files, to be read: as diffs, and as counts of lines. A file that only changes its name is
//! said to be renamed.

use std::collections::BTreeMap;

use crate::ops::plan::{Make, Plan, Step};
use crate::ops::{FileKind, Root, decide, hex};
use crate::ui::diff::{self, Counted, Side, Stat, Unified};
use crate::ui::{Style, path_text};

/// Files larger than this, in bytes, are named with their size instead of shown.
const SHOWN: u64 = 4 << 20;
/// Of so many bytes of files lines are counted for a preview; of what comes behind them no count is told.
const COUNTED: u64 = 16 << 20;

/// A change, as far as files go.
enum Piece<'p> {
    /// One file changes.
    One(&'p Step),
    /// The file of the first step goes to the name of the second.
    Renamed(&'p Step, &'p Step),
}

/// The changes in the order of the plan; a rename stands where the old name stood.
fn pieces(plan: &Plan) -> Vec<Piece<'_>> {
    let mut new: BTreeMap<&str, Vec<&Step>> = BTreeMap::new();
    let made: Vec<(String, &Step)> = plan.steps.iter().filter_map(made).collect();
    for (hash, step) in &made {
        new.entry(hash).or_default().push(step);
    }
    let partner = |step: &Step| match step.make {
        // Of several with these bytes nobody can say which one it became; an empty file tells nothing at all.
        Make::Absent(_) if step.expect.kind == FileKind::File && step.expect.len > 0 => {
            let same = |s: &&Step| s.expect.sha256 == step.expect.sha256;
            let gone = plan
                .steps
                .iter()
                .filter(|s| matches!(s.make, Make::Absent(_)));
            match new.get(step.expect.sha256.as_str()).map(Vec::as_slice) {
                Some([one]) if gone.filter(same).count() == 1 => Some(*one),
                _ => None,
            }
        }
        _ => None,
    };
    let pairs: Vec<(&Step, Option<&Step>)> = plan.steps.iter().map(|s| (s, partner(s))).collect();
    let taken = |step: &Step| {
        pairs
            .iter()
            .any(|(_, p)| p.is_some_and(|p| std::ptr::eq(p, step)))
    };
    pairs
        .iter()
        .filter(|(step, _)| !taken(step))
        .map(|(step, partner)| match partner {
            Some(new) => Piece::Renamed(step, new),
            None => Piece::One(step),
        })
        .collect()
}

/// A step that makes a file where none is, with the hash of its bytes.
fn made(step: &Step) -> Option<(String, &Step)> {
    match &step.make {
        Make::File { sha256, .. } if step.expect.kind == FileKind::Absent => {
            Some((hex(sha256), step))
        }
        _ => None,
    }
}

/// The differences of a plan, one text a file.
pub fn each(plan: &Plan, root: &Root, style: Style) -> impl Iterator<Item = String> {
    pieces(plan).into_iter().map(move |piece| match piece {
        Piece::Renamed(old, new) => diff::renamed(old.path.as_path(), new.path.as_path(), style),
        Piece::One(step) => one(step, root, style).text,
    })
}

/// All differences of a plan in one text.
#[must_use]
pub fn all(plan: &Plan, root: &Root, style: Style) -> String {
    each(plan, root, style).collect()
}

/// The difference of one step; a side that cannot be read is named with the reason.
fn one(step: &Step, root: &Root, style: Style) -> Unified {
    let path = step.path.as_path();
    if let Make::Mode(mode) = step.make {
        return Unified {
            text: diff::mode(path, step.expect.mode & 0o7777, mode, style),
            stat: Some(Stat::default()),
        };
    }
    let old = match step.expect.kind {
        FileKind::Absent => Ok(None),
        _ if step.expect.len > SHOWN => Err(format!("{} bytes", step.expect.len)),
        _ => root.read(&step.path).map(Some).map_err(|e| e.to_string()),
    };
    let new = match &step.make {
        Make::File { len, .. } if *len > SHOWN => Err(format!("{len} bytes")),
        make => decide::new_bytes(make, SHOWN).map_err(|e| e.to_string()),
    };
    diff::unified(path, side(&old), side(&new), style)
}

fn side(bytes: &std::result::Result<Option<Vec<u8>>, String>) -> Side<'_> {
    match bytes {
        Ok(None) => Side::Absent,
        Ok(Some(b)) => Side::Bytes(b),
        Err(why) => Side::NotShown(why),
    }
}

/// The counts of a plan's steps as a table.
#[must_use]
pub fn table(plan: &Plan, root: &Root, style: Style, width: Option<usize>) -> String {
    let files: Vec<Counted> = pieces(plan)
        .into_iter()
        .map(|p| counted(&p, root))
        .collect();
    diff::table(&files, style, width)
}

fn counted(piece: &Piece<'_>, root: &Root) -> Counted {
    match piece {
        Piece::Renamed(old, new) => {
            let (old, new) = (path_text(old.path.as_path()), path_text(new.path.as_path()));
            Counted {
                name: format!("{old} -> {new}"),
                stat: None,
                note: "renamed".to_owned(),
            }
        }
        Piece::One(step) => Counted {
            name: path_text(step.path.as_path()),
            stat: one(step, root, Style::Plain).stat,
            note: "not text".to_owned(),
        },
    }
}

/// The count of each step's lines, in the order of the plan; `None` where it is not text, or too much for a preview.
#[must_use]
pub fn counts(plan: &Plan, root: &Root) -> Vec<Option<Stat>> {
    let mut left = COUNTED;
    let mut count = |step: &Step| {
        let new = match &step.make {
            Make::File { len, .. } => *len,
            Make::Absent(_) | Make::Mode(_) => 0,
        };
        left = left.checked_sub(new + step.expect.len)?;
        one(step, root, Style::Plain).stat
    };
    plan.steps.iter().map(&mut count).collect()
}
