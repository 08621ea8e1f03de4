//! Each agent's sessions, composed here: every point gives the files back as they were then, and the turns are the
//! prompts. The same as `corpus`, where nothing was recorded.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::env::{TestEnv, Tree, copy};
use crate::story::{History, Story};

fn prompts(env: &TestEnv, args: &[&str]) -> Vec<String> {
    let run = env.run(&[&["list", "--json"], args].concat());
    let list: Value =
        serde_json::from_str(&run.stdout).unwrap_or_else(|e| panic!("{e}: {}", run.text()));
    let turns = list["turns"].as_array().unwrap();
    turns
        .iter()
        .map(|t| t["prompt"].as_str().unwrap().to_owned())
        .collect()
}

/// Restores each point, compares, and undoes it again.
#[track_caller]
fn hold(env: &TestEnv, before: &[Tree], told: &[&str]) {
    assert_eq!(prompts(env, &[]), told);
    let end = Tree::of(&env.workspace()).contents();
    for (turn, want) in before.iter().enumerate() {
        let run = env.run(&["restore", &turn.to_string(), "--scope", "code", "--yes"]);
        assert_eq!(run.code, Some(0), "turn {turn}: {}", run.text());
        let now = Tree::of(&env.workspace()).contents();
        assert_eq!(want.changes(&now), [""; 0], "turn {turn}: {}", run.text());
        let run = env.run(&["undo", "--yes"]);
        assert_eq!(run.code, Some(0), "turn {turn}: {}", run.text());
        let now = Tree::of(&env.workspace()).contents();
        assert_eq!(end.changes(&now), [""; 0], "turn {turn}: {}", run.text());
    }
}

fn claude(history: History) {
    let env = TestEnv::new();
    env.write("src/a.py", "one\ntwo\nthree\n");
    env.write("win.ini", "x = 1\r\ny = 2\r\n");
    env.write("größe.md", "Maße\n");
    env.write("empty", "");
    env.write("untouched", [0, 159, 146, 150]);
    let mut s = Story::with(&env, crate::story::ID, history);
    let mut before = Vec::new();
    let mut begins = || before.push(Tree::of(&env.workspace()).contents());
    begins();
    s.prompt("change a, add b");
    s.edit("src/a.py", "two", "2");
    s.write("deep/new/b.py", "b\n");
    begins();
    s.prompt("both again — and größe.md");
    s.edit("src/a.py", "three", "3\nfour");
    s.write("größe.md", "Maße: 11 × 22 🎉\n");
    s.edit("deep/new/b.py", "b", "bb");
    s.edit("src/a.py", "four", "4");
    begins();
    s.prompt("only talk");
    s.answer();
    begins();
    s.prompt("win.ini\nand the empty one");
    if history == History::Kept {
        s.edit("win.ini", "y = 2", "y = 3");
    }
    s.failed_edit("src/a.py");
    s.write("empty", "no more\n");
    s.answer();
    s.save();
    let told = [
        "change a, add b",
        "both again — and größe.md",
        "only talk",
        "win.ini\nand the empty one",
    ];
    hold(&env, &before, &told);
}

#[test]
fn every_point_of_claude_code_with_its_file_history() {
    claude(History::Kept);
}

#[test]
fn every_point_of_claude_code_from_the_transcript_alone() {
    claude(History::Off);
}

/// The transcript has the text, not the line ends; they are not guessed.
#[test]
fn a_file_whose_line_ends_are_not_recorded_is_left_alone_and_named() {
    let env = TestEnv::new();
    env.write("win.ini", "x = 1\r\ny = 2\r\n");
    let mut s = Story::with(&env, crate::story::ID, History::Off);
    s.prompt("three");
    s.edit("win.ini", "y = 2", "y = 3");
    s.save();
    let before = Tree::of(&env.workspace());
    let run = env.run(&["restore", "0", "--scope", "code", "--yes"]);
    assert_eq!(run.code, Some(3), "{}", run.text());
    assert!(
        run.stdout
            .contains("left    win.ini: only its text is recorded"),
        "{}",
        run.text()
    );
    assert_eq!(before.changes(&Tree::of(&env.workspace())), [""; 0]);
}

#[test]
fn turns_that_claude_code_itself_took_back_are_not_used() {
    let env = TestEnv::new();
    env.write("a.txt", "one\n");
    let mut s = Story::new(&env);
    s.prompt("two");
    s.edit("a.txt", "one", "two");
    s.answer();
    let kept = s.tip();
    s.prompt("three");
    s.edit("a.txt", "two", "three");
    s.write("left.txt", "of the way that was left\n");
    s.answer();
    // Claude Code puts the files back itself, and writes nothing.
    env.write("a.txt", "two\n");
    fs::remove_file(env.workspace().join("left.txt")).unwrap();
    s.rewind_to(&kept);
    s.prompt("four instead");
    s.edit("a.txt", "two", "four");
    s.answer();
    s.save();
    // A file of that name that is a person's own.
    env.write("left.txt", "mine\n");
    assert_eq!(prompts(&env, &[]), ["two", "four instead"]);
    for (turn, want) in [("1", "two\n"), ("0", "one\n")] {
        let run = env.run(&["restore", turn, "--scope", "code", "--yes"]);
        assert_eq!(run.code, Some(0), "{}", run.text());
        assert_eq!(
            fs::read_to_string(env.workspace().join("a.txt")).unwrap(),
            want
        );
        assert_eq!(
            fs::read_to_string(env.workspace().join("left.txt")).unwrap(),
            "mine\n"
        );
        assert_eq!(env.run(&["undo", "--yes"]).code, Some(0));
    }
}

/// A Codex rollout of version 0.171 that is being told.
struct Rollout<'e> {
    env: &'e TestEnv,
    lines: Vec<Value>,
    turn: u32,
    now: u64,
}

const THREAD: &str = "0196f000-0000-7000-8000-00000000000a";

impl<'e> Rollout<'e> {
    fn new(env: &'e TestEnv) -> Self {
        // A file that was born while the call ran was made by it; only the real clock says when a file is born.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let mut rollout = Self {
            env,
            lines: Vec::new(),
            turn: 0,
            now: u64::try_from(now.as_millis()).unwrap(),
        };
        let meta = json!({"id": THREAD, "cwd": env.workspace(), "originator": "codex_exec", "cli_version": "0.171.0",
            "source": "exec", "history_mode": "paginated", "timestamp": "2026-05-01T10:00:00.000Z"});
        rollout.line("session_meta", &meta);
        rollout
    }

    fn line(&mut self, kind: &str, payload: &Value) {
        let ordinal = self.lines.len();
        let at = format!("2026-05-01T10:00:{:02}.000Z", ordinal.min(59));
        self.lines
            .push(json!({"timestamp": at, "ordinal": ordinal, "type": kind, "payload": payload}));
    }

    fn item(&mut self, item: &Value) {
        let turn = format!("t{}", self.turn);
        let span = (self.now - 600_000, self.now + 600_000);
        let payload = json!({"type": "item_completed", "thread_id": THREAD, "turn_id": turn, "item": item,
            "started_at_ms": span.0, "completed_at_ms": span.1});
        self.line("event_msg", &payload);
    }

    fn prompt(&mut self, text: &str) {
        self.turn += 1;
        let turn = format!("t{}", self.turn);
        self.line(
            "event_msg",
            &json!({"type": "task_started", "turn_id": turn}),
        );
        self.line(
            "turn_context",
            &json!({"turn_id": turn, "cwd": self.env.workspace()}),
        );
        let message = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
        self.line("response_item", &message);
        let content = json!([{"type": "text", "text": text}]);
        self.item(
            &json!({"type": "UserMessage", "id": format!("u{}", self.turn), "content": content}),
        );
    }

    /// One call that changes one path.
    fn change(&mut self, path: &str, change: &Value, status: &str) {
        let call = format!("c{}", self.lines.len());
        let input = "*** Begin Patch\n*** End Patch";
        let begin = json!({"type": "custom_tool_call", "call_id": call, "name": "apply_patch", "input": input});
        self.line("response_item", &begin);
        let changes = json!({ self.env.workspace().join(path).to_str().unwrap(): change });
        self.item(&json!({"type": "FileChange", "id": call, "changes": changes, "status": status}));
        let output =
            json!({"type": "custom_tool_call_output", "call_id": call, "output": "Exit code: 0\n"});
        self.line("response_item", &output);
    }

    fn add(&mut self, path: &str, content: &str) {
        self.env.write(path, content);
        self.change(
            path,
            &json!({"type": "add", "content": content}),
            "completed",
        );
    }

    /// Replaces one line; the diff counts from it.
    fn update(&mut self, path: &str, line: usize, old: &str, new: &str) {
        let full = self.env.workspace().join(path);
        let text = fs::read_to_string(&full).unwrap();
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        assert_eq!(lines[line - 1].trim_end_matches('\n'), old);
        let replaced = format!("{new}\n");
        lines[line - 1] = &replaced;
        fs::write(&full, lines.concat()).unwrap();
        let diff = format!("@@ -{line} +{line} @@\n-{old}\n+{new}\n");
        let change = json!({"type": "update", "unified_diff": diff, "move_path": null});
        self.change(path, &change, "completed");
    }

    fn delete(&mut self, path: &str) {
        let full = self.env.workspace().join(path);
        let content = fs::read_to_string(&full).unwrap();
        fs::remove_file(full).unwrap();
        self.change(
            path,
            &json!({"type": "delete", "content": content}),
            "completed",
        );
    }

    fn save(&self) -> PathBuf {
        let folder = self.env.home().join(".codex/sessions/2026/05/01");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("rollout-2026-05-01T10-00-00-{THREAD}.jsonl"));
        let text = text(&self.lines);
        fs::write(&path, text).unwrap();
        path
    }
}

fn text(records: &[Value]) -> String {
    let mut lines: Vec<String> = records.iter().map(Value::to_string).collect();
    lines.push(String::new());
    lines.join("\n")
}

#[test]
fn every_point_of_codex() {
    let env = TestEnv::new();
    env.write("src/a.py", "one\ntwo\nthree\n");
    env.write("old.md", "to be deleted\nMaße 🎉\n");
    let mut r = Rollout::new(&env);
    let mut before = Vec::new();
    let mut begins = || before.push(Tree::of(&env.workspace()).contents());
    begins();
    r.prompt("change a, add b");
    r.update("src/a.py", 2, "two", "2");
    r.add("src/b.py", "b\n");
    begins();
    r.prompt("again, and delete\nold.md");
    r.update("src/a.py", 2, "2", "zwei");
    r.update("src/a.py", 3, "three", "drei");
    r.delete("old.md");
    r.change(
        "src/c.py",
        &json!({"type": "add", "content": "declined"}),
        "declined",
    );
    begins();
    r.prompt("only talk");
    begins();
    r.prompt("b as well");
    r.update("src/b.py", 1, "b", "bb");
    let path = r.save();
    let told = [
        "change a, add b",
        "again, and delete\nold.md",
        "only talk",
        "b as well",
    ];
    hold(&env, &before, &told);

    let whole = fs::read(&path).unwrap();
    let run = env.run(&["restore", "2", "--scope", "both", "--yes"]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert!(
        run.stderr
            .contains(&format!("go on with `codex resume {THREAD}`")),
        "{}",
        run.text()
    );
    let cut = fs::read(&path).unwrap();
    assert!(whole.starts_with(&cut) && cut.ends_with(b"\n"));
    assert_eq!(prompts(&env, &[]), told[..2]);
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

#[test]
fn the_cut_of_a_codex_rollout_that_others_build_upon_is_refused() {
    let env = TestEnv::new();
    copy(&fixture("codex/revert"), &env.home().join(".codex"));
    env.write("a", "2\n");
    env.write("c", "c\n");
    let day = env.home().join(".codex/sessions/2026/05/01");
    let thread = "0196f000-0000-7000-8000-000000000004";
    let parent = day.join(format!("rollout-2026-05-01T10-00-00-{thread}.jsonl"));
    let named = ["-s", parent.to_str().unwrap(), "-w", "."];
    let before = (Tree::of(&env.workspace()), Tree::of(&env.home()));
    for scope in ["conversation", "both"] {
        let args = [&["restore", "0", "--scope", scope, "--yes"], &named[..]].concat();
        let run = env.run(&args);
        assert_eq!(run.code, Some(6), "{}", run.text());
        assert!(run.stderr.contains("nothing was changed"), "{}", run.text());
        assert!(
            run.stderr.contains("hint: `--scope code`"),
            "{}",
            run.text()
        );
    }
    assert_eq!(before.0.changes(&Tree::of(&env.workspace())), [""; 0]);
    assert_eq!(before.1.changes(&Tree::of(&env.home())), [""; 0]);
    assert_eq!(prompts(&env, &["-s", thread]), ["one", "two, otherwise"]);
    // With the newer rollout of the thread gone, the fork still counts on the parent.
    let newer = day.join(format!(
        "rollout-2026-05-01T11-00-00-{thread}_0196f0aa-0000-7000-8000-000000000005.jsonl"
    ));
    fs::remove_file(newer).unwrap();
    let args = [&["restore", "1", "--scope", "both", "--yes"], &named[..]].concat();
    let run = env.run(&args);
    assert_eq!(run.code, Some(6), "{}", run.text());
    assert!(
        run.stderr
            .contains("0196f0bb-0000-7000-8000-000000000006.jsonl` builds on this"),
        "{}",
        run.text()
    );
    assert_eq!(before.0.changes(&Tree::of(&env.workspace())), [""; 0]);
    // What the hint offers.
    let args = [&["restore", "0", "--scope", "code", "--yes"], &named[..]].concat();
    let run = env.run(&args);
    assert_eq!(run.code, Some(3), "{}", run.text());
    assert_eq!(fs::read(env.workspace().join("a")).unwrap(), b"0\n");
    // Whether the "add" of `b` replaced a file is not recorded.
    assert!(run.stdout.contains("left    b: "), "{}", run.text());
}

#[test]
fn every_point_of_reasonix() {
    let env = TestEnv::new();
    let old = json!({"turn": 0, "time": "2026-06-10T14:03:22+08:00", "prompt": "two", "msgIndex": 1,
        "files": [{"path": "a.txt", "content": "one\n"}, {"path": "b.txt", "content": null}]});
    let new = json!({"turn": 1, "time": "2026-06-10T14:05:22+08:00", "prompt": "three", "msgIndex": 3,
        "files": [{"path": "a.txt", "content": "two\n"}]});
    let call = |id: &str, path: &str, text: &str| {
        let arguments = json!({"path": path, "content": text}).to_string();
        json!({"id": id, "name": "write_file", "arguments": arguments})
    };
    let messages = [
        json!({"role": "system", "content": "You are a coder."}),
        json!({"role": "user", "content": "two", "createdAt": 1_781_071_402_123_i64}),
        json!({"role": "assistant", "content": "", "reasoning_content": "hm",
            "tool_calls": [call("c1", "a.txt", "two\n"), call("c2", "b.txt", "b\n")]}),
        json!({"role": "user", "content": "three", "createdAt": 1_781_071_502_123_i64}),
        json!({"role": "assistant", "content": "", "reasoning_content": "hm",
            "tool_calls": [call("c3", "a.txt", "three\n")]}),
    ];
    let folder = env.home().join("reasonix");
    fs::create_dir_all(folder.join("s.ckpt")).unwrap();
    let text = text(&messages);
    fs::write(folder.join("s.jsonl"), text).unwrap();
    fs::write(folder.join("s.ckpt/turn-0.json"), old.to_string()).unwrap();
    fs::write(folder.join("s.ckpt/turn-1.json"), new.to_string()).unwrap();
    let session = folder.join("s.jsonl");
    let named = ["-s", session.to_str().unwrap(), "-w", "."];
    assert_eq!(prompts(&env, &named), ["two", "three"]);
    for (turn, a, b) in [("1", "two\n", Some("b\n")), ("0", "one\n", None)] {
        env.write("a.txt", "three\n");
        env.write("b.txt", "b\n");
        env.write("mine.txt", "mine\n");
        let args = [
            "restore",
            turn,
            "--scope",
            "code",
            "--yes",
            "--on-conflict",
            "overwrite",
        ];
        let run = env.run(&[&args, &named[..]].concat());
        assert_eq!(run.code, Some(0), "{}", run.text());
        let read = |name: &str| fs::read_to_string(env.workspace().join(name)).ok();
        assert_eq!(read("a.txt").as_deref(), Some(a), "{}", run.text());
        assert_eq!(read("b.txt").as_deref(), b, "{}", run.text());
        assert_eq!(read("mine.txt").as_deref(), Some("mine\n"));
    }
}
