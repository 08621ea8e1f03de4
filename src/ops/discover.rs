//! Finds sessions: of a workspace, of all, or the one that the user named. Reads heads, never whole files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use chrono::{DateTime, Utc};

use super::apply::each;
use crate::env::Env;
use crate::error::{Error, Kind};
use crate::format::described;
use crate::format::named::Named;
use crate::format::{self, Card, Format, Head};

/// A session file and what its head tells.
#[derive(Clone)]
pub struct Found {
    /// The format that its content is of.
    pub format: &'static dyn Format,
    /// The file.
    pub path: PathBuf,
    /// What its head tells.
    pub card: Card,
    /// Its length in bytes.
    pub len: u64,
    /// When it was last written.
    pub modified: Option<DateTime<Utc>>,
}

/// Sessions of one agent, or of all.
#[must_use]
pub fn all(env: &Env, agent: Option<&str>) -> Vec<Found> {
    let files: BTreeSet<PathBuf> = formats(env, agent)
        .flat_map(|f| f.places(env, None))
        .collect();
    let mut out = look_at_all(&files.into_iter().collect::<Vec<_>>(), env);
    out.retain(|f| agent.is_none_or(|a| f.format.agent() == a));
    newest_first(&mut out);
    out
}

/// Sessions whose workspace is this folder.
#[must_use]
pub fn of_workspace(env: &Env, folder: &Path, agent: Option<&str>) -> Vec<Found> {
    near(env, std::iter::once(folder), agent)
}

/// Sessions of the working folder, or of the nearest folder above that has any.
#[must_use]
pub fn here(env: &Env, agent: Option<&str>) -> Vec<Found> {
    near(env, env.cwd.ancestors(), agent)
}

fn near<'p>(env: &Env, folders: impl Iterator<Item = &'p Path>, agent: Option<&str>) -> Vec<Found> {
    let folders: Vec<(&Path, PathBuf)> = folders.map(|f| (f, canonical(f))).collect();
    let mut files = BTreeSet::new();
    for format in formats(env, agent) {
        for (folder, real) in &folders {
            files.extend(format.places(env, Some(folder)));
            if real != folder {
                files.extend(format.places(env, Some(real)));
            }
        }
    }
    let mut found = look_at_all(&files.into_iter().collect::<Vec<_>>(), env);
    found.retain(|f| agent.is_none_or(|a| f.format.agent() == a));
    newest_first(&mut found);
    for (folder, real) in &folders {
        let of = |f: &Found| {
            let root = f.card.root.as_deref();
            root.is_some_and(|r| r == *folder || r == real || canonical(r) == *real)
        };
        let (these, rest): (Vec<_>, Vec<_>) = found.into_iter().partition(of);
        if !these.is_empty() {
            return these;
        }
        found = rest;
    }
    Vec::new()
}

/// The path with its links resolved, where it exists; else as it is.
#[must_use]
pub fn canonical(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

fn formats<'a>(
    env: &Env,
    agent: Option<&'a str>,
) -> impl Iterator<Item = &'static dyn Format> + use<'a> {
    format::all(env)
        .iter()
        .copied()
        .filter(move |f| agent.is_none_or(|a| f.agent() == a))
}

fn newest_first(found: &mut [Found]) {
    found.sort_by(|a, b| {
        b.modified
            .cmp(&a.modified)
            .then_with(|| a.path.cmp(&b.path))
    });
}

/// Looks at many files; one that cannot be read, or is no session, is left out.
fn look_at_all(paths: &[PathBuf], env: &Env) -> Vec<Found> {
    let looked = each::map(paths, |_, path| Ok(look(path, env).ok().flatten()));
    looked.unwrap_or_default().into_iter().flatten().collect()
}

/// Looks at one file; `None` when it is of no known format.
fn look(path: &Path, env: &Env) -> std::io::Result<Option<Found>> {
    let meta = std::fs::metadata(path)?;
    if !meta.is_file() || meta.len() == 0 {
        return Ok(None);
    }
    let Some((format, card)) = told(path, env)? else {
        return Ok(None);
    };
    Ok(Some(Found {
        format,
        card,
        path: path.to_path_buf(),
        len: meta.len(),
        modified: meta.modified().ok().map(|t: SystemTime| t.into()),
    }))
}

/// What the file is and what its head tells. The first bytes are enough where they hold all that a head can tell: then
/// the format has understood a prompt of its own in them, and is not another's.
fn told(path: &Path, env: &Env) -> std::io::Result<Option<(&'static dyn Format, Card)>> {
    let short = Head::short(path)?;
    if let Some(format) = format::detect(&short, env) {
        let card = format.card(&short);
        if card.root.is_some() && card.prompt.is_some() && !card.id.is_empty() {
            return Ok(Some((format, card)));
        }
    }
    let head = Head::read(path)?;
    Ok(format::detect(&head, env).map(|format| (format, format.card(&head))))
}

/// The session that the user named by path, id or unique prefix of an id; without a name the newest one of the
/// workspace, or of the working folder and those above it.
///
/// # Errors
/// [`Kind::NotFound`] when there is none, or several; [`Kind::Unsupported`] for a file of no known format.
pub fn pick(env: &Env, name: Option<&str>, workspace: Option<&Path>) -> Result<Found, Error> {
    match (name, workspace) {
        (Some(name), _) => return named(env, name),
        (None, Some(folder)) => of_workspace(env, &env.cwd.join(folder), None)
            .into_iter()
            .next(),
        (None, None) => here(env, None).into_iter().next(),
    }
    .ok_or_else(|| none(env, workspace))
}

/// That there is no session here: what was looked for, and what to do.
#[must_use]
pub fn none(env: &Env, workspace: Option<&Path>) -> Error {
    if all(env, None).is_empty() {
        // These two are of whatever agent.
        let any = [format::captured::NAME, format::generic::NAME];
        let known = format::all(env)
            .iter()
            .filter(|f| !any.contains(&f.agent()));
        let titles: Vec<&str> = known.map(|f| f.title()).collect();
        let words = "no agent has left a session here or anywhere";
        return Error::new(Kind::NotFound, words)
            .hint(format!("looked for those of {}", titles.join(", ")))
            .hint("`rewind demo` makes a session to play with");
    }
    let place = match workspace {
        Some(folder) => format!("`{}`", canonical(&env.cwd.join(folder)).display()),
        None => "this folder or one above it".to_owned(),
    };
    Error::new(
        Kind::NotFound,
        format!("no session was recorded in {place}"),
    )
    .hint("go to the folder that the agent worked in, or name it with `--workspace`")
    .hint("`rewind sessions --all` lists the sessions of all folders; `--session` names one")
}

fn named(env: &Env, name: &str) -> Result<Found, Error> {
    // What an unset variable of a script gives: every id begins with it.
    if name.is_empty() {
        return Err(
            Error::new(Kind::NotFound, "the session that was named is empty")
                .hint("leave the option out for the newest session of this folder"),
        );
    }
    let path = env.cwd.join(name);
    match std::fs::metadata(&path) {
        Ok(meta) if meta.is_file() => return at(&path, env),
        Ok(_) if name.contains('/') => {
            return Err(Error::new(
                Kind::NotFound,
                format!("`{name}` is a folder, not a session file"),
            )
            .hint("name the `.jsonl` file in it"));
        }
        Err(e) if name.contains('/') => {
            return Err(match e.kind() {
                std::io::ErrorKind::NotFound => {
                    Error::new(Kind::NotFound, format!("there is no file `{name}`"))
                }
                _ => Error::io("the session file cannot be read", path, e),
            });
        }
        _ => {}
    }
    by_id(env, name)
}

/// The session in a file. Its content decides what it is.
///
/// # Errors
/// [`Kind::Unsupported`] for a file of no known format; it cannot be read.
pub fn at(path: &Path, env: &Env) -> Result<Found, Error> {
    let io = |e| Error::io("the session file cannot be read", path, e);
    if let Some(found) = look(path, env).map_err(io)? {
        return Ok(found);
    }
    if let Some(named) = Named::of_file(path) {
        return Err(Error::new(Kind::Unsupported, named.sentence())
            .path(path, "is a session of it")
            .hint(named.instead));
    }
    let head = Head::read(path).map_err(io)?;
    let mut error = Error::new(
        Kind::Unsupported,
        format!("`{}` is no session file of a known agent", path.display()),
    )
    .path(path, seen(&head));
    for fault in described::faults(env) {
        error = error.path(&fault.path, format!("is left out: {}", fault.why));
    }
    Err(error
        .hint("`rewind sessions --all` lists the session files that were found")
        .hint("`man rewind-formats` tells how to describe an agent"))
}

/// What was seen in a file of no known format.
fn seen(head: &Head) -> String {
    if head.bytes().is_empty() {
        return "the file is empty".to_owned();
    }
    let Some(first) = head.records().next() else {
        return "no line of it is a JSON object".to_owned();
    };
    let keys: Vec<String> = first
        .entries()
        .take(8)
        .map(|(k, _)| format!("`{}`", k.chars().take(40).collect::<String>()))
        .collect();
    match keys.len() {
        0 => "its first record has no keys".to_owned(),
        _ => format!("its first record has the keys {}", keys.join(", ")),
    }
}

fn by_id(env: &Env, name: &str) -> Result<Found, Error> {
    let paths: BTreeSet<PathBuf> = formats(env, None)
        .flat_map(|f| f.places(env, None))
        .collect();
    // Nearly every agent puts the id into the file's name, so few heads are read; if none fits, all are.
    let (likely, rest): (Vec<_>, Vec<_>) = paths
        .into_iter()
        .partition(|p| p.to_string_lossy().contains(name));
    let mut found = with_id(&likely, name, env);
    if found.is_empty() {
        found = with_id(&rest, name, env);
    }
    if let Some(exact) = found.iter().position(|f| f.card.id == name) {
        return Ok(found.swap_remove(exact));
    }
    newest_first(&mut found);
    let mut found = found.into_iter();
    match (found.next(), found.len()) {
        (Some(one), 0) => Ok(one),
        (None, _) => Err(Error::new(
            Kind::NotFound,
            format!("no session has an id that begins with `{name}`"),
        )
        .hint("`rewind sessions --all` lists them")),
        (Some(first), _) => {
            let mut error = Error::new(
                Kind::NotFound,
                format!("several sessions have an id that begins with `{name}`"),
            )
            .hint("give more of the id, or the file's path");
            for f in std::iter::once(first).chain(found).take(20) {
                error = error.path(f.path, format!("{} {}", f.format.agent(), f.card.id));
            }
            Err(error)
        }
    }
}

fn with_id(paths: &[PathBuf], name: &str, env: &Env) -> Vec<Found> {
    let mut found = look_at_all(paths, env);
    found.retain(|f| f.card.id.starts_with(name));
    found
}
