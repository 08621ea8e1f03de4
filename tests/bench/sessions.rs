//! How long `rewind sessions --all` takes over ten thousand sessions of several agents, beside `find`; and whether it
//! found them all. `cargo bench --bench sessions`; the variables stand in `CONTRIBUTING.md`.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on has failed")]
#![expect(clippy::format_push_string, reason = "a bench composes its input once")]
#![expect(clippy::print_stdout, reason = "its figures are what a bench is for")]

#[expect(dead_code, reason = "each bench uses a part of it")]
mod measure;

use std::path::{Path, PathBuf};

use measure::{Tool, binary, number, race, report, wanted};

/// Workspaces that the sessions are spread over.
const FOLDERS: usize = 200;

fn main() {
    if !wanted() {
        return;
    }
    let temp = tempfile::tempdir().unwrap();
    let chosen = std::env::var_os("REWIND_BENCH_DIR").map(PathBuf::from);
    let folder = chosen.unwrap_or_else(|| temp.path().to_path_buf());
    let sessions = number("REWIND_BENCH_SESSIONS").unwrap_or(10_000);
    for no in 0..sessions {
        write(&folder, no);
    }
    let rewind = PathBuf::from(binary());
    let rewind = rewind.to_str().unwrap();
    let json = Tool::new("rewind", &folder, &[rewind, "sessions", "--all", "--json"]);
    let told: serde_json::Value = serde_json::from_slice(&json.output(&folder).stdout).unwrap();
    let rows = told.get("sessions").and_then(|s| s.as_array()).unwrap();
    assert_eq!(rows.len(), sessions);
    let prompts = rows
        .iter()
        .filter(|r| r.get("prompt").is_some_and(serde_json::Value::is_string));
    assert_eq!(prompts.count(), sessions);
    let home = folder.to_str().unwrap();
    let tools = [
        Tool::new(
            "find",
            &folder,
            &["find", home, "-type", "f", "-size", "+0"],
        ),
        Tool::new(
            "find + head",
            &folder,
            &[
                "find", home, "-type", "f", "-exec", "head", "-c", "4096", "{}", "+",
            ],
        ),
        Tool::new(
            "rewind sessions --all",
            &folder,
            &[rewind, "sessions", "--all"],
        ),
        Tool::new(
            "rewind sessions",
            &folder,
            &[rewind, "sessions", "-w", "/home/dev/app7"],
        ),
    ];
    let times = race(&tools, |tool| tool.time(&folder));
    report(
        &format!("{sessions} sessions"),
        &folder,
        &times,
        &["find", "find + head"],
    );
    for tool in &tools {
        if let Some(peak) = tool.peak(&folder) {
            println!("{}: peak memory {peak} KB", tool.name);
        }
    }
}

/// A session of 20 to 60 KB: of Claude Code, Codex, pi or Copilot CLI.
fn write(home: &Path, no: usize) {
    let id = format!("{no:08x}-0000-4000-8000-{no:012x}");
    let root = format!("/home/dev/app{}", no % FOLDERS);
    let slug = root.replace('/', "-");
    let at = "2026-11-02T10:00:00.000Z";
    let (path, lines) = match no % 10 {
        0..6 => (
            format!(".claude/projects/{slug}/{id}.jsonl"),
            claude(&id, &root, at, no),
        ),
        6 | 7 => (
            format!(
                ".codex/sessions/2026/11/{:02}/rollout-2026-11-02T10-00-00-{id}.jsonl",
                1 + no % 28
            ),
            codex(&id, &root, at, no),
        ),
        8 => (
            format!(".pi/agent/sessions/-{slug}--/2026-11-02T10-00-00-000Z_{id}.jsonl"),
            pi(&id, &root, at, no),
        ),
        _ => (
            format!(".copilot/session-state/{id}/events.jsonl"),
            copilot(&id, &root, at, no),
        ),
    };
    let path = home.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, lines).unwrap();
}

/// Lines of code as they stand in a JSON string.
fn code(no: usize) -> String {
    "    let value = self.store.get(\\\"key\\\\n\\\")?; // größer → naïve\\n".repeat(100 + no % 200)
}

fn claude(id: &str, root: &str, at: &str, no: usize) -> String {
    let head = format!(
        "\"isSidechain\":false,\"cwd\":\"{root}\",\"sessionId\":\"{id}\",\"timestamp\":\"{at}\""
    );
    let mut text = format!(
        "{{\"parentUuid\":null,{head},\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"look at part {no}\"}},\"uuid\":\"a0\"}}\n"
    );
    for n in 1..4 {
        text.push_str(&format!(
            "{{\"parentUuid\":\"a{}\",{head},\"message\":{{\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":\"{}\"}}]}},\"type\":\"assistant\",\"uuid\":\"a{n}\"}}\n",
            n - 1,
            code(no)
        ));
    }
    text
}

fn codex(id: &str, root: &str, at: &str, no: usize) -> String {
    let mut text = format!(
        "{{\"timestamp\":\"{at}\",\"type\":\"session_meta\",\"payload\":{{\"id\":\"{id}\",\"timestamp\":\"{at}\",\"cwd\":\"{root}\",\"originator\":\"codex_cli_rs\",\"cli_version\":\"0.128.0\"}}}}\n"
    );
    text.push_str(&format!(
        "{{\"timestamp\":\"{at}\",\"type\":\"response_item\",\"payload\":{{\"type\":\"message\",\"role\":\"user\",\"content\":[{{\"type\":\"input_text\",\"text\":\"look at part {no}\"}}]}}}}\n\
         {{\"timestamp\":\"{at}\",\"type\":\"event_msg\",\"payload\":{{\"type\":\"user_message\",\"message\":\"look at part {no}\"}}}}\n"
    ));
    for _ in 1..4 {
        text.push_str(&format!(
            "{{\"timestamp\":\"{at}\",\"type\":\"response_item\",\"payload\":{{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{{\"type\":\"output_text\",\"text\":\"{}\"}}]}}}}\n",
            code(no)
        ));
    }
    text
}

fn pi(id: &str, root: &str, at: &str, no: usize) -> String {
    let mut text = format!(
        "{{\"type\":\"session\",\"version\":3,\"id\":\"{id}\",\"timestamp\":\"{at}\",\"cwd\":\"{root}\"}}\n\
         {{\"type\":\"message\",\"id\":\"m0\",\"parentId\":null,\"timestamp\":\"{at}\",\"message\":{{\"role\":\"user\",\"content\":[{{\"type\":\"text\",\"text\":\"look at part {no}\"}}]}}}}\n"
    );
    for n in 1..4 {
        text.push_str(&format!(
            "{{\"type\":\"message\",\"id\":\"m{n}\",\"parentId\":\"m{}\",\"timestamp\":\"{at}\",\"message\":{{\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":\"{}\"}}]}}}}\n",
            n - 1,
            code(no)
        ));
    }
    text
}

fn copilot(id: &str, root: &str, at: &str, no: usize) -> String {
    let event = |n: usize| format!("{n:08x}-0000-4000-8000-000000000000");
    let mut text = format!(
        "{{\"type\":\"session.start\",\"data\":{{\"sessionId\":\"{id}\",\"version\":1,\"producer\":\"copilot-agent\",\"copilotVersion\":\"1.0.65\",\"startTime\":\"{at}\",\"context\":{{\"cwd\":\"{root}\"}}}},\"id\":\"{}\",\"timestamp\":\"{at}\",\"parentId\":null}}\n\
         {{\"type\":\"user.message\",\"data\":{{\"content\":\"look at part {no}\",\"attachments\":[]}},\"id\":\"{}\",\"timestamp\":\"{at}\",\"parentId\":\"{}\"}}\n",
        event(0),
        event(1),
        event(0)
    );
    for n in 2..5 {
        text.push_str(&format!(
            "{{\"type\":\"assistant.message\",\"data\":{{\"content\":\"{}\"}},\"id\":\"{}\",\"timestamp\":\"{at}\",\"parentId\":\"{}\"}}\n",
            code(no),
            event(n),
            event(n - 1)
        ));
    }
    text
}
