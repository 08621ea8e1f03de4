//! The edit tools of Claude Code: what a call asked for and what its result says that it did. Shapes and their
//! meaning: `formats/claude-code.md` §5. Texts in the transcript have lost CRLF and byte order marks.

use super::super::json::Value;
use super::place::text;
use crate::model::edit::{
    Change, Content, Edit, Fidelity, Payload, Reason, RecordedPath, Source, State,
};
use crate::model::session::{FileNo, Span};

/// Which tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Edit,
    Write,
    MultiEdit,
    NotebookEdit,
}

/// A call that waits for its result.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    tool: Tool,
    file: FileNo,
    turn: u32,
    path: Option<String>,
    /// What the call asked for, for results that do not repeat it (sub-agents).
    change: Change,
    content: Option<Content>,
}

impl Pending {
    /// The call, when it is of an edit tool.
    pub(super) fn of(
        name: &str,
        block: &Value<'_>,
        file: FileNo,
        at: u64,
        turn: u32,
    ) -> Option<Self> {
        let tool = match name {
            "Edit" => Tool::Edit,
            "Write" => Tool::Write,
            "MultiEdit" => Tool::MultiEdit,
            "NotebookEdit" => Tool::NotebookEdit,
            _ => return None,
        };
        let input = block.get("input")?;
        let place = Place { file, at };
        let change = match tool {
            Tool::Edit => place.replace(&input),
            Tool::MultiEdit => input.get("edits").map_or(Change::Opaque, |e| {
                Change::Several(e.items().map(|i| place.replace(&i)).collect())
            }),
            Tool::Write | Tool::NotebookEdit => Change::Opaque,
        };
        Some(Self {
            tool,
            file,
            turn,
            path: text(&input, "file_path").or_else(|| text(&input, "notebook_path")),
            change,
            content: (tool == Tool::Write)
                .then(|| place.content(&input, "content"))
                .flatten(),
        })
    }
}

/// Where a record lies, for naming values inside it.
#[derive(Debug, Clone, Copy)]
struct Place {
    file: FileNo,
    at: u64,
}

impl Place {
    /// A string member, as a text in the file.
    fn content(self, of: &Value<'_>, name: &str) -> Option<Content> {
        let value = of.get(name).filter(Value::is_string)?;
        Some(Content {
            payload: Payload::Token(Span {
                file: self.file,
                start: self.at + value.start as u64,
                end: self.at + value.end as u64,
            }),
            fidelity: Fidelity::Text,
            sha256: None,
        })
    }

    fn replace(self, of: &Value<'_>) -> Change {
        let pair = |old, new| Some((self.content(of, old)?, self.content(of, new)?));
        let all = |name| of.get(name).is_some_and(|v| v.is_true());
        match pair("old_string", "new_string").or_else(|| pair("oldString", "newString")) {
            Some((old, new)) => Change::Replace {
                old,
                new,
                all: all("replace_all") || all("replaceAll"),
            },
            None => Change::Opaque,
        }
    }
}

/// The edit that a result tells of; `None` when nothing was changed on disk.
pub(super) fn edit_of(
    pending: &Pending,
    record: &Value<'_>,
    block: &Value<'_>,
    at: u64,
) -> Option<Edit> {
    if block.get("is_error").is_some_and(|v| v.is_true()) {
        return None;
    }
    let place = Place {
        file: pending.file,
        at,
    };
    let mut edit = Edit {
        turn: pending.turn,
        call: None,
        path: RecordedPath::new(pending.path.clone().unwrap_or_default()),
        before: State::Unknown(Reason::NotRecorded),
        source: Source::Transcript,
        mode: None,
        change: pending.change.clone(),
        after: pending
            .content
            .clone()
            .map_or(State::Unknown(Reason::NotRecorded), State::Held),
        during: None,
    };
    match record.get("toolUseResult") {
        Some(result) if result.is_object() => told(&mut edit, pending, &result, place)?,
        // A plain string is an error message.
        Some(_) => return None,
        None => untold(&mut edit, pending, block)?,
    }
    (!edit.path.path.as_os_str().is_empty()).then_some(edit)
}

/// A result with `toolUseResult`.
fn told(edit: &mut Edit, pending: &Pending, result: &Value<'_>, place: Place) -> Option<()> {
    let flag = |name| result.get(name).is_some_and(|v| v.is_true());
    if flag("staged") || text(result, "error").is_some_and(|e| !e.is_empty()) {
        return None;
    }
    let path = text(result, "filePath").or_else(|| text(result, "notebook_path"));
    if let Some(path) = path {
        edit.path = RecordedPath::new(path);
    }
    let original = ["originalFile", "original_file", "originalFileContents"]
        .iter()
        .find_map(|n| place.content(result, n));
    match (pending.tool, original) {
        (Tool::Write, _) if text(result, "type").as_deref() == Some("create") => {
            edit.before = State::Absent;
        }
        (_, Some(content)) => edit.before = State::Held(content),
        // `null` with an update means that it was too large to be recorded, never that it did not exist.
        (_, None) => edit.before = State::Unknown(Reason::NotRecorded),
    }
    match pending.tool {
        Tool::Write => edit.after = held(place.content(result, "content")),
        Tool::NotebookEdit => edit.after = held(place.content(result, "updated_file")),
        Tool::Edit | Tool::MultiEdit => edit.change = change(edit, result, place),
    }
    if flag("memdirStamped") {
        edit.after = State::Unknown(Reason::NotRecorded);
        edit.change = Change::Opaque;
    }
    Some(())
}

fn held(content: Option<Content>) -> State {
    content.map_or(State::Unknown(Reason::NotRecorded), State::Held)
}

/// What was asked for, and the patch of what was done: with `userModified` only the patch is right.
fn change(edit: &Edit, result: &Value<'_>, place: Place) -> Change {
    let asked = match place.replace(result) {
        Change::Opaque => edit.change.clone(),
        told => told,
    };
    let patch = result
        .get("structuredPatch")
        .and_then(|p| unified(&p))
        .map(|bytes| {
            Change::Hunks(Content {
                payload: Payload::Bytes(bytes),
                fidelity: Fidelity::Text,
                sha256: None,
            })
        });
    let modified = result.get("userModified").is_some_and(|v| v.is_true());
    match (patch, modified) {
        (Some(patch), true) => patch,
        (None, true) => Change::Opaque,
        (Some(patch), false) if matches!(edit.before, State::Unknown(_)) => {
            Change::AnyOf(vec![asked, patch])
        }
        (_, false) => asked,
    }
}

/// `structuredPatch` as unified diff text; `None` when it is empty.
fn unified(patch: &Value<'_>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for hunk in patch.items() {
        let n = |name| hunk.get(name).and_then(|v| v.u64()).unwrap_or(0);
        out.extend_from_slice(
            format!(
                "@@ -{},{} +{},{} @@\n",
                n("oldStart"),
                n("oldLines"),
                n("newStart"),
                n("newLines")
            )
            .as_bytes(),
        );
        for line in hunk.get("lines").iter().flat_map(Value::items) {
            out.extend_from_slice(&line.bytes()?);
            out.push(b'\n');
        }
    }
    (!out.is_empty()).then_some(out)
}

/// A result without `toolUseResult`, as in the transcripts of sub-agents: its text is the only record
/// (`corpus/claude/subagent`).
fn untold(edit: &mut Edit, pending: &Pending, block: &Value<'_>) -> Option<()> {
    let said = block.get("content").and_then(|c| said(&c))?;
    if pending.tool == Tool::Write && said.starts_with("File created successfully at:") {
        edit.before = State::Absent;
    } else if said.starts_with("<tool_use_error>") || said.starts_with("Error") {
        return None;
    }
    Some(())
}

fn said(content: &Value<'_>) -> Option<String> {
    if content.is_string() {
        return content.text().map(std::borrow::Cow::into_owned);
    }
    let first = content.items().next()?;
    text(&first, "text")
}
