//! Signs that an agent is at work which several agents share: a kernel lock that somebody holds, a process of the
//! agent's name in the workspace. No client keeps its session file open, so an open file is no sign
//! (`formats/measured.md`, "How a live session shows"). Nothing is ever made or changed here.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::Alive;
use super::json::Value;

/// Looks whether another process holds the kernel lock of a file; the file alone means nothing.
pub(super) fn locked(path: &Path) -> Option<Alive> {
    let said = |what: &str| {
        Some(Alive {
            sign: format!("{what} `{}`", path.display()),
            pid: None,
        })
    };
    match std::fs::symlink_metadata(path) {
        Ok(m) if m.is_file() => {}
        Ok(_) => return None,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
        Err(e) => return said(&format!("cannot tell ({e}) from")),
    }
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
        Err(e) => return said(&format!("cannot tell ({e}) from")),
    };
    match file.try_lock_shared() {
        Ok(()) => {
            // Should this fail, closing the file gives the lock back all the same.
            let _ = file.unlock();
            None
        }
        Err(TryLockError::WouldBlock) => said("a process holds the lock"),
        Err(TryLockError::Error(e)) => said(&format!("cannot tell ({e}) from")),
    }
}

/// The process that a registry record (`pid`, `procStart`) names, while it is the one that runs.
pub(super) fn recorded(record: &Value<'_>, path: &Path) -> Option<Alive> {
    let pid = u32::try_from(record.get("pid")?.u64()?).ok()?;
    let started = record.get("procStart").map(|s| match s.text() {
        Some(t) => t.into_owned(),
        None => String::from_utf8_lossy(s.raw()).into_owned(),
    });
    running(pid, started.as_deref()).then(|| Alive {
        sign: format!("`{}` names a running process", path.display()),
        pid: Some(pid),
    })
}

/// A process counts only when it runs **and** began when the record says: numbers are used again.
fn running(pid: u32, started: Option<&str>) -> bool {
    let stat = match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(s) => s,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && Path::new("/proc/self").exists() => {
            return false;
        }
        // No /proc here, or no permission: the record is all there is, so it is believed.
        Err(_) => return true,
    };
    let Some(wanted) = started.filter(|s| s.bytes().all(|b| b.is_ascii_digit())) else {
        return true;
    };
    // Behind the name in brackets, which may hold anything, come the fields from the third on; the 22nd is the start.
    let ticks = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_ascii_whitespace().nth(19));
    ticks.is_none_or(|t| t == wanted)
}

/// Whether this process runs.
pub(super) fn runs(pid: u32) -> bool {
    running(pid, None)
}

/// Looks for a process of one of these names whose working folder is the workspace.
pub(super) fn at_work(names: &[&str], workspace: Option<&Path>, own: u32) -> Option<Alive> {
    let workspace = workspace?;
    // Without /proc there is no such sign; the caller still sees a file that grows.
    std::fs::read_dir("/proc")
        .ok()?
        .filter_map(|e| e.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != own)
        .find(|pid| {
            let folder = std::fs::read_link(format!("/proc/{pid}/cwd"));
            folder.is_ok_and(|f| f == workspace) && named(*pid, names)
        })
        .map(|pid| Alive {
            sign: format!("a running process of it works in `{}`", workspace.display()),
            pid: Some(pid),
        })
}

/// Whether the process calls itself so, or is an interpreter (`node`) that runs a program of that name.
fn named(pid: u32, names: &[&str]) -> bool {
    let is = |word: &[u8]| {
        let name = Path::new(OsStr::from_bytes(word)).file_name();
        names.iter().any(|n| name == Some(OsStr::new(n)))
    };
    let comm = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    if is(comm.trim_ascii_end()) {
        return true;
    }
    // A process that has ended meanwhile has no command line and is none of interest.
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    // Options of the interpreter stand before the program.
    let words = line.split(|b| *b == 0);
    words.filter(|w| !w.starts_with(b"-")).take(2).any(is)
}
