//! Whose file it is: by its content, and never by a guess. All fixtures and all recorded sessions, and files that look
//! like sessions and are none.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use rewind::env::Env;
use rewind::format::{self, Format, Head};

use crate::env::{TestEnv, shared};

fn told(file: &Path) -> Option<&'static str> {
    let env = Env {
        config: None,
        ..Env::of_process().unwrap()
    };
    format::detect(&Head::read(file).unwrap(), &env).map(Format::agent)
}

/// All files below a folder with one of these ends.
fn files(folder: &Path, ends: &[&str]) -> Vec<PathBuf> {
    let (mut out, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|e| ends.iter().any(|n| e == *n))
            {
                out.push(path);
            }
        }
    }
    out.sort();
    out
}

#[test]
fn every_recorded_file_is_of_its_agent_or_of_nobody() {
    let Some(shared) = shared() else { return };
    let corpus = shared.join("corpus");
    let mut table: BTreeMap<(String, Option<&str>), usize> = BTreeMap::new();
    for file in files(&corpus, &["jsonl", "json"]) {
        let below = file.strip_prefix(&corpus).unwrap();
        let whose = below.iter().next().unwrap().to_str().unwrap().to_owned();
        let told = told(&file);
        // Recorded hook calls, indexes and side files are no sessions.
        assert!(
            told.is_none_or(|t| t == whose),
            "{}: {told:?}",
            below.display()
        );
        *table.entry((whose, told)).or_default() += 1;
    }
    for agent in ["claude", "codex", "copilot", "gemini", "kimi", "pi", "qwen"] {
        let key = (agent.to_owned(), Some(agent));
        assert!(table.get(&key).is_some_and(|n| *n >= 2), "{table:?}");
    }
    let mut out = std::io::stderr();
    for ((whose, told), n) in table {
        let told = told.unwrap_or("unknown");
        // The table is for reading; nothing depends on the line being seen.
        let _ = writeln!(out, "{n} files below {whose} are of {told}");
    }
}

#[test]
fn every_session_of_the_corpus_is_told() {
    let Some(shared) = shared() else { return };
    let sessions = |p: &PathBuf| {
        let name = p.to_str().unwrap();
        !name.contains("/corpus/hooks/") && !name.ends_with("session_index.jsonl")
    };
    let all = files(&shared.join("corpus"), &["jsonl"]);
    let unknown: Vec<_> = all
        .iter()
        .filter(|p| sessions(p) && told(p).is_none())
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn a_side_file_of_a_fixture_is_no_session() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for file in files(&fixtures, &["json", "toml", "md"]) {
        let legacy = file.ends_with("session-2025-08-01T09-00-77aa0000.json");
        let captured = file.ends_with("current.json");
        let want = legacy
            .then_some("gemini")
            .or(captured.then_some("captured"));
        assert_eq!(told(&file), want, "{}", file.display());
    }
}

/// Files that lie beside sessions, or look like them (`formats/agents.md` §4): one or two lines each.
const NONE: [(&str, &str); 14] = [
    (
        "claude history",
        r#"{"display":"rename foo","pastedContents":{},"timestamp":1780000000000,"project":"/home/u/app","sessionId":"s1"}"#,
    ),
    (
        "codex history",
        r#"{"session_id":"0196f000-0000-7000-8000-000000000004","ts":1780000000,"text":"rename foo"}"#,
    ),
    (
        "kimi index",
        r#"{"sessionId":"session_1","sessionDir":"/h/.kimi-code/sessions/x","workDir":"/w"}"#,
    ),
    (
        "codex index",
        r#"{"id":"0196f000","thread_name":"rename","updated_at":"2026-05-01T10:00:00Z"}"#,
    ),
    (
        "spans",
        r#"{"resourceSpans":[{"resource":{"attributes":[]},"scopeSpans":[{"spans":[{"traceId":"a","spanId":"b","name":"tool"}]}]}]}"#,
    ),
    (
        "a span",
        r#"{"name":"tool.call","kind":0,"parentId":"b","traceId":"a","id":"c","timestamp":1780000000,"duration":5,"attributes":{}}"#,
    ),
    (
        "debug log",
        "2026-05-01T10:00:00Z [DEBUG] starting up\n{\"level\":\"debug\",\"msg\":\"x\",\"type\":\"user\"}",
    ),
    (
        "structured log",
        r#"{"level":30,"time":1780000000000,"pid":1,"hostname":"h","msg":"request","role":"user"}"#,
    ),
    (
        "usage",
        r#"{"type":"usage","model":"m","input_tokens":1,"output_tokens":2,"timestamp":"2026-05-01T10:00:00Z"}"#,
    ),
    (
        "trajectory",
        r#"{"trajectory":[{"role":"user","content":"rename foo"}],"info":{"exit_status":"ok"}}"#,
    ),
    ("settings", r#"{"model":"opus","hooks":{"PreToolUse":[]}}"#),
    (
        "notebook",
        r#"{"cells":[{"cell_type":"code","source":["1"]}],"metadata":{},"nbformat":4}"#,
    ),
    (
        "vscode operation log",
        r#"{"kind":0,"v":{"version":3,"sessionId":"s","requests":[]}}"#,
    ),
    (
        "a hook's payload",
        r#"{"session_id":"s1","transcript_path":"/x.jsonl","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"Edit","tool_input":{}}"#,
    ),
];

#[test]
fn what_is_no_session_is_unknown() {
    let env = TestEnv::new();
    for (name, text) in NONE {
        for (end, text) in [
            ("once", format!("{text}\n")),
            ("twice", format!("{text}\n{text}\n")),
        ] {
            let path = env.write(&format!("{name} {end}.jsonl"), text);
            assert_eq!(told(&path), None, "{name} {end}");
        }
    }
    let path = env.write("empty.jsonl", "");
    assert_eq!(told(&path), None);
}
