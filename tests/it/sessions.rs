//! `rewind sessions` as a user sees it.

use insta::assert_snapshot;

use crate::env::TestEnv;
use crate::story::{History, Story, touch};

fn told(env: &TestEnv, id: &str, prompt: &str, age: u64) {
    let mut s = Story::with(env, id, History::Kept);
    s.prompt(prompt);
    touch(&s.save(), age);
}

#[test]
fn sessions_are_those_of_the_folder_newest_first() {
    let mut env = TestEnv::new();
    env.at(crate::story::NOW);
    told(&env, "older", "\n first words\nsecond line", 7200);
    told(&env, "newer", "a later session", 60);
    assert_snapshot!(env.run(&["sessions"]).text(), @"
    exit: 0
    --- stdout
    session  agent   age        first prompt
    newer    claude  1 min ago  a later session
    older    claude  2 h ago    first words
    --- stderr
    2 sessions of [WS]
    ");
    let below = env.workspace().join("deep/er");
    std::fs::create_dir_all(&below).unwrap();
    assert_eq!(env.run_in(&below, &["sessions"]), env.run(&["sessions"]));
    let all = env.run_in(&env.home(), &["sessions", "--all"]);
    // The width of the column is that of the real path.
    let rows: Vec<String> = all
        .stdout
        .lines()
        .map(|l| l.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_snapshot!(rows.join("\n"), @"
    session agent age workspace first prompt
    newer claude 1 min ago [WS] a later session
    older claude 2 h ago [WS] first words
    ");
}

#[test]
fn sessions_that_are_not_there_are_said_to_be_so() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["sessions"]).text(), @"
    exit: 0
    --- stdout
    --- stderr
    no session was recorded in this folder or one above it
    hint: `rewind sessions --all` lists those of all folders
    ");
    assert_snapshot!(env.run(&["sessions", "--all", "--agent", "codex"]).text(), @"
    exit: 0
    --- stdout
    --- stderr
    no session of Codex was found
    ");
    assert_snapshot!(env.run(&["sessions", "-w", "."]).text(), @"
    exit: 0
    --- stdout
    --- stderr
    no session was recorded in [WS]
    hint: `rewind sessions --all` lists those of all folders
    ");
    assert_snapshot!(env.run(&["sessions", "--agent", "nobody"]).text(), @"
    exit: 2
    --- stdout
    --- stderr
    error: no agent is called `nobody`
    nothing was changed
    hint: known are: codex, copilot, pi, gemini, kimi, qwen, claude, reasonix
    ");
}
