//! Makes one session of the files that hold it. The client resumes the file with the newest `lastUpdated` among those
//! that hold a prompt; that one is the session's own, and turns that only another file holds come before.

use std::path::{Path, PathBuf};

use super::super::Trouble;
use super::fold::{Candidate, Fold};
use super::{NAME, place};
use crate::model::session::{FileNo, Session, Span, Turn, TurnKind, Warnings};

/// One file of the session.
pub(super) struct Part {
    pub path: PathBuf,
    pub fold: Fold,
}

/// Reads the turns of the session that a file belongs to.
pub(super) fn read(path: &Path) -> Result<Session, Trouble> {
    let mut warnings = Warnings::default();
    let parts = parts(path, &mut warnings)?;
    let Some(own) = parts.first() else {
        return Err(Trouble::Broken {
            what: format!("`{}` cannot be read", path.display()),
        });
    };
    let id = own.fold.id.clone().unwrap_or_else(|| {
        own.path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    });
    let (mut turns, abandoned) = turns(&parts);
    super::super::record::apart(&mut turns);
    let mut files: Vec<PathBuf> = parts.iter().map(|p| p.path.clone()).collect();
    files.extend(place::sub_agents(&own.path, &id));
    files.truncate(usize::from(u16::MAX) - 1);
    Ok(Session {
        agent: NAME,
        root: place::root(
            &own.path,
            own.fold.hash.as_deref(),
            own.fold.context.as_deref(),
        ),
        id,
        files,
        turns,
        abandoned,
        len: own.fold.end,
        warnings,
    })
}

/// The file that stands for the session that this file belongs to.
pub(super) fn own(path: &Path) -> Result<PathBuf, Trouble> {
    let parts = parts(path, &mut Warnings::default())?;
    Ok(parts
        .into_iter()
        .next()
        .map_or_else(|| path.to_path_buf(), |p| p.path))
}

/// The files of the session, its own first.
pub(super) fn parts(path: &Path, warnings: &mut Warnings) -> Result<Vec<Part>, Trouble> {
    let mut odd = Warnings::default();
    let fold = Fold::of_file(path, FileNo(0), &mut odd)?;
    let mut parts = vec![Part {
        path: path.to_path_buf(),
        fold,
    }];
    for other in place::same_short_id(path) {
        let fold = Fold::of_file(&other, FileNo(0), &mut Warnings::default())?;
        let same = parts
            .iter()
            .any(|p| p.fold.id.is_some() && p.fold.id == fold.id);
        if same {
            parts.push(Part { path: other, fold });
        }
    }
    // The client goes through the files by name and takes a later one only if it is newer.
    parts.sort_by(|a, b| a.path.cmp(&b.path));
    let mut own = 0;
    for (no, part) in parts.iter().enumerate() {
        let best = parts.get(own).map(|p| &p.fold);
        if best.is_some_and(|b| {
            (b.resumable(), &b.updated) < (part.fold.resumable(), &part.fold.updated)
        }) {
            own = no;
        }
    }
    let first = parts.remove(own);
    if first.path != path {
        odd = Warnings::default();
        // Read again for what is odd in it: only the session's own file is reported on.
        Fold::of_file(&first.path, FileNo(0), &mut odd)?;
    }
    warnings.merge(&odd);
    parts.insert(0, first);
    Ok(parts)
}

/// The turns in their order, and how many prompts the conversation lost by a rewind.
fn turns(parts: &[Part]) -> (Vec<Turn>, u32) {
    let mut found: Vec<Turn> = Vec::new();
    let mut abandoned = 0u32;
    let mut listed = std::collections::HashSet::new();
    let held = parts.first().map(|p| p.fold.held()).unwrap_or_default();
    for (no, part) in parts.iter().enumerate() {
        let file = FileNo(u16::try_from(no).unwrap_or(u16::MAX));
        let mut mine = Vec::new();
        for (index, candidate) in part.fold.candidates.iter().enumerate() {
            if !listed.insert(candidate.id.as_str()) {
                continue;
            }
            if candidate.rewound {
                abandoned = abandoned.saturating_add(1);
                continue;
            }
            let next = part.fold.candidates.get(index + 1);
            let mut turn = turn(candidate, file, next.map_or(part.fold.end, |n| n.line));
            turn.compacted = !turn.interrupted && !held.contains(&candidate.key);
            mine.push(turn);
        }
        found = merged(found, mine);
    }
    for (no, turn) in found.iter_mut().enumerate() {
        turn.no = u32::try_from(no).unwrap_or(u32::MAX);
    }
    (found, abandoned)
}

fn turn(candidate: &Candidate, file: FileNo, end: u64) -> Turn {
    Turn {
        no: 0,
        key: candidate.id.clone(),
        prompt: candidate.prompt.clone(),
        at: candidate.at,
        kind: TurnKind::Prompt,
        span: Span {
            file,
            start: candidate.line,
            end,
        },
        line: candidate.line,
        interrupted: candidate.interrupted,
        compacted: false,
    }
}

/// Two lists of turns as one, by time; each keeps its own order.
fn merged(own: Vec<Turn>, other: Vec<Turn>) -> Vec<Turn> {
    let mut out = Vec::with_capacity(own.len() + other.len());
    let mut other = other.into_iter().peekable();
    for turn in own {
        while let Some(earlier) = other.next_if(|o| o.at <= turn.at) {
            out.push(earlier);
        }
        out.push(turn);
    }
    out.extend(other);
    out
}
