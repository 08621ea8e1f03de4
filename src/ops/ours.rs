//! What a restore of ours put at a path is nobody's change: who goes back to turn 3 and then on to turn 1 has touched
//! nothing in between. Told by the journal alone: the newest operation that changed the path was a restore (or the
//! redo of one), and its bytes are still there. What an undo brought back is the user's own.

use std::collections::BTreeMap;

use super::journal::{Journal, Status, StepRecord};
use super::plan::Act;
use super::timeline::{Left, Timeline};
use crate::error::Result;
use crate::fsx::hash;
use crate::fsx::tree::{FileKind, Fingerprint, SafePath};

/// Lets each path that still holds what a restore put there count as left so.
///
/// # Errors
/// The journal cannot be read.
pub fn count_as_left(timeline: &mut Timeline, journal: &Journal) -> Result<()> {
    let log = journal.log()?;
    let mut open: BTreeMap<SafePath, usize> = BTreeMap::new();
    for (index, story) in timeline.stories.iter().enumerate() {
        open.insert(story.path.clone(), index);
    }
    let done = |s: Status| s == Status::Committed;
    for operation in log.operations.iter().rev().filter(|o| done(o.status)) {
        if open.is_empty() || log.newer.is_some() {
            break;
        }
        // A line that cannot be read may be of any path: from there on nothing is known to be ours.
        let Ok(record) = journal.record(operation) else {
            break;
        };
        for step in &record.steps {
            let story = open.remove(&step.path);
            let story = story.and_then(|index| timeline.stories.get_mut(index));
            if let Some(story) = story
                && let Some(left) = left_by(&record.act, step, &story.now.print)
            {
                story.left = left;
            }
        }
    }
    Ok(())
}

/// What a step left, when it was a restore's and is still there.
fn left_by(act: &Act, step: &StepRecord, now: &Fingerprint) -> Option<Left> {
    if matches!(act, Act::Undo(_)) || !now.same_bytes(&step.after) {
        return None;
    }
    match now.kind {
        FileKind::Absent => Some(Left::Absent),
        FileKind::File => {
            let sha256 = hash::unhex(&now.sha256)?.try_into().ok()?;
            Some(Left::Bytes(sha256))
        }
        FileKind::Dir | FileKind::Link | FileKind::Other => None,
    }
}
