//! The payloads that real clients sent, and the shapes that others are known to send.

use std::path::{Path, PathBuf};

use super::*;

fn read(text: &str) -> Payload {
    super::read(text.as_bytes()).unwrap()
}

fn files(tool: &str, input: &str) -> Touch {
    read(&format!(
        r#"{{"hook_event_name":"PreToolUse","tool_name":"{tool}","tool_input":{input}}}"#
    ))
    .touch
}

fn some(paths: &[&str]) -> Touch {
    Touch::Files(paths.iter().map(PathBuf::from).collect())
}

#[test]
fn the_shapes_of_the_notes_are_read() {
    let claude = read(
        r#"{"session_id":"s1","transcript_path":"/h/.x/s1.jsonl","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"Edit","tool_input":{"file_path":"/w/a.py","old_string":"foo","new_string":"bar"},"tool_use_id":"c1"}"#,
    );
    assert_eq!(
        (claude.event, claude.session.as_deref()),
        (Event::Before, Some("s1"))
    );
    assert_eq!(
        claude.transcript.as_deref(),
        Some(Path::new("/h/.x/s1.jsonl"))
    );
    assert_eq!(
        (claude.touch, claude.call.as_deref()),
        (some(&["/w/a.py"]), Some("c1"))
    );
    let codex = read(
        r#"{"session_id":"s1","transcript_path":null,"cwd":"/w","hook_event_name":"PreToolUse","turn_id":"t1","tool_name":"apply_patch","tool_input":{"command":"*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@\n-foo\n+bar\n*** Add File: c.py\n+x\n*** Delete File: d.py\n*** End Patch"}}"#,
    );
    assert_eq!(codex.turn, Some(TurnId::OfTranscript("t1".into())));
    assert_eq!(
        (codex.transcript, codex.touch),
        (None, some(&["a.py", "b.py", "c.py", "d.py"]))
    );
    let copilot = read(
        r#"{"sessionId":"s1","timestamp":1780000000000,"cwd":"/w","toolName":"edit","toolArgs":"{\"path\":\"/w/a.py\"}"}"#,
    );
    assert_eq!(
        (copilot.event, copilot.touch),
        (Event::Before, some(&["/w/a.py"]))
    );
    let after =
        read(r#"{"sessionId":"s1","toolName":"edit","toolArgs":{"path":"a"},"toolResult":{}}"#);
    assert_eq!(after.event, Event::After);
    let cursor = read(
        r#"{"conversation_id":"s1","generation_id":"g1","workspace_roots":["/w"],"hook_event_name":"preToolUse","tool_name":"Write","tool_input":{"path":"/w/a.py","contents":"bar"}}"#,
    );
    assert_eq!(cursor.cwd.as_deref(), Some(Path::new("/w")));
    assert_eq!(cursor.turn, Some(TurnId::OfHook("g1".into())));
}

#[test]
fn the_shapes_of_the_other_agents_are_read() {
    let gemini = read(
        r#"{"session_id":"s1","cwd":"/w","hook_event_name":"BeforeAgent","prompt":"rename foo"}"#,
    );
    assert_eq!(
        (gemini.event, gemini.prompt.as_deref()),
        (Event::Prompt, Some("rename foo"))
    );
    let droid = read(
        r#"{"hookEventName":"PostToolUse","sessionId":"s","transcriptPath":"/x","toolName":"Create","toolInput":{"file_path":"a","content":""}}"#,
    );
    assert_eq!((droid.event, droid.touch), (Event::After, some(&["a"])));
    let kimi = read(
        r#"{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}"#,
    );
    assert_eq!(kimi.prompt.as_deref(), Some("one\ntwo"));
    let vibe = read(
        r#"{"type":"before_tool","session_id":"s","tool_name":"write_file","tool_input":{"path":"a","content":"x"}}"#,
    );
    assert_eq!((vibe.event, vibe.touch), (Event::Before, some(&["a"])));
    let cline = read(
        r#"{"hookName":"PreToolUse","taskId":"7","workspaceRoots":["/w"],"preToolUse":{"toolName":"write_to_file","parameters":{"path":"a","content":"x"}}}"#,
    );
    assert_eq!(
        (cline.event, cline.touch, cline.session.as_deref()),
        (Event::Before, some(&["a"]), Some("7"))
    );
    assert_eq!(cline.answer, Some("{\"cancel\":false}\n"));
}

#[test]
fn what_a_call_touches_is_told_by_its_name_or_its_arguments() {
    assert_eq!(files("Read", r#"{"file_path":"a"}"#), Touch::Nothing);
    assert_eq!(
        files(
            "str_replace_based_edit_tool",
            r#"{"command":"view","path":"a"}"#
        ),
        Touch::Nothing
    );
    assert_eq!(
        files(
            "str_replace_based_edit_tool",
            r#"{"command":"str_replace","path":"a","old_str":"x"}"#
        ),
        some(&["a"])
    );
    assert_eq!(
        files("Bash", r#"{"command":"make"}"#),
        Touch::Shell("make".into(), vec![])
    );
    assert_eq!(
        files("shell", r#"{"command":["bash","-lc","ls"]}"#),
        Touch::Shell("bash -lc ls".into(), vec![])
    );
    let patch = r#"{"command":"apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a\n*** End Patch\nEOF"}"#;
    assert!(matches!(files("shell", patch), Touch::Shell(_, f) if f == [PathBuf::from("a")]));
    assert_eq!(
        files(
            "Edit",
            "\"*** Begin Patch\\n*** Add File: n\\n+x\\n*** End Patch\""
        ),
        some(&["n"])
    );
}

#[test]
fn what_a_call_touches_may_be_several_files() {
    assert_eq!(
        files("move_file", r#"{"source":"a","destination":"b"}"#),
        some(&["a", "b"])
    );
    assert_eq!(
        files(
            "MultiEdit",
            r#"{"edits":[{"file_path":"a"},{"file_path":"b"},{"file_path":"a"}]}"#
        ),
        some(&["a", "b"])
    );
    assert_eq!(
        files(
            "apply_diff",
            r#"{"diff":"--- a/x\n+++ b/x\n@@ -1 +1 @@\n"}"#
        ),
        some(&["x"])
    );
    assert_eq!(
        files("frobnicate", r#"{"path":"a","content":"x"}"#),
        some(&["a"])
    );
    assert_eq!(files("frobnicate", r#"{"path":"a"}"#), Touch::Nothing);
    assert_eq!(
        files("mcp__fs__touch", r#"{"name":"a"}"#),
        Touch::Opaque("mcp__fs__touch".into())
    );
    assert_eq!(
        files("Write", r#"{"contents":1}"#),
        Touch::Opaque("Write".into())
    );
}

#[test]
fn what_is_no_payload_is_none_and_odd_ones_are_survived() {
    for odd in ["", "no json", "[1]", "\"x\"", "{", "null"] {
        assert_eq!(super::read(odd.as_bytes()), None, "{odd}");
    }
    assert_eq!(read("{}").event, Event::Other);
    assert_eq!(
        read(r#"{"hook_event_name":"Dream","prompt":"x"}"#).event,
        Event::Other
    );
    assert_eq!(
        read(r#"{"hook_event_name":7,"tool_name":7,"cwd":[],"session_id":{}}"#).session,
        None
    );
    let deep = format!(
        "{{\"tool_name\":\"Edit\",\"tool_input\":{}1{}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    assert_eq!(read(&deep).event, Event::Before);
}

#[test]
fn the_payloads_of_real_clients_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus/hooks");
    let Ok(all) = std::fs::read_dir(&folder) else {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "skipped: no recorded hooks in ../shared");
        return;
    };
    for file in all {
        let file = file.unwrap().path();
        let (mut prompts, mut before, mut after, mut shells) = (0, Vec::new(), Vec::new(), 0);
        for line in std::fs::read_to_string(&file).unwrap().lines() {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            let p = read(&value["stdin"].to_string());
            assert!(p.session.is_some() && p.cwd.is_some(), "{line}");
            match (p.event, p.touch) {
                (Event::Prompt, _) => {
                    prompts += usize::from(p.prompt.is_some_and(|p| !p.is_empty()));
                }
                (Event::Before, Touch::Files(f)) => before.extend(f),
                (Event::After, Touch::Files(f)) => after.extend(f),
                (Event::Before, Touch::Shell(..)) => shells += 1,
                _ => {}
            }
        }
        let name = file.display();
        // An edit, a new file and a shell command in the first run, an edit in the second.
        assert_eq!(prompts, 2, "{name}");
        let ends: Vec<_> = before
            .iter()
            .map(|p| p.file_name().unwrap().to_owned())
            .collect();
        assert!(
            ends.contains(&"a.txt".into()) && ends.contains(&"b.txt".into()),
            "{name}: {before:?}"
        );
        // A call that failed is not told of a second time.
        assert!(after.len() >= 2 && before.starts_with(&after), "{name}");
        assert!(shells > 0, "{name}");
    }
}
