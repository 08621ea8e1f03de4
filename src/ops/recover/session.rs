//! The session files of an operation that is finished or reverted.

use std::path::PathBuf;

use super::saved::saved_folder;
use super::{Context, Record};
use crate::error::{Error, Result};
use crate::fsx::hash;
use crate::ops::apply::place::Place;
use crate::ops::apply::session::{
    begins_with, mark, put_back, put_in, rebuild, stage_is_old, sweep,
};
use crate::ops::journal::SessionRecord;
use crate::ops::plan::SessionMark;

/// Whether the cut can be completed: it is done, or the new file stands ready; and no agent wrote into the old file
/// after it left its place.
pub(super) fn can_finish(step: &SessionRecord) -> Result<bool> {
    let (target, stage) = (mark(&step.path)?, mark(&step.stage)?);
    if target == step.before {
        return Ok(stage == step.after);
    }
    if target == step.after {
        return Ok(stage.len.is_none() || stage == step.before || stage == step.after);
    }
    // Somebody wrote into it. While it is the old one, files without the conversation would be half of what was asked
    // for, and cutting it now would lose what was written.
    if old_went_on(step, &target)? {
        return Ok(false);
    }
    let settled = stage.len.is_none() && step.after.len.is_some();
    Ok(settled || stage == step.before)
}

/// Whether the session file is the old one, and longer now. The shorter of old and new is most often the start of the
/// other, so only the longer one's end can tell which of them went on.
fn old_went_on(step: &SessionRecord, target: &SessionMark) -> Result<bool> {
    if target.len <= step.before.len || target == &step.after {
        return Ok(false);
    }
    let new_is_longer = step.after.len > step.before.len;
    if new_is_longer && begins_with(&step.path, &step.after)? {
        return Ok(false);
    }
    begins_with(&step.path, &step.before)
}

/// Completes the cut.
pub(super) fn finish(
    ctx: &Context<'_>,
    place: Place<'_>,
    record: &Record,
    step: &SessionRecord,
) -> Result<Option<(PathBuf, String)>> {
    if mark(&step.path)? == step.before {
        put_in(place, step)?;
    }
    let went_on = mark(&step.path)? != step.after;
    // The second name holds the old file: all of it is in the new one and the journal.
    if mark(&step.stage)? != step.before || is_saved(ctx, record, step)? {
        sweep(ctx.disk, step)?;
    } else {
        let words = "is the session as it was; what the journal saved of it is gone";
        return Ok(Some((step.stage.clone(), words.to_owned())));
    }
    let words = "was changed since".to_owned();
    Ok(went_on.then(|| (step.path.clone(), words)))
}

/// Puts the session file back.
pub(super) fn back(
    ctx: &Context<'_>,
    place: Place<'_>,
    record: &Record,
    step: &SessionRecord,
) -> Result<Option<(PathBuf, String)>> {
    let (target, stage) = (mark(&step.path)?, mark(&step.stage)?);
    if target == step.before || old_went_on(step, &target)? {
        // What stands beside it is a copy of ours, whole or not.
        sweep(ctx.disk, step)?;
        return Ok(None);
    }
    if target != step.after {
        return neither(ctx, step);
    }
    if step.before.len.is_none() {
        // A file that was not there: its name moves away and is removed.
        put_away(place, step)?;
    } else if stage_is_old(step)? {
        put_back(place, step)?;
    } else if stage.len.is_none() || stage == step.after {
        if let Some(left) = make_again(ctx, place, record, step)? {
            return Ok(Some(left));
        }
    } else {
        let words = "is a session file that somebody wrote anew".to_owned();
        return Ok(Some((step.stage.clone(), words)));
    }
    sweep(ctx.disk, step)?;
    Ok(None)
}

/// Makes the old file again from the new one and what was saved.
fn make_again(
    ctx: &Context<'_>,
    place: Place<'_>,
    record: &Record,
    step: &SessionRecord,
) -> Result<Option<(PathBuf, String)>> {
    sweep(ctx.disk, step)?;
    if !is_saved(ctx, record, step)? {
        let words = "is cut; what was cut off is missing in the journal".to_owned();
        return Ok(Some((step.path.clone(), words)));
    }
    let saved = step.saved.as_ref().map(|s| s.name.as_str());
    let path = saved_folder(ctx, &record.id, saved)?.map(|(folder, name)| folder.join(name));
    rebuild(place, step, &path.unwrap_or_default())?;
    put_back(place, step)?;
    Ok(None)
}

/// Somebody wrote into the session file since: it stays, and only a copy of ours beside it goes.
fn neither(ctx: &Context<'_>, step: &SessionRecord) -> Result<Option<(PathBuf, String)>> {
    let stage = mark(&step.stage)?;
    if stage.len.is_none() || stage == step.after {
        sweep(ctx.disk, step)?;
    }
    let words = "was changed since".to_owned();
    Ok(Some((step.path.clone(), words)))
}

fn put_away(place: Place<'_>, step: &SessionRecord) -> Result<()> {
    let turned = SessionRecord {
        before: step.after.clone(),
        after: step.before.clone(),
        ..step.clone()
    };
    sweep(place.disk, step)?;
    put_in(place, &turned)
}

/// Whether what was cut off is in the journal, whole.
fn is_saved(ctx: &Context<'_>, record: &Record, step: &SessionRecord) -> Result<bool> {
    // Nothing is cut off by adding to a file.
    let Some(saved) = &step.saved else {
        return Ok(true);
    };
    let Some((folder, name)) = saved_folder(ctx, &record.id, Some(&saved.name))? else {
        return Ok(false);
    };
    let path = folder.join(name);
    let read = std::fs::File::open(&path).and_then(hash::of_reader);
    let (len, sha256) = read.map_err(|e| Error::io("what was saved cannot be read", path, e))?;
    Ok(len == saved.len && hash::hex(&sha256) == saved.sha256)
}
