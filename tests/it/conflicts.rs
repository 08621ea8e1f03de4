//! A file that somebody changed since the agent wrote it, under each policy: nothing of theirs is lost, and the report
//! says what became of it.

use insta::assert_snapshot;

use crate::env::{TestEnv, Tree};
use crate::restore::{changes_nothing, restore};
use crate::story::{bytes, shop};

#[test]
fn a_changed_file_stops_the_restore_and_the_dry_run_says_so_too() {
    let mut env = TestEnv::new();
    shop(&mut env);
    env.write("a.txt", "three\nmine\n");
    let args = ["1", "--scope", "both"];
    let run = changes_nothing(&env, &[&args[..], &["--yes"]].concat());
    assert_snapshot!(run.text(), @"
    exit: 4
    --- stdout
    --- stderr
    error: turn 1 cannot be gone back to: 1 file changed since the agent wrote it
      a.txt: changed since the agent wrote it
    nothing was changed
    hint: `--on-conflict keep` leaves it and does the rest
    hint: `--on-conflict overwrite` replaces it; an undo brings it back
    hint: `--on-conflict beside` writes the old content to `<name>.rewind`
    hint: `rewind show 1` shows the differences
    ");
    let dry = changes_nothing(&env, &[&args[..], &["--dry-run"]].concat());
    assert_snapshot!(dry.text(), @"
    exit: 4
    --- stdout
    refused as it stands; `--on-conflict keep` would take 1 file and the conversation back to before turn 1 (a new file)
      remove  new/b.txt  (did not exist before turn 1)
      remove  new/  (if that leaves it empty)
      cut     [HOME]/.claude/projects/[TMP-]-ws/5e550000-0000-4000-8000-000000000001.jsonl  (the first [N] bytes stay, [N] are kept for an undo)
      differs a.txt: changed since the agent wrote it
    --- stderr
    not covered, so left as it is:
      turn 1: shell command: make test
    error: turn 1 cannot be gone back to: 1 file changed since the agent wrote it
      a.txt: changed since the agent wrote it
    nothing was changed
    hint: `--on-conflict keep` leaves it and does the rest
    hint: `--on-conflict overwrite` replaces it; an undo brings it back
    hint: `--on-conflict beside` writes the old content to `<name>.rewind`
    hint: `rewind show 1` shows the differences
    ");
    assert_eq!(dry.code, run.code);
    assert!(dry.stderr.ends_with(&run.stderr), "{}", dry.text());
}

#[test]
fn keep_leaves_a_changed_file_and_does_the_rest() {
    let mut env = TestEnv::new();
    shop(&mut env);
    env.write("a.txt", "three\nmine\n");
    let args = ["1", "--scope", "code", "--yes", "--on-conflict", "keep"];
    let (run, changed) = restore(&env, &args);
    assert_snapshot!(run.text(), @"
    exit: 3
    --- stdout
      remove  new/b.txt  (did not exist before turn 1)
      remove  new/  (if that leaves it empty)
      left    a.txt: changed since the agent wrote it
    --- stderr
    took 1 file back to before turn 1 (a new file)
    warning: 1 file is left as it is: see above
    not covered, so left as it is:
      turn 1: shell command: make test
    hint: `rewind undo` takes this back
    ");
    assert_eq!(changed, ["new: gone", "new/b.txt: gone"]);
}

#[test]
fn overwrite_replaces_a_changed_file_and_undo_brings_it_back() {
    let mut env = TestEnv::new();
    shop(&mut env);
    env.write("a.txt", "three\nmine\n");
    let before = Tree::of(&env.workspace()).contents();
    let args = [
        "1",
        "--scope",
        "code",
        "--yes",
        "--on-conflict",
        "overwrite",
    ];
    let (run, changed) = restore(&env, &args);
    assert_snapshot!(run.text(), @"
    exit: 0
    --- stdout
      write   a.txt  (from the agent's copy)
      remove  new/b.txt  (did not exist before turn 1)
      remove  new/  (if that leaves it empty)
      note    a.txt: changed since the agent wrote it; what is replaced is kept for an undo
    --- stderr
    took 2 files back to before turn 1 (a new file)
    not covered, so left as it is:
      turn 1: shell command: make test
    hint: `rewind undo` takes this back
    ");
    assert_eq!(changed, ["a.txt: bytes", "new: gone", "new/b.txt: gone"]);
    let undo = env.run(&["undo", "--yes"]);
    assert_eq!(undo.code, Some(0), "{}", undo.text());
    let after = Tree::of(&env.workspace()).contents();
    assert_eq!(before.changes(&after), [""; 0]);
}

#[test]
fn beside_writes_the_old_content_under_another_name() {
    let mut env = TestEnv::new();
    shop(&mut env);
    env.write("a.txt", "three\nmine\n");
    env.write("a.txt.rewind", "taken\n");
    let args = ["1", "--scope", "code", "--yes", "--on-conflict", "beside"];
    let (run, changed) = restore(&env, &args);
    assert_snapshot!(run.text(), @"
    exit: 3
    --- stdout
      create  a.txt.rewind.1  (from the agent's copy)
      remove  new/b.txt  (did not exist before turn 1)
      remove  new/  (if that leaves it empty)
      left    a.txt: changed since the agent wrote it; its old content goes to a.txt.rewind.1
    --- stderr
    took 2 files back to before turn 1 (a new file)
    warning: 1 file is left as it is: see above
    not covered, so left as it is:
      turn 1: shell command: make test
    hint: `rewind undo` takes this back
    ");
    assert_eq!(
        changed,
        ["a.txt.rewind.1: new", "new: gone", "new/b.txt: gone"]
    );
    assert_eq!(bytes(&env, "a.txt.rewind.1").unwrap(), b"two\n");
}
