//! What went wrong elsewhere, one test an entry, named `bug_NN_short_words` after the entry's number: destroyed files in
//! `bugs_restore`, wrong points in `bugs_point`, kills and stale plans in `bugs_durable`, the user's own work in
//! `bugs_own_work`. Here is what these share, and the promise that no entry is forgotten: each has a test, or a line
//! `//! - NN …` at the head of its file that says what it waits for.

use serde_json::Value;

use crate::env::{Run, TestEnv, Tree};
use crate::story::Story;

/// What a run with `--json` printed.
#[track_caller]
pub(crate) fn json(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|e| panic!("{e}: {}", run.text()))
}

/// The error object of a run with `--json`.
#[track_caller]
pub(crate) fn error(run: &Run) -> Value {
    let line = run.stderr.lines().rfind(|l| l.starts_with('{'));
    let line = line.unwrap_or_else(|| panic!("no error object: {}", run.text()));
    serde_json::from_str(line).unwrap()
}

/// The values of `path` in a list of the output.
pub(crate) fn paths(of: &Value, list: &str) -> Vec<String> {
    let text = |v: &Value| v["path"].as_str().unwrap().to_owned();
    of[list].as_array().unwrap().iter().map(text).collect()
}

/// Runs, and expects an exit code.
#[track_caller]
pub(crate) fn run(env: &TestEnv, code: i32, args: &[&str]) -> Run {
    let run = env.run(args);
    assert_eq!(run.code, Some(code), "{args:?}\n{}", run.text());
    run
}

/// Takes the files back to before a turn, and expects an exit code.
#[track_caller]
pub(crate) fn restore_code(env: &TestEnv, code: i32, turn: &str) -> Run {
    run(env, code, &["restore", turn, "--scope", "code", "--yes"])
}

/// Runs something that must not touch a single file of the workspace.
#[track_caller]
pub(crate) fn untouched<T>(env: &TestEnv, act: impl FnOnce() -> T) -> T {
    let before = Tree::of(&env.workspace());
    let out = act();
    let changes = before.changes(&Tree::of(&env.workspace()));
    assert_eq!(changes, [""; 0]);
    out
}

/// One prompt and one edit of `a.txt`, from "one" to "two".
pub(crate) fn small(env: &TestEnv) -> Story<'_> {
    env.write("a.txt", "one\n");
    let mut story = Story::new(env);
    story.prompt("two instead of one");
    story.edit("a.txt", "one", "two");
    story.answer();
    story.save();
    story
}

/// The entries that the files here answer for.
const ENTRIES: [(&str, &[u8]); 4] = [
    (
        "bugs_restore.rs",
        &[1, 2, 3, 4, 6, 8, 9, 10, 11, 12, 14, 15, 17],
    ),
    (
        "bugs_point.rs",
        &[18, 19, 20, 21, 23, 25, 28, 30, 32, 33, 34, 36, 37],
    ),
    ("bugs_durable.rs", &[26, 27]),
    ("bugs_own_work.rs", &[38, 39, 40, 41, 42, 44, 45, 46]),
];

#[test]
fn every_entry_has_a_test_or_says_what_it_waits_for() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let mut forgotten = Vec::new();
    for (file, entries) in ENTRIES {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        for entry in entries {
            let named = format!("\nfn bug_{entry:02}_");
            let waits = format!("\n//! - {entry:02} ");
            if !text.contains(&named) && !text.contains(&waits) {
                forgotten.push(*entry);
            }
        }
    }
    assert_eq!(forgotten, [0u8; 0]);
}
