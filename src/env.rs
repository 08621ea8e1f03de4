//! What the program knows of its surroundings: home, folders, variables, clock, terminal. Read once, at the start,
//! and handed down; tests hand down their own.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

/// The surroundings of one run.
#[derive(Debug, Clone)]
pub struct Env {
    /// The user's home folder; `None` when it is not set.
    pub home: Option<PathBuf>,
    /// The folder that the program was started in.
    pub cwd: PathBuf,
    /// Folder for the journal.
    pub state: Option<PathBuf>,
    /// Folder for what the user sets: `config.toml`, `agents/<name>.toml`.
    pub config: Option<PathBuf>,
    /// Where temporary folders go.
    pub temp: PathBuf,
    /// The variables that the agents' formats and the terminal ask for.
    pub vars: BTreeMap<OsString, OsString>,
    /// When the run began.
    pub now: DateTime<Utc>,
    /// Where a test wants the program to be killed; means nothing in a release build.
    pub crash: Option<String>,
    /// This program's file.
    pub exe: Option<PathBuf>,
    /// Number of this process.
    pub pid: u32,
    /// Whether standard input and standard error are a terminal, so that a person can be asked.
    pub interactive: bool,
    /// Whether standard output is a terminal.
    pub tty: bool,
    /// Width of the terminal in columns, where known.
    pub columns: Option<u16>,
}

impl Env {
    /// Reads the surroundings of this process.
    ///
    /// # Errors
    /// When the working folder cannot be read (it was deleted, or its permission is gone).
    pub fn of_process() -> std::io::Result<Self> {
        let vars: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        let home = home(&vars);
        let state = state(&vars, home.as_deref());
        let config = config(&vars, home.as_deref());
        let term = console::Term::stderr();
        let out = console::Term::stdout();
        Ok(Self {
            cwd: std::env::current_dir()?,
            now: now(&vars),
            exe: std::env::current_exe().ok(),
            pid: std::process::id(),
            crash: std::env::var("REWIND_CRASH_AT").ok(),
            temp: std::env::temp_dir(),
            interactive: term.is_term() && std::io::IsTerminal::is_terminal(&std::io::stdin()),
            tty: out.is_term(),
            columns: columns(&vars, &out),
            home,
            state,
            config,
            vars,
        })
    }

    /// Surroundings with nothing in them, for tests to fill.
    #[cfg(test)]
    pub(crate) fn bare() -> Self {
        Self {
            home: None,
            cwd: PathBuf::from("/"),
            state: None,
            config: None,
            temp: PathBuf::from("/tmp"),
            vars: BTreeMap::new(),
            now: DateTime::UNIX_EPOCH,
            crash: None,
            exe: None,
            pid: 1,
            interactive: false,
            tty: false,
            columns: None,
        }
    }

    /// The arguments of this process, its name first.
    #[must_use]
    pub fn args() -> Vec<OsString> {
        std::env::args_os().collect()
    }

    /// The shell that asks for completions, if one does. Asked before all else: a shell waits.
    #[must_use]
    pub fn completing() -> Option<OsString> {
        std::env::var_os("COMPLETE").filter(|v| !v.is_empty())
    }

    /// A variable that is set and not empty.
    #[must_use]
    pub fn var(&self, name: &str) -> Option<&OsStr> {
        self.vars
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
            .filter(|v| !v.is_empty())
    }

    /// The folders that the shell looks for programs in.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        let all = self.var("PATH").unwrap_or_default();
        std::env::split_paths(all).collect()
    }

    /// A folder: of the variable where set, else below the home folder.
    #[must_use]
    pub fn dir(&self, name: &str, below_home: &str) -> Option<PathBuf> {
        match self.var(name) {
            Some(v) => Some(self.cwd.join(v)),
            None => self.home.as_ref().map(|h| h.join(below_home)),
        }
    }
}

/// `HOME` where it is set; the password database is left alone (a static binary cannot ask it).
fn home(vars: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
    vars.get(OsStr::new("HOME"))
        .filter(|v| !v.is_empty())
        .map(PathBuf::from)
        .filter(|p| p.is_absolute())
}

/// The state folder: `REWIND_STATE_DIR`, else the platform's own below the home folder.
fn state(vars: &BTreeMap<OsString, OsString>, home: Option<&Path>) -> Option<PathBuf> {
    if let Some(v) = vars
        .get(OsStr::new("REWIND_STATE_DIR"))
        .filter(|v| !v.is_empty())
    {
        return Some(PathBuf::from(v)).filter(|p| p.is_absolute());
    }
    // Without a home the platform's answer would come from the password database: not where the user looks.
    home?;
    let dirs = directories::ProjectDirs::from("", "", "rewind")?;
    Some(
        dirs.state_dir()
            .unwrap_or_else(|| dirs.data_local_dir())
            .to_path_buf(),
    )
}

/// The config folder: `REWIND_CONFIG_DIR`, else the platform's own below the home folder.
fn config(vars: &BTreeMap<OsString, OsString>, home: Option<&Path>) -> Option<PathBuf> {
    if let Some(v) = vars
        .get(OsStr::new("REWIND_CONFIG_DIR"))
        .filter(|v| !v.is_empty())
    {
        return Some(PathBuf::from(v)).filter(|p| p.is_absolute());
    }
    home?;
    let dirs = directories::ProjectDirs::from("", "", "rewind")?;
    Some(dirs.config_dir().to_path_buf())
}

/// The clock; a test build takes `REWIND_NOW` instead, so that ages are the same in every run.
fn now(vars: &BTreeMap<OsString, OsString>) -> DateTime<Utc> {
    let told = vars
        .get(OsStr::new("REWIND_NOW"))
        .filter(|_| cfg!(feature = "crashpoints"))
        .and_then(|v| v.to_str())
        .and_then(|v| DateTime::parse_from_rfc3339(v).ok());
    told.map_or_else(Utc::now, |t| t.to_utc())
}

/// The width: `COLUMNS` where it is a number, else what the terminal says.
fn columns(vars: &BTreeMap<OsString, OsString>, term: &console::Term) -> Option<u16> {
    vars.get(OsStr::new("COLUMNS"))
        .and_then(|v| v.to_str())
        .and_then(|v| v.parse().ok())
        .or_else(|| term.size_checked().map(|(_, w)| w))
}
