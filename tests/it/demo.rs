//! `rewind demo`: what it prints leads to a session that goes back and forth, and nothing else is touched.

use std::fs;
use std::path::Path;

use crate::env::{TestEnv, Tree};

#[test]
fn what_it_prints_leads_to_a_session_that_goes_back_and_forth() {
    let mut env = TestEnv::new();
    let home = Tree::of(&env.home());
    let made = env.run(&["demo"]);
    assert_eq!(made.code, Some(0), "{}", made.text());
    let tmp = env.home().join("../tmp").canonicalize().unwrap();
    let folder = fs::read_dir(&tmp).unwrap().next().unwrap().unwrap().path();
    let lines: Vec<&str> = made.stdout.lines().collect();
    let name = folder.file_name().unwrap().to_str().unwrap();
    assert_eq!(lines[0], format!("cd [TMP]/tmp/{name}/shop"));
    assert!(
        lines[1].starts_with("export CLAUDE_CONFIG_DIR="),
        "{lines:?}"
    );
    env.set("CLAUDE_CONFIG_DIR", folder.join("claude").to_str().unwrap());
    env.set("REWIND_STATE_DIR", folder.join("state").to_str().unwrap());
    let shop = folder.join("shop");
    let end = Tree::of(&shop).contents();
    let list = env.run_in(&shop, &["list"]);
    assert!(list.stderr.contains("4 turns"), "{}", list.text());
    for turn in ["3", "2", "1", "0"] {
        let back = env.run_in(&shop, &["restore", turn, "--scope", "both", "--yes"]);
        assert_eq!(back.code, Some(0), "{}", back.text());
    }
    let first = Tree::of(&shop).contents();
    let files: Vec<&Path> = first.0.keys().map(std::path::PathBuf::as_path).collect();
    assert!(!files.contains(&Path::new("src/basket.py")), "{files:?}");
    for _ in 0..4 {
        assert_eq!(env.run_in(&shop, &["undo", "--yes"]).code, Some(0));
    }
    assert_eq!(end.changes(&Tree::of(&shop).contents()), [""; 0]);
    assert_eq!(home.changes(&Tree::of(&env.home())), [""; 0]);
}

#[test]
fn two_of_them_do_not_meet() {
    let env = TestEnv::new();
    let (one, two) = (env.run(&["demo"]), env.run(&["demo"]));
    assert_eq!((one.code, two.code), (Some(0), Some(0)));
    assert_ne!(one.stdout, two.stdout);
}

#[test]
fn without_a_place_for_it_it_says_what_was_touched() {
    let mut env = TestEnv::new();
    let file = env.write("file", "x");
    env.set("TMPDIR", file.to_str().unwrap());
    let run = env.run(&["demo"]);
    assert_ne!(run.code, Some(0));
    assert!(
        run.stderr.contains("nothing but that folder was touched"),
        "{}",
        run.text()
    );
}
