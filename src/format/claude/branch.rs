//! Tells which turns the conversation still holds. Claude Code's own `/rewind` writes nothing: the next prompt just
//! hangs below an older record, so several branches stand in one file (`formats/measured.md`). Only turns are linked
//! here; the record that a prompt hangs below is looked up backward in the file, where it nearly always is the line
//! before, so no index of all records is held.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::super::json::Value;
use super::turns::{Candidate, Marker, Pass};
use crate::model::session::{FileNo, Oddity, Warnings};

/// Returns the indexes of the candidates on the active branch, oldest first.
pub(super) fn active(
    path: &Path,
    pass: &Pass,
    end: u64,
    warnings: &mut Warnings,
) -> io::Result<Vec<usize>> {
    let file = File::open(path)?;
    let tree = Tree {
        file: &file,
        turns: &pass.candidates,
    };
    let mut next = match &pass.marker {
        None => pass.candidates.len().checked_sub(1),
        Some(Marker::Empty) => None,
        Some(Marker::Leaf(leaf)) => tree
            .holding(leaf, end)?
            .or(pass.candidates.len().checked_sub(1)),
    };
    let mut out = Vec::new();
    while let Some(index) = next {
        out.push(index);
        next = tree.before(index, warnings)?;
    }
    out.reverse();
    Ok(out)
}

struct Tree<'a> {
    file: &'a File,
    turns: &'a [Candidate],
}

impl Tree<'_> {
    /// The turn that the turn `index` went on from. Always an earlier one, so following it ends.
    fn before(&self, index: usize, warnings: &mut Warnings) -> io::Result<Option<usize>> {
        let Some(turn) = self.turns.get(index) else {
            return Ok(None);
        };
        let previous = index.checked_sub(1);
        if let Some(compacted) = &turn.before_compaction {
            // The records of a compaction hang below nothing; what they replaced is named beside.
            return Ok(self.holding(compacted, turn.start)?.or(previous));
        }
        let Some(parent) = &turn.parent else {
            return Ok(None);
        };
        match self.locate(parent, turn.line)? {
            Some(at) if at >= turn.start => Ok(previous),
            Some(at) => Ok(self.turn_at(at).filter(|i| *i < index)),
            None => {
                if previous.is_some() {
                    warnings.add(Oddity::LostParent, FileNo(0), turn.line);
                }
                Ok(previous)
            }
        }
    }

    fn holding(&self, uuid: &str, before: u64) -> io::Result<Option<usize>> {
        Ok(self.locate(uuid, before)?.and_then(|at| self.turn_at(at)))
    }

    /// The turn whose bytes hold this offset.
    fn turn_at(&self, at: u64) -> Option<usize> {
        self.turns.partition_point(|t| t.start <= at).checked_sub(1)
    }

    /// The offset of the newest record with this id that begins before `before`.
    fn locate(&self, uuid: &str, before: u64) -> io::Result<Option<u64>> {
        locate(self.file, uuid, before)
    }
}

/// Window of the first step back in bytes; it doubles with every step up to [`WIDEST`].
const FIRST: u64 = 8 << 10;
const WIDEST: u64 = 4 << 20;

/// Finds the newest record with this `uuid` that begins before `before`, reading backward.
pub(super) fn locate(file: &File, uuid: &str, before: u64) -> io::Result<Option<u64>> {
    let needle = format!("\"{uuid}\"").into_bytes();
    if needle.len() as u64 > FIRST / 2 {
        return Ok(None);
    }
    let finder = memchr::memmem::FinderRev::new(&needle);
    let overlap = needle.len() as u64;
    let (mut end, mut width) = (before, FIRST);
    while end > 0 {
        let start = end.saturating_sub(width);
        let window = read_at(file, start, end)?;
        let mut rest = window.len();
        while let Some(hit) = window.get(..rest).and_then(|w| finder.rfind(w)) {
            if let Some(at) = record_of(file, start + hit as u64, uuid)? {
                return Ok(Some(at));
            }
            rest = hit + needle.len() - 1;
        }
        if start == 0 {
            break;
        }
        end = start + overlap;
        width = (width * 2).min(WIDEST).max(overlap * 2);
    }
    Ok(None)
}

fn read_at(file: &File, start: u64, end: u64) -> io::Result<Vec<u8>> {
    let mut buf = vec![0; usize::try_from(end - start).unwrap_or(0)];
    let mut have = 0;
    while let Some(space) = buf.get_mut(have..).filter(|s| !s.is_empty()) {
        match file.read_at(space, start + have as u64) {
            Ok(0) => break,
            Ok(n) => have += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    buf.truncate(have);
    Ok(buf)
}

/// The start of the line around `at`, if the record there has this id as its own: the text also stands in records
/// that only point to it.
fn record_of(file: &File, at: u64, uuid: &str) -> io::Result<Option<u64>> {
    let start = line_start(file, at)?;
    // The id stands in this line; what follows it in the line does not matter, so the head up to it is enough.
    let end = at + uuid.len() as u64 + 3;
    if end - start > super::super::lines::LONGEST as u64 {
        return Ok(None);
    }
    let line = read_at(file, start, end)?;
    let lead = line.iter().take_while(|b| **b != b'{').count();
    let record = Value::head(line.get(lead..).unwrap_or_default());
    let own = record.get("uuid").is_some_and(|u| u.is_str(uuid));
    Ok(own.then_some(start + lead as u64))
}

fn line_start(file: &File, at: u64) -> io::Result<u64> {
    let (mut end, mut width) = (at, FIRST);
    while end > 0 {
        let start = end.saturating_sub(width);
        let window = read_at(file, start, end)?;
        if let Some(hit) = memchr::memrchr(b'\n', &window) {
            return Ok(start + hit as u64 + 1);
        }
        end = start;
        width = (width * 2).min(WIDEST);
    }
    Ok(0)
}
