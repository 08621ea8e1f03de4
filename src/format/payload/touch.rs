//! Which files a call is about to change, by the tool's name and its arguments: agents copy each other's tools, so a few
//! names cover all of them, and what is not known but takes a path and a new content changes that file.

use std::path::PathBuf;

use super::super::json::Value;
use super::super::record::text;

/// What a call touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touch {
    /// It only looks.
    Nothing,
    /// These files, as the call names them.
    Files(Vec<PathBuf>),
    /// It runs a command, which may do anything; the files that a patch text in it names.
    Shell(String, Vec<PathBuf>),
    /// It may change files that it does not name.
    Opaque(String),
}

/// Arguments that name a file.
const PATHS: [&str; 12] = [
    "file_path",
    "path",
    "filePath",
    "absolute_path",
    "target_file",
    "targetFile",
    "TargetFile",
    "filename",
    "file",
    "notebook_path",
    "relative_workspace_path",
    "uri",
];

/// Arguments that name both ends of a move.
const ENDS: [&str; 12] = [
    "source",
    "destination",
    "source_path",
    "destination_path",
    "old_path",
    "new_path",
    "from",
    "to",
    "src",
    "dst",
    "dest",
    "new_file_path",
];

/// Arguments that only a change has.
const CHANGES: [&str; 18] = [
    "content",
    "contents",
    "file_text",
    "new_content",
    "newContent",
    "old_string",
    "new_string",
    "old_str",
    "new_str",
    "oldString",
    "newString",
    "oldText",
    "newText",
    "edits",
    "edit",
    "insert_text",
    "new_source",
    "diff",
];

/// Arguments that may hold a patch text.
const PATCHES: [&str; 6] = ["input", "patch", "patchText", "command", "content", "diff"];

/// The kind of a tool, as far as its name tells.
enum Kind {
    Shell,
    Looks,
    Changes,
    Unknown,
}

/// What a call of this tool touches. `of` holds the tool's input, as an object or as JSON text.
pub(super) fn of(tool: &str, of: &Value<'_>) -> Touch {
    let names = [
        "tool_input",
        "toolInput",
        "toolArgs",
        "tool_args",
        "parameters",
        "arguments",
        "args",
    ];
    let Some(input) = names.iter().find_map(|n| of.get(n)) else {
        return told(tool, None, Vec::new());
    };
    if input.is_object() {
        return told(tool, Some(&input), Vec::new());
    }
    let inside = input.bytes().unwrap_or_default();
    let lead = inside
        .iter()
        .take_while(|b| b.is_ascii_whitespace())
        .count();
    match inside
        .get(lead..)
        .and_then(Value::of)
        .filter(Value::is_object)
    {
        Some(object) => told(tool, Some(&object), Vec::new()),
        // The input may be the patch text itself.
        None => told(tool, None, patched(&inside)),
    }
}

fn told(tool: &str, input: Option<&Value<'_>>, mut files: Vec<PathBuf>) -> Touch {
    let kind = kind(tool);
    if let Some(input) = input {
        for name in PATCHES {
            if let Some(patch) = input.get(name).and_then(|p| p.bytes()) {
                files.extend(patched(&patch));
            }
        }
    }
    if matches!(kind, Kind::Shell) {
        let command = input.map(command).unwrap_or_default();
        return Touch::Shell(command, files);
    }
    let Some(input) = input else {
        return if files.is_empty() && !matches!(kind, Kind::Looks) {
            Touch::Opaque(tool.to_owned())
        } else {
            some(files)
        };
    };
    // One tool of several agents reads and writes, and says which.
    let says = text(input, "command").unwrap_or_default();
    let looks = matches!(says.as_str(), "view" | "read");
    let changes = CHANGES.iter().any(|n| input.member(n).is_some());
    match kind {
        Kind::Looks => return Touch::Nothing,
        Kind::Unknown | Kind::Changes if looks => return Touch::Nothing,
        Kind::Unknown if !changes && files.is_empty() => {
            let foreign = tool.starts_with("mcp_") || tool.contains("__");
            return if foreign {
                Touch::Opaque(tool.to_owned())
            } else {
                Touch::Nothing
            };
        }
        _ => {}
    }
    files.extend(named(input));
    if files.is_empty() {
        return Touch::Opaque(tool.to_owned());
    }
    some(files)
}

fn some(mut files: Vec<PathBuf>) -> Touch {
    if files.is_empty() {
        return Touch::Nothing;
    }
    let mut seen = std::collections::HashSet::new();
    files.retain(|f| seen.insert(f.clone()));
    Touch::Files(files)
}

fn kind(tool: &str) -> Kind {
    let plain: String = tool
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    match plain.as_str() {
        "bash" | "shell" | "sh" | "powershell" | "terminal" | "exec" | "execute" | "localshell"
        | "execcommand" | "executecommand" | "executebash" | "runcommand" | "runshellcommand"
        | "runterminalcmd" | "runinterminal" | "shellcommand" | "writestdin" | "unifiedexec" => {
            Kind::Shell
        }
        "read" | "readfile" | "readmanyfiles" | "fsread" | "view" | "viewfile" | "cat" | "open"
        | "openfile" | "glob" | "grep" | "ls" | "list" | "listdirectory" | "listdir"
        | "listfiles" | "search" | "searchfiles" | "searchfilecontent" | "codebasesearch"
        | "grepsearch" | "filesearch" | "findfiles" | "webfetch" | "websearch" | "fetch"
        | "todowrite" | "todoread" | "think" | "task" | "agent" | "skill" | "readmediafile" => {
            Kind::Looks
        }
        "edit" | "multiedit" | "editfile" | "editnotebook" | "notebookedit" | "write"
        | "writefile" | "writetofile" | "fswrite" | "create" | "createfile" | "replace"
        | "replaceinfile" | "strreplace" | "strreplacefile" | "strreplaceeditor"
        | "searchreplace" | "insert" | "append" | "appendfile" | "delete" | "deletefile"
        | "removefile" | "move" | "movefile" | "rename" | "renamefile" | "copyfile"
        | "applypatch" | "applydiff" | "patch" | "patchfile" | "undoedit" => Kind::Changes,
        _ => Kind::Unknown,
    }
}

/// The files that arguments name, one by one or in lists.
fn named(input: &Value<'_>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for name in PATHS.iter().chain(&ENDS) {
        if let Some(path) = text(input, name).filter(|p| !p.is_empty()) {
            files.push(local(&path));
        }
    }
    let lists = ["files", "paths", "edits", "file_paths", "changes"];
    for item in lists
        .iter()
        .filter_map(|n| input.get(n))
        .flat_map(|l| l.items().collect::<Vec<_>>())
    {
        if let Some(path) = item.text().filter(|p| !p.is_empty()) {
            files.push(local(&path));
        } else if item.is_object() {
            let path = PATHS.iter().find_map(|n| text(&item, n));
            files.extend(path.filter(|p| !p.is_empty()).map(|p| local(&p)));
        }
    }
    files
}

/// A path that may be written as an address of this machine.
fn local(path: &str) -> PathBuf {
    PathBuf::from(path.strip_prefix("file://").unwrap_or(path))
}

fn command(input: &Value<'_>) -> String {
    let value = ["command", "cmd", "script", "input", "chars"]
        .iter()
        .find_map(|n| input.get(n));
    match value {
        Some(v) if v.is_array() => {
            let words: Vec<_> = v.items().filter_map(|w| w.text()).collect();
            words.join(" ")
        }
        Some(v) => v.text().unwrap_or_default().into_owned(),
        None => String::new(),
    }
}

/// The files that a patch text names; none for another text.
fn patched(bytes: &[u8]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    if memchr::memmem::find(bytes, b"*** Begin Patch").is_some() {
        for line in bytes.split(|b| *b == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let starts: [&[u8]; 4] = [
                b"*** Add File: ",
                b"*** Update File: ",
                b"*** Delete File: ",
                b"*** Move to: ",
            ];
            files.extend(
                starts
                    .iter()
                    .find_map(|s| line.strip_prefix(*s))
                    .map(of_bytes),
            );
        }
        return files;
    }
    if !(bytes.starts_with(b"--- ") || bytes.starts_with(b"diff ")) {
        return files;
    }
    for line in bytes.split(|b| *b == b'\n') {
        let Some(path) = line
            .strip_prefix(b"--- ")
            .or_else(|| line.strip_prefix(b"+++ "))
        else {
            continue;
        };
        let path = path.split(|b| *b == b'\t').next().unwrap_or(path);
        let path = path.strip_suffix(b"\r").unwrap_or(path);
        let bare = path
            .strip_prefix(b"a/")
            .or_else(|| path.strip_prefix(b"b/"));
        if path != b"/dev/null" && !path.is_empty() {
            files.push(of_bytes(bare.unwrap_or(path)));
        }
    }
    files
}

fn of_bytes(path: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(path.trim_ascii()))
}
