//! What a tool call can do to files: a patch whose text is known, a shell command, another tool, or nothing.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::super::super::json::{Broken, Value, string};
use super::super::super::patch::{Section, SectionKind, envelope};
use super::super::text;
use super::script;
use crate::model::edit::GapKind;

/// Whether a patch was applied, as the result of its call tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was.
    Done,
    /// It was not.
    Failed,
    /// That cannot be told.
    Unclear,
}

/// What a call can do.
pub(super) struct Effects {
    /// Patch texts, each with the folder that its paths are relative to.
    pub(super) patches: Vec<(Vec<Section>, Option<PathBuf>)>,
    shell: Vec<String>,
    other: Vec<String>,
    /// What a result means that only says that the call ended.
    pub(super) quiet: Outcome,
    /// A script of several calls, whose events have ids of their own.
    pub(super) nested: bool,
}

impl Effects {
    fn none() -> Self {
        Self {
            patches: Vec::new(),
            shell: Vec::new(),
            other: Vec::new(),
            quiet: Outcome::Unclear,
            nested: false,
        }
    }

    fn shell(command: &str) -> Self {
        Self {
            shell: vec![first_line(command)],
            ..Self::none()
        }
    }

    fn other(name: &str) -> Self {
        Self {
            other: vec![name.to_owned()],
            ..Self::none()
        }
    }

    /// A patch text; one that is not understood may have done anything.
    fn patch(patch: &[u8], base: Option<PathBuf>) -> Self {
        match envelope(patch).map(|s| certain(s, patch)) {
            Some(sections) => Self {
                patches: vec![(sections, base)],
                ..Self::none()
            },
            None => Self::other("apply_patch: its text is not understood"),
        }
    }

    /// What nobody recorded.
    pub(super) fn gaps(&self) -> Vec<(GapKind, String)> {
        let shell = self.shell.iter().map(|s| (GapKind::Shell, s.clone()));
        let other = self.other.iter().map(|s| (GapKind::Tool, s.clone()));
        shell.chain(other).collect()
    }
}

/// Whether the CR of a CRLF in a patch text reached the file differs between versions, so an added file's content is then
/// left open.
fn certain(mut sections: Vec<Section>, patch: &[u8]) -> Vec<Section> {
    if patch.contains(&b'\r') {
        for section in &mut sections {
            if matches!(section.kind, SectionKind::Add(_)) {
                section.kind = SectionKind::Update(None);
            }
        }
    }
    sections
}

/// A command is shown up to here, in bytes.
const LONGEST_DETAIL: usize = 2000;

/// Tools that change no file of the workspace.
const HARMLESS: [&str; 16] = [
    "update_plan",
    "view_image",
    "request_user_input",
    "request_permissions",
    "read_file",
    "list_dir",
    "grep_files",
    "web_search",
    "tool_search",
    "list_mcp_resources",
    "list_mcp_resource_templates",
    "read_mcp_resource",
    "wait",
    "wait_agent",
    "list_agents",
    "close_agent",
];

/// What a call can do. A tool that is not known may change files.
pub(super) fn effects(payload: &Value<'_>, cwd: Option<&Path>) -> Effects {
    let cwd = cwd.map(Path::to_path_buf);
    match text(payload, "type").unwrap_or_default().as_str() {
        "custom_tool_call" => custom(payload, cwd),
        "function_call" => function(payload, cwd),
        "local_shell_call" => {
            let action = payload.get("action");
            action.map_or_else(|| Effects::shell("shell"), |a| command(&a, cwd))
        }
        _ => Effects::none(),
    }
}

fn custom(payload: &Value<'_>, cwd: Option<PathBuf>) -> Effects {
    let name = text(payload, "name").unwrap_or_default();
    let input = payload
        .get("input")
        .and_then(|i| string(i.raw(), Broken::Refuse));
    match (name.as_str(), input) {
        ("apply_patch", Some(patch)) => Effects::patch(&patch, cwd),
        ("exec", Some(js)) => code_mode(&String::from_utf8_lossy(&js), cwd.as_deref()),
        (n, _) if HARMLESS.contains(&n) => Effects::none(),
        (n, _) => Effects::other(n),
    }
}

fn function(payload: &Value<'_>, cwd: Option<PathBuf>) -> Effects {
    let name = text(payload, "name").unwrap_or_default();
    let arguments = payload
        .get("arguments")
        .and_then(|a| string(a.raw(), Broken::Refuse))
        .unwrap_or_default();
    let arguments = Value::of(&arguments);
    match name.as_str() {
        "apply_patch" => {
            let patch = arguments.and_then(|a| a.get("patch").or_else(|| a.get("input")));
            let patch = patch.and_then(|p| string(p.raw(), Broken::Refuse));
            Effects::patch(&patch.unwrap_or_default(), cwd)
        }
        "shell" | "shell_command" | "exec_command" | "container.exec" | "local_shell"
        | "unified_exec" => arguments.map_or_else(|| Effects::shell(&name), |a| command(&a, cwd)),
        "write_stdin" => {
            let typed = arguments
                .and_then(|a| text(&a, "chars"))
                .unwrap_or_default();
            if typed.is_empty() {
                Effects::none()
            } else {
                Effects::shell(&typed)
            }
        }
        n if HARMLESS.contains(&n) => Effects::none(),
        n => match text(payload, "namespace") {
            Some(space) if space != "functions" => Effects::other(&format!("{space}.{n}")),
            _ => Effects::other(n),
        },
    }
}

/// A shell command: `command` as an array or a text, or `cmd`.
fn command(arguments: &Value<'_>, cwd: Option<PathBuf>) -> Effects {
    let folder = ["workdir", "working_directory"]
        .iter()
        .find_map(|name| text(arguments, name));
    let base = match (cwd, folder) {
        (Some(cwd), Some(folder)) => Some(cwd.join(folder)),
        (None, Some(folder)) => Some(PathBuf::from(folder)),
        (cwd, None) => cwd,
    };
    let given = arguments.get("command").or_else(|| arguments.get("cmd"));
    let Some(given) = given else {
        return Effects::shell("shell");
    };
    if let Some(line) = given.text() {
        return shell_script(&line, base);
    }
    let words: Vec<String> = given
        .items()
        .filter_map(|w| Some(w.text()?.into_owned()))
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["apply_patch" | "applypatch", patch] => Effects::patch(patch.as_bytes(), base),
        [shell, flag, line] if flag.starts_with('-') && script::is_shell(shell) => {
            shell_script(line, base)
        }
        words => Effects::shell(&words.join(" ")),
    }
}

fn shell_script(line: &str, base: Option<PathBuf>) -> Effects {
    let Some(heredoc) = script::heredoc(line) else {
        return Effects::shell(line);
    };
    let base = match (heredoc.folder, base) {
        (Some(folder), Some(base)) => Some(base.join(folder)),
        (Some(folder), None) => Some(PathBuf::from(folder)),
        (None, base) => base,
    };
    Effects::patch(heredoc.patch.as_bytes(), base)
}

/// Code mode: JavaScript that calls the tools.
fn code_mode(js: &str, cwd: Option<&Path>) -> Effects {
    let mut effects = Effects {
        nested: true,
        // A script that runs to its end threw nothing, unless it catches what is thrown.
        quiet: if js.contains("catch") {
            Outcome::Unclear
        } else {
            Outcome::Done
        },
        ..Effects::none()
    };
    let tools = script::tools(js);
    let patched = tools.iter().filter(|t| **t == "apply_patch").count();
    let texts = script::patch_texts(js);
    let read: Vec<_> = texts
        .iter()
        .filter_map(|t| Some(certain(envelope(t.as_bytes())?, t.as_bytes())))
        .collect();
    if read.len() == patched {
        effects.patches = read
            .into_iter()
            .map(|s| (s, cwd.map(Path::to_path_buf)))
            .collect();
    } else {
        effects
            .other
            .push("apply_patch: its text is made by a script".to_owned());
    }
    // `tools` handed on under another name: what is called with it is not seen.
    if js.contains("= tools") || js.contains("tools[") {
        effects.other.push(first_line(js));
    }
    for tool in tools {
        match tool {
            "apply_patch" => {}
            "exec_command" | "shell" | "shell_command" | "write_stdin" => {
                effects.shell.push(first_line(
                    &script::command(js).unwrap_or_else(|| js.to_owned()),
                ));
            }
            t if HARMLESS.contains(&t) => {}
            t => effects.other.push(t.to_owned()),
        }
    }
    effects
}

/// Whether patch texts of one call name a path more than once.
pub(super) fn names_twice(patches: &[(Vec<Section>, Option<PathBuf>)]) -> bool {
    let mut seen = HashSet::new();
    let paths = patches
        .iter()
        .flat_map(|(sections, _)| sections)
        .flat_map(|s| {
            let to = match &s.kind {
                SectionKind::Update(to) => to.as_ref(),
                _ => None,
            };
            [Some(&s.path), to].into_iter().flatten()
        });
    // `./a` and `a` are one path: components leave the dot out.
    !paths
        .map(|p| {
            p.components()
                .filter(|c| c.as_os_str() != ".")
                .collect::<PathBuf>()
        })
        .all(|p| seen.insert(p))
}

/// Whether a result, of which the first bytes are there, says that the command was never started.
pub(super) fn never_ran(start: &[u8]) -> bool {
    start.starts_with(b"\"exec_command failed: CreateProcess { message: \\\"Rejected(")
}

/// What the result of a patch says.
pub(super) fn outcome(output: &Value<'_>, quiet: Outcome) -> Outcome {
    if let Some(success) = output.get("success") {
        return if success.is_true() {
            Outcome::Done
        } else {
            Outcome::Failed
        };
    }
    let said = match output.text() {
        Some(text) => text.into_owned(),
        None if output.is_array() => output.items().filter_map(|p| text(&p, "text")).collect(),
        None => text(output, "content").unwrap_or_default(),
    };
    if let Some(code) = exit_code(&said) {
        return if code == "0" {
            Outcome::Done
        } else {
            Outcome::Failed
        };
    }
    let said = said.trim_start();
    if said.starts_with("Success. Updated the following files") {
        return Outcome::Done;
    }
    if said.starts_with("Script completed") {
        return quiet;
    }
    let failed = [
        "apply_patch verification failed",
        "exec_command failed",
        "aborted",
        "patch rejected",
    ];
    if failed.iter().any(|f| said.starts_with(f)) {
        return Outcome::Failed;
    }
    Outcome::Unclear
}

/// The exit code of a result: in its JSON, or in its first lines.
fn exit_code(said: &str) -> Option<String> {
    if let Some(json) = Value::of(said.as_bytes()).filter(Value::is_object) {
        let code = json.get("metadata")?.get("exit_code")?;
        return Some(String::from_utf8_lossy(code.raw()).into_owned());
    }
    let head = said.lines().take(4);
    let mut codes = head.filter_map(|l| {
        l.strip_prefix("Exit code: ")
            .or_else(|| l.strip_prefix("Process exited with code "))
    });
    codes.next().map(|c| c.trim().to_owned())
}

/// The first line of a command, up to a length that can be shown: some are megabytes long.
pub(super) fn first_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or("");
    line.char_indices()
        .take_while(|(at, c)| at + c.len_utf8() <= LONGEST_DETAIL)
        .map(|(_, c)| c)
        .collect()
}
