//! `rewind restore`, `undo` and `redo` as a user has them: a first afternoon.

use crate::env::TestEnv;
use crate::story::{Story, bytes};

fn shop(env: &TestEnv) -> Story<'_> {
    env.write("a.txt", "one\n");
    let mut s = Story::new(env);
    s.prompt("two instead of one");
    s.edit("a.txt", "one", "two");
    s.answer();
    s.prompt("a new file");
    s.write("new/b.txt", "b\n");
    s.answer();
    s.prompt("three instead of two");
    s.edit("a.txt", "two", "three");
    s.answer();
    s.save();
    s
}

#[test]
fn restore_takes_code_and_conversation_back_and_undo_brings_both_again() {
    let env = TestEnv::new();
    let story = shop(&env);
    let whole = std::fs::read(story.path()).unwrap();
    let run = env.run(&["restore", "1", "--scope", "both", "--yes"]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"two\n");
    assert_eq!(bytes(&env, "new/b.txt"), None);
    assert!(
        !env.workspace().join("new").exists(),
        "the folder that this made empty stays"
    );
    let cut = std::fs::read(story.path()).unwrap();
    assert!(whole.starts_with(&cut) && !cut.is_empty());
    for (command, a, size) in [
        ("undo", "three\n", whole.len()),
        ("redo", "two\n", cut.len()),
        ("undo", "three\n", whole.len()),
    ] {
        let run = env.run(&[command, "--yes"]);
        assert_eq!(run.code, Some(0), "{}", run.text());
        assert_eq!(bytes(&env, "a.txt").unwrap(), a.as_bytes());
        assert_eq!(bytes(&env, "new/b.txt").is_some(), command == "undo");
        assert_eq!(std::fs::read(story.path()).unwrap().len(), size);
    }
    assert_eq!(std::fs::read(story.path()).unwrap(), whole);
    assert_eq!(
        env.run(&["undo", "--yes"]).code,
        Some(5),
        "nothing is left to undo"
    );
}
