//! `rewind restore` as a user has it: what it says, what is on disk afterwards, and what was not touched.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use insta::assert_snapshot;

use crate::env::{Run, TestEnv, Tree};
use crate::story::{Story, bytes, shop};

/// Runs a restore that must change nothing, neither in the workspace nor in the agent's folder.
pub(crate) fn changes_nothing(env: &TestEnv, args: &[&str]) -> Run {
    let before = (Tree::of(&env.workspace()), Tree::of(&env.home()));
    let run = env.run(&[&["restore"], args].concat());
    assert_eq!(before.0.changes(&Tree::of(&env.workspace())), [""; 0]);
    assert_eq!(before.1.changes(&Tree::of(&env.home())), [""; 0]);
    run
}

/// Runs a restore; returns it and what changed in the workspace.
pub(crate) fn restore(env: &TestEnv, args: &[&str]) -> (Run, Vec<String>) {
    let before = Tree::of(&env.workspace());
    let run = env.run(&[&["restore"], args].concat());
    (run, before.changes(&Tree::of(&env.workspace())))
}

#[test]
fn restore_of_code_touches_the_recorded_files_and_no_other() {
    let mut env = TestEnv::new();
    let session = shop(&mut env);
    let whole = fs::read(&session).unwrap();
    let (run, changed) = restore(&env, &["1", "--scope", "code", "--yes"]);
    assert_snapshot!(run.text(), @"
    exit: 0
    --- stdout
      write   a.txt  (from the agent's copy)
      remove  new/b.txt  (did not exist before turn 1)
      remove  new/  (if that leaves it empty)
    --- stderr
    took 2 files back to before turn 1 (a new file)
    not covered, so left as it is:
      turn 1: shell command: make test
    hint: `rewind undo` takes this back
    ");
    assert_eq!(changed, ["a.txt: bytes", "new: gone", "new/b.txt: gone"]);
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"two\n");
    assert_eq!(fs::read(&session).unwrap(), whole);
}

#[test]
fn restore_of_both_cuts_the_session_and_hands_the_prompt_back() {
    let mut env = TestEnv::new();
    let session = shop(&mut env);
    let whole = fs::read(&session).unwrap();
    let (run, changed) = restore(&env, &["-1", "--scope", "both", "--yes"]);
    assert_snapshot!(run.text(), @"
    exit: 0
    --- stdout
      write   a.txt  (from the agent's copy)
      cut     [HOME]/.claude/projects/[TMP-]-ws/5e550000-0000-4000-8000-000000000001.jsonl  (the first [N] bytes stay, [N] are kept for an undo)
    the prompt of turn 2:
    three instead of two
    and say why
    --- stderr
    took 1 file and the conversation back to before turn 2 (three instead of two)
    hint: go on with `claude --resume 5e550000-0000-4000-8000-000000000001`
    hint: `rewind undo` takes this back
    ");
    assert_eq!(changed, ["a.txt: bytes"]);
    let cut = fs::read(&session).unwrap();
    assert!(whole.starts_with(&cut) && cut.len() < whole.len());
    assert_eq!(env.run(&["list", "-q"]).stdout.lines().count(), 3);
}

#[test]
fn restore_of_the_conversation_writes_no_file_of_the_workspace() {
    let mut env = TestEnv::new();
    shop(&mut env);
    env.write("a.txt", "changed by hand\n");
    let (run, changed) = restore(&env, &["1", "--scope", "conversation", "--yes"]);
    assert_snapshot!(run.text(), @"
    exit: 0
    --- stdout
      cut     [HOME]/.claude/projects/[TMP-]-ws/5e550000-0000-4000-8000-000000000001.jsonl  (the first [N] bytes stay, [N] are kept for an undo)
    the prompt of turn 1:
    a new file
    --- stderr
    took the conversation back to before turn 1 (a new file)
    hint: go on with `claude --resume 5e550000-0000-4000-8000-000000000001`
    hint: `rewind undo` takes this back
    ");
    assert_eq!(changed, [""; 0]);
}

#[test]
fn a_dry_run_shows_the_plan_and_does_nothing() {
    let mut env = TestEnv::new();
    shop(&mut env);
    let run = changes_nothing(&env, &["0", "--scope", "both", "--dry-run"]);
    assert_snapshot!(run.text(), @"
    exit: 0
    --- stdout
    would take 2 files and the conversation back to before turn 0 (two instead of one)
      write   a.txt  (from the agent's copy)
      remove  new/b.txt  (did not exist before turn 1)
      remove  new/  (if that leaves it empty)
      cut     [HOME]/.claude/projects/[TMP-]-ws/5e550000-0000-4000-8000-000000000001.jsonl  (the first [N] bytes stay, [N] are kept for an undo)
    --- stderr
    not covered, so left as it is:
      turn 1: shell command: make test
    ");
    assert!(!env.state().join("operations.jsonl").exists());
    let log = env.run(&["log"]);
    assert!(log.stdout.is_empty(), "{}", log.text());
}

#[test]
fn what_is_not_known_is_left_alone_and_named() {
    let mut env = TestEnv::new();
    env.at(crate::story::NOW);
    env.write("lost.txt", "precious\n");
    env.write("a.txt", "one\n");
    let mut s = Story::new(&env);
    s.prompt("write over it");
    s.unknown_write("lost.txt", "new\n");
    s.edit("a.txt", "one", "two");
    s.save();
    let (run, changed) = restore(&env, &["0", "--scope", "code", "--yes"]);
    assert_snapshot!(run.text(), @"
    exit: 3
    --- stdout
      write   a.txt  (from the agent's copy)
      left    lost.txt: what was there before is not recorded
    --- stderr
    took 1 file back to before turn 0 (write over it)
    warning: 1 file is left as it is: see above
    hint: `rewind undo` takes this back
    ");
    assert_eq!(changed, ["a.txt: bytes"]);
    let (again, changed) = restore(&env, &["0", "--scope", "code", "--yes"]);
    assert_snapshot!(again.text(), @"
    exit: 3
    --- stdout
      left    lost.txt: what was there before is not recorded
    --- stderr
    nothing was changed
    warning: 1 file is left as it is: see above
    ");
    assert_eq!(changed, [""; 0]);
}

#[test]
fn what_is_as_it_should_be_is_not_written_again() {
    let mut env = TestEnv::new();
    shop(&mut env);
    let args = ["0", "--scope", "code", "--yes"];
    assert_eq!(restore(&env, &args).0.code, Some(0));
    let run = changes_nothing(&env, &args);
    assert_snapshot!(run.text(), @"
    exit: 0
    --- stdout
    --- stderr
    nothing to do: 2 files are already as before turn 0
    not covered, so left as it is:
      turn 1: shell command: make test
    ");
    // Nothing was done, so nothing more can be undone than before.
    assert_eq!(env.run(&["log"]).stdout.lines().count(), 2);
}

#[test]
fn only_the_named_paths_go_back() {
    let mut env = TestEnv::new();
    shop(&mut env);
    let code = ["0", "--scope", "code", "--yes", "--"];
    let (run, changed) = restore(&env, &[&code[..], &["new/*"]].concat());
    assert_snapshot!(run.text(), @"
    exit: 0
    --- stdout
      remove  new/b.txt  (did not exist before turn 1)
      remove  new/  (if that leaves it empty)
    --- stderr
    took 1 file back to before turn 0 (two instead of one)
    not covered, so left as it is:
      turn 1: shell command: make test
    hint: `rewind undo` takes this back
    ");
    assert_eq!(changed, ["new: gone", "new/b.txt: gone"]);
    let run = changes_nothing(&env, &[&code[..], &["keep", "a.tx"]].concat());
    assert_snapshot!(run.text(), @"
    exit: 5
    --- stdout
    --- stderr
    error: no edit of such a file is recorded from turn 0 on
      keep
      a.tx
    nothing was changed
    hint: `rewind show 0` lists the files that are
    ");
    let both = ["0", "--scope", "both", "--yes", "--", "a.txt"];
    assert_snapshot!(changes_nothing(&env, &both).text(), @"
    exit: 2
    --- stdout
    --- stderr
    error: a conversation cannot go back for some paths only
    nothing was changed
    hint: `--scope code -- PATH…` takes back files
    ");
}

#[test]
fn nobody_is_asked_where_nobody_can_answer() {
    let mut env = TestEnv::new();
    shop(&mut env);
    let run = changes_nothing(&env, &["1", "--scope", "code"]);
    assert_snapshot!(run.text(), @"
    exit: 2
    --- stdout
    --- stderr
    error: there is no terminal to ask for a confirmation
    nothing was changed
    hint: add `--yes` to do it, or `--dry-run` to see what would be done
    ");
    let run = changes_nothing(&env, &["1", "--scope", "code", "--json"]);
    assert_eq!(run.code, Some(2));
    assert_snapshot!(changes_nothing(&env, &["1", "--yes"]).text(), @"
    exit: 2
    --- stdout
    --- stderr
    error: the following required arguments were not provided:
      --scope <SCOPE>

    Usage: rewind restore --scope <SCOPE> --yes <TURN> [-- <PATH>...]

    For more information, try '--help'.
    ");
}

#[test]
fn the_prompt_alone_is_printed_where_a_script_asks_for_it() {
    let mut env = TestEnv::new();
    shop(&mut env);
    env.write("a.txt", "three\nmine\n");
    let args = [
        "2",
        "--scope",
        "both",
        "--yes",
        "--print-prompt",
        "--on-conflict",
        "keep",
    ];
    let (run, changed) = restore(&env, &args);
    assert_snapshot!(run.text(), @"
    exit: 3
    --- stdout
    three instead of two
    and say why
    --- stderr
      cut     [HOME]/.claude/projects/[TMP-]-ws/5e550000-0000-4000-8000-000000000001.jsonl  (the first [N] bytes stay, [N] are kept for an undo)
      left    a.txt: changed since the agent wrote it
    took the conversation back to before turn 2 (three instead of two)
    warning: 1 file is left as it is: see above
    hint: go on with `claude --resume 5e550000-0000-4000-8000-000000000001`
    hint: `rewind undo` takes this back
    ");
    assert_eq!(changed, [""; 0]);
}

#[test]
fn the_prompt_goes_to_a_new_file_and_over_none() {
    let mut env = TestEnv::new();
    shop(&mut env);
    let to = |name: &'static str| ["2", "--scope", "both", "--yes", "--prompt-out", name];
    assert_snapshot!(changes_nothing(&env, &to("keep/notes.txt")).text(), @"
    exit: 2
    --- stdout
    --- stderr
    error: the file for the prompt is there already
      [WS]/keep/notes.txt: left alone
    nothing was changed
    hint: name a new one with `--prompt-out`
    ");
    let (run, changed) = restore(&env, &to("prompt.md"));
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(changed, ["a.txt: bytes", "prompt.md: new"]);
    assert_eq!(
        bytes(&env, "prompt.md").unwrap(),
        b"three instead of two\nand say why"
    );
}

#[test]
fn a_running_agent_keeps_its_conversation() {
    let mut env = TestEnv::new();
    shop(&mut env);
    let sign = env.home().join(".claude/sessions/1.json");
    fs::create_dir_all(sign.parent().unwrap()).unwrap();
    // This very process, which runs.
    let pid = std::process::id();
    let record = serde_json::json!({"pid": pid, "sessionId": crate::story::ID, "cwd": "/"});
    fs::write(&sign, record.to_string()).unwrap();
    let run = changes_nothing(&env, &["1", "--scope", "both", "--yes"]);
    assert_snapshot!(run.text().replace(&pid.to_string(), "[PID]"), @"
    exit: 7
    --- stdout
    --- stderr
    error: Claude Code is at work on this session (process [PID]): `[HOME]/.claude/sessions/1.json` names a running process
    nothing was changed
    hint: leave the session in the agent, then try again; `--scope code` works while it runs
    hint: `--force` cuts the conversation all the same
    ");
    let (run, changed) = restore(&env, &["1", "--scope", "code", "--yes"]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert!(
        run.stderr
            .starts_with("warning: Claude Code is at work on this session"),
        "{}",
        run.text()
    );
    assert_eq!(changed.len(), 3);
}

#[test]
fn a_session_of_another_folder_is_not_restored_here_unless_told() {
    let mut env = TestEnv::new();
    let session = shop(&mut env);
    let copy = env.home().join("copy");
    fs::create_dir_all(copy.join("new")).unwrap();
    fs::write(copy.join("a.txt"), "three\n").unwrap();
    fs::write(copy.join("new/b.txt"), "b\n").unwrap();
    let before = Tree::of(&env.workspace());
    let session = session.to_str().unwrap();
    let here = |more: &[&str]| {
        let args = [
            &["restore", "1", "--scope", "code", "--yes", "-s", session],
            more,
        ]
        .concat();
        env.run_in(&copy, &args)
    };
    let run = here(&[]);
    assert_snapshot!(run.text(), @"
    exit: 2
    --- stdout
    --- stderr
    error: the session worked in `[WS]`, and this is `[HOME]/copy`
    nothing was changed
    hint: to act there, add `--workspace [WS]`; to act here, `--workspace .`
    ");
    let run = here(&["-w", "."]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert!(
        run.stderr
            .ends_with("hint: `rewind undo -w .` takes this back\n"),
        "{}",
        run.text()
    );
    assert_eq!(fs::read(copy.join("a.txt")).unwrap(), b"two\n");
    assert!(!copy.join("new/b.txt").exists());
    assert_eq!(before.changes(&Tree::of(&env.workspace())), [""; 0]);
}

#[test]
fn a_mode_is_kept_when_the_bytes_go_back() {
    let mut env = TestEnv::new();
    env.at(crate::story::NOW);
    let path = env.write("run.sh", "echo one\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let mut s = Story::new(&env);
    s.prompt("say two");
    s.edit("run.sh", "one", "two");
    s.save();
    assert_eq!(
        restore(&env, &["0", "--scope", "code", "--yes"]).0.code,
        Some(0)
    );
    assert_eq!(bytes(&env, "run.sh").unwrap(), b"echo one\n");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
        0o755
    );
}
