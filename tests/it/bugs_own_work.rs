//! A restore that loses the user's own work, or says what is not so (`bugs.md` C).
//!
//! Of 44 the half that shows in the picker (Enter, Enter: nothing changes) waits for the picker.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::bugs::{error, json, paths, restore_code, run, small, untouched};
use crate::env::{TestEnv, Tree};
use crate::story::{History, ID, Story, bytes};

#[test]
fn bug_38_uncommitted_work_is_the_baseline() {
    for history in [History::Kept, History::Off] {
        let env = TestEnv::new();
        env.write("a.txt", "committed\n");
        let git = |args: &[&str]| {
            let mut command = Command::new("git");
            let name = ["-c", "user.name=dev", "-c", "user.email=dev@example.org"];
            command.args(name).args(args).current_dir(env.workspace());
            command.env("GIT_CONFIG_GLOBAL", "/dev/null");
            // Without git the rest holds just as well.
            let _ = command.output();
        };
        git(&["init", "-q"]);
        git(&["add", "."]);
        git(&["commit", "-qm", "first"]);
        env.write("a.txt", "committed\ndirty\n");
        let mut story = Story::with(&env, ID, history);
        story.prompt("go");
        story.edit("a.txt", "dirty", "the agent's");
        story.save();
        restore_code(&env, 0, "0");
        assert_eq!(bytes(&env, "a.txt").unwrap(), b"committed\ndirty\n");
    }
}

#[test]
fn bug_39_what_the_user_deleted_stays_deleted() {
    let env = TestEnv::new();
    env.write("a.txt", "one\n");
    env.write("b.txt", "b\n");
    env.write("c.txt", "c\n");
    let mut story = Story::new(&env);
    story.prompt("b");
    story.edit("b.txt", "b", "b by the agent");
    // One that the agent knows, and one that it never saw.
    fs::remove_file(env.workspace().join("b.txt")).unwrap();
    fs::remove_file(env.workspace().join("c.txt")).unwrap();
    story.prompt("a");
    story.edit("a.txt", "one", "two");
    story.save();
    let before = Tree::of(&env.workspace());
    restore_code(&env, 0, "1");
    assert_eq!(
        before.changes(&Tree::of(&env.workspace())),
        ["a.txt: bytes"]
    );
    // Further back it is in the way, so it is asked about; kept, it stays deleted.
    untouched(&env, || restore_code(&env, 4, "0"));
    let args = [
        "restore",
        "0",
        "--scope",
        "code",
        "--yes",
        "--on-conflict",
        "keep",
    ];
    untouched(&env, || run(&env, 3, &args));
}

/// The agent wrote "two" where "one" stood, and the user added a line since.
fn with_a_line_of_mine(env: &TestEnv) -> Story<'_> {
    let story = small(env);
    env.write("a.txt", "two\nmine\n");
    env.write("b.txt", "b\n");
    story
}

#[test]
fn bug_40_a_change_of_the_user_stops_it_and_both_versions_can_be_had() {
    let env = TestEnv::new();
    with_a_line_of_mine(&env);
    let out = untouched(&env, || {
        run(
            &env,
            4,
            &["restore", "0", "--scope", "both", "--yes", "--json"],
        )
    });
    let said = error(&out);
    assert_eq!(said["kind"], "conflict");
    assert_eq!(said["changed"], "nothing was changed");
    assert_eq!(paths(&said, "paths"), ["a.txt"]);
    let restore = |how: &str, code: i32| {
        let args = [
            "restore",
            "0",
            "--scope",
            "code",
            "--yes",
            "--on-conflict",
            how,
        ];
        run(&env, code, &args)
    };
    // Kept: mine.
    untouched(&env, || restore("keep", 3));
    // Beside: mine in its place, the other under a name of its own.
    restore("beside", 3);
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"two\nmine\n");
    assert_eq!(bytes(&env, "a.txt.rewind").unwrap(), b"one\n");
    run(&env, 0, &["undo", "--yes"]);
    assert_eq!(bytes(&env, "a.txt.rewind"), None);
    // Overwritten: mine comes back with undo.
    restore("overwrite", 0);
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"one\n");
    run(&env, 0, &["undo", "--yes"]);
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"two\nmine\n");
}

#[test]
fn bug_40_a_change_between_two_turns_is_said() {
    let env = TestEnv::new();
    env.write("a.txt", "one\n");
    let mut story = Story::new(&env);
    story.prompt("two");
    story.edit("a.txt", "one", "two");
    env.write("a.txt", "two\nmine\n");
    story.prompt("three");
    story.edit("a.txt", "two", "three");
    story.save();
    let dry = ["restore", "0", "--scope", "code", "--dry-run"];
    let plan = json(&run(&env, 0, &[&dry[..], &["--json"]].concat()));
    assert_eq!(
        plan["outside"],
        json!([{"path": "a.txt", "after_turn": 0, "before_turn": 1}])
    );
    let said = run(&env, 0, &dry);
    assert!(
        said.stdout.contains("between turns 0 and 1"),
        "{}",
        said.text()
    );
    // Before the turn that came after it, the line is there.
    restore_code(&env, 0, "1");
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"two\nmine\n");
}

#[test]
fn bug_40_an_undo_does_not_run_over_later_work_either() {
    let env = TestEnv::new();
    small(&env);
    restore_code(&env, 0, "0");
    env.write("a.txt", "one\nmine\n");
    let out = untouched(&env, || run(&env, 4, &["undo", "--yes"]));
    assert!(out.stderr.contains("a.txt"), "{}", out.text());
    assert!(out.stderr.contains("nothing was changed"), "{}", out.text());
    run(&env, 0, &["undo", "--yes", "--on-conflict", "overwrite"]);
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"two\n");
    run(&env, 0, &["redo", "--yes"]);
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"one\nmine\n");
}

#[test]
fn bug_40_work_on_a_file_while_a_killed_run_is_open_stays_and_can_go_back_later() {
    let env = TestEnv::new();
    env.write("b.txt", "one\n");
    let mut story = small(&env);
    story.edit("b.txt", "one", "two");
    story.save();
    let args = ["restore", "0", "--scope", "code", "--yes"];
    assert_eq!(env.run_killed_at("placed-one", &args).code, None);
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"one\n");
    // Written into the file that was about to be replaced, as editors do.
    env.write("b.txt", "two\nmine\n");
    let next = run(&env, 0, &["log"]);
    assert!(next.stderr.contains("b.txt"), "{}", next.text());
    assert_eq!(bytes(&env, "b.txt").unwrap(), b"two\nmine\n");
    // It is a file like any other, not one with a second name in the journal.
    let args = [&args[..], &["--on-conflict", "overwrite"]].concat();
    run(&env, 0, &args);
    assert_eq!(bytes(&env, "b.txt").unwrap(), b"one\n");
    run(&env, 0, &["undo", "--yes"]);
    assert_eq!(bytes(&env, "b.txt").unwrap(), b"two\nmine\n");
}

#[test]
fn bug_41_the_conversation_alone_writes_no_project_file() {
    let env = TestEnv::new();
    let mut story = small(&env);
    let kept = story.text().to_owned();
    story.prompt("a new file");
    story.write("new.txt", "new\n");
    story.save();
    env.write("mine.txt", "mine\n");
    untouched(&env, || {
        run(
            &env,
            0,
            &["restore", "1", "--scope", "conversation", "--yes"],
        );
        assert_eq!(fs::read_to_string(story.path()).unwrap(), kept);
        run(&env, 0, &["undo", "--yes"]);
        assert_eq!(fs::read_to_string(story.path()).unwrap(), story.text());
        run(&env, 0, &["redo", "--yes"]);
        run(
            &env,
            0,
            &["restore", "0", "--scope", "conversation", "--yes"],
        );
    });
    assert_eq!(fs::read(story.path()).unwrap(), b"");
}

#[test]
fn bug_42_a_restore_can_be_undone_and_the_undo_too() {
    let env = TestEnv::new();
    env.write("a.txt", b"\xEF\xBB\xBFone\r\nno end");
    env.write("gone/b.txt", "b\n");
    let mut story = Story::new(&env);
    story.prompt("go");
    story.edit("a.txt", "one", "two");
    story.write("new/c.txt", "c\n");
    story.edit("gone/b.txt", "b", "b2");
    story.save();
    fs::remove_dir_all(env.workspace().join("gone")).unwrap();
    let edited = Tree::of(&env.workspace()).contents();
    let args = [
        "restore",
        "0",
        "--scope",
        "both",
        "--yes",
        "--on-conflict",
        "overwrite",
    ];
    run(&env, 0, &args);
    let restored = Tree::of(&env.workspace()).contents();
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"\xEF\xBB\xBFone\r\nno end");
    assert_eq!(bytes(&env, "gone/b.txt").unwrap(), b"b\n");
    assert_eq!(bytes(&env, "new/c.txt"), None);
    // Each command is a process of its own, so every one of them is a restart.
    for (command, tree, talk) in [
        ("undo", &edited, story.text()),
        ("redo", &restored, ""),
        ("undo", &edited, story.text()),
        ("redo", &restored, ""),
        ("undo", &edited, story.text()),
    ] {
        run(&env, 0, &[command, "--yes"]);
        let now = Tree::of(&env.workspace()).contents();
        assert_eq!(tree.changes(&now), [""; 0], "{command}");
        assert_eq!(fs::read_to_string(story.path()).unwrap(), talk);
    }
}

#[test]
fn bug_44_without_a_terminal_it_takes_a_yes() {
    let env = TestEnv::new();
    let story = small(&env);
    for scope in ["code", "conversation", "both"] {
        let out = untouched(&env, || run(&env, 2, &["restore", "0", "--scope", scope]));
        for words in ["nothing was changed", "--yes", "--dry-run"] {
            assert!(out.stderr.contains(words), "{words}: {}", out.text());
        }
    }
    // What goes back is never guessed.
    untouched(&env, || run(&env, 2, &["restore", "0", "--yes"]));
    untouched(&env, || {
        run(&env, 2, &["restore", "--scope", "code", "--yes"])
    });
    restore_code(&env, 0, "0");
    untouched(&env, || run(&env, 2, &["undo"]));
    run(&env, 0, &["undo", "--yes"]);
    untouched(&env, || run(&env, 2, &["redo"]));
    // Nothing typed is no yes either.
    let mut child = env.command(&["restore", "0", "--scope", "code"]);
    let child = child.stdin(std::process::Stdio::piped());
    let out = untouched(&env, || child.output().unwrap());
    assert_eq!(out.status.code(), Some(2));
    assert_eq!(fs::read_to_string(story.path()).unwrap(), story.text());
}

/// A plan with a bit of everything.
fn motley(env: &TestEnv) -> Story<'_> {
    for name in ["equal.txt", "write.txt", "mine.txt"] {
        env.write(name, "one\n");
    }
    let mut story = Story::new(env);
    story.prompt("go");
    for name in ["equal.txt", "write.txt", "mine.txt"] {
        story.edit(name, "one", "two");
    }
    story.write("new.txt", "new\n");
    story.bash("make");
    story.save();
    env.write("equal.txt", "one\n");
    env.write("mine.txt", "two\nmine\n");
    story
}

#[test]
fn bug_45_what_is_shown_is_what_is_done() {
    for how in ["keep", "overwrite", "beside"] {
        let env = TestEnv::new();
        motley(&env);
        let args = [
            "restore",
            "0",
            "--scope",
            "both",
            "--json",
            "--on-conflict",
            how,
        ];
        let mut plan = untouched(&env, || {
            json(&run(&env, 0, &[&args[..], &["--dry-run"]].concat()))
        });
        let before = Tree::of(&env.workspace());
        let out = env.run(&[&args[..], &["--yes"]].concat());
        let mut done = json(&out);
        for out in [&mut plan, &mut done] {
            out["status"] = Value::Null;
            out["operation"] = Value::Null;
        }
        assert_eq!(plan, done, "{how}");
        // And what is said is what there is: every path that differs is named, and no other.
        let changes = before.changes(&Tree::of(&env.workspace()));
        let names: Vec<_> = changes
            .iter()
            .map(|c| c.split(':').next().unwrap())
            .collect();
        assert_eq!(names, paths(&done, "steps"), "{how}");
        assert_eq!(paths(&done, "unchanged"), ["equal.txt"], "{how}");
        assert_eq!(paths(&done, "conflicts"), ["mine.txt"], "{how}");
        let code = if how == "overwrite" { 0 } else { 3 };
        assert_eq!(out.code, Some(code), "{how}: {}", out.text());
    }
}

#[test]
fn bug_45_what_will_be_refused_is_not_shown_as_done() {
    let env = TestEnv::new();
    motley(&env);
    let args = ["restore", "0", "--scope", "both", "--json"];
    let plan = json(&run(&env, 4, &[&args[..], &["--dry-run"]].concat()));
    assert_eq!(plan["status"], "refused");
    let out = untouched(&env, || run(&env, 4, &[&args[..], &["--yes"]].concat()));
    assert_eq!(paths(&error(&out), "paths"), paths(&plan, "conflicts"));
}

#[test]
fn bug_46_a_restore_that_cannot_be_done_is_not_called_done() {
    let env = TestEnv::new();
    env.write("closed/a.txt", "one\n");
    let mut story = Story::new(&env);
    story.prompt("go");
    story.edit("closed/a.txt", "one", "two");
    story.save();
    let closed = env.workspace().join("closed");
    let mode = |bits: u32| {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&closed, fs::Permissions::from_mode(bits)).unwrap();
    };
    mode(0o555);
    let args = ["restore", "0", "--scope", "code", "--yes"];
    let out = untouched(&env, || env.run_powerless(&args));
    mode(0o755);
    let Some(out) = out else { return };
    assert_eq!(out.code, Some(9), "{}", out.text());
    assert!(!out.stderr.contains("took"), "{}", out.text());
    assert!(out.stderr.contains("nothing was changed"), "{}", out.text());
    // No operation that was not done can be undone.
    run(&env, 5, &["undo", "--yes"]);
    let log = json(&run(&env, 0, &["log", "--json"]));
    for operation in log["operations"].as_array().unwrap() {
        assert_eq!(operation["status"], "aborted");
    }
}

#[test]
fn bug_46_the_second_of_two_terminals_says_that_there_was_nothing_to_do() {
    let env = TestEnv::new();
    small(&env);
    let first = restore_code(&env, 0, "0");
    assert!(first.stderr.contains("took 1 file"), "{}", first.text());
    let second = untouched(&env, || restore_code(&env, 0, "0"));
    assert!(!second.stderr.contains("took"), "{}", second.text());
    assert!(second.stderr.contains("nothing to do"), "{}", second.text());
    // Nor is there anything of it to take back.
    let log = json(&run(&env, 0, &["log", "--json"]));
    assert_eq!(log["operations"].as_array().unwrap().len(), 1);
}
