//! `rewind undo` and `rewind redo` as a user has them.

use std::fs;

use insta::assert_snapshot;

use crate::env::{TestEnv, Tree};
use crate::story::shop;

fn world(env: &TestEnv) -> (Tree, Tree) {
    (Tree::of(&env.workspace()), Tree::of(&env.home()))
}

#[track_caller]
fn same((a, b): &(Tree, Tree), now: &(Tree, Tree)) {
    assert_eq!(a.contents().changes(&now.0.contents()), [""; 0]);
    assert_eq!(b.contents().changes(&now.1.contents()), [""; 0]);
}

#[test]
fn undo_and_redo_alternate_to_the_last_byte() {
    let mut env = TestEnv::new();
    shop(&mut env);
    let before = world(&env);
    let run = env.run(&["restore", "1", "--scope", "both", "--yes"]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    let after = world(&env);
    assert_snapshot!(env.run(&["undo", "--yes"]).text(), @"
    exit: 0
    --- stdout
      write   a.txt
      create  new/b.txt
      extend  [HOME]/.claude/projects/[TMP-]-ws/5e550000-0000-4000-8000-000000000001.jsonl  (behind its [N] bytes)
    --- stderr
    brought 2 files and the conversation back to before operation [OP1]
    hint: `rewind redo` does again what this took back
    ");
    same(&before, &world(&env));
    assert_snapshot!(env.run(&["redo", "--yes"]).text(), @"
    exit: 0
    --- stdout
      write   a.txt
      remove  new/b.txt
      remove  new/  (if that leaves it empty)
      cut     [HOME]/.claude/projects/[TMP-]-ws/5e550000-0000-4000-8000-000000000001.jsonl  (the first [N] bytes stay, [N] are kept for an undo)
    --- stderr
    brought 2 files and the conversation back to before the undo [OP1]
    hint: `rewind undo` takes this back
    ");
    same(&after, &world(&env));
    let run = env.run(&["undo", "--yes"]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    same(&before, &world(&env));
    assert_snapshot!(env.run(&["undo", "--yes"]).text(), @"
    exit: 5
    --- stdout
    --- stderr
    error: there is nothing to undo in this folder
    nothing was changed
    hint: `rewind log` lists what was done here
    ");
    same(&before, &world(&env));
}

#[test]
fn undo_goes_back_any_depth() {
    let mut env = TestEnv::new();
    shop(&mut env);
    let mut worlds = vec![world(&env)];
    for turn in ["2", "1", "0"] {
        let run = env.run(&["restore", turn, "--scope", "both", "--yes"]);
        assert_eq!(run.code, Some(0), "{}", run.text());
        worlds.push(world(&env));
    }
    worlds.pop();
    while let Some(before) = worlds.pop() {
        let run = env.run(&["undo", "--yes"]);
        assert_eq!(run.code, Some(0), "{}", run.text());
        same(&before, &world(&env));
    }
}

#[test]
fn undo_without_a_yes_and_a_dry_run_change_nothing() {
    let mut env = TestEnv::new();
    shop(&mut env);
    let run = env.run(&["restore", "1", "--scope", "both", "--yes"]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    let before = world(&env);
    assert_eq!(env.run(&["undo"]).code, Some(2));
    assert_snapshot!(env.run(&["undo", "--dry-run"]).text(), @"
    exit: 0
    --- stdout
    would bring 2 files and the conversation back to before operation [OP1]
      write   a.txt
      create  new/b.txt
      extend  [HOME]/.claude/projects/[TMP-]-ws/5e550000-0000-4000-8000-000000000001.jsonl  (behind its [N] bytes)
    --- stderr
    ");
    let now = world(&env);
    assert_eq!(before.0.changes(&now.0), [""; 0]);
    assert_eq!(before.1.changes(&now.1), [""; 0]);
}

#[test]
fn undo_refuses_what_has_changed_since() {
    let mut env = TestEnv::new();
    shop(&mut env);
    let run = env.run(&["restore", "1", "--scope", "code", "--yes"]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    env.write("a.txt", "two, and mine\n");
    let before = world(&env);
    assert_snapshot!(env.run(&["undo", "--yes"]).text(), @"
    exit: 4
    --- stdout
    --- stderr
    error: operation [OP1] cannot be taken back: 1 file changed since
      a.txt: changed since
    nothing was changed
    hint: `--on-conflict keep` leaves it and does the rest
    hint: `--on-conflict overwrite` replaces it; an undo brings it back
    hint: `--on-conflict beside` writes the old content to `<name>.rewind`
    ");
    assert_eq!(before.0.changes(&world(&env).0), [""; 0]);
    let keep = ["undo", "--yes", "--on-conflict", "keep"];
    assert_snapshot!(env.run(&keep).text(), @"
    exit: 3
    --- stdout
      create  new/b.txt
      left    a.txt: changed since
    --- stderr
    brought 1 file back to before operation [OP1]
    warning: 1 file is left as it is: see above
    hint: `rewind redo` does again what this took back
    ");
    assert_eq!(
        before.0.changes(&world(&env).0),
        ["new: new", "new/b.txt: new"]
    );
}

#[test]
fn undo_refuses_a_session_that_went_on() {
    let mut env = TestEnv::new();
    let session = shop(&mut env);
    let run = env.run(&["restore", "1", "--scope", "both", "--yes"]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    let mut grown = fs::read(&session).unwrap();
    grown.extend_from_slice(b"{\"type\":\"system\"}\n");
    fs::write(&session, grown).unwrap();
    let before = world(&env);
    assert_snapshot!(env.run(&["undo", "--yes"]).text(), @"
    exit: 4
    --- stdout
    --- stderr
    error: the session went on since
      [HOME]/.claude/projects/[TMP-]-ws/5e550000-0000-4000-8000-000000000001.jsonl: was changed since the operation
    nothing was changed
    hint: take back the files alone with `--scope code`
    ");
    let now = world(&env);
    assert_eq!(before.0.changes(&now.0), [""; 0]);
    assert_eq!(before.1.changes(&now.1), [""; 0]);
    // What the error advises.
    assert_snapshot!(env.run(&["undo", "--yes", "--scope", "code"]).text(), @"
    exit: 0
    --- stdout
      write   a.txt
      create  new/b.txt
    --- stderr
    brought 2 files back to before operation [OP1]
    hint: `rewind redo` does again what this took back
    ");
    let now = world(&env);
    assert_eq!(
        before.0.changes(&now.0),
        ["a.txt: bytes", "new: new", "new/b.txt: new"]
    );
    assert_eq!(before.1.changes(&now.1), [""; 0]);
}

#[test]
fn an_unknown_operation_is_an_error() {
    let mut env = TestEnv::new();
    shop(&mut env);
    assert_snapshot!(env.run(&["undo", "nosuch", "--yes"]).text(), @"
    exit: 5
    --- stdout
    --- stderr
    error: no operation `nosuch` in the journal
    nothing was changed
    hint: run `rewind log` to see what is
    ");
    assert_snapshot!(env.run(&["redo", "--yes"]).text(), @"
    exit: 5
    --- stdout
    --- stderr
    error: there is nothing to redo in this folder
    nothing was changed
    hint: `rewind log` lists what was done here
    ");
}
