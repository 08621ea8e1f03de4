//! How a live Gemini session shows. The client leaves no lock and no record of itself (`formats/measured.md`): all there
//! is are its process in the workspace, and a file that it wrote a moment ago.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};

use super::super::{Alive, time};
use super::place::entries;
use crate::env::Env;
use crate::model::session::Session;

/// A record younger than this was written by a client that may still be at work.
const MOMENT: TimeDelta = TimeDelta::seconds(5);

pub(super) fn live(session: &Session, env: &Env) -> Option<Alive> {
    let by_process = session.root.as_deref().and_then(process_in);
    by_process.or_else(|| just_written(session.path(), env.now))
}

/// A Gemini process whose working folder is the workspace.
fn process_in(root: &Path) -> Option<Alive> {
    entries(Path::new("/proc")).into_iter().find_map(|folder| {
        let pid = folder.file_name()?.to_str()?.parse::<u32>().ok()?;
        // A process of another user cannot be looked at, and cannot be this user's session.
        if std::fs::read_link(folder.join("cwd")).ok()? != root {
            return None;
        }
        let command = std::fs::read(folder.join("cmdline")).ok()?;
        is_gemini(&command).then(|| Alive {
            sign: format!("a Gemini process works in `{}`", root.display()),
            pid: Some(pid),
        })
    })
}

/// The program, or the script that node runs, is named `gemini`; later words are its arguments and may be anything.
fn is_gemini(command: &[u8]) -> bool {
    command
        .split(|b| *b == 0)
        .filter(|word| !word.starts_with(b"-"))
        .take(2)
        .any(|word| {
            let name = word.rsplit(|b| *b == b'/').next().unwrap_or_default();
            name == b"gemini" || name == b"gemini.js"
        })
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
