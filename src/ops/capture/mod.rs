//! What a hook does: a prompt opens a checkpoint, a tool that is about to run has the files that it names saved into it
//! (the first touch of a path in a turn counts), one that has run has what it left marked. Called by an agent that waits:
//! it reads only the files that the call names, and costs the same in a tree, a session and a store of any size.
//!
//! ```text
//! <session>.ckpt/turn-<N>.json   the checkpoint (`record`)
//!                current.json    which turn is open (`current`)
//!                blobs/…         the bytes (`snap`)
//!                lock            held by the kernel while a record is read and written again
//!                turn-<N>.missed-<pid>.json   what a hook could not write into the record
//! ```
//!
//! Does not cover what the shell did to files that no call names, and which turn of the transcript a checkpoint is of
//! (`ops::matching`).

mod current;
mod place;
mod record;
mod snap;
mod tree;

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::config::Config;
use crate::env::Env;
use crate::format::payload::{self, Event, Payload, Touch, TurnId};
use crate::fsx::tree::Root;
use crate::fsx::{Disk, Unsynced, durable, lock};
use current::Current;
use record::{FileRecord, GapRecord, Record};
use snap::{Blobs, Found, Limits};
use tree::Stored;

/// What a hook was called with.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// What stood on standard input, as far as it was read.
    pub payload: &'a [u8],
    /// The agent, where the hook was set up with its name.
    pub agent: Option<&'a str>,
    /// The hook was set up with git mode.
    pub git: bool,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing was to be captured.
    Nothing,
    /// It was captured, or is a gap of the record.
    Captured,
    /// Not even a gap could be recorded: why.
    Lost(String),
}

/// The answer that the agent waits for, where it does.
#[must_use]
pub fn answer(call: Call<'_>) -> Option<&'static str> {
    payload::read(call.payload).and_then(|p| p.answer)
}

/// Captures what one call of the hook tells of.
#[must_use]
pub fn capture(call: Call<'_>, config: &Config, env: &Env, disk: &dyn Disk) -> Outcome {
    let Some(payload) = payload::read(call.payload) else {
        return Outcome::Nothing;
    };
    let git = config.git || call.git;
    if payload.event == Event::Other || (payload.event == Event::Stop && !git) {
        return Outcome::Nothing;
    }
    let tool = matches!(payload.event, Event::Before | Event::After);
    if tool && payload.touch == Touch::Nothing {
        return Outcome::Nothing;
    }
    let Some(sidecar) = place::sidecar(&payload, call.agent, env) else {
        return Outcome::Nothing;
    };
    let unsynced = Unsynced(disk);
    let disk = if config.durable { disk } else { &unsynced };
    let hook = Hook {
        payload: &payload,
        config,
        env,
        disk,
        sidecar: &sidecar,
        git,
        agent: call.agent,
    };
    match hook.run() {
        Ok(()) => Outcome::Captured,
        Err(e) => hook.missed(&e),
    }
}

/// The lock of another hook is waited for so often and so long: two seconds in all.
const TRIES: u32 = 4000;
const PAUSE: Duration = Duration::from_micros(500);

/// Files of a turn that are looked at again when the next one begins.
const SETTLED: usize = 32;

/// A longer prompt is kept up to here.
const LONGEST_PROMPT: usize = 1 << 20;

struct Hook<'a> {
    payload: &'a Payload,
    config: &'a Config,
    env: &'a Env,
    disk: &'a dyn Disk,
    sidecar: &'a Path,
    git: bool,
    agent: Option<&'a str>,
}

/// The sidecar, locked.
struct Held {
    folder: OwnedFd,
    _lock: lock::Lock,
}

impl Hook<'_> {
    fn run(&self) -> io::Result<()> {
        // Before the lock is asked for: the bytes are those of this moment, and the agent waits.
        let current = Current::load(self.sidecar);
        let root = self.root(current.as_ref());
        let found = match self.payload.event {
            Event::Before => self.found(root.as_ref(), Keep::Bytes),
            Event::After => self.found(root.as_ref(), Keep::Mark),
            _ => Vec::new(),
        };
        let tree = self.tree(current.as_ref(), root.as_ref());
        let held = self.lock()?;
        let current = Current::load(self.sidecar);
        match self.payload.event {
            Event::Prompt => self.prompt(&held, current.as_ref(), root.as_ref(), tree),
            Event::Stop => self.stop(&held, current.as_ref(), tree),
            Event::Before => {
                let mut record = self.open(&held, current.as_ref(), root.as_ref())?;
                self.before(&mut record, found);
                record.save(self.disk, held.folder.as_fd())
            }
            Event::After => self.after(&held, current.as_ref(), root.as_ref(), found),
            Event::TurnEnd => match current {
                Some(mut current) => {
                    current.ended = true;
                    current.save(self.disk, held.folder.as_fd())
                }
                None => Ok(()),
            },
            Event::Other => Ok(()),
        }
    }

    fn lock(&self) -> io::Result<Held> {
        let folder = durable::folder(self.disk, self.sidecar)?;
        self.sign(&folder)?;
        for _ in 0..TRIES {
            if let Some(lock) = lock::take(self.disk, folder.as_fd(), OsStr::new("lock"))? {
                return Ok(Held {
                    folder,
                    _lock: lock,
                });
            }
            std::thread::sleep(PAUSE);
        }
        Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            "another hook held the lock for too long",
        ))
    }

    /// The file that tells our sidecar from those of others.
    fn sign(&self, folder: &OwnedFd) -> io::Result<()> {
        if self.sidecar.join("index.json").exists() {
            return Ok(());
        }
        match self.disk.create(folder.as_fd(), OsStr::new("index.json")) {
            Ok(file) => self.disk.write(&file, b"{}\n"),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(e) => Err(e),
        }
    }

    /// The workspace folder: that of the session's first event while it is there, else the agent's.
    fn root(&self, current: Option<&Current>) -> Option<Root> {
        let fixed = current.and_then(|c| c.root.as_deref());
        let told = self.payload.cwd.as_deref().filter(|c| c.is_absolute());
        let places = fixed.map(Path::new).into_iter().chain(told);
        let here = told.is_none().then_some(self.env.cwd.as_path());
        places.chain(here).find_map(|p| Root::open(p).ok())
    }

    /// What stands at the paths that the call names.
    fn found(&self, root: Option<&Root>, keep: Keep) -> Vec<Found> {
        let (files, shell) = match &self.payload.touch {
            Touch::Nothing => return Vec::new(),
            Touch::Files(files) => (files.as_slice(), None),
            Touch::Shell(command, files) => (files.as_slice(), Some(("shell", command))),
            Touch::Opaque(tool) => (&[][..], Some(("tool", tool))),
        };
        let Some(root) = root else {
            return Vec::new();
        };
        let never = self.never(root);
        let limits = Limits {
            largest: self.config.largest,
            never: &never,
            left_out: &self.config.left_out,
        };
        let blobs = Blobs {
            disk: self.disk,
            sidecar: self.sidecar,
        };
        let blobs = (keep == Keep::Bytes).then_some(&blobs);
        let cwd = self.payload.cwd.as_deref().filter(|c| c.is_absolute());
        let mut out: Vec<Found> = files
            .iter()
            .map(|f| snap::file(root, f, cwd, &limits, blobs))
            .collect();
        if let Some((kind, words)) = shell.filter(|_| keep == Keep::Bytes) {
            out.push(Found::Gap(GapRecord {
                kind: kind.to_owned(),
                path: None,
                detail: Some(words.chars().take(LONGEST_COMMAND).collect()),
            }));
        }
        out
    }

    /// Stores of ours and of agents, also where the workspace is the home folder.
    fn never(&self, root: &Root) -> Vec<PathBuf> {
        let stores = [
            ".claude",
            ".codex",
            ".gemini",
            ".qwen",
            ".copilot",
            ".kimi",
            ".kimi-code",
            ".pi",
            ".omp",
            ".prime",
            ".openclaw",
            ".factory",
            ".vibe",
            ".kiro",
            ".cursor",
            ".reasonix",
        ];
        let home = self.env.home.as_deref();
        let of_home = home.into_iter().flat_map(|h| stores.map(|s| h.join(s)));
        let beside = self.sidecar.parent().map(Path::to_path_buf);
        // A session file in the workspace's own top folder must not rule out the workspace.
        let beside = beside.filter(|b| !root.path().starts_with(b));
        let state = self.env.state.clone();
        let all = of_home.chain(beside).chain(state);
        all.chain([self.sidecar.to_path_buf()]).collect()
    }

    fn prompt(
        &self,
        held: &Held,
        current: Option<&Current>,
        root: Option<&Root>,
        tree: Option<Stored>,
    ) -> io::Result<()> {
        let now = self.env.now;
        if current.is_some_and(|c| c.is_told_again(self.payload, now)) {
            return Ok(());
        }
        snap::sweep(self.disk, self.sidecar);
        if let (Some(current), Some(root)) = (current, root) {
            self.settle(held, current.turn, root)?;
        }
        let mut record = self.begin(held, current, root)?;
        match tree {
            Some(tree) => self.begins(held, &mut record, tree),
            None => Ok(()),
        }
    }

    /// A file that a call was to change and that is as it was when the turn ended was not changed: the call failed, and
    /// agents tell of no end then. Without this mark a later change of the user's would not be seen as one.
    fn settle(&self, held: &Held, turn: u32, root: &Root) -> io::Result<()> {
        let Some(mut record) = Record::load(self.sidecar, turn) else {
            return Ok(());
        };
        let mut settled = false;
        let open = record.files.iter_mut().filter(|f| !f.is_marked());
        for file in open.take(SETTLED) {
            let before = file.before();
            if snap::mark(root, Path::new(&file.path), self.config.largest).as_ref()
                == Some(&before)
            {
                file.mark(&before);
                settled = true;
            }
        }
        if settled {
            record.save(self.disk, held.folder.as_fd())?;
        }
        Ok(())
    }

    /// Begins the next turn.
    fn begin(
        &self,
        held: &Held,
        current: Option<&Current>,
        root: Option<&Root>,
    ) -> io::Result<Record> {
        let next = current.map(|c| c.turn.saturating_add(1));
        // A number that is taken is never given again: `current.json` may be older than the records.
        let free = |n: &u32| !self.sidecar.join(format!("turn-{n}.json")).exists();
        let turn = match next.filter(free) {
            Some(turn) => turn,
            None => current::next(&durable::names(held.folder.as_fd())?),
        };
        let folder = root.map(|r| r.path().to_string_lossy().into_owned());
        let prompt = self.payload.prompt.clone().unwrap_or_default();
        let time = self
            .env
            .now
            .to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
        let mut record = Record::new(turn, time, shortened(prompt));
        record.session_id.clone_from(&self.payload.session);
        record.root.clone_from(&folder);
        if let Some(TurnId::OfTranscript(id)) = &self.payload.turn {
            record.message_id = Some(id.clone());
        }
        // The record first: a turn that is named as open and has none would be taken for a damaged one.
        record.save(self.disk, held.folder.as_fd())?;
        let opened = Current::open((turn, self.agent), self.payload, folder, self.env.now);
        opened.save(self.disk, held.folder.as_fd())?;
        Ok(record)
    }

    /// The record of the open turn; a new one where none is open, or the event is of another turn.
    fn open(
        &self,
        held: &Held,
        current: Option<&Current>,
        root: Option<&Root>,
    ) -> io::Result<Record> {
        let known = current.filter(|c| !c.is_other(self.payload));
        match known.and_then(|c| Record::load(self.sidecar, c.turn)) {
            Some(record) => Ok(record),
            None => self.begin(held, current, root),
        }
    }

    fn before(&self, record: &mut Record, found: Vec<Found>) {
        for one in found {
            match one {
                Found::At(path, mark) => {
                    // The first touch of a turn counts (`bugs.md` 58), also where two agents tell of one call.
                    if record.files.iter().all(|f| f.path != path) {
                        let call = self.payload.call.clone();
                        record.files.push(FileRecord::new(path, &mark, call));
                    }
                }
                Found::Gap(gap) => {
                    let known = |f: &FileRecord| Some(&f.path) == gap.path.as_ref();
                    // What is captured already is not lost by a later look that failed.
                    if !record.files.iter().any(known) {
                        record.gap(gap);
                    }
                }
            }
        }
    }

    fn after(
        &self,
        held: &Held,
        current: Option<&Current>,
        root: Option<&Root>,
        found: Vec<Found>,
    ) -> io::Result<()> {
        if found.is_empty() {
            return Ok(());
        }
        let mut record = self.open(held, current, root)?;
        for one in found {
            let Found::At(path, mark) = one else { continue };
            if let Some(file) = record.files.iter_mut().find(|f| f.path == path) {
                file.mark(&mark);
                continue;
            }
            // The hook before the call was not called: what the file held is not known.
            let known = |g: &GapRecord| g.path.as_ref() == Some(&path);
            if !record.coverage_gaps.iter().any(known) {
                record.gap(GapRecord {
                    kind: "not_captured".to_owned(),
                    path: Some(path),
                    detail: Some("the hook was not called before the change".to_owned()),
                });
            }
        }
        record.save(self.disk, held.folder.as_fd())
    }

    /// Records a failure beside the record, in a file of its own that needs no lock.
    fn missed(&self, error: &io::Error) -> Outcome {
        let turn = Current::load(self.sidecar).map_or(0, |c| c.turn);
        let gaps = match &self.payload.touch {
            Touch::Files(files) | Touch::Shell(_, files) => files.as_slice(),
            Touch::Nothing | Touch::Opaque(_) => &[],
        };
        let gap = |path: Option<&PathBuf>| GapRecord {
            kind: "not_stored".to_owned(),
            path: path.map(|p| p.to_string_lossy().into_owned()),
            detail: Some(error.to_string()),
        };
        let mut all: Vec<GapRecord> = gaps.iter().map(|p| gap(Some(p))).collect();
        if all.is_empty() {
            all.push(gap(None));
        }
        let written = serde_json::to_vec(&all)
            .map_err(io::Error::from)
            .and_then(|bytes| {
                let folder = durable::folder(self.disk, self.sidecar)?;
                let name = format!("turn-{turn}.missed-{}.json", self.env.pid);
                let file = self.disk.create(folder.as_fd(), OsStr::new(&name))?;
                self.disk.write(&file, &bytes)
            });
        match written {
            Ok(()) => Outcome::Captured,
            Err(_) => Outcome::Lost(error.to_string()),
        }
    }
}

/// A longer command is cut.
const LONGEST_COMMAND: usize = 1000;

/// Whether bytes are stored or only told of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Bytes,
    Mark,
}

fn shortened(mut prompt: String) -> String {
    if prompt.len() > LONGEST_PROMPT {
        let end = (0..=LONGEST_PROMPT)
            .rev()
            .find(|n| prompt.is_char_boundary(*n));
        prompt.truncate(end.unwrap_or_default());
    }
    prompt
}
