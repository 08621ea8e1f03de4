//! What nobody would write on purpose: sessions that are none, turns and ids that are not there, words that steer a
//! terminal, workspaces that moved, a user without a home. What disks and locks do is in `hostile_disk`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::env::{Run, TestEnv, Tree};
use crate::story::{History, ID, Story, bytes};
use crate::wrap;

/// Two turns, each of which changes `a.txt`.
fn two<'e>(env: &'e TestEnv, id: &str) -> Story<'e> {
    env.write("a.txt", "v0\n");
    let mut s = Story::with(env, id, History::Kept);
    for n in 0..2 {
        s.prompt(&format!("prompt {n}"));
        s.edit("a.txt", &format!("v{n}"), &format!("v{}", n + 1));
    }
    s.save();
    s
}

/// The commands that need a session.
const COMMANDS: [&[&str]; 3] = [
    &["list"],
    &["show", "0"],
    &["restore", "0", "--scope", "both", "--yes"],
];

fn with_session<'a>(args: &[&'a str], session: &'a str) -> Vec<&'a str> {
    [args, &["-s", session]].concat()
}

/// The error that a run gave as JSON, checked for the parts that each has.
#[track_caller]
fn error_of(run: &Run) -> Value {
    let error: Value =
        serde_json::from_str(&run.stderr).unwrap_or_else(|e| panic!("{e}: {}", run.text()));
    assert_eq!(error["schema"], "rewind.error/1", "{error}");
    assert_eq!(error["code"].as_i64(), run.code.map(i64::from), "{error}");
    for text in ["kind", "message", "changed"] {
        assert!(!error[text].as_str().unwrap().is_empty(), "{text}: {error}");
    }
    for list in ["hints", "paths", "causes"] {
        assert!(error[list].is_array(), "{list}: {error}");
    }
    assert_eq!(run.stdout, "", "data and a failure: {}", run.text());
    error
}

#[test]
fn a_file_that_is_no_session_is_named_with_what_was_seen() {
    let env = TestEnv::new();
    let garbage: Vec<u8> = (0..4096u32)
        .map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[1])
        .collect();
    let deep = vec![b'['; 100_000];
    let files: [(&str, &[u8], &str); 6] = [
        ("empty.jsonl", b"", "empty"),
        ("garbage.jsonl", &garbage, "no line of it is a JSON object"),
        ("zeros.jsonl", &[0; 4096], "no line of it is a JSON object"),
        (
            "text.jsonl",
            b"hello\nworld\n",
            "no line of it is a JSON object",
        ),
        (
            "other.jsonl",
            b"{\"flavour\":\"vanilla\",\"n\":1}\n",
            "`flavour`",
        ),
        ("deep.jsonl", &deep, "no line of it is a JSON object"),
    ];
    for (name, bytes, seen) in files {
        let path = env.write(name, bytes);
        let path = path.to_str().unwrap();
        for args in COMMANDS {
            let run = env.run(&with_session(args, path));
            assert_eq!(run.code, Some(6), "{name}: {}", run.text());
            assert!(run.stderr.contains(seen), "{name}: {}", run.text());
            assert!(run.stderr.contains("nothing was changed"), "{}", run.text());
        }
        assert_eq!(fs::read(path).unwrap(), bytes, "{name}");
    }
    assert_eq!(
        Tree::of(&env.state()).0.len(),
        0,
        "nothing to undo, so no journal"
    );
}

#[test]
fn a_session_of_one_header_has_no_turns() {
    let env = TestEnv::new();
    let ws = env.workspace();
    let header = serde_json::json!({"timestamp": "2026-05-01T10:00:00.000Z", "type": "session_meta",
        "payload": {"id": "0196f000-0000-7000-8000-0000000000aa", "cwd": ws, "cli_version": "0.171.0"}});
    let snapshot = r#"{"type":"file-history-snapshot","messageId":"m","snapshot":{"messageId":"m","trackedFileBackups":{}},"isSnapshotUpdate":false}"#;
    for (name, line) in [
        ("codex.jsonl", header.to_string()),
        ("claude.jsonl", snapshot.to_owned()),
    ] {
        for end in ["", "\n"] {
            let path = env.home().join(name);
            fs::write(&path, format!("{line}{end}")).unwrap();
            let path = path.to_str().unwrap();
            let run = env.run(&["list", path, "--json"]);
            assert_eq!(run.code, Some(0), "{name}: {}", run.text());
            let list: Value = serde_json::from_str(&run.stdout).unwrap();
            assert_eq!(list["total"], 0, "{name}");
            let run = env.run(&[
                "-s", path, "-w", ".", "restore", "0", "--scope", "both", "--yes",
            ]);
            assert_eq!(run.code, Some(5), "{name}: {}", run.text());
            assert!(run.stderr.contains("no turns"), "{name}: {}", run.text());
        }
    }
}

#[test]
fn a_turn_that_is_not_there_is_an_error_that_names_those_that_are() {
    let env = TestEnv::new();
    two(&env, ID);
    let tree = Tree::of(&env.workspace());
    for turn in [
        "2",
        "-3",
        "4294967295",
        "99999999999999999999",
        "-0",
        "nosuch",
    ] {
        for command in ["show", "restore"] {
            let mut args = vec![command, turn];
            if command == "restore" {
                args.extend(["--scope", "both", "--yes"]);
            }
            let run = env.run(&args);
            assert_eq!(run.code, Some(5), "{turn}: {}", run.text());
            assert!(run.stderr.contains("0 to 1"), "{turn}: {}", run.text());
            assert!(run.stderr.contains("nothing was changed"), "{}", run.text());
        }
    }
    assert_eq!(tree.changes(&Tree::of(&env.workspace())), [""; 0]);
}

#[test]
fn an_id_that_fits_several_sessions_or_none_is_an_error() {
    let env = TestEnv::new();
    let other = "5e550000-0000-4000-8000-000000000002";
    two(&env, ID);
    two(&env, other);
    let run = env.run(&["list", "5e55"]);
    assert_eq!(run.code, Some(5), "{}", run.text());
    for id in [ID, other] {
        assert!(run.stderr.contains(id), "{id}: {}", run.text());
    }
    for unknown in [
        "6",
        "5e550000-0000-4000-8000-0000000000020",
        "./nosuch.jsonl",
        "/nosuch",
    ] {
        let run = env.run(&["list", unknown]);
        assert_eq!(run.code, Some(5), "{unknown}: {}", run.text());
        assert!(run.stderr.contains(unknown), "{unknown}: {}", run.text());
    }
    // A whole id is no prefix of a longer one, and a prefix that fits once is enough.
    for known in [other, "5e550000-0000-4000-8000-000000000002"] {
        assert_eq!(env.run(&["list", known]).code, Some(0));
    }
    // Turns too: their ids here differ in the first eight digits alone.
    let run = env.run(&["-s", ID, "show", "0000000"]);
    assert_eq!(run.code, Some(5), "{}", run.text());
    assert!(
        run.stderr.contains("turn 0") && run.stderr.contains("turn 1"),
        "{}",
        run.text()
    );
}

#[test]
fn errors_are_objects_with_all_their_parts_where_json_is_asked_for() {
    let env = TestEnv::new();
    two(&env, ID);
    let junk = env.write("junk.jsonl", "junk");
    let junk = junk.to_str().unwrap();
    let cases: [(&[&str], i32, &str); 8] = [
        (&["list", "nosuch"], 5, "not-found"),
        (&["list", junk], 6, "unsupported"),
        (&["show", "9"], 5, "not-found"),
        (&["undo", "--yes"], 5, "not-found"),
        (&["redo", "--yes"], 5, "not-found"),
        (&["restore", "0", "--scope", "code"], 2, "usage"),
        (
            &["restore", "0", "--scope", "both", "--yes", "--", "a.txt"],
            2,
            "usage",
        ),
        (&["sessions", "--agent", "nobody"], 2, "usage"),
    ];
    for (args, code, kind) in cases {
        let run = env.run(&[args, &["--json"]].concat());
        let run = match args.iter().position(|a| *a == "--") {
            Some(at) => env.run(&[&args[..at], &["--json"], &args[at..]].concat()),
            None => run,
        };
        assert_eq!(run.code, Some(code), "{args:?}: {}", run.text());
        let error = error_of(&run);
        assert_eq!(error["kind"], kind, "{error}");
        assert!(!error["hints"].as_array().unwrap().is_empty(), "{error}");
    }
    // With the paths that it is about.
    env.write("a.txt", "mine\n");
    let run = env.run(&["restore", "0", "--scope", "code", "--yes", "--json"]);
    assert_eq!(run.code, Some(4), "{}", run.text());
    let error = error_of(&run);
    assert_eq!(error["paths"][0]["path"], "a.txt", "{error}");
    assert!(error["paths"][0]["reason"].is_string(), "{error}");
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"mine\n");
}

/// What a terminal would act upon: control characters (C1 ones too) but for line ends and tabs, and those that turn the
/// direction of writing.
fn steers(text: &str) -> Option<char> {
    let bidi = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}');
    text.chars()
        .find(|c| bidi(*c) || (c.is_control() && !matches!(c, '\n' | '\t')))
}

const EVIL: &str = "\u{1b}]0;x\u{7}\u{1b}[2J\u{9b}31m\u{202e}txt.\u{2066}\u{200f}\u{7f}\r\u{8}";

/// A session whose every word is hostile: prompt, paths, command, id and turn id.
fn evil(env: &TestEnv) -> PathBuf {
    env.write("a.txt", "v0\n");
    env.write(&format!("edit{EVIL}\n"), "v0\n");
    let mut s = Story::new(env);
    for n in 0..2 {
        s.prompt(&format!("{EVIL}\nsecond line {n}"));
        s.edit(
            &format!("edit{EVIL}\n"),
            &format!("v{n}"),
            &format!("{EVIL}v{}", n + 1),
        );
        s.write(&format!("new{n}{EVIL}"), EVIL);
        s.write(&format!("/nowhere{EVIL}/../{n}"), "x");
        s.bash(&format!("echo {EVIL}"));
    }
    let path = s.save();
    let text = fs::read_to_string(&path).unwrap();
    let key = serde_json::to_string(&format!("00000001{EVIL}")).unwrap();
    let text = text.replace("\"00000001-0000-4000-8000-000000000000\"", &key);
    fs::remove_file(&path).unwrap();
    let copies = s.copies();
    fs::rename(&copies, copies.with_file_name(format!("id{EVIL}"))).unwrap();
    let path = path.with_file_name(format!("id{EVIL}.jsonl"));
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn no_word_of_a_session_steers_the_terminal() {
    let env = TestEnv::new();
    let session = evil(&env);
    let session = session.to_str().unwrap();
    let runs: [(&[&str], &[i32]); 15] = [
        (&["sessions"], &[0]),
        (&["list"], &[0]),
        (&["list", session], &[0]),
        (&["list", "id"], &[0]),
        (&["list", EVIL], &[5]),
        (&["show", "0"], &[0]),
        (&["show", EVIL], &[5]),
        (&["-w", EVIL, "show", "0"], &[5]),
        (&["restore", "0", "--scope", "both", "--dry-run"], &[0]),
        (&["restore", "1", "--scope", "code", "--yes"], &[3]),
        (&["restore", "0", "--scope", "both", "--yes"], &[3]),
        (&["log"], &[0]),
        (&["undo", "--yes"], &[0]),
        (&["redo", "--yes"], &[0]),
        (&["undo", EVIL, "--yes"], &[5]),
    ];
    for (args, codes) in runs {
        let run = env.run(args);
        let code = run.code.unwrap();
        assert!(
            codes.contains(&code),
            "{args:?}: {}",
            run.text().escape_debug()
        );
        assert_eq!(
            steers(&run.text()),
            None,
            "{args:?}: {}",
            run.text().escape_debug()
        );
    }
}

#[test]
fn no_word_of_a_session_steers_the_terminal_in_json_and_all_come_back_exactly() {
    let env = TestEnv::new();
    evil(&env);
    for args in [
        &["sessions"][..],
        &["list"],
        &["show", "0"],
        &["list", EVIL],
        &["restore", "0", "--scope", "both", "--dry-run"],
        &["restore", "0", "--scope", "code", "--yes"],
        &["log"],
    ] {
        let run = env.run(&[args, &["--json"]].concat());
        assert_eq!(
            steers(&run.text()),
            None,
            "{args:?}: {}",
            run.text().escape_debug()
        );
    }
    let run = env.run(&["list", "--json"]);
    let list: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(list["turns"][0]["prompt"], format!("{EVIL}\nsecond line 0"));
    assert_eq!(list["turns"][0]["id"], format!("00000001{EVIL}"));
}

#[test]
fn a_workspace_that_is_gone_is_named_and_another_folder_is_not_used_for_it() {
    let env = TestEnv::new();
    let story = two(&env, ID);
    let whole = fs::read(story.path()).unwrap();
    let moved = env.home().join("moved");
    fs::rename(env.workspace(), &moved).unwrap();
    let before = Tree::of(&moved);
    for args in [
        &["show", "0"][..],
        &["restore", "0", "--scope", "both", "--yes"],
    ] {
        let run = env.run_in(&moved, &with_session(args, ID));
        assert_eq!(run.code, Some(5), "{}", run.text());
        assert!(run.stderr.contains("[WS]"), "{}", run.text());
        assert!(
            run.stderr.contains("--workspace") || run.stderr.contains("-w"),
            "{}",
            run.text()
        );
        assert!(run.stderr.contains("nothing was changed"), "{}", run.text());
    }
    // The turns are read without it.
    assert_eq!(env.run_in(&moved, &["list", ID]).code, Some(0));
    assert_eq!(before.changes(&Tree::of(&moved)), [""; 0]);
    assert_eq!(fs::read(story.path()).unwrap(), whole);
    let args = [
        "-s", ID, "-w", ".", "restore", "0", "--scope", "code", "--yes",
    ];
    let run = env.run_in(&moved, &args);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(fs::read(moved.join("a.txt")).unwrap(), b"v0\n");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for name in ["a.txt", "b.txt"] {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

#[test]
fn with_a_workspace_named_only_that_copy_changes() {
    let env = TestEnv::new();
    env.write("b.txt", "mine\n");
    two(&env, ID);
    let elsewhere = env.home().join("copy");
    copy(&env.workspace(), &elsewhere);
    let recorded = Tree::of(&env.workspace());
    let named = elsewhere.to_str().unwrap();
    let args = [
        "-s", ID, "-w", named, "restore", "0", "--scope", "code", "--yes",
    ];
    // From the recorded folder, which is still there.
    let run = env.run(&args);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(fs::read(elsewhere.join("a.txt")).unwrap(), b"v0\n");
    assert_eq!(fs::read(elsewhere.join("b.txt")).unwrap(), b"mine\n");
    assert_eq!(recorded.changes(&Tree::of(&env.workspace())), [""; 0]);
    // And so for undo: each folder has its own journal.
    assert_eq!(env.run(&["undo", "--yes"]).code, Some(5));
    let run = env.run(&["undo", "--yes", "-w", named]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(fs::read(elsewhere.join("a.txt")).unwrap(), b"v2\n");
    assert_eq!(recorded.changes(&Tree::of(&env.workspace())), [""; 0]);
    // From the copy without naming a folder: which of the two is meant is not guessed.
    let run = env.run_in(
        &elsewhere,
        &["-s", ID, "restore", "0", "--scope", "code", "--yes"],
    );
    assert_eq!(run.code, Some(2), "{}", run.text());
    assert!(run.stderr.contains("--workspace"), "{}", run.text());
    assert_eq!(fs::read(elsewhere.join("a.txt")).unwrap(), b"v2\n");
    assert_eq!(recorded.changes(&Tree::of(&env.workspace())), [""; 0]);
}

fn homeless(env: &TestEnv, args: &[&str], state: Option<&Path>) -> Run {
    let mut command = env.command(args);
    for name in [
        "HOME",
        "REWIND_STATE_DIR",
        "XDG_STATE_HOME",
        "XDG_DATA_HOME",
        "XDG_CONFIG_HOME",
        "XDG_CACHE_HOME",
    ] {
        command.env_remove(name);
    }
    if let Some(state) = state {
        command.env("REWIND_STATE_DIR", state);
    }
    wrap::end(env, command)
}

#[test]
fn without_a_home_sessions_are_listed_by_path_and_nothing_is_changed_without_a_journal() {
    let env = TestEnv::new();
    let story = two(&env, ID);
    let path = story.path();
    let session = path.to_str().unwrap();
    let run = homeless(&env, &["list", session], None);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert!(run.stdout.contains("prompt 1"), "{}", run.text());
    let run = homeless(&env, &["show", "0", "-s", session], None);
    assert_eq!(run.code, Some(0), "{}", run.text());
    let tree = Tree::of(&env.workspace());
    let whole = fs::read(&path).unwrap();
    let restore = ["-s", session, "restore", "0", "--scope", "both", "--yes"];
    for args in [&restore[..], &["undo", "--yes"], &["log"]] {
        let run = homeless(&env, args, None);
        assert_eq!(run.code, Some(1), "{args:?}: {}", run.text());
        assert!(
            run.stderr.contains("hint: ") && run.stderr.contains("REWIND_STATE_DIR"),
            "{}",
            run.text()
        );
        assert!(run.stderr.contains("nothing was changed"), "{}", run.text());
    }
    assert_eq!(tree.changes(&Tree::of(&env.workspace())), [""; 0]);
    assert_eq!(fs::read(&path).unwrap(), whole);
    let state = env.home().join("elsewhere");
    let run = homeless(&env, &restore, Some(&state));
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"v0\n");
    let run = homeless(&env, &["undo", "--yes"], Some(&state));
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"v2\n");
    assert_eq!(fs::read(&path).unwrap(), whole);
    // A folder that depends on where one stands would be another journal each time.
    let run = homeless(&env, &restore, Some(Path::new("relative")));
    assert_eq!(run.code, Some(1), "{}", run.text());
    assert!(!env.workspace().join("relative").exists());
}
