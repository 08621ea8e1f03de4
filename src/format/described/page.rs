//! A description of an agent as the user writes it: `agents/<name>.toml` in the config folder, checked before it is used.
//! `rewind-formats(5)` is the manual of this file.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::super::chat::Tool;
use super::super::json::Value;

/// Everything that a description may say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Page {
    /// The agent's name, as people write it.
    pub(super) title: Option<String>,
    /// Where its session files lie: paths with `*`, `?`, `[…]`, `**`, from `~`, `$VARIABLE` or `/` on.
    pub(super) sessions: Vec<String>,
    /// Whether its conversations can be taken back.
    #[serde(default)]
    pub(super) rewind: Rewind,
    /// The command that goes on with a session; `{id}` stands for its id.
    pub(super) resume: Option<String>,
    /// Names of its process, by which it is seen to be at work.
    #[serde(default)]
    pub(super) processes: Vec<String>,
    /// When a record was written, in any record.
    pub(super) time: Option<String>,
    /// What one of the first records says, in a session of this agent and in no other file.
    pub(super) recognise: Test,
    /// What is known of the session.
    #[serde(default)]
    pub(super) session: Known,
    /// The records that are prompts.
    pub(super) prompt: Prompt,
    /// The records that are calls of tools.
    pub(super) call: Option<Call>,
    /// The records that tell how a call ended.
    pub(super) result: Option<Ended>,
    /// Which tools do what to files; those that are not named only look.
    pub(super) tools: Option<Tools>,
}

/// How a conversation goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Rewind {
    /// The file ends before the turn.
    Cut,
    /// Only by a new file.
    Fork,
    /// Not at all.
    #[default]
    ReadOnly,
}

/// What is known of the session.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    /// Its id; without it the name of the file.
    pub(super) id: Option<String>,
    /// The workspace folder.
    pub(super) root: Option<String>,
}

/// The records that are prompts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Prompt {
    pub(super) when: Test,
    /// Those that are no prompts all the same.
    pub(super) unless: Option<Test>,
    pub(super) text: String,
    pub(super) id: Option<String>,
}

/// The records that are calls.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    pub(super) when: Test,
    /// The list of calls in the record; without it the record is the call.
    pub(super) each: Option<String>,
    /// From here on pointers begin at the call.
    pub(super) id: Option<String>,
    pub(super) tool: String,
    /// An object, or JSON text of one. From here on pointers begin in it.
    pub(super) arguments: Option<String>,
    pub(super) path: Option<String>,
    pub(super) old: Option<String>,
    pub(super) new: Option<String>,
    pub(super) all: Option<String>,
    pub(super) edits: Option<String>,
    pub(super) content: Option<String>,
    pub(super) patch: Option<String>,
    pub(super) command: Option<String>,
}

/// The records that tell how a call ended.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ended {
    pub(super) when: Test,
    pub(super) each: Option<String>,
    pub(super) id: String,
    /// What a failure says.
    pub(super) failed: Option<Test>,
}

/// Which tools do what to files.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Tools {
    replace: Vec<String>,
    write: Vec<String>,
    delete: Vec<String>,
    patch: Vec<String>,
    change: Vec<String>,
    shell: Vec<String>,
    other: Vec<String>,
}

impl Tools {
    pub(super) fn of(&self, name: &str) -> Option<Tool> {
        let all = [
            (&self.replace, Tool::Replace),
            (&self.write, Tool::Write),
            (&self.delete, Tool::Delete),
            (&self.patch, Tool::Patch),
            (&self.change, Tool::Change),
            (&self.shell, Tool::Shell),
            (&self.other, Tool::Other),
        ];
        let named = |list: &[String]| list.iter().any(|n| n == name);
        all.iter().find(|(l, _)| named(l)).map(|(_, tool)| *tool)
    }
}

/// Pointers and what must stand there: a text, a number, `true` or `false`, or a list of them of which one must.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Test(BTreeMap<String, Is>);

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Is {
    OneOf(Vec<Plain>),
    There { exists: bool },
    Just(Plain),
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Plain {
    Bool(bool),
    Whole(i64),
    Text(String),
}

impl Plain {
    fn fits(&self, value: &Value<'_>) -> bool {
        match self {
            Self::Bool(b) => value.raw() == b.to_string().as_bytes(),
            Self::Whole(n) => value.i64() == Some(*n),
            Self::Text(t) => value.is_str(t),
        }
    }
}

impl Test {
    pub(super) fn holds(&self, record: &Value<'_>) -> bool {
        self.0.iter().all(|(path, is)| {
            let value = record.find(path);
            match is {
                Is::There { exists } => value.is_some() == *exists,
                Is::Just(plain) => value.is_some_and(|v| plain.fits(&v)),
                Is::OneOf(all) => value.is_some_and(|v| all.iter().any(|p| p.fits(&v))),
            }
        })
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// Reads a description.
///
/// # Errors
/// What is wrong with it, and in which line where that is known.
pub(super) fn read(text: &str) -> Result<Page, String> {
    let page: Page = toml_edit::de::from_str(text).map_err(|e| {
        let line = e.span().map(|s| {
            let before = text.get(..s.start).unwrap_or_default();
            before.matches('\n').count() + 1
        });
        match line {
            Some(line) => format!("line {line}: {}", e.message().trim()),
            None => e.message().trim().to_owned(),
        }
    })?;
    page.check()?;
    Ok(page)
}

impl Page {
    fn check(&self) -> Result<(), String> {
        if self.sessions.is_empty() {
            return Err("`sessions` names no place".to_owned());
        }
        let rooted = |p: &&String| !p.starts_with(['~', '$', '/']);
        if let Some(place) = self.sessions.iter().find(rooted) {
            return Err(format!(
                "`sessions`: `{place}` begins with none of `~`, `$` and `/`"
            ));
        }
        if self.recognise.is_empty() || self.prompt.when.is_empty() {
            return Err(
                "`recognise` and `prompt.when` must say something: without it every file would fit"
                    .to_owned(),
            );
        }
        if self.resume.as_ref().is_some_and(|r| !r.contains("{id}")) {
            return Err("`resume` does not hold `{id}`".to_owned());
        }
        match self.pointers().find(|p| !p.starts_with('/')) {
            Some(odd) => Err(format!("`{odd}` is no pointer: one begins with `/`")),
            None => Ok(()),
        }
    }

    fn pointers(&self) -> impl Iterator<Item = &str> {
        let call = self.call.iter().flat_map(|c| {
            let said = [
                &c.each,
                &c.id,
                &c.arguments,
                &c.path,
                &c.old,
                &c.new,
                &c.all,
                &c.edits,
                &c.content,
                &c.patch,
                &c.command,
            ];
            let said = said.into_iter().filter_map(Option::as_deref);
            said.chain([c.tool.as_str()]).chain(c.when.paths())
        });
        let result = self.result.iter().flat_map(|r| {
            let failed = r.failed.iter().flat_map(Test::paths);
            let said = r.each.as_deref().into_iter().chain([r.id.as_str()]);
            said.chain(r.when.paths()).chain(failed)
        });
        let unless = self.prompt.unless.iter().flat_map(Test::paths);
        let said = [
            &self.time,
            &self.session.id,
            &self.session.root,
            &self.prompt.id,
        ];
        said.into_iter()
            .filter_map(Option::as_deref)
            .chain([self.prompt.text.as_str()])
            .chain(self.recognise.paths())
            .chain(self.prompt.when.paths())
            .chain(unless)
            .chain(call)
            .chain(result)
    }
}
