//! Git mode: what the shell did to files goes back too, and nothing of the user's git changes.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::env::{TestEnv, Tree};
use crate::hook::{Hooked, hook, payload, sidecar};

/// A world with a repository in the workspace and git mode on; `None` where there is no git.
fn world() -> Option<TestEnv> {
    if Command::new("git").arg("--version").output().is_err() {
        use std::io::Write;
        // Nothing depends on the line being seen.
        let _ = writeln!(std::io::stderr(), "skipped: git is not installed");
        return None;
    }
    let mut env = TestEnv::new();
    let config = env.home().join("config");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.toml"), "[capture]\ngit = true\n").unwrap();
    env.set("REWIND_CONFIG_DIR", config.to_str().unwrap());
    for (path, bytes) in [
        (".gitignore", &b"ignored/\n"[..]),
        (".gitattributes", b"* text=auto eol=crlf\n"),
        ("a.txt", b"one\n"),
        ("b.txt", b"two\r\n"),
        ("c.bin", b"\x00\xff\n\r\n"),
        ("deep/d.txt", b"four\n"),
        ("ignored/e", b"five\n"),
    ] {
        env.write(path, bytes);
    }
    git(&env, &["init", "-q", "-b", "main"]);
    git(&env, &["add", "-A"]);
    git(&env, &["commit", "-q", "-m", "all"]);
    Some(env)
}

fn git(env: &TestEnv, args: &[&str]) -> String {
    let who = ["-c", "user.name=u", "-c", "user.email=u@x"];
    let out = Command::new("git")
        .args(who)
        .args(args)
        .env("HOME", env.home())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .current_dir(env.workspace())
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// All that a user would see of their repository.
fn state(env: &TestEnv) -> (Vec<String>, Vec<u8>, Vec<u8>) {
    let asked = [
        &["stash", "list"][..],
        &["rev-parse", "HEAD"],
        &["branch", "-a"],
        &["reflog"],
        &["log", "--oneline", "--branches"],
        &["--no-optional-locks", "status", "--porcelain", "--ignored"],
    ];
    let told = asked.iter().map(|a| git(env, a)).collect();
    let dot = env.workspace().join(".git");
    let read = |name: &str| fs::read(dot.join(name)).unwrap();
    (told, read("index"), read("config"))
}

/// The workspace without git's own files.
fn tree(env: &TestEnv) -> Tree {
    let mut tree = Tree::of(&env.workspace()).contents();
    tree.0
        .retain(|p, _| !p.starts_with(".git") || p == Path::new(".gitignore"));
    tree
}

fn stop(env: &TestEnv) {
    hook(env, &payload(env, "Stop", &json!({})));
}

#[test]
fn what_a_shell_command_did_goes_back_and_git_is_as_it_was() {
    let Some(env) = world() else { return };
    let before = (tree(&env), state(&env));
    let mut s = Hooked::new(&env);
    s.prompt("clean up");
    s.story
        .bash("rm a.txt deep/d.txt; echo more >> b.txt; echo new > n");
    fs::remove_file(env.workspace().join("a.txt")).unwrap();
    fs::remove_dir_all(env.workspace().join("deep")).unwrap();
    env.write("b.txt", "two\r\nmore\n");
    env.write("c.bin", b"\x01");
    env.write("n", "new\n");
    env.write("ignored/e", "changed\n");
    stop(&env);
    s.save();
    let end = tree(&env);
    let list = env.run(&["list"]);
    assert!(!list.stdout.contains("not shell"), "{}", list.text());
    let back = env.run(&["restore", "0", "--scope", "code", "--yes"]);
    assert_eq!(back.code, Some(0), "{}", back.text());
    let mut want = before.0.clone();
    // What git ignores is left alone.
    want.0
        .insert("ignored/e".into(), end.0[Path::new("ignored/e")].clone());
    assert_eq!(want.changes(&tree(&env)), [""; 0]);
    assert_eq!(state(&env), before.1);
    assert_eq!(env.run(&["undo", "--yes"]).code, Some(0));
    assert_eq!(end.changes(&tree(&env)), [""; 0]);
}

#[test]
fn what_the_user_changed_after_a_turn_is_a_conflict_and_not_the_agents() {
    let Some(env) = world() else { return };
    let mut s = Hooked::new(&env);
    s.prompt("one");
    s.story.bash("echo x > a.txt");
    env.write("a.txt", "x\n");
    stop(&env);
    env.write("a.txt", "x\nmine\n");
    s.prompt("two");
    s.story.bash("echo y > c");
    env.write("c", "y\n");
    stop(&env);
    s.save();
    let refused = env.run(&["restore", "0", "--scope", "code", "--yes"]);
    assert_eq!(refused.code, Some(4), "{}", refused.text());
    let two = env.run(&["restore", "1", "--scope", "code", "--yes"]);
    assert_eq!(two.code, Some(0), "{}", two.text());
    assert_eq!(
        fs::read(env.workspace().join("a.txt")).unwrap(),
        b"x\nmine\n"
    );
    assert!(!env.workspace().join("c").exists());
}

#[test]
fn a_file_that_a_call_and_then_the_shell_changed_goes_back_to_before_both() {
    let Some(env) = world() else { return };
    let mut s = Hooked::new(&env);
    s.prompt("one");
    s.write("a.txt", "by the call\n");
    s.story.bash("format a.txt");
    env.write("a.txt", "by the shell\n");
    stop(&env);
    s.save();
    let back = env.run(&["restore", "0", "--scope", "code", "--yes"]);
    assert_eq!(back.code, Some(0), "{}", back.text());
    assert_eq!(fs::read(env.workspace().join("a.txt")).unwrap(), b"one\n");
}

#[test]
fn bug_76_a_hook_during_a_rebase_leaves_it_alone() {
    let Some(env) = world() else { return };
    git(&env, &["checkout", "-q", "-b", "side"]);
    env.write("a.txt", "side\n");
    git(&env, &["commit", "-q", "-am", "side"]);
    git(&env, &["checkout", "-q", "main"]);
    env.write("a.txt", "main\n");
    git(&env, &["commit", "-q", "-am", "main"]);
    let rebase = Command::new("git")
        .args([
            "-c",
            "user.name=u",
            "-c",
            "user.email=u@x",
            "rebase",
            "side",
        ])
        .current_dir(env.workspace())
        .env("HOME", env.home())
        .output()
        .unwrap();
    assert!(!rebase.status.success(), "it is to stop at a conflict");
    let of = |name: &str| fs::read(env.workspace().join(".git").join(name)).unwrap();
    let before = (
        of("index"),
        of("HEAD"),
        Tree::of(&env.workspace().join(".git/rebase-merge")).contents(),
    );
    hook(
        &env,
        &payload(&env, "UserPromptSubmit", &json!({"prompt": "x"})),
    );
    stop(&env);
    let after = (
        of("index"),
        of("HEAD"),
        Tree::of(&env.workspace().join(".git/rebase-merge")).contents(),
    );
    assert_eq!(before, after);
    assert!(!env.workspace().join(".git/index.lock").exists());
    let refs = git(&env, &["for-each-ref", "refs/rewind"]);
    assert_eq!(refs.lines().count(), 2, "{refs}");
}

#[test]
fn a_nested_repository_is_left_alone() {
    let Some(env) = world() else { return };
    env.write("sub/.git/HEAD", "ref: refs/heads/main\n");
    env.write("sub/x", "x\n");
    let inner = env.workspace().join("sub/inner");
    fs::create_dir_all(&inner).unwrap();
    let made = Command::new("git")
        .args(["init", "-q"])
        .current_dir(&inner)
        .env("HOME", env.home())
        .status();
    assert!(made.unwrap().success());
    fs::write(inner.join("y"), "y\n").unwrap();
    let before = Tree::of(&inner.join(".git")).contents();
    let mut s = Hooked::new(&env);
    s.prompt("one");
    s.story.bash("x");
    fs::write(inner.join("y"), "changed\n").unwrap();
    s.save();
    let back = env.run(&["restore", "0", "--scope", "code", "--yes"]);
    assert!(matches!(back.code, Some(0 | 3)), "{}", back.text());
    assert_eq!(fs::read(inner.join("y")).unwrap(), b"changed\n");
    assert_eq!(
        before.changes(&Tree::of(&inner.join(".git")).contents()),
        [""; 0]
    );
}

#[test]
fn over_its_time_it_is_a_gap_and_the_shell_is_one_again() {
    let Some(env) = world() else { return };
    fs::write(
        env.home().join("config/config.toml"),
        "[capture]\ngit = true\ngit_limit_ms = 0\n",
    )
    .unwrap();
    let mut s = Hooked::new(&env);
    s.prompt("one");
    s.story.bash("make");
    s.save();
    let list = env.run(&["list"]);
    assert!(list.stdout.contains("not"), "{}", list.text());
    let record = fs::read_to_string(sidecar(&env).join("turn-0.json")).unwrap();
    assert!(
        record.contains("\"kind\":\"git\"") && record.contains("took too long"),
        "{record}"
    );
    assert!(!env.workspace().join(".git/index.lock").exists());
}

#[test]
fn without_git_mode_git_is_not_even_looked_at() {
    let Some(mut env) = world() else { return };
    env.set(
        "REWIND_CONFIG_DIR",
        env.home().join("none").to_str().unwrap(),
    );
    let mut s = Hooked::new(&env);
    s.prompt("one");
    s.write("a.txt", "x\n");
    stop(&env);
    assert_eq!(git(&env, &["for-each-ref", "refs/rewind"]), "");
    assert!(!sidecar(&env).join("git-index").exists());
}
