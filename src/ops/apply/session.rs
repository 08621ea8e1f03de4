//! Session files: outside the root, so by their own path, and possibly gigabytes long, so marked by their length and
//! end instead of hashed. The new file is made beside the old one and the two change places; the old one keeps its
//! second name until all is verified, and is looked at again before that name goes: a live agent may have written.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::Context;
use super::place::{Place, open_parent, stale};
use crate::error::{Error, Kind, Result};
use crate::fsx::tree::owner_of;
use crate::fsx::{self, Disk, Name, Owner, durable, hash, stage, sys};
use crate::ops::journal::{Saved, SessionChange, SessionRecord};
use crate::ops::plan::{Bytes, Plan, SessionMake, SessionMark, SessionStep, SessionTail};

/// One session file that changes.
pub(super) struct Job<'p> {
    pub(super) step: &'p SessionStep,
    pub(super) record: SessionRecord,
}

/// Compares the session files with the plan; writes nothing.
pub(super) fn check<'p>(plan: &'p Plan, ctx: &Context<'_>) -> Result<Vec<Job<'p>>> {
    let mut seen = BTreeSet::new();
    let mut jobs = Vec::new();
    for (i, step) in plan.session.iter().enumerate() {
        let path = canonical(&step.path).map_err(|e| cannot_read(&step.path, e))?;
        if !seen.insert(path.clone()) {
            let e = Error::new(Kind::Internal, "a session file is in the plan twice");
            return Err(e.path(path, "is in the plan twice"));
        }
        let now = SessionMark::read(&path).map_err(|e| cannot_read(&path, e))?;
        if now != step.expect {
            return Err(moved_on(&path, &now, &step.expect));
        }
        let after = after(step, &path).map_err(|e| cannot_make(&path, e))?;
        if after == now {
            continue;
        }
        let record = record(step, path, after, (ctx.id, i))?;
        jobs.push(Job { step, record });
    }
    Ok(jobs)
}

/// The file itself, where a link leads to it: agents' folders are often linked from elsewhere, and the link is to stay.
pub(super) fn canonical(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        other => return other,
    }
    if std::fs::symlink_metadata(path).is_ok() {
        return Err(io::Error::other("a link to nothing"));
    }
    let parent = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    Ok(parent.canonicalize()?.join(name))
}

fn record(
    step: &SessionStep,
    path: PathBuf,
    after: SessionMark,
    (id, i): (&str, usize),
) -> Result<SessionRecord> {
    let mode = match std::fs::metadata(&path) {
        Ok(meta) => meta.mode() & 0o777,
        Err(e) if e.kind() == io::ErrorKind::NotFound => 0o600,
        Err(e) => return Err(cannot_read(&path, e)),
    };
    let name = stage::name(path.file_name().unwrap_or_default(), id, i);
    Ok(SessionRecord {
        stage: path.with_file_name(name),
        before: step.expect.clone(),
        after,
        change: match step.make {
            SessionMake::Truncate { .. } => SessionChange::Truncate,
            SessionMake::Extend(_) => SessionChange::Extend,
            SessionMake::Write(_) => SessionChange::Write,
            SessionMake::Absent => SessionChange::Remove,
        },
        saved: None,
        mode,
        path,
    })
}

/// What the file will look like.
fn after(step: &SessionStep, path: &Path) -> io::Result<SessionMark> {
    let len = step.expect.len;
    let mut tail = match &step.make {
        SessionMake::Absent => return Ok(SessionMark::absent()),
        SessionMake::Write(_) => SessionTail::default(),
        SessionMake::Truncate { keep } => match len {
            Some(len) if *keep <= len => SessionTail::of(&File::open(path)?, *keep)?,
            _ => return Err(io::ErrorKind::UnexpectedEof.into()),
        },
        SessionMake::Extend(_) => {
            let len = len.ok_or(io::ErrorKind::NotFound)?;
            SessionTail::of(&File::open(path)?, len)?
        }
    };
    if let SessionMake::Write(bytes) | SessionMake::Extend(bytes) = &step.make {
        tail.extend(bytes.open()?)?;
    }
    Ok(tail.mark())
}

/// Saves what goes: the end that is cut off, or the whole.
pub(super) fn save(
    ctx: &Context<'_>,
    (i, job): (usize, &Job<'_>),
    dir: &OwnedFd,
) -> Result<Option<Saved>> {
    use std::io::Seek;
    let path = &job.record.path;
    let Some(len) = job.record.before.len else {
        return Ok(None);
    };
    let from = match &job.step.make {
        SessionMake::Truncate { keep } => *keep,
        SessionMake::Extend(_) => return Ok(None),
        SessionMake::Write(_) | SessionMake::Absent => 0,
    };
    let mut source = File::open(path).map_err(|e| cannot_read(path, e))?;
    let seek = source.seek(io::SeekFrom::Start(from));
    seek.map_err(|e| cannot_read(path, e))?;
    // Steps are saved under numbers alone.
    let name = format!("session-{i}");
    let fail = |e| Error::io("what is cut off cannot be saved", path, e);
    let file = ctx.disk.create(dir.as_fd(), name.as_ref()).map_err(fail)?;
    let rest = io::Read::take(&source, len - from);
    let (saved, sha256) = stage::fill(ctx.disk, &file, rest).map_err(|e| match e {
        stage::Trouble::Source(e) => cannot_read(path, e),
        stage::Trouble::Target(e) => fail(e),
    })?;
    ctx.disk.sync(&file).map_err(fail)?;
    if from + saved != len {
        return Err(moved_on(path, &SessionMark::absent(), &job.record.before));
    }
    Ok(Some(Saved {
        name,
        from,
        len: saved,
        sha256: hash::hex(&sha256),
    }))
}

/// Makes the new file beside the old one, durably. `mode`: of a file that an earlier operation removed.
pub(super) fn stage(ctx: &Context<'_>, job: &Job<'_>, mode: Option<u32>) -> Result<()> {
    let record = &job.record;
    let fill = |disk: &dyn Disk, file: &File| match &job.step.make {
        SessionMake::Absent => Ok(()),
        SessionMake::Truncate { keep } => disk.copy(&File::open(&record.path)?, file, *keep),
        SessionMake::Write(bytes) => pour(disk, file, bytes),
        SessionMake::Extend(bytes) => {
            let len = record.before.len.unwrap_or_default();
            disk.copy(&File::open(&record.path)?, file, len)?;
            pour(disk, file, bytes)
        }
    };
    if record.change == SessionChange::Remove {
        return Ok(());
    }
    let mode = match record.before.len {
        None => mode.unwrap_or(record.mode),
        Some(_) => record.mode,
    };
    let want = (&record.after, mode);
    build(ctx.disk, record, (&record.stage, want), fill)
}

fn pour(disk: &dyn Disk, file: &File, bytes: &Bytes) -> io::Result<()> {
    match stage::fill(disk, file, bytes.open()?) {
        Ok(_) => Ok(()),
        Err(stage::Trouble::Source(e) | stage::Trouble::Target(e)) => Err(e),
    }
}

/// Makes a file at a name beside the session file, with its owner, and checks what it became.
fn build(
    disk: &dyn Disk,
    record: &SessionRecord,
    (at, (want, mode)): (&Path, (&SessionMark, u32)),
    fill: impl FnOnce(&dyn Disk, &File) -> io::Result<()>,
) -> Result<()> {
    let fail = |e| cannot_make(&record.path, e);
    let (dir, name) = open_parent(at).map_err(fail)?;
    let new = disk.create(dir.as_fd(), name).map_err(fail)?;
    fill(disk, &new).map_err(fail)?;
    if SessionMark::of(&new).map_err(fail)? != *want {
        return Err(stale().path(&record.path, "was just changed"));
    }
    let owner = match std::fs::metadata(&record.path) {
        Ok(meta) => Owner {
            uid: meta.uid(),
            gid: meta.gid(),
        },
        Err(e) if e.kind() == io::ErrorKind::NotFound => owner_of(&dir).map_err(fail)?.0,
        Err(e) => return Err(fail(e)),
    };
    stage::dress(disk, &new, mode, owner).map_err(fail)?;
    disk.sync(&new).map_err(fail)
}

/// A record's two names in its open folder.
struct Pair<'a> {
    dir: OwnedFd,
    record: &'a SessionRecord,
}

impl<'a> Pair<'a> {
    fn open(record: &'a SessionRecord) -> Result<Self> {
        let (dir, _) = open_parent(&record.path).map_err(|e| cannot_make(&record.path, e))?;
        Ok(Self { dir, record })
    }

    fn target(&self) -> Name<'_> {
        let name = self.record.path.file_name().unwrap_or_default();
        Name::new(&self.dir, name)
    }

    fn stage(&self) -> Name<'_> {
        let name = self.record.stage.file_name().unwrap_or_default();
        Name::new(&self.dir, name)
    }

    /// The third name, for file systems that cannot exchange two.
    fn aside(&self) -> OsString {
        stage::marked(self.stage().name, "~")
    }

    /// The name of an old file that is being made again.
    fn rebuilt(&self) -> OsString {
        stage::marked(self.stage().name, "+")
    }

    fn fail(&self, e: io::Error) -> Error {
        cannot_make(&self.record.path, e)
    }
}

/// Puts the new file in its place; the old one, where there was one, stands at the second name after this.
pub(crate) fn put_in(place: Place<'_>, record: &SessionRecord) -> Result<()> {
    let pair = Pair::open(record)?;
    let now = mark(&record.path)?;
    if now != record.before {
        return Err(moved_on(&record.path, &now, &record.before));
    }
    let placed = match (now.len, record.after.len) {
        (None, _) => place.put_new(pair.stage(), pair.target()),
        (Some(_), None) => place.put_new(pair.target(), pair.stage()),
        (Some(_), Some(_)) => swap(place.disk, &pair),
    };
    placed.map_err(|e| pair.fail(e))?;
    if now.len.is_none() {
        return Ok(());
    }
    let old = mark(&record.stage)?;
    if old == record.before {
        return Ok(());
    }
    // The agent wrote into it at that moment. Its file goes back to its place, whole.
    put_back(place, record)?;
    Err(moved_on(&record.path, &old, &record.before))
}

/// Gives the old file, at the second name, its place back; the other one stands at the second name after this.
pub(crate) fn put_back(place: Place<'_>, record: &SessionRecord) -> Result<()> {
    let pair = Pair::open(record)?;
    let back = if exists(&record.path)? {
        swap(place.disk, &pair)
    } else {
        place.put_new(pair.stage(), pair.target())
    };
    back.map_err(|e| pair.fail(e))
}

/// Lets the two names change places. Without an exchange: a third name holds the old file on the way.
fn swap(disk: &dyn Disk, pair: &Pair<'_>) -> io::Result<()> {
    match disk.exchange(pair.stage(), pair.target()) {
        Err(e) if fsx::unsupported(&e) => {}
        other => return other,
    }
    let aside = pair.aside();
    let aside = Name::new(&pair.dir, &aside);
    disk.link(pair.target(), aside)?;
    disk.rename(pair.stage(), pair.target())?;
    disk.rename(aside, pair.stage())
}

/// Tidies up after a kill inside [`swap`]: the old file is at the third name alone, or at two of them.
pub(crate) fn settle_aside(disk: &dyn Disk, record: &SessionRecord) -> Result<()> {
    let pair = Pair::open(record)?;
    let aside = pair.aside();
    let aside = Name::new(&pair.dir, &aside);
    let fail = |e| pair.fail(e);
    let third = match sys::stat(aside.dir, aside.name) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(fail)?,
    };
    if !exists(&record.stage)? {
        return disk.rename(aside, pair.stage()).map_err(fail);
    }
    let first = sys::stat(pair.target().dir, pair.target().name).map_err(fail)?;
    if (first.dev(), first.ino()) == (third.dev(), third.ino()) {
        disk.unlink(aside).map_err(fail)?;
    }
    Ok(())
}

/// Looks once more whether an agent wrote into the old file, and drops its second name.
pub(super) fn settle(disk: &dyn Disk, record: &SessionRecord) -> Result<()> {
    let pair = Pair::open(record)?;
    if record.before.len.is_some() {
        let old = mark(&record.stage)?;
        if old != record.before {
            return Err(moved_on(&record.path, &old, &record.before));
        }
        disk.unlink(pair.stage()).map_err(|e| pair.fail(e))?;
    }
    disk.sync_folder(pair.dir.as_fd()).map_err(|e| pair.fail(e))
}

/// Removes the second name when it holds nothing but our own copy.
pub(crate) fn sweep(disk: &dyn Disk, record: &SessionRecord) -> Result<()> {
    let pair = Pair::open(record)?;
    for name in [pair.stage().name, &pair.rebuilt()] {
        let at = Name::new(&pair.dir, name);
        durable::remove(disk, at).map_err(|e| pair.fail(e))?;
    }
    disk.sync_folder(pair.dir.as_fd()).map_err(|e| pair.fail(e))
}

/// Makes the old file again at the second name, from the new one and what was saved; for when it is gone from there.
pub(crate) fn rebuild(place: Place<'_>, record: &SessionRecord, saved: &Path) -> Result<()> {
    let keep = match (record.change, &record.saved) {
        (SessionChange::Truncate, Some(s)) => s.from,
        (SessionChange::Extend, _) => record.before.len.unwrap_or_default(),
        _ => 0,
    };
    let fill = |disk: &dyn Disk, file: &File| {
        if keep > 0 {
            disk.copy(&File::open(&record.path)?, file, keep)?;
        }
        match record.saved {
            Some(_) => pour(disk, file, &Bytes::File(saved.to_path_buf())),
            None => Ok(()),
        }
    };
    // A kill must not leave half of it under the name that the old file is taken from.
    let pair = Pair::open(record)?;
    let rebuilt = pair.rebuilt();
    let rebuilt = Name::new(&pair.dir, &rebuilt);
    let at = record.stage.with_file_name(rebuilt.name);
    let want = (&record.before, record.mode);
    build(place.disk, record, (&at, want), fill)?;
    let named = place.disk.rename(rebuilt, pair.stage());
    named.map_err(|e| pair.fail(e))
}

/// Whether the second name holds the old file: as it was, or with what an agent added to it meanwhile.
pub(crate) fn stage_is_old(record: &SessionRecord) -> Result<bool> {
    begins_with(&record.stage, &record.before)
}

/// Whether the file at a path is the one of that mark, as it was or with more behind it.
pub(crate) fn begins_with(path: &Path, mark: &SessionMark) -> Result<bool> {
    let fail = |e| cannot_read(path, e);
    let Some(len) = mark.len else {
        return Ok(false);
    };
    let file = match File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        other => other.map_err(fail)?,
    };
    if file.metadata().map_err(fail)?.len() < len {
        return Ok(false);
    }
    let first = SessionTail::of(&file, len).map_err(fail)?;
    Ok(first.mark() == *mark)
}

/// What stands at a path now.
pub(crate) fn mark(path: &Path) -> Result<SessionMark> {
    SessionMark::read(path).map_err(|e| cannot_read(path, e))
}

fn exists(path: &Path) -> Result<bool> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(cannot_read(path, e)),
    }
}

fn moved_on(path: &Path, now: &SessionMark, then: &SessionMark) -> Error {
    if now.len > then.len {
        return Error::new(Kind::Busy, "the session goes on: its file grew")
            .path(path, "grew since the plan was made")
            .hint("end the agent's session, then run the command again");
    }
    stale().path(path, "changed since the plan was made")
}

fn cannot_read(path: &Path, e: io::Error) -> Error {
    Error::io("the session file cannot be read", path, e)
}

fn cannot_make(path: &Path, e: io::Error) -> Error {
    if Bytes::are_gone(&e) {
        return Error::new(Kind::Damaged, "what the session file is to hold is gone")
            .path(path, "cannot be made")
            .because(e);
    }
    Error::io("the session file cannot be replaced", path, e)
}
