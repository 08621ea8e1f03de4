//! The composed Claude Code sessions read as their `README.md` says.

use std::fs;
use std::path::{Path, PathBuf};

use rewind::env::Env;
use rewind::format::{self, Format, Head};
use rewind::model::edit::{Content, Payload, Reason, State};
use rewind::model::session::Session;

use crate::env::TestEnv;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

fn surroundings(home: &Path) -> Env {
    Env {
        home: Some(home.to_path_buf()),
        config: None,
        vars: std::collections::BTreeMap::new(),
        ..Env::of_process().unwrap()
    }
}

fn read(path: &Path) -> (&'static dyn Format, Session) {
    let env = surroundings(Path::new("/nowhere"));
    let format = format::detect(&Head::read(path).unwrap(), &env).unwrap();
    assert_eq!(format.agent(), "claude");
    let session = format.read(path, &env);
    (format, session.unwrap())
}

fn prompts(session: &Session) -> Vec<&str> {
    session.turns.iter().map(|t| t.prompt.as_str()).collect()
}

#[test]
fn abandoned_turns_are_not_turns() {
    let (_, session) = read(&fixture("claude/branches.jsonl"));
    assert_eq!(prompts(&session), ["first", "second, typed again"]);
    assert_eq!(session.abandoned, 2);
}

#[test]
fn only_prompts_are_turns() {
    let (_, session) = read(&fixture("claude/not-prompts.jsonl"));
    assert_eq!(
        prompts(&session),
        [
            "a prompt",
            "/model fast",
            "!git status",
            "a prompt in blocks"
        ]
    );
    assert!(session.turns[0].interrupted);
}

#[test]
fn a_delta_line_names_the_copy_and_no_neighbour_stands_in_for_it() {
    let env = TestEnv::new();
    let claude = env.home().join(".claude");
    let projects = claude.join("projects/-home-dev-shop");
    let copies = claude.join("file-history/delta");
    fs::create_dir_all(&projects).unwrap();
    fs::create_dir_all(&copies).unwrap();
    let path = projects.join("delta.jsonl");
    fs::copy(fixture("claude/delta.jsonl"), &path).unwrap();
    let first = copies.join("536e73cc8cdeeda6@v1");
    let second = copies.join("536e73cc8cdeeda6@v2");
    fs::write(&first, "one\n").unwrap();
    fs::write(&second, "two\n").unwrap();

    let (format, session) = read(&path);
    let before = || -> Vec<State> {
        let calls = format.calls(&session, 0, &surroundings(&env.home()));
        calls.unwrap().edits.into_iter().map(|e| e.before).collect()
    };
    let is_copy = |state: &State, copy: &Path| matches!(state, State::Held(Content { payload: Payload::File(p), .. }) if p == copy);
    let both = before();
    assert_eq!(both.len(), 2);
    assert!(is_copy(&both[0], &first), "{both:?}");
    assert!(is_copy(&both[1], &second), "{both:?}");

    fs::remove_file(&first).unwrap();
    let one = before();
    assert_eq!(one[0], State::Unknown(Reason::CopyGone));
    assert!(is_copy(&one[1], &second), "{one:?}");
}

#[test]
fn the_example_has_four_turns_and_all_their_old_content() {
    let folder = fixture("demo/home/.claude/projects/-home-dev-shop");
    let entry = fs::read_dir(folder).unwrap().next().unwrap();
    let path = entry.unwrap().path();
    let (format, session) = read(&path);
    let lines = |p: &str| p.lines().next().unwrap().to_owned();
    let firsts: Vec<String> = prompts(&session).into_iter().map(lines).collect();
    assert_eq!(
        firsts,
        [
            "Add a total to the cart, with a test",
            "Write a short README",
            "Keep prices in cents: sums of floats are off by a hair.",
            "Rename Cart to Basket, everywhere",
        ]
    );
    let home = fixture("demo/home");
    let calls = format.calls(&session, 0, &surroundings(&home)).unwrap();
    let unknown = calls
        .edits
        .iter()
        .find(|e| matches!(e.before, State::Unknown(_)));
    assert_eq!(unknown, None);
    assert_eq!(calls.gaps.len(), 2);
}
