//! `bugs.md` E: no restore leaves the workspace, and no spelling of a path gets another file's bytes. One test an entry,
//! named after its number.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::json;

use crate::env::{Run, TestEnv, Tree};
use crate::story::{History, ID, Story, bytes};

fn restore(env: &TestEnv) -> Run {
    env.run(&["restore", "0", "--scope", "code", "--yes"])
}

/// A folder that is none of the workspace's.
fn outside(env: &TestEnv) -> PathBuf {
    let folder = env.home().join("outside");
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[track_caller]
fn named_and_left(run: &Run, names: &[&str]) {
    assert_eq!(run.code, Some(3), "{}", run.text());
    for name in names {
        assert!(run.text().contains(name), "{name}: {}", run.text());
    }
}

#[test]
fn bug_57_a_link_on_the_way_is_not_followed() {
    let env = TestEnv::new();
    for path in ["a", "sub/k", "deep/er/k"] {
        env.write(path, "one\n");
    }
    let mut s = Story::new(&env);
    s.prompt("change and make");
    for path in ["a", "sub/k", "deep/er/k"] {
        s.edit(path, "one", "two");
    }
    s.write("sub/new", "new\n");
    s.save();
    // The same files stand outside, as the agent left them: through the link all would be changed or removed.
    let outside = outside(&env);
    fs::rename(env.workspace().join("sub"), outside.join("sub")).unwrap();
    fs::rename(env.workspace().join("deep"), outside.join("deep")).unwrap();
    symlink(outside.join("sub"), env.workspace().join("sub")).unwrap();
    symlink(outside.join("deep"), env.workspace().join("deep")).unwrap();
    let before = Tree::of(&outside);
    let run = restore(&env);
    named_and_left(&run, &["[WS]/sub/k", "[WS]/sub/new", "[WS]/deep/er/k"]);
    assert_eq!(before.changes(&Tree::of(&outside)), [""; 0]);
    assert_eq!(bytes(&env, "a").unwrap(), b"one\n");
    assert!(env.workspace().join("sub").is_symlink());
}

#[test]
fn bug_57_a_link_in_the_place_of_a_file_is_left_with_its_target() {
    let env = TestEnv::new();
    env.write("keys", "one\n");
    env.write("a", "one\n");
    let mut s = Story::new(&env);
    s.prompt("change and make");
    s.edit("keys", "one", "two");
    s.edit("a", "one", "two");
    s.write("new", "new\n");
    s.save();
    let outside = outside(&env);
    for name in ["keys", "new"] {
        fs::rename(env.workspace().join(name), outside.join(name)).unwrap();
        symlink(outside.join(name), env.workspace().join(name)).unwrap();
    }
    let before = Tree::of(&outside);
    for policy in ["fail", "overwrite"] {
        let args = [
            "restore",
            "0",
            "--scope",
            "code",
            "--yes",
            "--on-conflict",
            policy,
        ];
        named_and_left(&env.run(&args), &["keys", "new"]);
        assert_eq!(before.changes(&Tree::of(&outside)), [""; 0], "{policy}");
        assert!(env.workspace().join("new").is_symlink());
    }
    assert_eq!(bytes(&env, "a").unwrap(), b"one\n");
}

#[test]
fn bug_57_undo_follows_no_link_that_came_since() {
    let env = TestEnv::new();
    env.write("sub/k", "one\n");
    env.write("a", "one\n");
    let mut s = Story::new(&env);
    s.prompt("change");
    s.edit("sub/k", "one", "two");
    s.edit("a", "one", "two");
    s.save();
    assert_eq!(restore(&env).code, Some(0));
    let outside = outside(&env);
    fs::rename(env.workspace().join("sub"), outside.join("sub")).unwrap();
    symlink(outside.join("sub"), env.workspace().join("sub")).unwrap();
    let before = Tree::of(&outside);
    let run = env.run(&["undo", "--yes"]);
    named_and_left(&run, &["sub/k"]);
    assert_eq!(before.changes(&Tree::of(&outside)), [""; 0]);
    assert_eq!(bytes(&env, "a").unwrap(), b"two\n");
}

#[test]
fn bug_57_a_workspace_that_is_reached_through_a_link_is_the_workspace() {
    let env = TestEnv::new();
    env.write("a", "one\n");
    let mut s = Story::new(&env);
    s.prompt("change");
    s.edit("a", "one", "two");
    s.save();
    let link = env.home().join("link");
    symlink(env.workspace(), &link).unwrap();
    let run = env.run_in(&link, &["restore", "0", "--scope", "code", "--yes"]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(bytes(&env, "a").unwrap(), b"one\n");
}

#[test]
fn bug_58_spellings_of_one_path_are_one_path() {
    let env = TestEnv::new();
    env.write("a", "v0\n");
    env.write("d/x", "x\n");
    let mut s = Story::new(&env);
    s.prompt("first");
    s.edit("a", "v0", "v1");
    s.prompt("second");
    s.edit("./a", "v1", "v2");
    s.prompt("third");
    s.edit("d/../a", "v2", "v3");
    s.save();
    let plan = env.run(&["restore", "0", "--scope", "code", "--dry-run", "--json"]);
    let plan: serde_json::Value = serde_json::from_str(&plan.stdout).unwrap();
    assert_eq!(plan["steps"].as_array().unwrap().len(), 1, "{plan}");
    let run = restore(&env);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(bytes(&env, "a").unwrap(), b"v0\n");
    assert_eq!(env.run(&["undo", "--yes"]).code, Some(0));
    assert_eq!(bytes(&env, "a").unwrap(), b"v3\n");
}

#[test]
fn bug_58_a_folder_that_is_left_again_may_not_be_a_link() {
    let env = TestEnv::new();
    env.write("a", "v0\n");
    env.write("b", "one\n");
    env.write("d/x", "x\n");
    let mut s = Story::new(&env);
    s.prompt("first");
    s.edit("d/../a", "v0", "v1");
    s.edit("b", "one", "two");
    s.save();
    // Now `d/../a` is a file beside the link's target, and not `a`.
    let outside = outside(&env);
    fs::create_dir(outside.join("d")).unwrap();
    fs::write(outside.join("a"), "v1\n").unwrap();
    fs::remove_dir_all(env.workspace().join("d")).unwrap();
    symlink(outside.join("d"), env.workspace().join("d")).unwrap();
    let run = restore(&env);
    assert_eq!(run.code, Some(3), "{}", run.text());
    assert_eq!(fs::read(outside.join("a")).unwrap(), b"v1\n");
    assert_eq!(bytes(&env, "a").unwrap(), b"v1\n");
    assert_eq!(bytes(&env, "b").unwrap(), b"one\n");
}

#[test]
fn bug_58_a_record_that_is_gone_is_not_made_up_for_by_a_later_one() {
    let env = TestEnv::new();
    env.write("a", "v0\n");
    env.write("b", "one\n");
    let mut s = Story::new(&env);
    s.prompt("first");
    s.write("a", "v1\n");
    s.edit("b", "one", "two");
    s.prompt("second");
    s.write("./a", "v2\n");
    let copy = s.copies().join(s.copy_name("a", 1));
    let session = s.save();
    // The older copy is pruned, and this agent recorded no text of the old file.
    fs::remove_file(copy).unwrap();
    let text = fs::read_to_string(&session).unwrap();
    let blank = text.replace("\"originalFile\":\"v0\\n\"", "\"originalFile\":null");
    assert_ne!(text, blank);
    fs::write(&session, blank).unwrap();
    let run = restore(&env);
    named_and_left(&run, &["a"]);
    assert_eq!(bytes(&env, "a").unwrap(), b"v2\n");
    assert_eq!(bytes(&env, "b").unwrap(), b"one\n");
}

#[test]
fn bug_58_a_damaged_checkpoint_is_not_skipped() {
    let env = TestEnv::new();
    env.write("a", "v2\n");
    let mut s = Story::with(&env, ID, History::Off);
    for prompt in ["first", "second"] {
        s.prompt(prompt);
        s.bash("make");
        s.answer();
    }
    let session = s.save();
    let sidecar = session.with_extension("ckpt");
    fs::create_dir(&sidecar).unwrap();
    let record = |turn: u32, prompt: &str, content: &str| {
        json!({"schemaVersion": 2, "turn": turn, "time": "2026-03-02T10:00:01Z", "prompt": prompt,
            "files": [{"path": "a", "content": content}]})
        .to_string()
    };
    let whole = record(0, "first", "v0\n");
    fs::write(sidecar.join("turn-0.json"), &whole[..whole.len() - 9]).unwrap();
    fs::write(sidecar.join("turn-1.json"), record(1, "second", "v1\n")).unwrap();
    let run = restore(&env);
    named_and_left(&run, &["a"]);
    assert_eq!(bytes(&env, "a").unwrap(), b"v2\n", "v1 is of another turn");
    let list = env.run(&["list", "--json"]);
    assert!(list.stdout.contains("cannot be read"), "{}", list.text());
    // The turn whose checkpoint is whole still works.
    let run = env.run(&["restore", "1", "--scope", "code", "--yes"]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(bytes(&env, "a").unwrap(), b"v1\n");
}

#[test]
fn bug_59_a_path_outside_is_named_and_the_rest_goes_back() {
    let env = TestEnv::new();
    let outside = outside(&env);
    let (old, new) = (outside.join("old"), outside.join("new"));
    fs::write(&old, "one\n").unwrap();
    env.write("a", "one\n");
    let mut s = Story::new(&env);
    s.prompt("change here and elsewhere");
    s.edit(old.to_str().unwrap(), "one", "two");
    s.write(new.to_str().unwrap(), "new\n");
    s.write("../beside", "new\n");
    s.write("sub/../../state/twice-up", "new\n");
    s.edit("a", "one", "two");
    s.save();
    let before = Tree::of(&outside);
    let run = restore(&env);
    named_and_left(&run, &["[HOME]/outside/old", "[HOME]/outside/new"]);
    assert!(
        run.text().contains("beside: outside the workspace"),
        "{}",
        run.text()
    );
    assert!(
        run.text().contains("twice-up: outside the workspace"),
        "{}",
        run.text()
    );
    assert_eq!(before.changes(&Tree::of(&outside)), [""; 0]);
    assert_eq!(fs::read(env.home().join("../beside")).unwrap(), b"new\n");
    assert_eq!(fs::read(env.state().join("twice-up")).unwrap(), b"new\n");
    assert_eq!(bytes(&env, "a").unwrap(), b"one\n");
}
