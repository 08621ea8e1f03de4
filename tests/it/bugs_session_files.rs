//! `bugs.md` I: session files that were torn, glued, overwritten or grew out of bounds. One test an entry, named after its
//! number. Entry 88 (a full disk while a hook records) waits for the hooks.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use crate::env::{Run, TestEnv, Tree};
use crate::story::{Story, bytes};
use crate::wrap;

/// Three turns, each of which changes `a.txt`.
fn three(env: &TestEnv) -> Story<'_> {
    env.write("a.txt", "v0\n");
    let mut s = Story::new(env);
    for n in 0..3 {
        s.prompt(&format!("prompt {n}"));
        s.edit("a.txt", &format!("v{n}"), &format!("v{}", n + 1));
        s.answer();
    }
    s.save();
    s
}

fn list(env: &TestEnv) -> Value {
    let run = env.run(&["list", "--json"]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    serde_json::from_str(&run.stdout).unwrap()
}

fn prompts(list: &Value) -> Vec<&str> {
    let turns = list["turns"].as_array().unwrap();
    turns
        .iter()
        .map(|t| t["prompt"].as_str().unwrap())
        .collect()
}

/// How often the list warns of a kind, and where it saw the first.
fn warning(list: &Value, kind: &str) -> Option<(u64, u64)> {
    let all = list["warnings"].as_array().unwrap();
    let one = all.iter().find(|w| w["kind"] == kind)?;
    Some((one["count"].as_u64()?, one["offset"].as_u64()?))
}

fn rewind(env: &TestEnv, turn: &str, scope: &str) -> Run {
    env.run(&["restore", turn, "--scope", scope, "--yes"])
}

/// Offset of the line that holds the text.
fn line_of(bytes: &[u8], text: &str) -> usize {
    let at = bytes
        .windows(text.len())
        .position(|w| w == text.as_bytes())
        .unwrap();
    bytes[..at]
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |n| n + 1)
}

/// A record with its parent in front, as the agent writes it; a torn record is only looked behind for such a start.
fn parent_first(line: &[u8]) -> String {
    let record: Value = serde_json::from_slice(line).unwrap();
    let line = record.to_string();
    let parent = format!("\"parentUuid\":{}", record["parentUuid"]);
    let rest = line.replace(&format!("{parent},"), "");
    format!("{{{parent},{}", &rest[1..])
}

#[test]
fn bug_81_a_record_behind_a_torn_one_is_found_and_the_file_is_not_mended() {
    let env = TestEnv::new();
    let path = three(&env).path();
    let whole = fs::read(&path).unwrap();
    // The writer was stopped inside a record, and the next one stands on the same line.
    let at = line_of(&whole, "\"content\":\"prompt 1\"");
    let torn = br#"{"parentUuid":null,"isSidechain":false,"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"half a sen"#;
    let end = at + whole[at..].iter().position(|b| *b == b'\n').unwrap();
    let record = parent_first(&whole[at..end]);
    let glued = [&whole[..at], torn, record.as_bytes(), &whole[end..]].concat();
    fs::write(&path, &glued).unwrap();
    let seen = list(&env);
    assert_eq!(prompts(&seen), ["prompt 0", "prompt 1", "prompt 2"]);
    assert_eq!(warning(&seen, "bad-line"), Some((1, at as u64)), "{seen}");
    let run = env.run(&["list"]);
    assert!(run.stderr.contains("first at byte"), "{}", run.text());
    // The turn begins in the middle of a line: a cut there would keep half a record, or lose it.
    let run = rewind(&env, "1", "both");
    assert_eq!(run.code, Some(6), "{}", run.text());
    assert!(run.stderr.contains("nothing was changed"), "{}", run.text());
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"v3\n");
    assert_eq!(fs::read(&path).unwrap(), glued);
    // The files of it, and the turn after it, can be gone back to.
    assert_eq!(rewind(&env, "1", "code").code, Some(0));
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"v1\n");
    let run = rewind(&env, "2", "conversation");
    assert_eq!(run.code, Some(0), "{}", run.text());
    let cut = fs::read(&path).unwrap();
    assert!(glued.starts_with(&cut) && cut.len() > at + torn.len());
    assert_eq!(prompts(&list(&env)), ["prompt 0", "prompt 1"]);
    assert_eq!(env.run(&["undo", "--yes"]).code, Some(0));
    assert_eq!(fs::read(&path).unwrap(), glued);
}

#[test]
fn bug_82_a_hole_and_a_torn_tail_hide_nothing_of_the_rest() {
    let env = TestEnv::new();
    let path = three(&env).path();
    let whole = fs::read(&path).unwrap();
    let third = whole
        .iter()
        .enumerate()
        .filter(|(_, b)| **b == b'\n')
        .nth(1)
        .unwrap()
        .0
        + 1;
    let mut holed = whole[..third].to_vec();
    holed.extend([0; 500]);
    holed.extend(b"\nno record at all\n");
    holed.extend(&whole[third..]);
    let tail = holed.len();
    holed.extend(br#"{"parentUuid":"x","type":"assistant","mess"#);
    fs::write(&path, &holed).unwrap();
    let seen = list(&env);
    assert_eq!(prompts(&seen), ["prompt 0", "prompt 1", "prompt 2"]);
    assert_eq!(
        warning(&seen, "nul-hole"),
        Some((1, third as u64)),
        "{seen}"
    );
    assert_eq!(
        warning(&seen, "bad-line"),
        Some((1, third as u64 + 501)),
        "{seen}"
    );
    assert_eq!(
        warning(&seen, "torn-tail"),
        Some((1, tail as u64)),
        "{seen}"
    );
    let run = rewind(&env, "1", "both");
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"v1\n");
    let cut = fs::read(&path).unwrap();
    assert_eq!(
        cut,
        holed[..cut.len()],
        "kept bytes are kept, holes and all"
    );
    assert!(cut.len() > third + 500);
    assert_eq!(env.run(&["undo", "--yes"]).code, Some(0));
    assert_eq!(fs::read(&path).unwrap(), holed);
}

#[test]
fn bug_84_bytes_that_are_no_text_are_kept_and_shown_damaged() {
    let env = TestEnv::new();
    let path = three(&env).path();
    let whole = fs::read(&path).unwrap();
    // One in a tool's result, one in a prompt.
    let swap = |bytes: Vec<u8>, old: &[u8], new: &[u8]| -> Vec<u8> {
        let at = bytes.windows(old.len()).position(|w| w == old).unwrap();
        [&bytes[..at], new, &bytes[at + old.len()..]].concat()
    };
    let odd = swap(whole, b"\"content\":\"done\"", b"\"content\":\"d\xFFne\"");
    let odd = swap(odd, b"prompt 1", b"pr\xFFmpt 1");
    fs::write(&path, &odd).unwrap();
    let seen = list(&env);
    assert_eq!(prompts(&seen), ["prompt 0", "pr\u{FFFD}mpt 1", "prompt 2"]);
    let run = rewind(&env, "2", "both");
    assert_eq!(run.code, Some(0), "{}", run.text());
    let cut = fs::read(&path).unwrap();
    assert!(odd.starts_with(&cut));
    assert_eq!(cut.split(|b| *b == 0xFF).count(), 3, "both are kept");
    assert_eq!(env.run(&["undo", "--yes"]).code, Some(0));
    assert_eq!(fs::read(&path).unwrap(), odd);
}

/// Says that a process has the session open, as Claude Code does; here it is the test's own.
fn alive(env: &TestEnv) {
    let pid = std::process::id();
    let folder = env.home().join(".claude/sessions");
    fs::create_dir_all(&folder).unwrap();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    let began = rest.split_ascii_whitespace().nth(19).unwrap();
    let record = json!({"pid": pid, "procStart": began, "sessionId": crate::story::ID, "cwd": env.workspace()});
    fs::write(folder.join(format!("{pid}.json")), record.to_string()).unwrap();
}

#[test]
fn bug_85_a_session_that_an_agent_holds_is_not_cut() {
    let env = TestEnv::new();
    let path = three(&env).path();
    let whole = fs::read(&path).unwrap();
    alive(&env);
    let tree = Tree::of(&env.workspace());
    for scope in ["conversation", "both"] {
        let run = rewind(&env, "1", scope);
        assert_eq!(run.code, Some(7), "{}", run.text());
        assert!(run.stderr.contains("nothing was changed"), "{}", run.text());
        assert!(
            run.stderr
                .contains(&format!("process {}", std::process::id())),
            "{}",
            run.text()
        );
        assert_eq!(fs::read(&path).unwrap(), whole);
        assert_eq!(tree.changes(&Tree::of(&env.workspace())), [""; 0]);
    }
    // People restore files while the agent waits; they are told.
    let run = rewind(&env, "1", "code");
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert!(
        run.stderr.contains("warning: Claude Code is at work"),
        "{}",
        run.text()
    );
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"v1\n");
    let run = env.run(&[
        "restore",
        "1",
        "--scope",
        "conversation",
        "--yes",
        "--force",
    ]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert!(fs::read(&path).unwrap().len() < whole.len());
}

#[test]
fn bug_85_a_pid_that_was_used_again_is_no_sign_of_life() {
    let env = TestEnv::new();
    three(&env);
    alive(&env);
    let record = env
        .home()
        .join(format!(".claude/sessions/{}.json", std::process::id()));
    let mut told: Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    told["procStart"] = json!("1");
    fs::write(&record, told.to_string()).unwrap();
    let run = rewind(&env, "1", "both");
    assert_eq!(run.code, Some(0), "{}", run.text());
}

fn append(path: &Path, line: &str) {
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(line.as_bytes()).unwrap();
}

/// An agent that nobody noticed writes at each moment at which a kill can leave the rewind: its line is never lost, and
/// whatever the next run makes of the rewind, files and conversation fit.
#[test]
fn bug_85_a_line_that_an_agent_appends_is_never_lost() {
    let line = "{\"type\":\"summary\",\"summary\":\"of the agent\",\"leafUuid\":\"x\"}\n";
    for point in [
        "prepared",
        "staged",
        "session-staged",
        "committing",
        "placed",
        "session-placed",
        "verified",
    ] {
        let mut env = TestEnv::new();
        let path = three(&env).path();
        let whole = fs::read(&path).unwrap();
        env.set("REWIND_CRASH_AT", point);
        assert_eq!(
            rewind(&env, "1", "both").code,
            None,
            "{point}: was to be killed"
        );
        env.set("REWIND_CRASH_AT", "");
        append(&path, line);
        let log = env.run(&["log"]);
        assert_eq!(log.code, Some(0), "{point}: {}", log.text());
        let now = fs::read(&path).unwrap();
        assert!(now.ends_with(line.as_bytes()), "{point}: {}", log.text());
        let kept = &now[..now.len() - line.len()];
        let a = bytes(&env, "a.txt").unwrap();
        if kept == whole {
            assert_eq!(a, b"v3\n", "{point}: {}", log.text());
        } else {
            assert!(whole.starts_with(kept), "{point}: {}", log.text());
            assert_eq!(a, b"v1\n", "{point}: {}", log.text());
        }
        let rest = Tree::of(path.parent().unwrap());
        assert_eq!(
            rest.0.len(),
            1,
            "{point}: nothing of ours stays beside it: {rest:?}"
        );
    }
}

/// A tool result longer than all the memory that the program may have, and a line that is over the limit although it is
/// wanted: the first costs nothing, the second is counted.
#[test]
fn bug_87_memory_does_not_grow_with_a_line() {
    let env = TestEnv::new();
    let path = three(&env).path();
    let whole = fs::read(&path).unwrap();
    let at = line_of(&whole, "\"content\":\"prompt 2\"");
    let mut file = fs::File::create(&path).unwrap();
    file.write_all(&whole[..at]).unwrap();
    let block = vec![b'x'; 1 << 20];
    let result = r#"{"parentUuid":null,"type":"user","message":{"role":"user","content":[{"tool_use_id":"t","type":"tool_result","content":""#;
    let prompt = r#"{"parentUuid":null,"type":"user","message":{"role":"user","content":""#;
    for (head, megabytes) in [(result, 104), (prompt, 25)] {
        file.write_all(head.as_bytes()).unwrap();
        for _ in 0..megabytes {
            file.write_all(&block).unwrap();
        }
        file.write_all(b"\"}}\n").unwrap();
    }
    file.write_all(&whole[at..]).unwrap();
    drop(file);
    let run = wrap::under(&env, "ulimit -v 98304", &["list", "--json"]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    let seen: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(prompts(&seen), ["prompt 0", "prompt 1", "prompt 2"]);
    assert_eq!(warning(&seen, "huge-line").map(|w| w.0), Some(1), "{seen}");
    let args = ["restore", "2", "--scope", "code", "--yes"];
    let run = wrap::under(&env, "ulimit -v 98304", &args);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"v2\n");
}
