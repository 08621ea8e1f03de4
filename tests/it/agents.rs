//! What each kind of agent allows, as a user meets it: a conversation that is cut in two files at once, one that goes back
//! through a fork only, and one that is only read.

use std::fs;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use serde_json::Value;

use crate::env::{TestEnv, Tree, copy};

/// A home in which this agent has worked in the workspace, and its session.
fn world(agent: &str, root: &str, session: &str) -> (TestEnv, PathBuf) {
    let env = TestEnv::new();
    let set = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(agent);
    copy(&set, &env.home());
    let path = env.home().join(session);
    // The root stands in the session or beside it.
    for file in fs::read_dir(path.parent().unwrap()).unwrap() {
        let file = file.unwrap().path();
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace(root, env.workspace().to_str().unwrap())).unwrap();
    }
    (env, path)
}

const DROID: &str = ".factory/sessions/-w-app/d0000000-0000-4000-8000-000000000001.jsonl";
const VIBE: &str = ".vibe/logs/session/session_20260301_100000_be000000/messages.jsonl";
const KIRO: &str = ".kiro/sessions/cli/c1000000-0000-4000-8000-000000000001.jsonl";
const KIMI: &str = ".kimi/sessions/e8fe62499352db84ffbb31a6ce9eda68/c1c10000-0000-4000-8000-000000000001/wire.jsonl";

fn prompts(env: &TestEnv, session: &str) -> Vec<String> {
    let run = env.run(&["list", "--json", "-s", session]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    let list: Value = serde_json::from_str(&run.stdout).unwrap();
    let turns = list["turns"].as_array().unwrap().iter();
    turns
        .map(|t| t["prompt"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn where_only_a_fork_is_safe_a_restore_says_so_and_the_fork_is_made() {
    for (agent, path, resume) in [
        ("droid", DROID, "droid --resume "),
        ("vibe", VIBE, "vibe --resume "),
        ("kiro", KIRO, "kiro-cli chat --resume-id "),
    ] {
        let (env, path) = world(agent, "/w/app", path);
        let session = path.to_str().unwrap();
        let before = Tree::of(&env.home());
        for scope in ["conversation", "both"] {
            let run = env.run(&["restore", "1", "--scope", scope, "--yes", "-s", session]);
            assert_eq!(run.code, Some(6), "{agent}: {}", run.text());
            assert!(run.stderr.contains("nothing was changed"), "{}", run.text());
            assert!(run.stderr.contains("hint: `rewind fork`"), "{}", run.text());
        }
        assert_eq!(before.changes(&Tree::of(&env.home())), [""; 0], "{agent}");
        let made = env.run(&["fork", "1", "--yes", "--json", "-s", session]);
        assert_eq!(made.code, Some(0), "{agent}: {}", made.text());
        let made: Value = serde_json::from_str(&made.stdout).unwrap();
        let id = made["session"]["id"].as_str().unwrap();
        assert!(
            made["resume"].as_str().unwrap().starts_with(resume),
            "{made}"
        );
        assert_eq!(prompts(&env, id), prompts(&env, session)[..1], "{agent}");
        let mut changed = before.changes(&Tree::of(&env.home()));
        changed.retain(|c| !c.ends_with(": new"));
        assert_eq!(changed, [""; 0], "{agent}");
    }
}

#[test]
fn the_sentence_names_the_agent_and_the_reason() {
    let (env, path) = world("vibe", "/w/app", VIBE);
    let session = path.to_str().unwrap();
    let back = [
        "restore",
        "1",
        "--scope",
        "conversation",
        "--yes",
        "-s",
        session,
    ];
    assert_snapshot!(env.run(&back).text(), @"
    exit: 6
    --- stdout
    --- stderr
    error: Vibe counts the messages of a session in another file, and goes back by a new session itself
    nothing was changed
    hint: `rewind fork` with the same turn makes a new session that ends before it
    hint: `--scope code` takes back the files and leaves the conversation alone
    ");
}

#[test]
fn a_fork_of_vibe_counts_its_messages_as_the_client_does() {
    let (env, path) = world("vibe", "/w/app", VIBE);
    let session = path.to_str().unwrap();
    for turn in ["1", "2"] {
        let made = env.run(&["fork", turn, "--yes", "--json", "-s", session]);
        let made: Value = serde_json::from_str(&made.stdout).unwrap();
        let new = PathBuf::from(
            made["session"]["path"]
                .as_str()
                .unwrap()
                .replace("[HOME]", env.home().to_str().unwrap()),
        );
        let lines = fs::read_to_string(&new).unwrap();
        let roles = lines
            .lines()
            .map(|l| serde_json::from_str::<Value>(l).unwrap()["role"].clone());
        let want = roles.filter(|r| r != "system").count();
        let meta: Value =
            serde_json::from_slice(&fs::read(new.with_file_name("meta.json")).unwrap()).unwrap();
        assert_eq!(meta["total_messages"], want, "turn {turn}");
        assert_eq!(
            meta["parent_session_id"],
            "be000000-0000-4000-8000-000000000001"
        );
    }
}

#[test]
fn code_goes_back_from_the_transcript_where_the_conversation_does_not() {
    let (env, path) = world("vibe", "/w/app", VIBE);
    env.write("a.py", "bar\n");
    let session = path.to_str().unwrap();
    let back = ["restore", "0", "--scope", "code", "--yes", "-s", session];
    let run = env.run(&[&back[..], &["--", "a.py"]].concat());
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(fs::read(env.workspace().join("a.py")).unwrap(), b"foo\n");
}

#[test]
fn a_session_of_two_files_is_cut_in_both_and_comes_back_in_both() {
    let (env, wire) = world("kimi-cli", "/home/u/app", KIMI);
    env.write("a.py", "bar\n");
    let context = wire.with_file_name("context.jsonl");
    let session = wire.to_str().unwrap();
    let read = || (fs::read(&wire).unwrap(), fs::read(&context).unwrap());
    let before = read();
    let to = |turn: &'static str, scope: &'static str| {
        env.run(&[
            "restore", turn, "--scope", scope, "--yes", "-w", ".", "-s", session,
        ])
    };
    // A command is no message: where the context ends before it is not known.
    let command = to("1", "conversation");
    assert_eq!(command.code, Some(6), "{}", command.text());
    assert_eq!(read(), before);
    let back = to("2", "conversation");
    assert_eq!(back.code, Some(0), "{}", back.text());
    let cut = read();
    assert!(before.0.starts_with(&cut.0) && before.1.starts_with(&cut.1));
    assert!(String::from_utf8_lossy(&cut.0).ends_with("{\"type\":\"TurnEnd\",\"payload\":{}}}\n"));
    // The message that steered the first turn stays, the checkpoint before the third goes.
    assert!(
        cut.1
            .ends_with(b"{\"role\":\"user\",\"content\":\"and be quick\"}\n")
    );
    assert_eq!(prompts(&env, session), ["rename foo", "/help"]);
    let undone = env.run(&["undo", "--yes", "-w", "."]);
    assert_eq!(undone.code, Some(0), "{}", undone.text());
    assert_eq!(read(), before);
}

#[test]
fn what_is_only_read_is_listed_and_shown_and_never_cut() {
    for (agent, path) in [
        (
            "cursor",
            ".cursor/projects/w-app/agent-transcripts/cc000000-0000-4000-8000-000000000001/cc000000-0000-4000-8000-000000000001.jsonl",
        ),
        ("grok", ".grok/sessions/%2Fw%2Fapp/g1/updates.jsonl"),
        ("antigravity", ".gemini/antigravity-cli/conv/a1.jsonl"),
        (
            "gptme",
            ".local/share/gptme/logs/2026-03-02-fix/conversation.jsonl",
        ),
        ("vscode-copilot", "events.jsonl"),
        (
            "iflow",
            ".iflow/projects/-w-app/session-1f000000-0000-4000-8000-000000000001.jsonl",
        ),
        (
            "qoder",
            ".qoder/projects/-w-app/90de0000-0000-4000-8000-000000000001.jsonl",
        ),
        (
            "openclaude",
            ".openclaude/projects/-w-app/0c1a0000-0000-4000-8000-000000000001.jsonl",
        ),
        ("dsh", ".dsh/sessions/app/s1/session.jsonl"),
        ("generic", "plain.jsonl"),
    ] {
        let (env, path) = world(agent, "/w/app", path);
        let session = path.to_str().unwrap();
        let before = Tree::of(&env.home());
        assert!(!prompts(&env, session).is_empty(), "{agent}");
        let show = env.run(&["show", "0", "-w", ".", "-s", session]);
        assert_eq!(show.code, Some(0), "{agent}: {}", show.text());
        for args in [
            &["restore", "0", "--scope", "conversation"][..],
            &["fork", "0"],
        ] {
            let run = env.run(&[args, &["--yes", "-w", ".", "-s", session]].concat());
            assert_eq!(run.code, Some(6), "{agent}: {}", run.text());
            assert!(run.stderr.contains("nothing was changed"), "{}", run.text());
        }
        let code = env.run(&[
            "restore", "0", "--scope", "code", "--yes", "-w", ".", "-s", session,
        ]);
        // The workspace is empty, so what a record knows in full was deleted since.
        assert!(
            matches!(code.code, Some(0 | 3 | 4)),
            "{agent}: {}",
            code.text()
        );
        assert_eq!(before.changes(&Tree::of(&env.home())), [""; 0], "{agent}");
    }
}
