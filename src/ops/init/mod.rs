//! Adds our hooks to an agent's settings and takes them out again. What is not ours keeps every byte; a file that cannot
//! be parsed is not touched; what a file held before is kept, so that taking the hooks out of one that nobody has changed
//! since gives the same bytes.
//!
//! ```text
//! <state>/init/<SHA-256 of the path>/before      the bytes before; no file where there was none
//!                                    after       SHA-256 of what was written
//! ```

mod files;
mod json;
mod toml;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use crate::env::Env;
use crate::error::{Error, Kind, Result};
use crate::format::hooks::{Form, On, Setup};
use crate::format::json::Value;
use crate::format::named::{NAMED, Named};
use crate::format::{self, Format, lines};
use crate::fsx::Disk;
use files::{Saved, keep, remove, saved, write};

/// What the hooks are to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Capture the files that calls name.
    Files,
    /// The whole work tree too.
    Git,
}

/// Whose settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// The user's.
    User,
    /// Those of the project in this folder.
    Project(PathBuf),
}

/// A change of one settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The file, links resolved.
    pub path: PathBuf,
    /// Its bytes now; `None` where there is none.
    pub before: Option<Vec<u8>>,
    /// Its bytes then; `None` where it goes.
    pub after: Option<Vec<u8>>,
    /// The events that are hooked, or were.
    pub events: Vec<&'static str>,
    /// What the user must still do.
    pub then: Option<&'static str>,
}

impl Plan {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.before == self.after
    }
}

/// No settings file is longer.
const LONGEST: usize = 16 << 20;

/// The agents that have hooks, by name.
#[must_use]
pub fn agents(env: &Env) -> Vec<&'static str> {
    let read = format::all(env).iter();
    let read = read.filter(|f| f.hooks().is_some()).map(|f| f.agent());
    let named = NAMED.iter().filter(|n| n.hooks.is_some());
    read.chain(named.map(|n| n.agent)).collect()
}

/// Plans adding our hooks.
///
/// # Errors
/// The agent has none, or its settings cannot be read or parsed.
pub fn add(agent: &str, whose: &Whose, mode: Mode, env: &Env) -> Result<Plan> {
    let found = setup(agent, env)?;
    let (path, before) = settings(&found, whose, env)?;
    let setup = found.setup;
    let command = command(found.agent, mode, env);
    let refuse = |why: String| refused(&path, why);
    let after = match &setup.form {
        Form::Own { text } => {
            let text = own(text, &command);
            match &before {
                Some(there) if *there != text && !is_own(there) => {
                    return Err(refuse("it is another file of that name".to_owned()));
                }
                _ => text,
            }
        }
        Form::Tables { on, timeout } => {
            let text = text_of(before.as_deref(), &path)?;
            let on = wanted(on, setup.end, mode);
            tables(&text, &on, *timeout, &command).map_err(refuse)?
        }
        Form::Groups { on, .. } | Form::Flat { on, .. } => {
            let text = before.clone().filter(|b| !b.trim_ascii().is_empty());
            let on = wanted(on, setup.end, mode);
            entries(text, &setup.form, &on, &command).map_err(refuse)?
        }
    };
    Ok(Plan {
        path,
        before,
        after: Some(after),
        events: wanted(on(&setup.form), setup.end, mode)
            .iter()
            .map(|(event, _)| *event)
            .collect(),
        then: setup.then,
    })
}

/// Plans taking our hooks out.
///
/// # Errors
/// As [`add`].
pub fn take_out(agent: &str, whose: &Whose, env: &Env) -> Result<Plan> {
    let found = setup(agent, env)?;
    let (path, before) = settings(&found, whose, env)?;
    let setup = found.setup;
    let refuse = |why: String| refused(&path, why);
    let after = match &before {
        None => None,
        Some(now) => match saved(&path, now, env)? {
            Saved::Bytes(bytes) => Some(bytes),
            Saved::NoFile => None,
            Saved::Nothing => taken(&setup.form, now, &path).map_err(refuse)?,
        },
    };
    Ok(Plan {
        events: wanted(on(&setup.form), setup.end, Mode::Files)
            .iter()
            .map(|(event, _)| *event)
            .collect(),
        path,
        before,
        after,
        then: None,
    })
}

/// Carries a plan out.
///
/// # Errors
/// The disk refuses, or the file is not what it was when the plan was made; it is as it was then.
pub fn apply(plan: &Plan, env: &Env, disk: &dyn Disk) -> Result<()> {
    if read(&plan.path)? != plan.before {
        return Err(Error::new(Kind::Conflict, "the settings changed meanwhile")
            .path(&plan.path, "is not what it was")
            .hint("run the command again"));
    }
    let fail = |e| Error::io("the settings cannot be written", &plan.path, e);
    keep(plan, env, disk).map_err(fail)?;
    match &plan.after {
        Some(bytes) => write(&plan.path, bytes, disk).map_err(fail),
        None => remove(&plan.path, disk).map_err(fail),
    }
}

/// An agent that has hooks: its name, its title, and how they are set up.
struct Hooked {
    agent: &'static str,
    title: &'static str,
    setup: Setup,
}

fn hooked(agent: &str, env: &Env) -> Option<Hooked> {
    if let Some(format) = format::of_agent(agent, env) {
        return Some(Hooked {
            agent: format.agent(),
            title: format.title(),
            setup: format.hooks()?,
        });
    }
    let named = Named::of_agent(agent)?;
    Some(Hooked {
        agent: named.agent,
        title: named.title,
        setup: named.hooks?,
    })
}

fn setup(agent: &str, env: &Env) -> Result<Hooked> {
    if let Some(found) = hooked(agent, env) {
        return Ok(found);
    }
    let known = agents(env).join(", ");
    let title = format::of_agent(agent, env).map(Format::title);
    let title = title.or_else(|| Named::of_agent(agent).map(|n| n.title));
    let error = match title {
        Some(title) => {
            let message = format!("{title} has no hooks that are known");
            Error::new(Kind::Unsupported, message)
        }
        None => Error::new(Kind::Usage, format!("no agent is called `{agent}`")),
    };
    Err(error.hint(format!("hooks are known of: {known}")))
}

/// The settings file with its links resolved, and what it holds.
fn settings(found: &Hooked, whose: &Whose, env: &Env) -> Result<(PathBuf, Option<Vec<u8>>)> {
    let (title, setup) = (found.title, &found.setup);
    let path = match (whose, setup.project) {
        (Whose::User, _) => setup.user.path(env).ok_or_else(|| {
            Error::new(Kind::Usage, "there is no home folder").hint("set HOME, or use `--project`")
        })?,
        (Whose::Project(folder), Some(file)) => folder.join(file),
        (Whose::Project(_), None) => {
            let message = format!("{title} has no hooks of a project that are known");
            return Err(Error::new(Kind::Unsupported, message).hint("leave `--project` out"));
        }
    };
    // Settings are often a link into a folder that is under version control: the link stays.
    let path = std::fs::canonicalize(&path).unwrap_or(path);
    let bytes = read(&path)?;
    Ok((path, bytes))
}

fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match lines::read_whole(path, LONGEST) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("the settings cannot be read", path, e)),
    }
}

fn refused(path: &Path, why: String) -> Error {
    Error::new(Kind::Unsupported, "the settings are not touched")
        .path(path, why)
        .hint("mend the file and run the command again")
}

fn text_of(bytes: Option<&[u8]>, path: &Path) -> Result<String> {
    let bytes = bytes.unwrap_or_default().to_vec();
    String::from_utf8(bytes).map_err(|_| refused(path, "it is no UTF-8".to_owned()))
}

/// The command that an agent runs: the program by the name under which the shell finds it, so that it is found after an
/// update too, else where it is.
fn command(agent: &str, mode: Mode, env: &Env) -> String {
    let git = match mode {
        Mode::Files => "",
        Mode::Git => " --git",
    };
    format!("{} hook {agent}{git}", quoted(&program(env)))
}

fn program(env: &Env) -> String {
    let own = env.exe.clone().unwrap_or_else(|| PathBuf::from("rewind"));
    let real = |p: &Path| std::fs::canonicalize(p).ok();
    let found = env
        .paths()
        .into_iter()
        .map(|p| p.join("rewind"))
        .find(|p| p.is_absolute() && real(p).is_some_and(|r| Some(r) == real(&own)));
    found.unwrap_or(own).to_string_lossy().into_owned()
}

fn quoted(program: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+');
    if program.chars().all(plain) {
        program.to_owned()
    } else {
        format!("'{}'", program.replace('\'', r"'\''"))
    }
}

/// Whether a command line is a call of our hook.
fn is_ours(command: &str) -> bool {
    let Some((program, agent)) = command.rsplit_once(" hook ") else {
        return false;
    };
    let agent = agent.strip_suffix(" --git").unwrap_or(agent);
    let program = program.trim_matches(|c| c == '\'' || c == '"');
    let name = Path::new(program).file_name().and_then(OsStr::to_str);
    name == Some("rewind") && !agent.trim().contains(char::is_whitespace)
}

fn is_our_entry(entry: &Value<'_>) -> bool {
    let names = ["command", "bash"];
    let said = names.iter().find_map(|n| entry.get(n));
    said.and_then(|c| c.text()).is_some_and(|c| is_ours(&c))
}

fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The JSON entry of an event.
fn entry(form: &Form, (_, tools): On, command: &str) -> String {
    let command = string(command);
    match form {
        Form::Groups { timeout, .. } => {
            let matcher = tools.map_or(String::new(), |t| format!("\"matcher\": {}, ", string(t)));
            format!(
                "{{ {matcher}\"hooks\": [{{ \"type\": \"command\", \"command\": {command}, \"timeout\": {timeout} }}] }}"
            )
        }
        Form::Flat {
            command: name,
            timeout,
            more,
            ..
        } => {
            let timeout = timeout.map_or(String::new(), |(n, t)| format!(", \"{n}\": {t}"));
            format!("{{ {more}\"{name}\": {command}{timeout} }}")
        }
        Form::Tables { .. } | Form::Own { .. } => String::new(),
    }
}

fn on(form: &Form) -> &'static [On] {
    match form {
        Form::Groups { on, .. } | Form::Flat { on, .. } | Form::Tables { on, .. } => on,
        Form::Own { .. } => &[],
    }
}

/// The events to hook; git mode needs the end of a turn too.
fn wanted(on: &[On], end: Option<&'static str>, mode: Mode) -> Vec<On> {
    let end = end.filter(|_| mode == Mode::Git && !on.is_empty());
    on.iter().copied().chain(end.map(|e| (e, None))).collect()
}

fn entries(
    text: Option<Vec<u8>>,
    form: &Form,
    on: &[On],
    command: &str,
) -> std::result::Result<Vec<u8>, String> {
    let empty = match form {
        Form::Flat { .. } => "{\n  \"version\": 1\n}\n",
        _ => "{\n}\n",
    };
    let text = text.unwrap_or_else(|| empty.as_bytes().to_vec());
    let mut page = json::Page::new(text.clone())?;
    let is = |v: &Value<'_>| {
        let said = ["command", "bash"].iter().find_map(|n| v.get(n));
        said.is_some_and(|c| c.is_str(command))
    };
    let there = |page: &json::Page, event: &str| {
        let list = page.member(&["hooks", event]);
        list.iter()
            .flat_map(|l| l.items().collect::<Vec<_>>())
            .any(|item| {
                let inner = item.get("hooks").filter(Value::is_array);
                inner.map_or_else(|| is(&item), |i| i.items().any(|h| is(&h)))
            })
    };
    if on.iter().all(|(event, _)| there(&page, event)) {
        return Ok(text);
    }
    // Those of another place of the program, or of an older version, make way.
    (page, _) = page.take_out("hooks", &is_our_entry)?;
    for one in on {
        page = page.add(&["hooks", one.0], &entry(form, *one, command))?;
    }
    Ok(page.into_text())
}

fn tables(
    text: &str,
    on: &[On],
    timeout: u32,
    command: &str,
) -> std::result::Result<Vec<u8>, String> {
    let there = toml::commands(text)?;
    let has = |event: &str| there.iter().any(|(e, c)| e == event && c == command);
    if on.iter().all(|(event, _)| has(event)) {
        return Ok(text.as_bytes().to_vec());
    }
    let (text, _) = toml::take_out(text, &is_ours)?;
    let all: Vec<String> = on
        .iter()
        .map(|(event, tools)| {
            let matcher = tools.map_or(String::new(), |t| format!("matcher = {}\n", string(t)));
            format!(
                "[[hooks]]\nevent = \"{event}\"\n{matcher}command = {}\ntimeout = {timeout}\n",
                string(command)
            )
        })
        .collect();
    Ok(toml::add(&text, &all)?.into_bytes())
}

/// The first line of a file of our own.
const OWN: &str = "Made by `rewind init`";

fn own(text: &str, command: &str) -> Vec<u8> {
    let program = command.split(" hook ").next().unwrap_or("rewind");
    let program = program.trim_matches('\'');
    text.replace("{program}", &string(program)).into_bytes()
}

fn is_own(bytes: &[u8]) -> bool {
    let first = bytes.split(|b| *b == b'\n').take(2);
    first
        .into_iter()
        .any(|l| memchr::memmem::find(l, OWN.as_bytes()).is_some())
}

fn taken(form: &Form, now: &[u8], path: &Path) -> std::result::Result<Option<Vec<u8>>, String> {
    match form {
        Form::Own { .. } if is_own(now) => Ok(None),
        Form::Own { .. } => Ok(Some(now.to_vec())),
        Form::Tables { .. } => {
            let text = text_of(Some(now), path).map_err(|e| e.message)?;
            let (text, _) = toml::take_out(&text, &is_ours)?;
            Ok(Some(text.into_bytes()))
        }
        Form::Groups { .. } | Form::Flat { .. } => {
            if now.trim_ascii().is_empty() {
                return Ok(Some(now.to_vec()));
            }
            let page = json::Page::new(now.to_vec())?;
            let (page, _) = page.take_out("hooks", &is_our_entry)?;
            Ok(Some(page.into_text()))
        }
    }
}
