//! How a live Gemini session shows. The client leaves no lock and no record of itself (`formats/measured.md`): all there
//! is are its process in the workspace, and a file that it wrote a moment ago.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};

use super::super::{Alive, alive, time};
use crate::env::Env;
use crate::model::session::Session;

/// A record younger than this was written by a client that may still be at work.
const MOMENT: TimeDelta = TimeDelta::seconds(5);

pub(super) fn live(session: &Session, env: &Env) -> Option<Alive> {
    let by_process = alive::at_work(&["gemini", "gemini.js"], session.root.as_deref(), env.pid);
    by_process.or_else(|| just_written(session.path(), env.now))
}

/// The newest time in the file is a moment ago. The file's own time would not do: this program writes it too.
fn just_written(path: &Path, now: DateTime<Utc>) -> Option<Alive> {
    let newest = newest_time(path)?;
    let age = now.signed_duration_since(newest);
    (age < MOMENT && age > -MOMENT).then(|| Alive {
        sign: format!("`{}` was written a moment ago", path.display()),
        pid: None,
    })
}

/// Enough of the end for the small record that follows each message.
const TAIL: u64 = 4096;

fn newest_time(path: &Path) -> Option<DateTime<Utc>> {
    let mut file = std::fs::File::open(path).ok()?;
    let len = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(TAIL))).ok()?;
    let mut tail = Vec::new();
    file.take(TAIL).read_to_end(&mut tail).ok()?;
    let mark = b"\"lastUpdated\":\"";
    let at = memchr::memmem::rfind(&tail, mark)? + mark.len();
    let text = tail.get(at..)?.split(|b| *b == b'"').next()?;
    time(std::str::from_utf8(text).ok()?)
}
