//! `rewind doctor`: what is in force and what is set up.

use std::fs;

use insta::assert_snapshot;

use crate::env::{TestEnv, Tree};

#[test]
fn what_is_set_up_is_told_and_nothing_is_changed() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["doctor"]).text(), @"
    exit: 0
    --- stdout
    config           [HOME]/.config/rewind/config.toml
    state            [STATE]
    largest capture  33 MB
    durability       kill
    git mode         off, unless an agent's hooks ask for it

    --- stderr
    no agent was found
    ");
    for agent in ["claude", "codex", "kimi"] {
        let more: &[&str] = if agent == "codex" { &["--git"] } else { &[] };
        let run = env.run(&[&["init", agent], more].concat());
        assert_eq!(run.code, Some(0), "{}", run.text());
    }
    assert_eq!(env.run(&["deinit", "kimi"]).code, Some(0));
    fs::create_dir_all(env.home().join(".gemini")).unwrap();
    fs::write(env.home().join(".gemini/settings.json"), "{ no").unwrap();
    fs::create_dir_all(env.home().join(".config/rewind")).unwrap();
    fs::write(
        env.home().join(".config/rewind/config.toml"),
        "[capture]\ncolour = 1\n",
    )
    .unwrap();
    let before = Tree::of(&env.home());
    assert_snapshot!(env.run(&["doctor"]).text(), @"
    exit: 0
    --- stdout
    config           [HOME]/.config/rewind/config.toml
    state            [STATE]
    largest capture  33 MB
    durability       kill
    git mode         off, unless an agent's hooks ask for it

    agent   hooks         settings
    codex   on, with git  [HOME]/.codex/hooks.json
    gemini  not known     [HOME]/.gemini/settings.json
    kimi    off           [HOME]/.kimi-code/config.toml
    claude  on            [HOME]/.claude/settings.json
    --- stderr
    warning: `[HOME]/.config/rewind/config.toml` is not used, the defaults are in force: unknown field `colour`, expected one of `largest`, `exclude`, `durability`, `git`, `git_limit_ms`
    warning: `[HOME]/.gemini/settings.json` cannot be read: it is no JSON: key must be a string at line 1 column 3
    hint: `rewind init kimi` captures what kimi does not record
    ");
    assert_eq!(before.changes(&Tree::of(&env.home())), [""; 0]);
}

#[test]
fn the_config_of_the_user_is_in_force() {
    let env = TestEnv::new();
    fs::create_dir_all(env.home().join(".config/rewind")).unwrap();
    let config =
        "[capture]\nlargest = \"1MiB\"\ndurability = \"fsync\"\ngit = true\ngit_limit_ms = 500\n";
    fs::write(env.home().join(".config/rewind/config.toml"), config).unwrap();
    assert_snapshot!(env.run(&["doctor"]).stdout, @"
    config           [HOME]/.config/rewind/config.toml
    state            [STATE]
    largest capture  1.0 MB
    durability       fsync
    git mode         on, at most 500 ms
    ");
}
