//! Sessions that are a list of messages, one record a line: what their formats have in common. A format says which
//! record is a prompt of a person and which calls and results a record holds ([`Dialect`]); turns, edits and places to
//! end are found here.
//!
//! Does not cover trees of messages, logs of changes to messages, and files beside the list: those are formats of their
//! own.

mod blocks;
mod calls;
mod tools;

use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

pub(super) use blocks::{has_result, in_blocks, in_list};
pub(super) use calls::{calls, not_understood};
pub(super) use tools::{COMMON, Names, Tool};

use super::json::{Scan, Value};
use super::lines::{self, Visit, Wants};
use super::record::{self, text};
use super::{Head, Trouble};
use crate::model::session::{FileNo, Session, Span, Turn, TurnKind, Warnings};

/// How one format writes its records.
pub(super) trait Dialect: Sync {
    /// The prompt, where the record is one of a person.
    fn prompt(&self, record: &Value<'_>) -> Option<String>;

    /// The agent's id of the record.
    fn key(&self, record: &Value<'_>) -> Option<String>;

    /// When the record was written.
    fn at(&self, record: &Value<'_>) -> Option<DateTime<Utc>>;

    /// The calls and results of a record, in its order.
    fn actions(&self, record: &Value<'_>, take: &mut dyn FnMut(Action<'_>));

    /// What a tool of this name does to files; `None` for one that only looks.
    fn tool(&self, name: &str) -> Option<Tool>;

    /// How the arguments of edit tools are called.
    fn names(&self) -> &Names {
        &COMMON
    }

    /// Whether results are recorded. Without them it is not known of any call whether it was done.
    fn has_results(&self) -> bool {
        true
    }
}

/// What an assistant did, or was told of it.
pub(super) enum Action<'v> {
    /// It called a tool.
    Call {
        /// Its id.
        id: Option<String>,
        /// The tool.
        name: Cow<'v, str>,
        /// The arguments.
        input: Input<'v>,
    },
    /// A call ended.
    Result {
        /// The call's id.
        id: String,
        /// Whether it did what it was to do; `None` where the record does not tell.
        done: Option<bool>,
    },
}

/// The arguments of a call.
pub(super) enum Input<'v> {
    /// A value of the record.
    Value(Value<'v>),
    /// JSON text inside a string of the record.
    Text(Cow<'v, [u8]>),
}

impl<'v> Input<'v> {
    /// Arguments that are an object, or JSON text of one.
    pub(super) fn of(value: Value<'v>) -> Option<Self> {
        if value.is_object() {
            return Some(Self::Value(value));
        }
        value.bytes().map(Self::Text)
    }
}

/// What is known of a session before its turns are read.
pub(super) struct Known {
    pub(super) agent: &'static str,
    pub(super) id: String,
    pub(super) root: Option<PathBuf>,
}

/// Reads the turns.
///
/// # Errors
/// [`Trouble::Io`].
pub(super) fn read(path: &Path, dialect: &dyn Dialect, known: Known) -> Result<Session, Trouble> {
    let mut warnings = Warnings::default();
    let mut pass = Pass {
        dialect,
        turns: Vec::new(),
    };
    let end = lines::scan(path, lines::whole(FileNo(0)), &mut pass, &mut warnings)
        .map_err(Trouble::io(path))?;
    pass.end(end);
    let mut turns = pass.turns;
    for (no, turn) in (0..).zip(&mut turns) {
        turn.no = no;
    }
    record::apart(&mut turns);
    // A compressed file is marked by its own length, not by that of what it decodes to.
    let len = if path.extension().is_some_and(|e| e == "zst") {
        std::fs::metadata(path).map_err(Trouble::io(path))?.len()
    } else {
        end
    };
    Ok(Session {
        agent: known.agent,
        id: known.id,
        files: vec![path.to_path_buf()],
        root: known.root,
        turns,
        abandoned: 0,
        len,
        warnings,
    })
}

/// The first prompt of a head.
pub(super) fn first_prompt(head: &Head, dialect: &dyn Dialect) -> Option<String> {
    head.records().find_map(|r| dialect.prompt(&r))
}

/// Where the file may end before a turn: at the line that the turn begins.
///
/// # Errors
/// [`Trouble::Refused`] where no line begins there; [`Trouble::Io`].
pub(super) fn end_before(session: &Session, turn: u32) -> Result<u64, Trouble> {
    let refuse = |why: String| Err(Trouble::Refused { why });
    let Some(target) = session.turn(turn) else {
        return refuse(format!("the session has no turn {turn}"));
    };
    let path = session.path();
    let start = target.span.start;
    if let Some(before) = start.checked_sub(1) {
        let mut byte = [0];
        File::open(path)
            .and_then(|f| f.read_exact_at(&mut byte, before))
            .map_err(Trouble::io(path))?;
        if byte != [b'\n'] {
            return refuse(
                "the turn does not begin a line, so the file cannot end there".to_owned(),
            );
        }
    }
    Ok(start)
}

/// The text of a message: a string, or the text parts of a list.
pub(super) fn words(content: &Value<'_>) -> Option<String> {
    if content.is_string() {
        return content.text().map(Cow::into_owned);
    }
    let parts: Vec<String> = content
        .items()
        .filter(|p| p.get("type").is_none_or(|t| t.is_str("text")))
        .filter_map(|p| text(&p, "text"))
        .collect();
    (!parts.is_empty()).then(|| parts.join("\n"))
}

/// A time as agents write it: RFC 3339, seconds or milliseconds.
pub(super) fn time(value: &Value<'_>) -> Option<DateTime<Utc>> {
    if let Some(text) = value.text() {
        // Some write no offset; then it is the machine's own time, which UTC is nearest to.
        return super::time(&text).or_else(|| super::time(&format!("{text}Z")));
    }
    let number: f64 = std::str::from_utf8(value.raw()).ok()?.parse().ok()?;
    // From here on seconds would be in the year 5138.
    let seconds = if number > 1e11 { number / 1e3 } else { number };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a time out of range is none"
    )]
    let millis = (seconds * 1e3) as i64;
    DateTime::from_timestamp_millis(millis)
}

struct Pass<'d> {
    dialect: &'d dyn Dialect,
    turns: Vec<Turn>,
}

impl Pass<'_> {
    fn end(&mut self, at: u64) {
        if let Some(last) = self.turns.last_mut() {
            last.span.end = at;
        }
    }
}

impl Visit for Pass<'_> {
    fn starts(&self) -> &'static [&'static [u8]] {
        &[]
    }

    fn wants(&mut self, _head: &[u8]) -> Scan<Wants> {
        Ok(Wants::Whole)
    }

    fn take(&mut self, record: &[u8], at: u64) {
        let Some(record) = Value::of(record) else {
            return;
        };
        let Some(prompt) = self.dialect.prompt(&record) else {
            return;
        };
        self.end(at);
        self.turns.push(Turn {
            no: 0,
            key: self
                .dialect
                .key(&record)
                .filter(|k| !k.is_empty())
                .unwrap_or_else(|| format!("line-{at}")),
            prompt,
            at: self.dialect.at(&record),
            kind: TurnKind::Prompt,
            span: Span {
                file: FileNo(0),
                start: at,
                end: at,
            },
            line: at,
            interrupted: false,
            compacted: false,
        });
    }
}

/// What a format says that only reads.
///
/// # Errors
/// Always [`Trouble::Refused`].
pub(super) fn refuse<T>(why: &str) -> Result<T, Trouble> {
    Err(Trouble::Refused {
        why: why.to_owned(),
    })
}

/// The tools of agents that do not name theirs: what most of them are called.
pub(super) fn common_tool(name: &str) -> Option<Tool> {
    Some(match name {
        "edit" | "Edit" | "edit_file" | "str_replace" | "search_replace" | "replace"
        | "StrReplaceFile" | "MultiEdit" => Tool::Replace,
        "write" | "Write" | "write_file" | "create" | "create_file" | "WriteFile" => Tool::Write,
        "append" | "append_file" | "patch_file" => Tool::Change,
        "delete" | "delete_file" | "Delete" => Tool::Delete,
        "apply_patch" | "ApplyPatch" => Tool::Patch,
        "bash" | "Bash" | "shell" | "Shell" | "run_command" | "run_shell_command"
        | "run_terminal_cmd" | "execute_command" | "exec_command" | "terminal" => Tool::Shell,
        _ if name.starts_with("mcp_") => Tool::Other,
        _ => return None,
    })
}
