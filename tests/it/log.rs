//! `rewind log` as a user sees it.

use insta::assert_snapshot;

use crate::env::TestEnv;
use crate::story::shop;

#[test]
fn log_of_a_folder_where_nothing_was_done_says_so() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["log"]).text(), @"
    exit: 0
    --- stdout
    --- stderr
    no rewind was done in [WS]
    ");
}

#[test]
fn log_lists_what_was_done_and_what_of_it_holds() {
    let mut env = TestEnv::new();
    shop(&mut env);
    for args in [
        ["restore", "1", "--scope", "both", "--yes"].as_slice(),
        &["undo", "--yes"],
        &["redo", "--yes"],
        &["undo", "--yes"],
        &["restore", "-1", "--scope", "code", "--yes"],
    ] {
        let run = env.run(args);
        assert_eq!(run.code, Some(0), "{}", run.text());
    }
    env.set("COLUMNS", "120");
    let run = env.run(&["log"]);
    // The number of a process is longer or shorter, and so is the column.
    let rows: Vec<String> = run
        .stdout
        .lines()
        .map(|l| l.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_snapshot!(rows.join("\n"), @"
    operation age act status files scope point
    [OP1] just now restore undone 2 both before turn 1 of claude: a new file
    [OP2] just now undo done 2 both before [OP1]
    [OP3] just now redo undone 2 both before [OP2]
    [OP4] just now undo done 2 both before [OP3]
    [OP5] just now restore done 1 code before turn 2 of claude: three instead of two
    ");
    assert_eq!(run.stderr, "");
    let last = env.run(&["log", "-n", "1"]);
    assert_eq!(last.stdout.lines().count(), 2);
}
