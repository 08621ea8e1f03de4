//! `rewind hook` as an agent calls it: silent, 0 whatever happens, and everything that it saw comes back. The agent here
//! is one whose own record holds nothing of what a file was before, so that what comes back is ours.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use rewind::env::Env;
use rewind::fsx::Faulty;
use rewind::ops::capture::{self, Call, Outcome};
use rewind::ops::config::Config;
use serde_json::{Value, json};

use crate::env::{Run, TestEnv, Tree};
use crate::story::{History, ID, Story};

/// A session of Claude Code whose file history is off, with our hooks.
pub(crate) struct Hooked<'e> {
    pub(crate) env: &'e TestEnv,
    pub(crate) story: Story<'e>,
    calls: u32,
}

/// The program called as a hook with this payload.
pub(crate) fn start(env: &TestEnv, now: &str, payload: &[u8]) -> Child {
    let mut child = env
        .command(&["hook", "claude"])
        .env("REWIND_NOW", now)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A hook that was killed does not read on.
    let _ = child.stdin.take().unwrap().write_all(payload);
    child
}

/// Runs the hook; it must be silent and end with 0.
pub(crate) fn hook(env: &TestEnv, payload: &[u8]) {
    hook_at(env, "2026-03-02T10:00:01Z", payload);
}

fn hook_at(env: &TestEnv, now: &str, payload: &[u8]) {
    let out = start(env, now, payload).wait_with_output().unwrap();
    let said = (out.status.code(), &*out.stdout, &*out.stderr);
    assert_eq!(
        said,
        (Some(0), &b""[..], &b""[..]),
        "{}",
        String::from_utf8_lossy(payload)
    );
}

pub(crate) fn transcript(env: &TestEnv) -> PathBuf {
    let name: String = env.workspace().to_str().unwrap().to_owned();
    let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    env.home()
        .join(".claude/projects")
        .join(name)
        .join(format!("{ID}.jsonl"))
}

pub(crate) fn sidecar(env: &TestEnv) -> PathBuf {
    transcript(env).with_extension("ckpt")
}

pub(crate) fn payload(env: &TestEnv, event: &str, more: &Value) -> Vec<u8> {
    let mut all = json!({
        "session_id": ID, "transcript_path": transcript(env), "cwd": env.workspace(),
        "hook_event_name": event,
    });
    for (k, v) in more.as_object().unwrap() {
        all[k] = v.clone();
    }
    all.to_string().into_bytes()
}

impl<'e> Hooked<'e> {
    pub(crate) fn new(env: &'e TestEnv) -> Self {
        let story = Story::with(env, ID, History::Off);
        Self {
            env,
            story,
            calls: 0,
        }
    }

    /// Calls the hook at the session's own time.
    fn hook(&self, payload: &[u8]) {
        hook_at(self.env, &self.story.clock(), payload);
    }

    pub(crate) fn prompt(&mut self, text: &str) {
        self.hook(&payload(
            self.env,
            "UserPromptSubmit",
            &json!({"prompt": text}),
        ));
        self.story.prompt(text);
    }

    fn around(&mut self, tool: &str, input: &Value, act: impl FnOnce(&mut Story<'e>)) {
        self.calls += 1;
        let mut more = json!({"tool_name": tool, "tool_input": input, "tool_use_id": format!("c{}", self.calls)});
        self.hook(&payload(self.env, "PreToolUse", &more));
        act(&mut self.story);
        more["tool_response"] = json!({});
        self.hook(&payload(self.env, "PostToolUse", &more));
    }

    /// A write of which the transcript does not tell what it replaced.
    pub(crate) fn write(&mut self, path: &str, text: &str) {
        let full = self.env.workspace().join(path);
        let input = json!({"file_path": full, "content": text});
        self.around("Write", &input, |s| s.unknown_write(path, text));
    }

    pub(crate) fn save(&self) -> PathBuf {
        self.story.save()
    }
}

fn restore(env: &TestEnv, turn: usize, more: &[&str]) -> Run {
    let turn = turn.to_string();
    let args = ["restore", &turn, "--scope", "code", "--yes"];
    env.run(&[&args[..], more].concat())
}

#[test]
fn every_turn_goes_back_to_its_exact_tree() {
    let env = TestEnv::new();
    env.write("a", "zero\n");
    env.write("bin", b"\x00\xff\r\n");
    fs::set_permissions(
        env.workspace().join("bin"),
        fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    let big = "the same line again\n".repeat(2000);
    env.write("big", &big);
    let mut s = Hooked::new(&env);
    let mut trees = Vec::new();
    let tree = || Tree::of(&env.workspace()).contents();
    for (n, prompt) in ["one", "two", "two", "four"].iter().enumerate() {
        trees.push(tree());
        s.prompt(prompt);
        s.write("a", &format!("{n} of it\n"));
        s.write("a", &format!("{n} again\n"));
        s.write("bin", &format!("text {n}"));
        s.write("big", "gone\n");
        s.write(&format!("new/{n}"), "made\n");
    }
    s.save();
    let end = tree();
    for turn in [3, 1, 0, 2] {
        let back = restore(&env, turn, &[]);
        assert_eq!(back.code, Some(0), "{}", back.text());
        assert_eq!(trees[turn].changes(&tree()), [""; 0], "turn {turn}");
        assert_eq!(env.run(&["undo", "--yes"]).code, Some(0));
        assert_eq!(end.changes(&tree()), [""; 0]);
    }
    // Nothing is stored twice, and what is worth it is compressed.
    let blobs = Tree::of(&sidecar(&env).join("blobs"));
    let files: Vec<_> = blobs
        .0
        .iter()
        .filter(|(_, e)| !e.bytes.is_empty())
        .collect();
    assert!(
        files
            .iter()
            .any(|(p, _)| p.extension().is_some_and(|e| e == "zst"))
    );
    assert!(files.iter().all(|(_, e)| e.bytes.len() < big.len()));
}

#[test]
fn a_change_of_the_users_is_a_conflict_and_an_agents_own_is_none() {
    let env = TestEnv::new();
    env.write("a", "zero\n");
    let mut s = Hooked::new(&env);
    s.prompt("one");
    s.write("a", "one\n");
    s.save();
    env.write("a", "one\nand mine\n");
    let refused = restore(&env, 0, &[]);
    assert_eq!(refused.code, Some(4), "{}", refused.text());
    assert_eq!(
        fs::read(env.workspace().join("a")).unwrap(),
        b"one\nand mine\n"
    );
}

#[test]
fn a_call_that_failed_does_not_make_a_later_change_the_agents() {
    let env = TestEnv::new();
    env.write("a", "zero\n");
    let mut s = Hooked::new(&env);
    s.prompt("one");
    // It was to write, and did not: the agent does not tell of an end.
    let more = json!({"tool_name": "Write", "tool_input": {"file_path": env.workspace().join("a"), "content": "x"}});
    hook(&env, &payload(&env, "PreToolUse", &more));
    s.prompt("two");
    env.write("a", "zero\nand mine\n");
    s.write("b", "two\n");
    s.save();
    let refused = restore(&env, 0, &[]);
    assert_eq!(refused.code, Some(4), "{}", refused.text());
    assert_eq!(
        fs::read(env.workspace().join("a")).unwrap(),
        b"zero\nand mine\n"
    );
}

#[test]
fn two_hooks_for_one_call_change_nothing_the_second_time() {
    let env = TestEnv::new();
    env.write("a", "zero\n");
    let mut s = Hooked::new(&env);
    let twice = |payload: &[u8]| {
        hook(&env, payload);
        let before = Tree::of(&sidecar(&env)).contents();
        hook(&env, payload);
        assert_eq!(
            before.changes(&Tree::of(&sidecar(&env)).contents()),
            [""; 0]
        );
    };
    twice(&payload(
        &env,
        "UserPromptSubmit",
        &json!({"prompt": "one", "prompt_id": "p1"}),
    ));
    let call = json!({"tool_name": "Write", "tool_input": {"file_path": env.workspace().join("a")}, "tool_use_id": "c"});
    twice(&payload(&env, "PreToolUse", &call));
    env.write("a", "one\n");
    // The second agent reads the same hook file, a moment later: the first touch counts.
    hook(&env, &payload(&env, "PreToolUse", &call));
    twice(&payload(&env, "PostToolUse", &call));
    s.story.prompt("one");
    s.story.unknown_write("a", "one\n");
    s.save();
    assert_eq!(restore(&env, 0, &[]).code, Some(0));
    assert_eq!(fs::read(env.workspace().join("a")).unwrap(), b"zero\n");
}

#[test]
fn qwen_asks_before_each_request_of_a_turn_and_opens_one_checkpoint() {
    let env = TestEnv::new();
    for prompt in ["do it", "", "", "next", ""] {
        hook(
            &env,
            &payload(&env, "UserPromptSubmit", &json!({"prompt": prompt})),
        );
    }
    let turns = |n: u32| sidecar(&env).join(format!("turn-{n}.json")).exists();
    assert_eq!([turns(0), turns(1), turns(2)], [true, true, false]);
}

fn record(env: &TestEnv, turn: u32) -> Value {
    let path = sidecar(env).join(format!("turn-{turn}.json"));
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// What cannot or must not be captured, each with the word of its gap.
#[test]
fn what_is_not_captured_is_a_gap_with_its_reason() {
    let mut env = TestEnv::new();
    let config = env.home().join("config");
    fs::create_dir_all(&config).unwrap();
    fs::write(
        config.join("config.toml"),
        "[capture]\nlargest = \"1KiB\"\nexclude = [\"secret/**\"]\n",
    )
    .unwrap();
    env.set("REWIND_CONFIG_DIR", config.to_str().unwrap());
    env.write("large", vec![b'x'; 1025]);
    env.write("secret/key", "k");
    env.write(".git/config", "x");
    fs::create_dir(env.workspace().join("folder")).unwrap();
    let fifo = env.workspace().join("fifo");
    rustix_fifo(&fifo);
    std::os::unix::fs::symlink("/etc", env.workspace().join("out")).unwrap();
    std::os::unix::fs::symlink("large", env.workspace().join("link")).unwrap();
    hook(
        &env,
        &payload(&env, "UserPromptSubmit", &json!({"prompt": "all"})),
    );
    let own = sidecar(&env).join("turn-0.json");
    let outside = env.home().join("notes.txt");
    let all = [
        ("large", "oversized"),
        ("secret/key", "excluded"),
        (".git/config", "bad_name"),
        ("folder", "not_a_file"),
        ("fifo", "not_a_file"),
        ("out/passwd", "symlink"),
        ("link", "symlink"),
        ("../elsewhere", "outside_workspace"),
        (own.to_str().unwrap(), "outside_workspace"),
        (outside.to_str().unwrap(), "outside_workspace"),
    ];
    for (path, _) in all {
        let call = json!({"tool_name": "Write", "tool_input": {"file_path": path, "content": "x"}});
        hook(&env, &payload(&env, "PreToolUse", &call));
    }
    hook(
        &env,
        &payload(
            &env,
            "PreToolUse",
            &json!({"tool_name": "Bash", "tool_input": {"command": "make"}}),
        ),
    );
    hook(
        &env,
        &payload(
            &env,
            "PreToolUse",
            &json!({"tool_name": "mcp__x__y", "tool_input": {}}),
        ),
    );
    let record = record(&env, 0);
    assert_eq!(record["files"], json!([]));
    let gaps = record["coverageGaps"].as_array().unwrap();
    let kinds: Vec<&str> = gaps.iter().map(|g| g["kind"].as_str().unwrap()).collect();
    let mut want: Vec<&str> = all.iter().map(|(_, kind)| *kind).collect();
    want.extend(["shell", "tool"]);
    assert_eq!(kinds, want, "{record:#}");
    // A change without the hook before it: what was there is not known.
    env.write("late", "x");
    hook(
        &env,
        &payload(
            &env,
            "PostToolUse",
            &json!({"tool_name": "Write", "tool_input": {"file_path": "late", "content": "x"}}),
        ),
    );
    let record = self::record(&env, 0);
    assert_eq!(
        record["coverageGaps"].as_array().unwrap().last().unwrap()["kind"],
        "not_captured"
    );
}

fn rustix_fifo(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

#[test]
fn where_the_home_folder_is_the_workspace_no_store_is_captured() {
    let env = TestEnv::new();
    let home = env.home();
    let transcript = transcript(&env);
    fs::create_dir_all(transcript.parent().unwrap()).unwrap();
    for (event, more) in [
        ("UserPromptSubmit", json!({"prompt": "x", "cwd": home})),
        (
            "PreToolUse",
            json!({"cwd": home, "tool_name": "Write", "tool_input": {"file_path": transcript, "content": "x"}}),
        ),
        (
            "PreToolUse",
            json!({"cwd": home, "tool_name": "Write", "tool_input": {"file_path": ".codex/auth.json", "content": "x"}}),
        ),
        (
            "PreToolUse",
            json!({"cwd": home, "tool_name": "Write", "tool_input": {"file_path": "notes", "content": "x"}}),
        ),
    ] {
        hook(&env, &payload(&env, event, &more));
    }
    let record = record(&env, 0);
    let gaps: Vec<_> = record["coverageGaps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|g| g["kind"].clone())
        .collect();
    assert_eq!(gaps, ["excluded", "excluded"]);
    assert_eq!(record["files"][0]["path"], "notes");
}

#[test]
fn whatever_the_payload_it_is_silent_and_ends_with_0() {
    let env = TestEnv::new();
    let long = format!(
        "{{\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"Write\",\"x\":\"{}\"}}",
        "x".repeat(1 << 20)
    );
    let odd: [&[u8]; 9] = [
        b"", b"no json", b"{", b"[]", b"{}", b"\xff\xfe",
        br#"{"hook_event_name":"PreToolUse","session_id":"../../x","cwd":"/","tool_name":"Write","tool_input":{"file_path":"/etc/passwd"}}"#,
        br#"{"hook_event_name":"UserPromptSubmit","session_id":"s","transcript_path":"relative.jsonl","prompt":"x"}"#,
        long.as_bytes(),
    ];
    for payload in odd {
        hook(&env, payload);
    }
    assert_eq!(Tree::of(&env.workspace()).0.len(), 0);
    let there = Tree::of(&env.state());
    assert!(
        there.0.keys().all(|p| p.starts_with("captures")),
        "{:?}",
        there.0.keys()
    );
}

#[test]
fn a_session_whose_file_is_not_known_is_captured_by_its_id() {
    let env = TestEnv::new();
    env.write("a", "zero\n");
    let mut s = Hooked::new(&env);
    let lost = |event: &str, mut more: Value, transcript: Value| {
        more["transcript_path"] = transcript;
        hook(&env, &payload(&env, event, &more));
    };
    lost("UserPromptSubmit", json!({"prompt": "one"}), Value::Null);
    let call = json!({"tool_name": "Write", "tool_input": {"file_path": "a", "content": "one\n"}});
    // Another project's session, and one in a folder that nobody has made.
    lost(
        "PreToolUse",
        call.clone(),
        json!("/nowhere/other-session.jsonl"),
    );
    s.story.prompt("one");
    s.story.unknown_write("a", "one\n");
    lost("PostToolUse", call, Value::Null);
    s.save();
    assert!(!sidecar(&env).exists());
    assert!(!Path::new("/nowhere").exists());
    let back = restore(&env, 0, &[]);
    assert_eq!(back.code, Some(0), "{}", back.text());
    assert_eq!(fs::read(env.workspace().join("a")).unwrap(), b"zero\n");
}

#[test]
fn bug_75_eight_agents_times_fifty_captures_lose_nothing() {
    let env = TestEnv::new();
    hook(
        &env,
        &payload(&env, "UserPromptSubmit", &json!({"prompt": "all"})),
    );
    for n in 0..400 {
        env.write(&format!("f{n}"), format!("{n}\n"));
    }
    std::thread::scope(|scope| {
        for agent in 0..8 {
            let env = &env;
            scope.spawn(move || {
                for n in 0..50 {
                    let call = json!({"tool_name": "Write", "tool_input": {"file_path": format!("f{}", agent * 50 + n), "content": "x"}});
                    hook(env, &payload(env, "PreToolUse", &call));
                }
            });
        }
    });
    let record = record(&env, 0);
    let mut paths: Vec<&str> = record["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["path"].as_str().unwrap())
        .collect();
    paths.sort_unstable();
    paths.dedup();
    assert_eq!(paths.len(), 400);
    assert_eq!(record["coverageGaps"], json!([]));
}

#[test]
fn bug_61_a_hook_that_is_killed_leaves_whole_records_and_nothing_behind() {
    let env = TestEnv::new();
    let rounds = if std::env::var_os("REWIND_TEST_ALL").is_some() {
        1000
    } else {
        60
    };
    hook(
        &env,
        &payload(&env, "UserPromptSubmit", &json!({"prompt": "all"})),
    );
    let mut whole = 0;
    for n in 0..rounds {
        let name = format!("f{n}");
        env.write(&name, format!("{n} ").repeat(3000));
        let call = json!({"tool_name": "Write", "tool_input": {"file_path": name, "content": "x"}});
        let mut child = start(
            &env,
            "2026-03-02T10:00:02Z",
            &payload(&env, "PreToolUse", &call),
        );
        // Somewhere in its few milliseconds.
        let until = std::time::Instant::now() + std::time::Duration::from_micros(n * 131 % 4000);
        while std::time::Instant::now() < until {
            std::hint::spin_loop();
        }
        let _ = child.kill();
        whole += usize::from(child.wait().unwrap().code() == Some(0));
        // Every snapshot that is listed is whole.
        for file in record(&env, 0)["files"].as_array().unwrap() {
            let sha = file["sha256"].as_str().unwrap();
            let blob = sidecar(&env)
                .join("blobs")
                .join(&sha[..2])
                .join(&sha[2..4])
                .join(sha);
            assert!(
                blob.exists() || blob.with_extension("zst").exists(),
                "{file}"
            );
        }
    }
    // The next prompt sweeps what was left.
    hook(
        &env,
        &payload(&env, "UserPromptSubmit", &json!({"prompt": "next"})),
    );
    let left = fs::read_dir(sidecar(&env).join("tmp")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "{whole} of {rounds} were whole");
}

#[test]
fn a_store_that_cannot_be_written_is_no_concern_of_the_agents() {
    let env = TestEnv::new();
    env.write("a", "zero\n");
    let transcript = transcript(&env);
    fs::create_dir_all(transcript.parent().unwrap()).unwrap();
    // A file in the place of the sidecar.
    fs::write(sidecar(&env), "in the way").unwrap();
    hook(
        &env,
        &payload(&env, "UserPromptSubmit", &json!({"prompt": "x"})),
    );
    hook(
        &env,
        &payload(
            &env,
            "PreToolUse",
            &json!({"tool_name": "Write", "tool_input": {"file_path": "a", "content": "x"}}),
        ),
    );
    assert_eq!(fs::read(sidecar(&env)).unwrap(), b"in the way");
}

#[test]
fn a_restored_conversation_that_goes_on_is_captured_and_told_apart() {
    let env = TestEnv::new();
    env.write("a", "zero\n");
    let mut s = Hooked::new(&env);
    s.prompt("one");
    s.write("a", "one\n");
    let then = s.story.clone();
    s.prompt("two");
    s.write("a", "two\n");
    // The conversation went back to before "two", and another prompt was sent.
    env.write("a", "one\n");
    s.story.go_on_from(&then);
    s.prompt("another two");
    s.write("a", "three\n");
    s.save();
    let back = restore(&env, 1, &[]);
    assert_eq!(back.code, Some(0), "{}", back.text());
    assert_eq!(fs::read(env.workspace().join("a")).unwrap(), b"one\n");
    assert_eq!(env.run(&["undo", "--yes"]).code, Some(0));
    assert_eq!(restore(&env, 0, &[]).code, Some(0));
    assert_eq!(fs::read(env.workspace().join("a")).unwrap(), b"zero\n");
}

#[test]
fn hooks_that_were_off_for_some_turns_are_told_apart_from_those_that_were_on() {
    let env = TestEnv::new();
    env.write("a", "zero\n");
    let mut s = Hooked::new(&env);
    // The same prompt three times; the hooks were off for the second.
    s.prompt("again");
    s.write("a", "one\n");
    s.story.prompt("again");
    s.story.unknown_write("a", "two\n");
    s.prompt("again");
    s.write("a", "three\n");
    s.save();
    for (turn, want) in [(2, "two\n"), (0, "zero\n")] {
        let back = restore(&env, turn, &[]);
        assert_eq!(back.code, Some(0), "turn {turn}: {}", back.text());
        assert_eq!(fs::read_to_string(env.workspace().join("a")).unwrap(), want);
        assert_eq!(env.run(&["undo", "--yes"]).code, Some(0));
    }
    // What the second one replaced was captured by nobody, and is not made up.
    let unknown = restore(&env, 1, &[]);
    assert_eq!(unknown.code, Some(3), "{}", unknown.text());
    assert_eq!(fs::read(env.workspace().join("a")).unwrap(), b"three\n");
}

#[test]
fn a_fork_of_a_captured_session_goes_back_by_its_own_checkpoints() {
    let env = TestEnv::new();
    env.write("a", "zero\n");
    let mut s = Hooked::new(&env);
    s.prompt("one");
    s.write("a", "one\n");
    s.prompt("two");
    s.write("a", "two\n");
    s.save();
    let made = env.run(&["fork", "1", "--yes", "--json"]);
    let made: Value = serde_json::from_str(&made.stdout).unwrap();
    assert_eq!(made["checkpoints"], 1, "{made}");
    // The agent goes on in the fork, with our hooks.
    let id = made["session"]["id"].as_str().unwrap();
    let path = transcript(&env).with_file_name(format!("{id}.jsonl"));
    let more = json!({"session_id": id, "transcript_path": path, "prompt": "in the fork"});
    hook(&env, &payload(&env, "UserPromptSubmit", &more));
    let turns = path.with_extension("ckpt");
    assert!(turns.join("turn-1.json").exists());
    env.write("a", "one\n");
    let back = env.run(&["restore", "0", "--scope", "code", "--yes", "-s", id]);
    assert_eq!(back.code, Some(0), "{}", back.text());
    assert_eq!(fs::read(env.workspace().join("a")).unwrap(), b"zero\n");
}

#[test]
fn a_payload_of_a_hundred_megabytes_is_taken_and_costs_nothing_but_time() {
    let env = TestEnv::new();
    env.write("a", "zero\n");
    hook(
        &env,
        &payload(&env, "UserPromptSubmit", &json!({"prompt": "one"})),
    );
    let call = json!({"tool_name": "Write", "tool_input": {"file_path": "a", "content": "@"}});
    let text = String::from_utf8(payload(&env, "PreToolUse", &call)).unwrap();
    // The end of it is not read, and what it names is not known then.
    hook(&env, text.replace('@', &"x".repeat(100 << 20)).as_bytes());
    assert_eq!(record(&env, 0)["files"], json!([]));
    hook(&env, text.replace('@', &"x".repeat(30 << 20)).as_bytes());
    assert_eq!(record(&env, 0)["files"][0]["path"], "a");
}

#[test]
fn a_disk_that_fails_at_any_one_change_leaves_whole_records_or_a_gap() {
    let mut nth = 0;
    loop {
        nth += 1;
        let world = TestEnv::new();
        world.write("a", "x".repeat(9000));
        hook(
            &world,
            &payload(&world, "UserPromptSubmit", &json!({"prompt": "one"})),
        );
        let call = json!({"tool_name": "Write", "tool_input": {"file_path": "a", "content": "x"}});
        let bytes = payload(&world, "PreToolUse", &call);
        let env = Env {
            home: Some(world.home()),
            state: Some(world.state()),
            cwd: world.workspace(),
            ..Env::of_process().unwrap()
        };
        let disk = Faulty::once(nth, 28);
        let call = Call {
            payload: &bytes,
            agent: Some("claude"),
            git: false,
        };
        let outcome = capture::capture(call, &Config::default(), &env, &disk);
        assert_eq!(outcome, Outcome::Captured, "change {nth}");
        let told = record(&world, 0);
        let held = told["files"][0]["path"] == "a";
        let gap = told["coverageGaps"][0]["path"] == "a";
        let missed = fs::read_dir(sidecar(&world)).unwrap().any(|e| {
            let name = e.unwrap().file_name();
            name.to_str().unwrap().contains(".missed-")
        });
        assert!(held || gap || missed, "change {nth}: {told}");
        if disk.asked() < nth {
            assert!(held && !gap && !missed, "nothing failed");
            assert!(nth > 8, "only {nth} changes were tried");
            return;
        }
    }
}

/// The hook run without root's power to pass over permission bits; `false` where that cannot be had.
fn powerless(env: &TestEnv, payload: &[u8]) -> bool {
    // The payload comes from a file, since the runner has no standard input of its own.
    let file = env.home().join("payload.json");
    fs::write(&file, payload).unwrap();
    let script = format!(
        "{} hook claude < {}",
        assert_cmd::cargo::cargo_bin!("rewind").display(),
        file.display()
    );
    let sh = ["-c", &script];
    let mut command = std::process::Command::new("setpriv");
    command
        .arg("--bounding-set=-dac_override,-dac_read_search")
        .arg("sh")
        .args(sh)
        .env_clear()
        .env("HOME", env.home())
        .env("REWIND_STATE_DIR", env.state())
        .env("PATH", "/usr/bin:/bin")
        .current_dir(env.workspace());
    let Ok(out) = command.output() else {
        return false;
    };
    if out.status.code() == Some(127) || !out.status.success() && !out.stderr.is_empty() {
        let _ = writeln!(
            std::io::stderr(),
            "skipped: permission bits stop nobody here"
        );
        return false;
    }
    assert_eq!(
        (out.status.code(), &*out.stdout, &*out.stderr),
        (Some(0), &b""[..], &b""[..])
    );
    true
}

#[test]
fn a_file_that_cannot_be_read_is_a_gap() {
    let env = TestEnv::new();
    let path = env.write("a", "secret\n");
    hook(
        &env,
        &payload(&env, "UserPromptSubmit", &json!({"prompt": "one"})),
    );
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    let call = json!({"tool_name": "Write", "tool_input": {"file_path": "a", "content": "x"}});
    if powerless(&env, &payload(&env, "PreToolUse", &call)) {
        let told = record(&env, 0);
        assert_eq!(told["files"], json!([]));
        assert_eq!(told["coverageGaps"][0]["kind"], "unreadable", "{told}");
    }
}

#[test]
fn a_store_that_is_read_only_is_no_concern_of_the_agents() {
    let env = TestEnv::new();
    env.write("a", "zero\n");
    hook(
        &env,
        &payload(&env, "UserPromptSubmit", &json!({"prompt": "one"})),
    );
    let before = Tree::of(&sidecar(&env)).contents();
    fs::set_permissions(sidecar(&env), fs::Permissions::from_mode(0o555)).unwrap();
    let call = json!({"tool_name": "Write", "tool_input": {"file_path": "a", "content": "x"}});
    if powerless(&env, &payload(&env, "PreToolUse", &call)) {
        let after = Tree::of(&sidecar(&env)).contents();
        assert_eq!(before.changes(&after), [""; 0]);
    }
    fs::set_permissions(sidecar(&env), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn bug_65_with_the_whole_disk_as_workspace_one_file_is_read() {
    let env = TestEnv::new();
    let path = env.write("a", "zero\n");
    hook(
        &env,
        &payload(
            &env,
            "UserPromptSubmit",
            &json!({"prompt": "one", "cwd": "/"}),
        ),
    );
    let call = json!({"cwd": "/", "tool_name": "Write", "tool_input": {"file_path": path, "content": "x"}});
    hook(&env, &payload(&env, "PreToolUse", &call));
    let told = record(&env, 0);
    assert_eq!(
        (
            told["root"].as_str(),
            told["files"].as_array().unwrap().len()
        ),
        (Some("/"), 1)
    );
    assert_eq!(
        told["files"][0]["path"],
        path.strip_prefix("/").unwrap().to_str().unwrap()
    );
}

#[test]
fn an_agent_whose_sessions_are_not_read_goes_back_by_our_captures() {
    let mut env = TestEnv::new();
    env.at("2026-03-02T11:00:00Z");
    env.write("a", "zero\n");
    let call = |now: &str, event: &str, mut more: Value| {
        more["session_id"] = json!("ses_7");
        more["cwd"] = json!(env.workspace());
        more["hook_event_name"] = json!(event);
        let mut child = env
            .command(&["hook", "opencode"])
            .env("REWIND_NOW", now)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(more.to_string().as_bytes())
            .unwrap();
        assert!(child.wait().unwrap().success());
    };
    for (turn, text) in [(0, "one\n"), (1, "two\n")] {
        let now = format!("2026-03-02T10:0{turn}:00Z");
        call(
            &now,
            "UserPromptSubmit",
            json!({"prompt": format!("turn {turn}")}),
        );
        let edit = json!({"tool_name": "write", "tool_input": {"filePath": env.workspace().join("a"), "content": text}});
        call(&now, "PreToolUse", edit.clone());
        env.write("a", text);
        call(&now, "PostToolUse", edit);
    }
    let list = env.run(&["list"]);
    assert_eq!(list.code, Some(0), "{}", list.text());
    assert!(
        list.stdout.contains("turn 1") && list.stdout.contains("all"),
        "{}",
        list.text()
    );
    for (turn, want) in [(1, "one\n"), (0, "zero\n")] {
        let back = restore(&env, turn, &[]);
        assert_eq!(back.code, Some(0), "{}", back.text());
        assert_eq!(fs::read_to_string(env.workspace().join("a")).unwrap(), want);
        assert_eq!(env.run(&["undo", "--yes"]).code, Some(0));
    }
    let talk = env.run(&["restore", "0", "--scope", "conversation", "--yes"]);
    assert_eq!(talk.code, Some(6), "{}", talk.text());
}
