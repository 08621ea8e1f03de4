//! The commands of `README.md` are run as they stand there; only what asks a person gets `--yes`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::env::{TestEnv, Tree, copy};
use crate::screen::Screen;
use crate::story::Story;

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The commands in the blocks of a text, without their comments.
fn commands(text: &str, start: &str) -> Vec<Vec<String>> {
    text.lines()
        .filter_map(|l| l.strip_prefix(start))
        .map(|l| l.split(" #").next().unwrap_or_default())
        .map(|l| l.split_whitespace().map(str::to_owned).collect())
        .collect()
}

/// A session of five turns, each with an edit.
fn world(env: &TestEnv) -> Vec<Tree> {
    env.write("count.txt", "0\n");
    let mut s = Story::new(env);
    let mut before = Vec::new();
    for n in 0..5 {
        before.push(Tree::of(&env.workspace()).contents());
        s.prompt(&format!("count on from {n}"));
        s.edit("count.txt", &n.to_string(), &(n + 1).to_string());
        s.answer();
    }
    s.save();
    before
}

#[test]
fn the_commands_of_the_readme_do_what_it_says() {
    let env = TestEnv::new();
    let before = world(&env);
    let readme = fs::read_to_string(project("README.md")).unwrap();
    let all = commands(&readme, "rewind ");
    assert!(all.len() >= 6, "{all:?}");
    for mut command in all {
        if ["restore", "undo", "redo", "fork"].contains(&command[0].as_str()) {
            command.push("--yes".to_owned());
        }
        let run = env.run(&command);
        assert_eq!(run.code, Some(0), "{command:?}: {}", run.text());
        let now = Tree::of(&env.workspace()).contents();
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let count = match words[..] {
            ["restore", "-1", ..] | ["undo", ..] => 4,
            ["restore", turn, ..] => turn.parse().unwrap(),
            _ => continue,
        };
        assert_eq!(before[count].changes(&now), [""; 0], "{command:?}");
    }
}

#[test]
fn every_command_that_the_readme_names_is_one() {
    let readme = fs::read_to_string(project("README.md")).unwrap();
    let env = TestEnv::new();
    let mut named = 0;
    for text in readme.split('`').filter_map(|t| t.strip_prefix("rewind ")) {
        let command = text.split_whitespace().next().unwrap();
        if command.chars().all(|c| c.is_ascii_lowercase()) {
            let run = env.run(&[command, "--help"]);
            assert_eq!(run.code, Some(0), "`rewind {text}`: {}", run.text());
            named += 1;
        }
    }
    assert!(named > 0);
}

#[test]
fn the_example_runs_and_leaves_all_as_it_was() {
    let env = TestEnv::new();
    let demo = project("tests/fixtures/demo");
    copy(&demo.join("home"), &env.home());
    copy(&demo.join("shop"), &env.workspace());
    let before = (
        Tree::of(&env.workspace()).contents(),
        Tree::of(&env.home()).contents(),
    );
    let script = fs::read_to_string(demo.join("run.sh")).unwrap();
    let all = commands(&script, "run ");
    assert!(all.len() >= 5, "{all:?}");
    let mut changed = false;
    for command in all {
        let run = env.run(&command);
        assert_eq!(run.code, Some(0), "{command:?}: {}", run.text());
        changed |= before.0 != Tree::of(&env.workspace()).contents();
    }
    assert!(changed, "the example takes nothing back");
    let after = (
        Tree::of(&env.workspace()).contents(),
        Tree::of(&env.home()).contents(),
    );
    assert_eq!(before.0.changes(&after.0), [""; 0]);
    assert_eq!(before.1.changes(&after.1), [""; 0]);
}

/// The turns of the demo and the menu of one of them, one below the other, as a terminal shows them.
fn picture() -> Option<String> {
    let mut env = TestEnv::new();
    env.at("2026-03-02T11:40:00Z");
    assert_eq!(env.run(&["demo"]).code, Some(0));
    let tmp = env.home().join("../tmp");
    let folder = fs::read_dir(tmp).unwrap().next().unwrap().unwrap().path();
    for (name, part) in [
        ("CLAUDE_CONFIG_DIR", "claude"),
        ("REWIND_STATE_DIR", "state"),
    ] {
        env.set(name, folder.join(part).to_str().unwrap());
    }
    env.set("TERM", "xterm-256color");
    let shop = folder.join("shop");
    let mut screen = Screen::start(&env, &["-w", shop.to_str().unwrap()], (20, 100))?;
    let turns = screen.shows("4 of 4");
    screen.keys("\x1b[A\r");
    let menu = screen.shows("Back");
    screen.keys("\x03");
    assert_eq!(screen.ends().0, Some(130));
    Some(format!("{}\n\n{}", turns.trim_end(), menu.trim_end()))
}

#[test]
fn the_picture_in_the_readme_is_what_the_program_shows() {
    let Some(picture) = picture() else { return };
    let readme = fs::read_to_string(project("README.md")).unwrap();
    assert!(
        readme.contains(&format!("```text\n{picture}\n```\n")),
        "it shows:\n{picture}"
    );
}
