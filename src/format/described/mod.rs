//! An agent that this program does not know, described by its user in `agents/<name>.toml`: JSONL, one record a line,
//! prompts in order. What the file may say is in `page`; `rewind-formats(5)` is its manual.
//!
//! Does not cover sessions of several files, one JSON document, and branches inside a file.

mod load;
mod page;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

pub use load::{Fault, faults, order};

use super::chat::{self, Action, Dialect, Input, Known, Names, Tool};
use super::json::Value;
use super::record::{plain, text};
use super::splice::{pieces, token};
use super::{Access, Alive, Card, Format, Head, Trouble, alive};
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::Calls;
use crate::model::fork::{Fork, NewFile, NewSession};
use crate::model::session::Session;
use page::{Page, Rewind};

/// One description.
struct Described {
    name: &'static str,
    title: &'static str,
    page: Page,
    names: Names,
}

impl Described {
    /// `name` is that of the file. What is made here lives as long as the process: a handful of small pages.
    fn new(name: &str, page: Page) -> Self {
        let leak = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
        let list = |text: Option<&String>| -> &'static [&'static str] {
            let all: Vec<&'static str> = text.map(|t| leak(t)).into_iter().collect();
            Box::leak(all.into_boxed_slice())
        };
        let names = page.call.as_ref().map_or_else(Names::default, |c| Names {
            path: list(c.path.as_ref()),
            old: list(c.old.as_ref()),
            new: list(c.new.as_ref()),
            all: list(c.all.as_ref()),
            list: list(c.edits.as_ref()),
            content: list(c.content.as_ref()),
            patch: list(c.patch.as_ref()),
            command: list(c.command.as_ref()),
        });
        Self {
            name: leak(name),
            title: leak(page.title.as_deref().unwrap_or(name)),
            page,
            names,
        }
    }

    fn id_in<'v>(&self, record: &Value<'v>) -> Option<Value<'v>> {
        let id = record.find(self.page.session.id.as_deref()?)?;
        Some(id).filter(|v| v.text().is_some_and(|t| !t.is_empty()))
    }

    fn refused<T>(&self) -> Result<T, Trouble> {
        chat::refuse(&format!(
            "the description of `{}` does not say that its conversations can be taken back; `rewind-formats(5)` tells how it would",
            self.name
        ))
    }
}

/// The values that are calls or results: those of a list, or the record.
fn each<'v>(record: &Value<'v>, list: Option<&str>) -> Vec<Value<'v>> {
    match list {
        Some(list) => record
            .find(list)
            .map(|l| l.items().collect())
            .unwrap_or_default(),
        None => vec![*record],
    }
}

impl Dialect for Described {
    fn prompt(&self, record: &Value<'_>) -> Option<String> {
        let prompt = &self.page.prompt;
        let meant = prompt.when.holds(record);
        if !meant || prompt.unless.as_ref().is_some_and(|u| u.holds(record)) {
            return None;
        }
        chat::words(&record.find(&prompt.text)?)
    }

    fn key(&self, record: &Value<'_>) -> Option<String> {
        text(record, self.page.prompt.id.as_deref()?)
    }

    fn at(&self, record: &Value<'_>) -> Option<DateTime<Utc>> {
        chat::time(&record.find(self.page.time.as_deref()?)?)
    }

    fn actions(&self, record: &Value<'_>, take: &mut dyn FnMut(Action<'_>)) {
        if let Some(call) = self.page.call.as_ref().filter(|c| c.when.holds(record)) {
            for one in each(record, call.each.as_deref()) {
                let arguments = call.arguments.as_ref();
                let input = match arguments {
                    Some(path) => one.find(path).and_then(Input::of),
                    None => Some(Input::Value(one)),
                };
                if let (Some(name), Some(input)) = (text(&one, &call.tool), input) {
                    take(Action::Call {
                        id: call.id.as_ref().and_then(|id| text(&one, id)),
                        name: name.into(),
                        input,
                    });
                }
            }
        }
        if let Some(end) = self.page.result.as_ref().filter(|r| r.when.holds(record)) {
            for one in each(record, end.each.as_deref()) {
                if let Some(id) = text(&one, &end.id) {
                    let failed = end.failed.as_ref().is_some_and(|f| f.holds(&one));
                    take(Action::Result {
                        id,
                        done: Some(!failed),
                    });
                }
            }
        }
    }

    fn tool(&self, name: &str) -> Option<Tool> {
        match &self.page.tools {
            Some(tools) => tools.of(name),
            None => chat::common_tool(name),
        }
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn has_results(&self) -> bool {
        self.page.result.is_some()
    }
}

impl Format for Described {
    fn agent(&self) -> &'static str {
        self.name
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn access(&self) -> Access {
        match self.page.rewind {
            Rewind::Cut => Access::InPlace,
            Rewind::Fork => Access::Fork,
            Rewind::ReadOnly => Access::ReadOnly,
        }
    }

    fn is(&self, head: &Head) -> bool {
        head.records().any(|r| self.page.recognise.holds(&r))
    }

    fn places(&self, env: &Env, _workspace: Option<&Path>) -> Vec<PathBuf> {
        let places = self.page.sessions.iter();
        let mut out: Vec<PathBuf> = places.flat_map(|p| load::matching(p, env)).collect();
        out.sort();
        out.dedup();
        out
    }

    fn card(&self, head: &Head) -> Card {
        let id = head.records().find_map(|r| self.id_in(&r)?.text());
        let root = self.page.session.root.as_deref();
        Card {
            id: id.map_or_else(|| stem(&head.path), std::borrow::Cow::into_owned),
            root: root.and_then(|path| {
                let all = head.records().find_map(|r| text(&r, path));
                all.map(PathBuf::from)
            }),
            prompt: chat::first_prompt(head, self),
            at: head.records().find_map(|r| self.at(&r)),
        }
    }

    fn read(&self, path: &Path, _env: &Env) -> Result<Session, Trouble> {
        let card = self.card(&Head::read(path).map_err(Trouble::io(path))?);
        let known = Known {
            agent: self.name,
            id: card.id,
            root: card.root,
        };
        chat::read(path, self, known)
    }

    fn calls(&self, session: &Session, from: u32, _env: &Env) -> Result<Calls, Trouble> {
        if self.page.call.is_none() {
            return Ok(chat::not_understood(session, from));
        }
        chat::calls(session, from, self)
    }

    fn cut(&self, session: &Session, turn: u32, _env: &Env) -> Result<Vec<FileChange>, Trouble> {
        match self.page.rewind {
            Rewind::ReadOnly => self.refused(),
            Rewind::Fork => Err(Trouble::ForkInstead {
                why: format!("the description of `{}` allows forks only", self.name),
            }),
            Rewind::Cut => Ok(vec![FileChange::Truncate {
                path: session.path().to_path_buf(),
                keep: chat::end_before(session, turn)?,
                len: session.len,
            }]),
        }
    }

    fn fork(
        &self,
        session: &Session,
        turn: u32,
        new: &NewSession,
        _env: &Env,
    ) -> Result<Fork, Trouble> {
        if self.page.rewind == Rewind::ReadOnly {
            return self.refused();
        }
        let keep = chat::end_before(session, turn)?;
        let (path, id) = (session.path(), new.v4());
        let new_id = token(&id);
        let body = pieces(path, (0, keep), &mut |record, swaps| {
            if let Some(own) = self.id_in(record).filter(|v| v.is_str(&session.id)) {
                swaps.put(&own, &new_id);
            }
        })?;
        Ok(Fork {
            files: vec![NewFile {
                path: renamed(path, &session.id, &id),
                body,
            }],
            id,
            rows: Vec::new(),
            named: false,
        })
    }

    fn live(&self, session: &Session, env: &Env) -> Option<Alive> {
        let names: Vec<&str> = self.page.processes.iter().map(String::as_str).collect();
        if names.is_empty() {
            return None;
        }
        alive::at_work(&names, session.root.as_deref(), env.pid)
    }

    fn resume(&self, session: &Session) -> Option<String> {
        let command = self.page.resume.as_ref()?;
        plain(&session.id).then(|| command.replace("{id}", &session.id))
    }
}

/// The path with the new id in the place of the old one: in the file's name, else in the folder nearest to it that has
/// it. A name that does not hold the id is the id from then on.
fn renamed(path: &Path, old: &str, id: &str) -> PathBuf {
    let mut parts: Vec<OsString> = path.iter().map(OsStr::to_os_string).collect();
    let holds = parts
        .iter_mut()
        .rev()
        .find_map(|p| swapped(p.to_str()?, old, id).map(|now| (p, now)));
    if let Some((part, now)) = holds {
        *part = now.into();
        return parts.iter().collect();
    }
    let mut own = path.with_file_name(id);
    if let Some(end) = path.extension() {
        own.set_extension(end);
    }
    own
}

/// A name with the id in it exchanged: where it stands for itself, not inside a longer word.
fn swapped(name: &str, old: &str, id: &str) -> Option<String> {
    let (at, _) = name.match_indices(old).find(|(at, _)| {
        let (before, rest) = name.split_at(*at);
        let after = rest.get(old.len()..).unwrap_or_default();
        let word = char::is_alphanumeric;
        !old.is_empty() && !before.ends_with(word) && !after.starts_with(word)
    })?;
    let (before, rest) = name.split_at(at);
    Some(format!("{before}{id}{}", rest.get(old.len()..)?))
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
