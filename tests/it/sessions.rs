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
    // A record holds the path of the workspace, so its length is that of the machine.
    let text = env.run(&["sessions"]).text();
    let sizes = text.lines().map(|l| match l.find(" B  ") {
        Some(at) => format!("{}SIZE{}", &l[..at - 3], &l[at + 2..]),
        None => l.to_owned(),
    });
    assert_snapshot!(sizes.collect::<Vec<_>>().join("\n"), @"
    exit: 0
    --- stdout
    session  agent   age        turns   size  first prompt
    newer    claude  1 min ago      1  SIZE  a later session
    older    claude  2 h ago        1  SIZE  first words
    --- stderr
    2 sessions of [WS]
    ");
    let below = env.workspace().join("deep/er");
    std::fs::create_dir_all(&below).unwrap();
    assert_eq!(env.run_in(&below, &["sessions"]), env.run(&["sessions"]));
    let all = env.run_in(&env.home(), &["sessions", "--all"]);
    // The width of the column is that of the real path.
    let row = |l: &str| {
        let mut words: Vec<&str> = l.split_whitespace().collect();
        if let Some(at) = words.iter().position(|w| *w == "B") {
            words.splice(at - 1..=at, ["SIZE"]);
        }
        words.join(" ")
    };
    let rows: Vec<String> = all.stdout.lines().map(row).collect();
    assert_snapshot!(rows.join("\n"), @"
    session agent age turns size workspace first prompt
    newer claude 1 min ago 1 SIZE [WS] a later session
    older claude 2 h ago 1 SIZE [WS] first words
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
    let nobody = env.run(&["sessions", "--agent", "nobody"]).text();
    let (said, known) = nobody.split_once("known are: ").unwrap();
    for format in rewind::format::ALL {
        assert!(known.contains(format.agent()), "{known}");
    }
    assert_snapshot!(said, @"
    exit: 2
    --- stdout
    --- stderr
    error: no agent is called `nobody`
    nothing was changed
    hint:
    ");
}

#[test]
fn since_leaves_out_what_was_not_written_since() {
    let mut env = TestEnv::new();
    env.at(crate::story::NOW);
    told(&env, "older", "first", 7200);
    told(&env, "newer", "second", 60);
    let ids = |args: &[&str]| {
        let out = env.run(&[&["sessions", "--json"], args].concat()).stdout;
        let out: serde_json::Value = serde_json::from_str(&out).unwrap();
        let rows = out["sessions"].as_array().unwrap().clone();
        rows.iter()
            .map(|r| r["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&[]), ["newer", "older"]);
    assert_eq!(ids(&["--since", "1h"]), ["newer"]);
    assert_eq!(ids(&["--since", "2 h"]), ["newer", "older"]);
    assert!(ids(&["--since", "2027-01-01"]).is_empty());
    let bad = env.run(&["sessions", "--since", "yesterday"]);
    assert_eq!(bad.code, Some(2), "{}", bad.text());
}

#[test]
fn agents_that_are_known_and_not_read_are_named_with_their_own_way_back() {
    let env = TestEnv::new();
    std::fs::create_dir_all(env.home().join(".local/share/opencode")).unwrap();
    std::fs::write(
        env.home().join(".local/share/opencode/opencode.db"),
        "SQLite format 3",
    )
    .unwrap();
    assert_snapshot!(env.run(&["sessions"]).text(), @"
    exit: 0
    --- stdout
    --- stderr
    no session was recorded in this folder or one above it
    hint: `rewind sessions --all` lists those of all folders
    OpenCode is not supported: its sessions are in a database ([HOME]/.local/share/opencode)
    hint: `/undo` and `/redo` in OpenCode take back messages and files
    ");
    assert_snapshot!(env.run(&["sessions", "--agent", "crush"]).text(), @"
    exit: 6
    --- stdout
    --- stderr
    error: Crush is not supported: its sessions are in a database
    nothing was changed
    hint: Crush has no undo of its own; its database keeps the versions of each file
    ");
    let file = env.home().join(".local/share/opencode/opencode.db");
    assert_snapshot!(env.run(&["list", "-s", file.to_str().unwrap()]).text(), @"
    exit: 6
    --- stdout
    --- stderr
    error: OpenCode is not supported: its sessions are in a database
      [HOME]/.local/share/opencode/opencode.db: is a session of it
    nothing was changed
    hint: `/undo` and `/redo` in OpenCode take back messages and files
    ");
}
