//! A restore that destroys what it never captured (`bugs.md` A).
//!
//! Not here yet, and why:
//! - 09 retention: there is no cap on the store, so nothing can be evicted (`prune`).

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::bugs::{json, paths, restore_code, run, small, untouched};
use crate::env::{TestEnv, Tree};
use crate::story::{History, ID, Story, bytes};

#[test]
fn bug_01_untracked_files_survive() {
    let env = TestEnv::new();
    env.write("out.csv", b"1,2\r\n\xFF\x00".repeat(1000));
    env.write("a.txt", "one\n");
    let mut story = Story::new(&env);
    story.prompt("evaluate");
    story.read("out.csv");
    story.edit("a.txt", "one", "two");
    story.save();
    // Made while the agent was at work, and of no record.
    env.write("logs/run.log", "42\n");
    let before = Tree::of(&env.workspace());
    restore_code(&env, 0, "0");
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"one\n");
    assert_eq!(
        before.changes(&Tree::of(&env.workspace())),
        ["a.txt: bytes"]
    );
}

#[test]
fn bug_02_ignore_rules_decide_nothing() {
    let env = TestEnv::new();
    env.write(".gitignore", "target/\n");
    let mut story = Story::new(&env);
    story.prompt("keep the data out of git");
    story.edit(".gitignore", "target/\n", "target/\ndata/\n");
    story.bash("fetch-data");
    story.save();
    env.write("data/x", "the data\n");
    env.write("target/debug/x", "built\n");
    let before = Tree::of(&env.workspace());
    restore_code(&env, 0, "0");
    assert_eq!(bytes(&env, ".gitignore").unwrap(), b"target/\n");
    let after = Tree::of(&env.workspace());
    assert_eq!(before.changes(&after), [".gitignore: bytes"]);
}

#[test]
fn bug_03_a_checkpoint_that_was_not_finished_deletes_nothing() {
    let env = TestEnv::new();
    for name in ["a.txt", "b.txt", "c.txt", "d/e.txt"] {
        env.write(name, format!("{name} as it was\n"));
    }
    let mut story = Story::with(&env, ID, History::Off);
    story.prompt("rename everything with the database tool");
    story.bash("db-tool");
    story.prompt("and a.txt");
    story.edit("a.txt", "as it was", "as the agent left it");
    story.save();
    // Killed while it was written: it may have held any path.
    story.checkpoint(
        0,
        r#"{"schemaVersion":2,"turn":0,"prompt":"rename everything with the database tool","files":[{"path":"a.txt","conte"#,
    );
    let listed = json(&run(&env, 0, &["list", "--json"]));
    assert_eq!(listed["turns"][0]["coverage"], "partial");
    let told = listed["turns"][0]["gaps"].to_string();
    assert!(told.contains("checkpoint 0 cannot be read"), "{told}");
    let run = untouched(&env, || restore_code(&env, 3, "0"));
    let said = format!("{}{}", run.stdout, run.stderr);
    assert!(said.contains("a.txt"), "{said}");
    assert!(said.contains("cannot be read"), "{said}");
    assert!(!said.contains("took"), "{said}");
    // The turn after it is whole.
    restore_code(&env, 0, "1");
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"a.txt as it was\n");
}

#[test]
fn bug_03_nothing_is_deleted_for_missing_from_a_snapshot() {
    let env = TestEnv::new();
    for name in ["a.txt", "b.txt", "c.txt", "d/e.txt"] {
        env.write(name, format!("{name} as it was\n"));
    }
    let mut story = Story::with(&env, ID, History::Off);
    story.prompt("go");
    story.save();
    // Whole, and it names one file only; the entry of the other has lost the key that says what it held.
    let before = json!([{"path": "a.txt", "content": "a\n"}, {"path": "b.txt"}]);
    let record = json!({"schemaVersion": 2, "turn": 0, "prompt": "go", "files": before});
    story.checkpoint(0, record.to_string());
    let before = Tree::of(&env.workspace());
    let run = restore_code(&env, 3, "0");
    assert!(run.stdout.contains("b.txt"), "{}", run.text());
    assert_eq!(
        before.changes(&Tree::of(&env.workspace())),
        ["a.txt: bytes"]
    );
}

#[test]
fn bug_04_the_first_point_undoes_the_agents_edits_only() {
    let env = TestEnv::new();
    for n in 0..1000 {
        env.write(&format!("src/{}/{n}.rs", n % 10), format!("// {n}\n"));
    }
    let mut story = Story::new(&env);
    story.prompt("change one");
    story.edit("src/7/507.rs", "507", "changed");
    story.save();
    let before = Tree::of(&env.workspace());
    restore_code(&env, 0, "0");
    // Inode and time of the others too.
    let after = Tree::of(&env.workspace());
    assert_eq!(before.changes(&after), ["src/7/507.rs: bytes"]);
    assert_eq!(bytes(&env, "src/7/507.rs").unwrap(), b"// 507\n");
    // Once more: it is as it should be, so not even that file is written.
    let again = untouched(&env, || {
        run(
            &env,
            0,
            &["restore", "0", "--scope", "code", "--yes", "--json"],
        )
    });
    assert_eq!(json(&again)["status"], "unchanged");
}

#[test]
fn bug_06_files_and_folders_of_the_agent_go() {
    let env = TestEnv::new();
    env.write("kept/old.txt", "old\n");
    fs::create_dir(env.workspace().join("empty")).unwrap();
    let before = Tree::of(&env.workspace());
    let mut story = Story::new(&env);
    story.prompt("new files");
    story.write("new/deep/new.txt", "new\n");
    story.write("kept/new.txt", "new\n");
    story.write("shared/new.txt", "new\n");
    story.save();
    // The folder is the agent's, this file in it is not.
    env.write("shared/mine.txt", "mine\n");
    restore_code(&env, 0, "0");
    let after = Tree::of(&env.workspace());
    assert_eq!(
        before.changes(&after),
        ["shared: new", "shared/mine.txt: new"]
    );
    // A folder that was empty before stays.
    assert!(env.workspace().join("empty").is_dir());
}

#[test]
fn bug_06_a_new_file_that_somebody_changed_stays() {
    let env = TestEnv::new();
    let mut story = Story::new(&env);
    story.prompt("a new file");
    story.write("new.txt", "new\n");
    story.save();
    env.write("new.txt", "new\nand mine\n");
    let run = untouched(&env, || restore_code(&env, 4, "0"));
    assert!(run.stderr.contains("new.txt"), "{}", run.text());
    assert!(run.stderr.contains("nothing was changed"), "{}", run.text());
}

/// A second project with files of the same names, beside the one of the session.
fn beside(env: &TestEnv) -> PathBuf {
    let other = env.workspace().parent().unwrap().join("p2");
    fs::create_dir_all(other.join("new")).unwrap();
    fs::write(other.join("a.txt"), "two\n").unwrap();
    fs::write(other.join("new/b.txt"), "b\n").unwrap();
    other
}

#[test]
fn bug_08_another_project_with_the_same_names_is_left_alone() {
    let env = TestEnv::new();
    let mut story = small(&env);
    story.prompt("a new file");
    story.write("new/b.txt", "b\n");
    story.save();
    let other = beside(&env);
    let (here, there) = (Tree::of(&env.workspace()), Tree::of(&other));
    for command in ["restore", "show"] {
        let mut args = vec![command, "0", "-s", ID];
        if command == "restore" {
            args.extend(["--scope", "both", "--yes"]);
        }
        let run = env.run_in(&other, &args);
        if command == "restore" {
            assert_eq!(run.code, Some(2), "{}", run.text());
            for name in ["[WS]", "[TMP]/p2", "nothing was changed"] {
                assert!(run.stderr.contains(name), "{name}: {}", run.text());
            }
        }
        assert_eq!(here.changes(&Tree::of(&env.workspace())), [""; 0]);
        assert_eq!(there.changes(&Tree::of(&other)), [""; 0]);
    }
    // Without a name there is no session of that folder at all.
    let run = env.run_in(&other, &["restore", "0", "--scope", "code", "--yes"]);
    assert_eq!(run.code, Some(5), "{}", run.text());
    assert_eq!(there.changes(&Tree::of(&other)), [""; 0]);
    // Named, the session's own folder is the one that changes.
    let root = env.workspace();
    let args = ["restore", "0", "--scope", "code", "--yes", "-s", ID, "-w"];
    let args: Vec<&Path> = args.iter().map(Path::new).chain([root.as_path()]).collect();
    let run = env.run_in(&other, &args);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"one\n");
    assert_eq!(there.changes(&Tree::of(&other)), [""; 0]);
}

#[test]
fn bug_10_a_failure_leaves_what_would_have_been_deleted() {
    let env = TestEnv::new();
    env.write("closed/a.txt", "one\n");
    let mut story = Story::new(&env);
    story.prompt("go");
    story.write("aaa-new.txt", "new\n");
    story.edit("closed/a.txt", "one", "two");
    story.write("zzz-new.txt", "new\n");
    story.save();
    let closed = env.workspace().join("closed");
    set_mode(&closed, 0o555);
    let before = Tree::of(&env.workspace());
    let run = env.run_powerless(&["restore", "0", "--scope", "both", "--yes"]);
    let after = Tree::of(&env.workspace());
    set_mode(&closed, 0o755);
    let Some(run) = run else { return };
    assert_eq!(run.code, Some(9), "{}", run.text());
    assert!(run.stderr.contains("closed/a.txt"), "{}", run.text());
    assert!(run.stderr.contains("nothing was changed"), "{}", run.text());
    assert_eq!(before.changes(&after), [""; 0]);
    assert_eq!(fs::read_to_string(story.path()).unwrap(), story.text());
    // And it can be done once the folder takes files.
    restore_code(&env, 0, "0");
    assert_eq!(bytes(&env, "closed/a.txt").unwrap(), b"one\n");
    assert_eq!(bytes(&env, "zzz-new.txt"), None);
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn bug_10_a_full_disk_in_the_middle_deletes_nothing() {
    let env = TestEnv::new();
    let big = "0123456789abcdef\n".repeat(20_000);
    env.write("big.txt", &big);
    let mut story = Story::new(&env);
    story.prompt("go");
    story.write("aaa-new.txt", "new\n");
    story.write("big.txt", "small\n");
    story.save();
    // Files of more than 64 KiB cannot be written: what a quota does, without one.
    let plain = env.command(&["restore", "0", "--scope", "both", "--yes"]);
    let mut limited = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 128; exec \"$0\" \"$@\"";
    limited.args(["-c", script]).arg(plain.get_program());
    limited.args(plain.get_args()).env_clear();
    for (name, value) in plain.get_envs() {
        limited.env(name, value.unwrap());
    }
    let run = untouched(&env, || {
        limited.current_dir(env.workspace()).output().unwrap()
    });
    let said = env.clean(&run.stderr);
    assert_eq!(run.status.code(), Some(9), "{said}");
    assert!(said.contains("nothing was changed"), "{said}");
    assert_eq!(fs::read_to_string(story.path()).unwrap(), story.text());
    restore_code(&env, 0, "0");
    assert_eq!(bytes(&env, "big.txt").unwrap(), big.as_bytes());
}

/// A session of one turn whose only record of files is a checkpoint of ours.
fn by_checkpoint<'e>(
    env: &'e TestEnv,
    files: &serde_json::Value,
    gaps: &serde_json::Value,
) -> Story<'e> {
    let mut story = Story::with(env, ID, History::Off);
    story.prompt("go");
    story.bash("shrink");
    story.save();
    let record = json!({
        "schemaVersion": 2, "turn": 0, "prompt": "go", "files": files,
        "coverage": "partial", "coverageGaps": gaps,
    });
    story.checkpoint(0, record.to_string());
    story
}

#[test]
fn bug_11_a_file_that_was_not_captured_is_left_alone_and_named() {
    let env = TestEnv::new();
    env.write("big.bin", "edited\n");
    env.write("small.txt", "edited\n");
    by_checkpoint(
        &env,
        &json!([{"path": "small.txt", "content": "small\n"}]),
        &json!([{"kind": "oversized", "path": "big.bin", "detail": "100 MiB"}]),
    );
    let run = restore_code(&env, 3, "0");
    assert_eq!(bytes(&env, "big.bin").unwrap(), b"edited\n");
    assert_eq!(bytes(&env, "small.txt").unwrap(), b"small\n");
    assert!(
        run.stdout
            .contains("big.bin: too large to have been captured"),
        "{}",
        run.text()
    );
}

#[test]
fn bug_12_not_captured_is_not_empty() {
    let env = TestEnv::new();
    let nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    for name in ["a.bin", "b.bin", "c.bin"] {
        env.write(name, "what is left of two megabytes\n");
    }
    env.write("empty.txt", "filled\n");
    // Three ways in which recorders have written "I could not" down, and one true empty file.
    by_checkpoint(
        &env,
        &json!([
            {"path": "a.bin", "content": "", "sha256": nothing},
            {"path": "b.bin", "content": null, "payloadExpired": true},
            {"path": "c.bin", "content": null, "sha256": "1".repeat(64)},
            {"path": "empty.txt", "content": "", "sha256": nothing},
        ]),
        &json!([{"kind": "oversized", "path": "a.bin"}]),
    );
    let run = run(
        &env,
        3,
        &["restore", "0", "--scope", "code", "--yes", "--json"],
    );
    let done = json(&run);
    assert_eq!(done["status"], "partial");
    assert_eq!(paths(&done, "missing"), ["a.bin", "b.bin", "c.bin"]);
    for name in ["a.bin", "b.bin", "c.bin"] {
        assert_eq!(
            bytes(&env, name).unwrap(),
            b"what is left of two megabytes\n"
        );
    }
    assert_eq!(bytes(&env, "empty.txt").unwrap(), b"");
}

#[test]
fn bug_14_every_path_goes_to_its_own_value_at_the_point() {
    let env = TestEnv::new();
    env.write("f1", "f1 at first\n");
    env.write("f2", "f2 at first\n");
    let mut story = Story::new(&env);
    story.prompt("f1");
    story.edit("f1", "at first", "once");
    story.prompt("f2");
    story.edit("f2", "at first", "once");
    story.prompt("f1 again");
    story.edit("f1", "once", "twice");
    story.save();
    let edited = Tree::of(&env.workspace()).contents();
    for (turn, f1, f2) in [
        ("1", "f1 once\n", "f2 at first\n"),
        ("2", "f1 once\n", "f2 once\n"),
        ("0", "f1 at first\n", "f2 at first\n"),
    ] {
        restore_code(&env, 0, turn);
        assert_eq!(bytes(&env, "f1").unwrap(), f1.as_bytes(), "turn {turn}");
        assert_eq!(bytes(&env, "f2").unwrap(), f2.as_bytes(), "turn {turn}");
        // No point is lost by it.
        run(&env, 0, &["undo", "--yes"]);
        let now = Tree::of(&env.workspace()).contents();
        assert_eq!(edited.changes(&now), [""; 0]);
    }
}

/// Runs git without anything of this machine's; `None` where there is no git.
fn git(folder: &Path, args: &[&str]) -> Option<String> {
    let name = ["-c", "user.name=dev", "-c", "user.email=dev@example.org"];
    let mut command = Command::new("git");
    command.args(name).args(args).current_dir(folder);
    for variable in ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"] {
        command.env(variable, "/dev/null");
    }
    let output = command.env("HOME", folder).output().ok()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {args:?}: {said}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn bug_15_git_is_never_touched() {
    let env = TestEnv::new();
    let root = env.workspace();
    env.write("a.txt", "one\n");
    env.write("staged.txt", "one\n");
    if git(&root, &["init", "-q"]).is_none() {
        // Nothing depends on the line being seen.
        let _ = writeln!(std::io::stderr(), "skipped: there is no git here");
        return;
    }
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", "first"]);
    let mut story = Story::new(&env);
    story.prompt("go");
    story.edit("a.txt", "one", "two");
    story.save();
    git(&root, &["commit", "-qam", "after the point"]);
    env.write("staged.txt", "staged\n");
    git(&root, &["add", "staged.txt"]);
    let log = git(&root, &["log", "--all", "--format=%H %d"]);
    let index = git(&root, &["diff", "--cached"]);
    let dot_git = Tree::of(&root.join(".git"));
    restore_code(&env, 0, "0");
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"one\n");
    assert_eq!(dot_git.changes(&Tree::of(&root.join(".git"))), [""; 0]);
    assert_eq!(git(&root, &["log", "--all", "--format=%H %d"]), log);
    assert_eq!(git(&root, &["diff", "--cached"]), index);
    let status = git(&root, &["status", "--porcelain"]).unwrap();
    assert_eq!(status, " M a.txt\nM  staged.txt\n");
}

#[test]
fn bug_17_the_other_project_of_the_repository_is_left_alone() {
    let env = TestEnv::new();
    for project in ["api", "web"] {
        env.write(&format!("{project}/a.txt"), "one\n");
    }
    let mut story = Story::new(&env).below("api");
    story.prompt("in api");
    story.edit("a.txt", "one", "two");
    story.write("src/new.txt", "new\n");
    story.save();
    env.write("web/a.txt", "work of the other session\n");
    env.write("web/src/new.txt", "new\n");
    let before = Tree::of(&env.workspace());
    let root = env.workspace();
    // From the other project, and from the folder of both, nothing is meant.
    for folder in [root.join("web"), root.clone()] {
        let args = ["restore", "0", "--scope", "code", "--yes", "-s", ID];
        let run = env.run_in(&folder, &args);
        assert_eq!(run.code, Some(2), "{}", run.text());
        assert_eq!(before.changes(&Tree::of(&root)), [""; 0]);
    }
    let args = ["restore", "0", "--scope", "code", "--yes"];
    // What it reaches is listed first.
    let plan = env.run_in(
        &root.join("api"),
        &[&args[..4], &["--dry-run", "--json"]].concat(),
    );
    assert_eq!(paths(&json(&plan), "steps"), ["a.txt", "src/new.txt"]);
    let run = env.run_in(&root.join("api"), &args);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(
        before.changes(&Tree::of(&root)),
        ["api/a.txt: bytes", "api/src: gone", "api/src/new.txt: gone"]
    );
}
