//! `bugs.md` D: bytes, names and modes come back as they were. One test an entry, named after its number.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::env::{Run, TestEnv, Tree};
use crate::story::{History, ID, Story, bytes};
use crate::wrap;

const OVERWRITE: [&str; 7] = [
    "restore",
    "0",
    "--scope",
    "code",
    "--yes",
    "--on-conflict",
    "overwrite",
];

fn restore(env: &TestEnv, turn: &str) -> Run {
    env.run(&["restore", turn, "--scope", "code", "--yes"])
}

/// The agent replaces `one` by `two` in a file with these bytes; then it goes back, and forth again.
#[track_caller]
fn goes_back_and_forth(name: &str, before: &[u8]) {
    let env = TestEnv::new();
    env.write(name, before);
    let mut s = Story::new(&env);
    s.prompt("change it");
    s.edit(name, "one", "two");
    s.save();
    let after = bytes(&env, name).unwrap();
    assert_ne!(after, before);
    let run = restore(&env, "0");
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(bytes(&env, name).unwrap(), before);
    let run = env.run(&["undo", "--yes"]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(bytes(&env, name).unwrap(), after);
}

/// The same where only the transcript's text is left of the old bytes: it must not stand in for them.
#[track_caller]
fn text_does_not_stand_in(name: &str, before: &[u8]) {
    let env = TestEnv::new();
    env.write(name, before);
    env.write("plain.txt", "one\n");
    let mut s = Story::with(&env, ID, History::Off);
    s.prompt("change it");
    s.edit(name, "one", "two");
    s.edit("plain.txt", "one", "two");
    s.save();
    let tree = Tree::of(&env.workspace());
    let run = restore(&env, "0");
    assert_eq!(run.code, Some(3), "{}", run.text());
    assert!(run.text().contains(name), "{}", run.text());
    let changes = tree.changes(&Tree::of(&env.workspace()));
    assert_eq!(changes, ["plain.txt: bytes"]);
    assert_eq!(bytes(&env, "plain.txt").unwrap(), b"one\n");
}

#[test]
fn bug_48_gb18030_comes_back_as_gb18030() {
    goes_back_and_forth("gb.txt", b"\xC4\xE3\r\none\r\n");
    text_does_not_stand_in("gb.txt", b"\xC4\xE3 one\n");
}

#[test]
fn bug_48_decoded_text_of_a_sidecar_is_encoded_again_or_refused() {
    let env = TestEnv::new();
    // "hé" as UTF-16, which can be made again, and GB18030, which cannot.
    let wide = b"\xFF\xFEh\0\xE9\0".to_vec();
    env.write("wide.txt", "agent");
    env.write("gb.txt", "agent");
    let mut s = Story::with(&env, ID, History::Off);
    s.prompt("by the shell");
    s.bash("python rewrite.py");
    let session = s.save();
    let sidecar = session.with_extension("ckpt");
    fs::create_dir(&sidecar).unwrap();
    let files = json!([
        {"path": "wide.txt", "content": "h\u{e9}", "encoding": 2},
        {"path": "gb.txt", "content": "\u{4f60}\r\n", "encoding": 4},
    ]);
    let record = json!({"turn": 0, "time": "2026-03-02T10:00:01Z", "prompt": "by the shell", "msgIndex": 0, "files": files});
    fs::write(sidecar.join("turn-0.json"), record.to_string()).unwrap();
    let run = restore(&env, "0");
    assert_eq!(run.code, Some(3), "{}", run.text());
    assert_eq!(bytes(&env, "wide.txt").unwrap(), wide);
    assert_eq!(bytes(&env, "gb.txt").unwrap(), b"agent");
    assert!(run.text().contains("gb.txt"), "{}", run.text());
}

#[test]
fn bug_49_binary_survives_saving_and_restoring() {
    let env = TestEnv::new();
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff\xd8\0\x80".to_vec();
    env.write("logo.png", &png);
    env.write("byte", b"\xFF");
    env.write("empty", b"");
    let mut s = Story::new(&env);
    s.prompt("overwrite all");
    for name in ["logo.png", "byte", "empty"] {
        s.write(name, "text\n");
    }
    s.save();
    // What the person leaves is binary too, so that the journal's copy is tried as well.
    env.write("byte", b"\xFE\0\xFF");
    let run = env.run(&OVERWRITE);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(bytes(&env, "logo.png").unwrap(), png);
    assert_eq!(bytes(&env, "byte").unwrap(), b"\xFF");
    assert_eq!(
        bytes(&env, "empty").unwrap(),
        b"",
        "empty is not absent, and not text"
    );
    let run = env.run(&["undo", "--yes"]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(bytes(&env, "byte").unwrap(), b"\xFE\0\xFF");
    assert_eq!(bytes(&env, "logo.png").unwrap(), b"text\n");
}

#[test]
fn bug_50_latin_1_comes_back_without_replacement_characters() {
    goes_back_and_forth("latin.txt", b"caf\xE9 one\n");
    text_does_not_stand_in("latin.txt", b"caf\xE9 one\n");
}

#[test]
fn bug_50_a_text_that_was_damaged_when_it_was_recorded_is_not_written() {
    for name in ["made-utf-8.txt", "made-lossy.txt"] {
        let env = TestEnv::new();
        env.write(name, b"caf\xE9\n");
        let mut s = Story::with(&env, ID, History::Off);
        s.prompt("change it");
        let text = if name == "made-lossy.txt" {
            "caf\u{FFFD}, two\n"
        } else {
            "caf\u{e9}, two\n"
        };
        s.write(name, text);
        s.save();
        let run = restore(&env, "0");
        assert_eq!(run.code, Some(3), "{name}: {}", run.text());
        assert_eq!(bytes(&env, name).unwrap(), text.as_bytes());
    }
}

#[test]
fn bug_51_line_ends_and_byte_order_mark_are_kept_and_shown() {
    let marked = b"\xEF\xBB\xBFa\r\none";
    goes_back_and_forth("dos.txt", marked);
    text_does_not_stand_in("dos.txt", marked);
    // An agent that wrote the same text without them changed the file, and the difference says so.
    let env = TestEnv::new();
    env.write("dos.txt", marked);
    let mut s = Story::new(&env);
    s.prompt("normalise");
    s.write("dos.txt", "a\none\n");
    s.save();
    let run = env.run(&["show", "0"]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert!(run.stdout.contains("+\\u{feff}a\\r\n"), "{}", run.text());
    assert!(
        run.stdout.contains("\\ No newline at end of file"),
        "{}",
        run.text()
    );
    assert_eq!(restore(&env, "0").code, Some(0));
    assert_eq!(bytes(&env, "dos.txt").unwrap(), marked);
}

fn mode(env: &TestEnv, path: &str) -> u32 {
    let meta = fs::symlink_metadata(env.workspace().join(path)).unwrap();
    meta.permissions().mode() & 0o7777
}

fn set_mode(env: &TestEnv, path: &str, mode: u32) {
    let path = env.workspace().join(path);
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn bug_52_modes_are_kept_and_the_umask_does_not_leak() {
    let env = TestEnv::new();
    let modes = [("run.sh", 0o755), ("secret", 0o600), ("fixed", 0o444)];
    for (name, mode) in modes {
        env.write(name, "one\n");
        set_mode(&env, name, mode);
    }
    let mut s = Story::new(&env);
    s.prompt("change all, and make one");
    for (name, _) in modes {
        s.edit(name, "one", "two");
    }
    s.write("bin/new.sh", "new\n");
    s.save();
    set_mode(&env, "bin/new.sh", 0o775);
    set_mode(&env, "bin", 0o751);
    let under = |command: &[&str]| {
        let run = wrap::under(&env, "umask 077", command);
        assert_eq!(run.code, Some(0), "{}", run.text());
    };
    under(&["restore", "0", "--scope", "code", "--yes"]);
    for (name, wanted) in modes {
        assert_eq!(bytes(&env, name).unwrap(), b"one\n");
        assert_eq!(mode(&env, name), wanted, "{name}");
    }
    assert!(!env.workspace().join("bin").exists());
    under(&["undo", "--yes"]);
    for (name, wanted) in modes {
        assert_eq!(bytes(&env, name).unwrap(), b"two\n");
        assert_eq!(mode(&env, name), wanted, "{name}");
    }
    assert_eq!(mode(&env, "bin/new.sh"), 0o775);
    assert_eq!(mode(&env, "bin"), 0o751);
}

#[test]
fn bug_52_setuid_is_not_given_to_other_bytes() {
    let env = TestEnv::new();
    env.write("tool", "one\n");
    let mut s = Story::new(&env);
    s.prompt("change it");
    s.edit("tool", "one", "two");
    s.save();
    set_mode(&env, "tool", 0o6755);
    let run = restore(&env, "0");
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(bytes(&env, "tool").unwrap(), b"one\n");
    assert_eq!(mode(&env, "tool"), 0o755);
}

#[test]
fn bug_53_odd_names_come_back_and_no_other_name_is_taken_for_them() {
    let env = TestEnv::new();
    let names = [
        "公共.cpp",
        "a b",
        "\"q\"",
        "new\nline",
        "-rf",
        "back\\slash",
    ];
    for name in names {
        env.write(name, "one\n");
    }
    // A record is text, so a name that is not is recorded as another one; that record must not reach this file.
    let raw = env.workspace().join(OsStr::from_bytes(b"raw\xFF"));
    fs::write(&raw, "mine\n").unwrap();
    let mut s = Story::new(&env);
    s.prompt("change all");
    for name in names {
        s.edit(name, "one", "two");
        s.write(&format!("made/{name}"), "new\n");
    }
    s.write("raw\u{FFFD}", "new\n");
    s.save();
    let after = Tree::of(&env.workspace());
    let run = restore(&env, "0");
    assert_eq!(run.code, Some(0), "{}", run.text());
    for name in names {
        assert_eq!(bytes(&env, name).unwrap(), b"one\n", "{name:?}");
        assert_eq!(bytes(&env, &format!("made/{name}")), None, "{name:?}");
    }
    assert_eq!(bytes(&env, "raw\u{FFFD}"), None);
    assert_eq!(fs::read(&raw).unwrap(), b"mine\n");
    assert!(
        run.stdout.contains("\"new\\nline\"") && !run.stdout.contains("new\nline"),
        "{}",
        run.text()
    );
    let run = env.run(&["undo", "--yes"]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    let now = Tree::of(&env.workspace()).contents();
    assert_eq!(after.contents().changes(&now), [""; 0]);
}

#[test]
fn bug_53_a_folder_whose_name_is_no_text_is_a_workspace_like_any_other() {
    let env = TestEnv::new();
    env.write("a", "one\n");
    let mut s = Story::new(&env);
    s.prompt("change it");
    s.edit("a", "one", "two");
    s.save();
    let copy = env.home().join(OsStr::from_bytes(b"copy\xFF"));
    fs::create_dir(&copy).unwrap();
    fs::copy(env.workspace().join("a"), copy.join("a")).unwrap();
    let here = [
        "-s", ID, "-w", ".", "restore", "0", "--scope", "code", "--yes", "--json",
    ];
    let run = env.run_in(&copy, &here);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert!(run.stdout.contains("path_bytes"), "{}", run.text());
    assert_eq!(fs::read(copy.join("a")).unwrap(), b"one\n");
    assert_eq!(bytes(&env, "a").unwrap(), b"two\n");
    let run = env.run_in(&copy, &["undo", "--yes"]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(fs::read(copy.join("a")).unwrap(), b"two\n");
}

/// A Codex thread of one turn that moves a file to another name. The file is born while the call runs, so that it is
/// certain that the move wrote over nothing.
fn moved(env: &TestEnv, from: &str, to: &str) {
    let now = || {
        let since = std::time::UNIX_EPOCH.elapsed().unwrap();
        u64::try_from(since.as_millis()).unwrap()
    };
    let started = now();
    env.write(to, "same\n");
    let id = "0196f000-0000-7000-8000-0000000000aa";
    let cwd = env.workspace();
    let change = json!({"type": "update", "unified_diff": "", "move_path": cwd.join(to)});
    let lines = [
        json!({"type": "session_meta", "payload": {"id": id, "cwd": cwd, "cli_version": "0.171.0", "history_mode": "paginated"}}),
        json!({"type": "event_msg", "payload": {"type": "task_started", "turn_id": "p1"}}),
        json!({"type": "event_msg", "payload": {"type": "item_completed", "turn_id": "p1",
            "item": {"type": "UserMessage", "id": "u1", "content": [{"type": "text", "text": "rename it"}]}}}),
        json!({"type": "event_msg", "payload": {"type": "item_completed", "turn_id": "p1",
            "started_at_ms": started, "completed_at_ms": now(),
            "item": {"type": "FileChange", "id": "c1", "status": "completed", "changes": {cwd.join(from).to_str().unwrap(): change}}}}),
        json!({"type": "event_msg", "payload": {"type": "task_complete", "turn_id": "p1"}}),
    ];
    let mut text = String::new();
    for (n, mut line) in lines.into_iter().enumerate() {
        line["timestamp"] = json!(format!("2026-05-01T10:00:{n:02}.000Z"));
        line["ordinal"] = json!(n);
        text.push_str(&line.to_string());
        text.push('\n');
    }
    let folder = env.home().join(".codex/sessions/2026/05/01");
    fs::create_dir_all(&folder).unwrap();
    let name = format!("rollout-2026-05-01T10-00-00-{id}.jsonl");
    fs::write(folder.join(name), text).unwrap();
}

#[test]
fn bug_55_a_rename_is_taken_back_under_the_old_name() {
    let env = TestEnv::new();
    moved(&env, "Hello", "hello");
    // The record of a move holds no bytes, so whether somebody changed the file since is not known.
    let run = restore(&env, "0");
    assert_eq!(run.code, Some(4), "{}", run.text());
    assert_eq!(bytes(&env, "hello").unwrap(), b"same\n");
    let run = env.run(&OVERWRITE);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(bytes(&env, "Hello").unwrap(), b"same\n");
    assert_eq!(bytes(&env, "hello"), None);
}

/// Two names of one entry, as a folder that folds case has them. A bound file is the nearest thing to it that every
/// Linux can make: same device and inode, one hard link.
#[test]
fn bug_55_two_names_of_one_entry_are_refused_and_not_lost() {
    for how in ["fail", "overwrite"] {
        let env = TestEnv::new();
        env.write("Hello", "");
        moved(&env, "Hello", "hello");
        let script = "mount --bind \"$WS/hello\" \"$WS/Hello\"\n\"$@\" || code=$?\numount \"$WS/Hello\"\nexit ${code:-0}";
        let tree = Tree::of(&env.workspace());
        let mut args = OVERWRITE;
        args[6] = how;
        let Some(run) = wrap::in_mounts(&env, script, &args) else {
            return;
        };
        assert_eq!(run.code, Some(3), "{how}: {}", run.text());
        assert!(
            run.text().contains("hello: has several names"),
            "{}",
            run.text()
        );
        let changes = tree.changes(&Tree::of(&env.workspace()));
        assert_eq!(changes, [""; 0], "{how}: {}", run.text());
    }
}

#[test]
fn bug_56_names_that_may_not_be_written_are_named_and_left() {
    let env = TestEnv::new();
    env.write("a", "one\n");
    env.write(".git/config", "[core]\n");
    env.write("sub/.GIT/hooks/x", "hook\n");
    let mut s = Story::with(&env, ID, History::Off);
    s.prompt("change all");
    s.edit("a", "one", "two");
    s.edit(".git/config", "core", "evil");
    s.edit("sub/.GIT/hooks/x", "hook", "evil");
    // On this system an ordinary name.
    s.write("nul", "new\n");
    let session = s.save();
    let long = "n".repeat(300);
    let text = fs::read_to_string(&session).unwrap();
    let mut more = String::new();
    for name in ["nu\u{0}l", long.as_str()] {
        let line = text.lines().find(|l| l.contains("\"name\":\"Write\""));
        let result = text
            .lines()
            .find(|l| l.contains("\"type\":\"create\""))
            .unwrap();
        let name = serde_json::to_string(name).unwrap();
        let name = name.trim_matches('"');
        for l in [line.unwrap(), result] {
            more.push_str(&l.replace("/nul\"", &format!("/{name}\"")));
            more.push('\n');
        }
    }
    fs::write(&session, text + &more).unwrap();
    let git = Tree::of(&env.workspace());
    let run = restore(&env, "0");
    assert_eq!(run.code, Some(3), "{}", run.text());
    for name in [".git/config", "sub/.GIT/hooks/x", "nu\\u{0}l", "nnnn"] {
        assert!(run.text().contains(name), "{name}: {}", run.text());
    }
    let changes = git.changes(&Tree::of(&env.workspace()));
    assert_eq!(changes, ["a: bytes", "nul: gone"]);
}
