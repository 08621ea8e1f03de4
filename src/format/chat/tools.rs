//! What the arguments of an edit tool say, whatever the agent calls them: agents copy each other's tools, so a handful of
//! names covers all of them (`formats/agents.md` §2.1).

use std::path::PathBuf;

use super::super::json::Value;
use super::super::patch::{SectionKind, envelope};
use super::super::record::{Occurs, Place, text};
use crate::model::edit::{
    Change, Content, Edit, Fidelity, Payload, Reason, RecordedPath, Source, State,
};

/// What a tool does to files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Tool {
    /// Replaces one text by another.
    Replace,
    /// Writes a whole file, whatever was there.
    Write,
    /// Adds to the end of a file, or changes it in another way that is not recorded in full.
    Change,
    /// Removes a file.
    Delete,
    /// Applies a patch text.
    Patch,
    /// Runs a command.
    Shell,
    /// May change files in ways that nothing records.
    Other,
}

/// How the arguments are called: members, or pointers into the arguments. The first that is there counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in super::super) struct Names {
    /// The path of the file.
    pub(in super::super) path: &'static [&'static str],
    /// The text that is replaced.
    pub(in super::super) old: &'static [&'static str],
    /// The text that it is replaced by.
    pub(in super::super) new: &'static [&'static str],
    /// `true` where every place is replaced.
    pub(in super::super) all: &'static [&'static str],
    /// A list of replacements.
    pub(in super::super) list: &'static [&'static str],
    /// The whole of a written file.
    pub(in super::super) content: &'static [&'static str],
    /// The patch text.
    pub(in super::super) patch: &'static [&'static str],
    /// What a shell runs.
    pub(in super::super) command: &'static [&'static str],
}

/// What most agents call them.
pub(in super::super) const COMMON: Names = Names {
    path: &[
        "file_path",
        "path",
        "filePath",
        "target_file",
        "filename",
        "TargetFile",
    ],
    old: &["old_string", "old_str", "oldText", "old", "oldString"],
    new: &["new_string", "new_str", "newText", "new", "newString"],
    all: &["replace_all", "replaceAll", "all"],
    list: &["edits", "edit"],
    content: &["content", "contents", "file_text", "new_content", "text"],
    patch: &["input", "patch", "patchText", "command"],
    command: &["command", "cmd", "input"],
};

fn first<'v>(input: &Value<'v>, names: &[&'static str]) -> Option<(&'static str, Value<'v>)> {
    names.iter().find_map(|n| Some((*n, input.find(n)?)))
}

/// The command of a shell call.
pub(super) fn command(input: &Value<'_>, names: &Names) -> Option<String> {
    let (_, value) = first(input, names.command)?;
    if value.is_string() {
        return value.text().map(std::borrow::Cow::into_owned);
    }
    let words: Vec<_> = value
        .items()
        .filter_map(|w| w.text().map(std::borrow::Cow::into_owned))
        .collect();
    Some(words.join(" "))
}

/// The edits that a call asks for; none when its arguments are not understood.
pub(super) fn asked(tool: Tool, input: &Value<'_>, names: &Names, place: Place) -> Vec<Edit> {
    if tool == Tool::Patch {
        let text = first(input, names.patch).and_then(|(_, v)| v.bytes());
        return text.map(|t| of_patch(&t)).unwrap_or_default();
    }
    let Some(path) = names.path.iter().find_map(|n| text(input, n)) else {
        return Vec::new();
    };
    let unknown = State::Unknown(Reason::NotRecorded);
    let mut edit = opaque(PathBuf::from(path));
    match tool {
        Tool::Replace => edit.change = replace(input, names, place),
        // Some write at the end of the file when they are told to.
        Tool::Write if input.get("mode").is_some_and(|m| m.is_str("append")) => {}
        Tool::Write => {
            let content =
                first(input, names.content).and_then(|(name, _)| place.written(input, name));
            edit.before = State::Unknown(Reason::MaybeOverwritten);
            edit.after = content.unwrap_or(unknown);
        }
        Tool::Delete => edit.after = State::Absent,
        Tool::Change | Tool::Patch | Tool::Shell | Tool::Other => {}
    }
    vec![edit]
}

/// An edit of which only the path is known.
pub(super) fn opaque(path: PathBuf) -> Edit {
    Edit {
        turn: 0,
        call: None,
        path: RecordedPath::new(path),
        before: State::Unknown(Reason::NotRecorded),
        source: Source::Reversed,
        mode: None,
        change: Change::Opaque,
        after: State::Unknown(Reason::NotRecorded),
        during: None,
    }
}

/// One replacement, or a list of them in `edits` or `edit`.
fn replace(input: &Value<'_>, names: &Names, place: Place) -> Change {
    let list = names.list.iter().find_map(|n| input.find(n));
    match list {
        Some(list) if list.is_array() => {
            let all: Vec<Change> = list.items().map(|e| one(&e, names, place)).collect();
            let unclear = all.is_empty() || all.contains(&Change::Opaque);
            if unclear {
                Change::Opaque
            } else {
                Change::Several(all)
            }
        }
        Some(edit) if edit.is_object() => one(&edit, names, place),
        _ => one(input, names, place),
    }
}

fn one(input: &Value<'_>, names: &Names, place: Place) -> Change {
    let (Some((old, _)), Some((new, _))) = (first(input, names.old), first(input, names.new))
    else {
        return Change::Opaque;
    };
    let mut told = names.all.iter().filter_map(|n| input.find(n));
    let all = told.any(|v| v.is_true());
    let occurs = if all {
        Occurs::Everywhere
    } else {
        Occurs::Once
    };
    place.replace(input, [old, new], occurs)
}

/// The edits of a patch text. Its hunks have no line numbers, so they cannot be undone for certain.
pub(super) fn of_patch(text: &[u8]) -> Vec<Edit> {
    let mut out = Vec::new();
    for section in envelope(text).unwrap_or_default() {
        let mut edit = opaque(section.path);
        match section.kind {
            SectionKind::Add(content) => {
                edit.before = State::Unknown(Reason::MaybeOverwritten);
                edit.after = State::Held(Content {
                    payload: Payload::Bytes(content),
                    fidelity: Fidelity::Exact,
                    sha256: None,
                });
            }
            SectionKind::Delete => edit.after = State::Absent,
            SectionKind::Update(None) => {}
            SectionKind::Update(Some(to)) => {
                out.push(opaque(to));
                edit.after = State::Absent;
            }
        }
        out.push(edit);
    }
    out
}
