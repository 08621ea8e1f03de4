//! The values that the program itself knows: sessions, turns, operations, agents. Read as `list` and `log` read them, but
//! nothing is settled, and what cannot be read has no values.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap_complete::{CompletionCandidate, PathCompleter, engine::ValueCompleter};

use super::line::Line;
use crate::cmd::{undo, words};
use crate::env::Env;
use crate::format::{self, named::Named};
use crate::model::session::Turn;
use crate::ops::discover::{self, Found};
use crate::ops::gather::Read;
use crate::ops::init;
use crate::ops::journal::{Journal, Operation};
use crate::ui::text::fit;
use crate::ui::{age, sanitise};

/// Of so many columns at most is what is said of a value: shells put it beside the value on one line.
const WIDTH: usize = 64;
/// A journal grows for years; of the operations that fit, the newest are enough.
const OPERATIONS: usize = 200;

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A session, or a file.
    Session,
    /// A turn of the session that the line names.
    Turn,
    /// An agent whose sessions are read.
    Agent,
    /// An agent that can call our hooks.
    Hooked,
    /// An operation that can be taken back.
    Done,
    /// An undo that can be taken back.
    Undone,
}

impl Kind {
    /// What the value of that name is, in that command.
    pub(super) fn of(value: &str, command: &str) -> Option<Self> {
        Some(match (value, command) {
            ("SESSION", _) => Self::Session,
            ("TURN", _) => Self::Turn,
            ("AGENT", "init" | "deinit" | "hook") => Self::Hooked,
            ("AGENT", _) => Self::Agent,
            ("OPERATION", "redo") => Self::Undone,
            ("OPERATION", _) => Self::Done,
            _ => return None,
        })
    }
}

/// The values that begin with what is typed, each with what it is.
pub(super) fn of(kind: Kind, typed: &OsStr, line: &Line, env: &Env) -> Vec<CompletionCandidate> {
    // No id and no name of ours is anything else than text.
    let Some(text) = typed.to_str() else {
        return Vec::new();
    };
    let all = match kind {
        Kind::Session => {
            let found = sessions(text, line, env);
            if found.is_empty() {
                return PathCompleter::any().current_dir(&env.cwd).complete(typed);
            }
            found
        }
        Kind::Turn => turns(text, line, env).unwrap_or_default(),
        Kind::Agent => agents(format::all(env).iter().map(|f| f.agent()), text, env),
        Kind::Hooked => agents(init::agents(env).into_iter(), text, env),
        Kind::Done | Kind::Undone => operations(kind, text, line, env).unwrap_or_default(),
    };
    let given = |(value, help): (String, String)| {
        let help = fit(&sanitise(&help), WIDTH).into_owned();
        CompletionCandidate::new(value).help(Some(help.into()))
    };
    all.into_iter().map(given).collect()
}

/// The start of a prompt, which may be of any length.
fn start(prompt: &str) -> String {
    words::first_line(prompt).chars().take(WIDTH + 1).collect()
}

/// A value and what it is.
type Told = (String, String);

fn workspace(line: &Line, env: &Env) -> Option<PathBuf> {
    let folder = line.value("-w", "--workspace")?;
    Some(env.cwd.join(folder))
}

/// An id that can be typed: the shell takes an empty word for none, and the program one with a dash for an option.
fn is_word(id: &str) -> bool {
    !id.is_empty() && !id.starts_with('-')
}

/// By id; a file is looked for where none fits.
fn sessions(typed: &str, line: &Line, env: &Env) -> Vec<Told> {
    let found = match workspace(line, env) {
        Some(folder) => discover::of_workspace(env, &folder, None),
        None => discover::here(env, None),
    };
    let fits = |f: &Found| f.card.id.starts_with(typed) && is_word(&f.card.id);
    let told = |f: Found| {
        let at = f.modified.map_or("?".to_owned(), |m| age(m, env.now));
        let agent = f.format.agent();
        let first = start(f.card.prompt.as_deref().unwrap_or_default());
        (f.card.id.clone(), format!("{agent}, {at}: {first}"))
    };
    found.into_iter().filter(fits).map(told).collect()
}

/// The turns by number, newest first; by id where what is typed can be no number that there is.
fn turns(typed: &str, line: &Line, env: &Env) -> Option<Vec<Told>> {
    let session = line.value("-s", "--session");
    let session = match &session {
        Some(name) => Some(name.to_str()?),
        None => None,
    };
    let workspace = workspace(line, env);
    let found = discover::pick(env, session, workspace.as_deref()).ok()?;
    let read = Read::new(&found, env).ok()?;
    let newest = || read.session.turns.iter().rev();
    let told = |value: String, turn: &Turn| {
        let at = turn.at.map_or("?".to_owned(), |at| age(at, env.now));
        (value, format!("{at}: {}", start(&turn.prompt)))
    };
    let numbers: Vec<Told> = newest()
        .map(|turn| told(turn.no.to_string(), turn))
        .filter(|(number, _)| number.starts_with(typed))
        .collect();
    if !numbers.is_empty() {
        return Some(numbers);
    }
    let fits = |turn: &&Turn| turn.key.starts_with(typed) && is_word(&turn.key);
    let ids = newest().filter(fits);
    Some(ids.map(|turn| told(turn.key.clone(), turn)).collect())
}

fn agents<'a>(all: impl Iterator<Item = &'a str>, typed: &str, env: &Env) -> Vec<Told> {
    let title = |agent: &str| match format::of_agent(agent, env) {
        Some(format) => format.title().to_owned(),
        None => Named::of_agent(agent).map_or_else(String::new, |n| n.title.to_owned()),
    };
    all.filter(|agent| agent.starts_with(typed))
        .map(|agent| (agent.to_owned(), title(agent)))
        .collect()
}

fn operations(kind: Kind, typed: &str, line: &Line, env: &Env) -> Option<Vec<Told>> {
    let folder = line.value("-w", "--workspace");
    let root = undo::root_of(env, folder.as_deref().map(Path::new)).ok()?;
    let journal = Journal::open(env.state.as_deref(), &root).ok()?;
    let log = journal.log().ok()?;
    let fits = |o: &&Operation| {
        let can = match kind {
            Kind::Undone => log.can_redo(&o.id),
            _ => log.can_undo(&o.id),
        };
        o.id.starts_with(typed) && is_word(&o.id) && can
    };
    let told = |o: &Operation| {
        let at = format::time(&o.at).map_or("?".to_owned(), |at| age(at, env.now));
        let (act, first) = (words::act(&o.act), start(&o.point.prompt));
        let help = format!("{act}, {at}: before turn {}, {first}", o.point.turn);
        (o.id.clone(), help)
    };
    let newest = log.operations.iter().rev().filter(fits);
    Some(newest.take(OPERATIONS).map(told).collect())
}
