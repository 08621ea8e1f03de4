//! Everything that a command needs of one session: its turns, its checkpoints, the folder to act on, and the turn that
//! the user means.

use std::path::{Path, PathBuf};

use super::discover::{Found, canonical};
use super::journal::Journal;
use super::ours;
use super::pins::Pins;
use super::plan::Point;
use super::timeline::{self, Timeline};
use super::worktree;
use crate::ckpt::{self, Store};
use crate::env::Env;
use crate::error::{Error, Kind};
use crate::format::{Format, Trouble};
use crate::fsx::tree::Root;
use crate::model::checkpoint::Checkpoint;
use crate::model::edit::{Calls, Gap, GapKind};
use crate::model::point::TurnName;
use crate::model::session::{Session, Turn};

/// A session that was read.
pub struct Read {
    /// Its format.
    pub format: &'static dyn Format,
    /// Its turns.
    pub session: Session,
    /// What the user pinned, of any session.
    pub pins: Pins,
}

impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Self {
        let message = trouble.to_string();
        match trouble {
            Trouble::Io { path, source } => Error::io(message, path, source),
            Trouble::Newer { .. } => Error::new(Kind::Unsupported, message)
                .hint("a newer version of this program may know it"),
            Trouble::Refused { .. } => Error::new(Kind::Unsupported, message)
                .hint("`--scope code` takes back the files and leaves the conversation alone"),
            Trouble::ForkInstead { .. } => Error::new(Kind::Unsupported, message)
                .hint("`rewind fork` with the same turn makes a new session that ends before it")
                .hint("`--scope code` takes back the files and leaves the conversation alone"),
            Trouble::Broken { .. } => Error::new(Kind::Damaged, message),
        }
    }
}

impl From<ckpt::Trouble> for Error {
    fn from(trouble: ckpt::Trouble) -> Self {
        let message = trouble.to_string();
        match trouble {
            ckpt::Trouble::Io { path, source } => Error::io(message, path, source),
            ckpt::Trouble::NotAFolder { path } => {
                Error::new(Kind::Damaged, message).path(path, "in the way")
            }
        }
    }
}

impl Read {
    /// Reads the turns.
    ///
    /// # Errors
    /// The file cannot be read, or is newer than we know.
    pub fn new(found: &Found, env: &Env) -> Result<Self, Error> {
        Ok(Self {
            format: found.format,
            session: found.format.read(&found.path, env)?,
            pins: Pins::read(env),
        })
    }

    /// The turn that the user means.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when there is none, or several.
    pub fn turn(&self, name: &TurnName) -> Result<&Turn, Error> {
        let turns = &self.session.turns;
        let none = |what: String| {
            let range = match turns.len() {
                0 => "the session has no turns".to_owned(),
                n => format!("the session has the turns 0 to {}", n - 1),
            };
            Error::new(Kind::NotFound, format!("{what}: {range}")).hint("`rewind list` shows them")
        };
        match name {
            TurnName::Number(n) => match self.session.turn(*n) {
                Some(turn) => Ok(turn),
                // An id can begin with digits alone.
                None if turns.iter().any(|t| t.key.starts_with(&n.to_string())) => {
                    self.by_key(&n.to_string(), none)
                }
                None => Err(none(format!("there is no turn {n}"))),
            },
            TurnName::FromEnd(n) => turns
                .len()
                .checked_sub(*n as usize)
                .and_then(|i| turns.get(i))
                .ok_or_else(|| none(format!("there is no turn -{n}"))),
            TurnName::Key(key) => self.by_key(key, none),
        }
    }

    fn by_key(&self, key: &str, none: impl Fn(String) -> Error) -> Result<&Turn, Error> {
        let turns = &self.session.turns;
        // What an unset variable of a script gives: every id begins with it.
        if key.is_empty() {
            return Err(none("the turn that was named is empty".to_owned()));
        }
        if let Some(exact) = turns.iter().find(|t| t.key == key) {
            return Ok(exact);
        }
        if let Some(pin) = self.pins.named(&self.session.id, key) {
            let pinned = turns.iter().find(|t| t.key == pin.key);
            let gone = || {
                none(format!(
                    "the conversation has left the turn that is pinned as `{key}`"
                ))
            };
            return pinned.ok_or_else(gone);
        }
        let fits: Vec<&Turn> = turns.iter().filter(|t| t.key.starts_with(key)).collect();
        match fits.as_slice() {
            [one] => Ok(one),
            [] => Err(none(format!("no turn has an id that begins with `{key}`"))),
            several => {
                let mut error = Error::new(
                    Kind::NotFound,
                    format!("several turns have an id that begins with `{key}`"),
                )
                .hint("give more of the id, or the number");
                for t in several.iter().take(20) {
                    error = error.path(PathBuf::from(&t.key), format!("turn {}", t.no));
                }
                Err(error)
            }
        }
    }

    /// The calls of the turns from `from` on.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn calls(&self, from: u32, env: &Env) -> Result<Calls, Error> {
        Ok(self.format.calls(&self.session, from, env)?)
    }

    /// All checkpoints of the sidecar, and of the one that was written while the session's file was not known. All of
    /// them, since tying them to turns needs the order.
    ///
    /// # Errors
    /// A sidecar is there and cannot be read.
    pub fn checkpoints(&self, env: &Env) -> Result<Vec<Checkpoint>, Error> {
        let mut all = match ckpt::open(self.session.path())? {
            Some(store) => store.checkpoints(0)?,
            None => Vec::new(),
        };
        let state = env.state.as_deref();
        let elsewhere = state.and_then(|s| ckpt::without_session(s, &self.session.id));
        if let Some(store) = elsewhere.and_then(ckpt::at) {
            all.extend(store.checkpoints(0)?);
            all.sort_by_key(|c| (c.time, c.turn));
        }
        Ok(all)
    }

    /// Joins both from `from` on.
    ///
    /// # Errors
    /// As [`Read::calls`] and [`Read::checkpoints`]; the journal cannot be read.
    pub fn timeline(&self, root: &Root, from: u32, env: &Env) -> Result<Timeline, Error> {
        let mut calls = self.calls(from, env)?;
        let mut checkpoints = self.checkpoints(env)?;
        let sidecar = ckpt::sidecar(self.session.path());
        let covered = worktree::add(&self.session, &mut checkpoints, &sidecar, from);
        let filled = |g: &Gap| g.kind == GapKind::Shell && covered.contains(&g.turn);
        calls.gaps.retain(|g| !filled(g));
        let mut timeline = timeline::join(&self.session, root, &calls, &checkpoints, from)?;
        // Without a place for a journal nothing was ever restored.
        if env.state.is_some() {
            let journal = Journal::open(env.state.as_deref(), root)?;
            ours::count_as_left(&mut timeline, &journal)?;
        }
        Ok(timeline)
    }

    /// The point before a turn.
    #[must_use]
    pub fn point(&self, turn: &Turn) -> Point {
        Point {
            agent: self.session.agent.to_owned(),
            session: self.session.id.clone(),
            path: self.session.path().to_path_buf(),
            turn: turn.no,
            key: turn.key.clone(),
            prompt: turn.prompt.clone(),
        }
    }

    /// The folder to look at: the one named with `--workspace`, else the recorded one.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when the session names none, or it is not there.
    pub fn root(&self, env: &Env, workspace: Option<&Path>) -> Result<Root, Error> {
        let folder = match (workspace, &self.session.root) {
            (Some(w), _) => env.cwd.join(w),
            (None, Some(recorded)) => recorded.clone(),
            (None, None) => {
                return Err(Error::new(
                    Kind::NotFound,
                    "the session does not say which folder it worked in",
                )
                .hint("name it with `--workspace`"));
            }
        };
        open_root(&folder).map_err(|e| match workspace {
            Some(_) => e,
            None => e.hint("if the folder was moved, name it with `--workspace`"),
        })
    }

    /// The folder to change. A recorded folder that the user is not in is not changed without being named: they may
    /// think of another one (`bugs.md` 8).
    ///
    /// # Errors
    /// As [`Read::root`], and [`Kind::Usage`] when it must be named.
    pub fn root_to_change(&self, env: &Env, workspace: Option<&Path>) -> Result<Root, Error> {
        let root = self.root(env, workspace)?;
        if workspace.is_none() && !canonical(&env.cwd).starts_with(root.path()) {
            return Err(Error::new(
                Kind::Usage,
                format!(
                    "the session worked in `{}`, and this is `{}`",
                    root.path().display(),
                    env.cwd.display()
                ),
            )
            .hint(format!(
                "to act there, add `--workspace {}`; to act here, `--workspace .`",
                root.path().display()
            )));
        }
        Ok(root)
    }
}

/// Opens a folder as root.
///
/// # Errors
/// [`Kind::NotFound`] when it is not there or is no folder.
pub fn open_root(folder: &Path) -> Result<Root, Error> {
    Root::open(folder).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => Error::new(
            Kind::NotFound,
            format!("there is no folder `{}`", folder.display()),
        ),
        _ => Error::io("the workspace folder cannot be opened", folder, e),
    })
}
