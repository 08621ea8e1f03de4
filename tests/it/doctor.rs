//! `rewind doctor`: what is in force and what is set up.

use std::fs;

use insta::assert_snapshot;

use crate::env::{TestEnv, Tree};
use crate::story::{ID, NOW, Story};

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


    session          none: no agent has left a session here or anywhere
    --- stderr
    no agent was found
    hint: looked for those of Codex, Copilot CLI, Copilot in VS Code, DeepSeek Harness, pi, Factory Droid, Gemini CLI, Kimi Code, Kimi CLI, Kiro CLI, Antigravity CLI, Qwen Code, iFlow, Qoder, OpenClaude, Claude Code, Cursor, Mistral Vibe, Grok Build, Reasonix, gptme
    hint: `rewind demo` makes a session to play with
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

    session          none: no agent has left a session here or anywhere
    --- stderr
    warning: `[HOME]/.config/rewind/config.toml` is not used, the defaults are in force: unknown field `colour`, expected one of `largest`, `exclude`, `durability`, `git`, `git_limit_ms`
    warning: `[HOME]/.gemini/settings.json` cannot be read: it is no JSON: key must be a string at line 1 column 3
    hint: `rewind init kimi` captures what kimi does not record
    hint: looked for those of Codex, Copilot CLI, Copilot in VS Code, DeepSeek Harness, pi, Factory Droid, Gemini CLI, Kimi Code, Kimi CLI, Kiro CLI, Antigravity CLI, Qwen Code, iFlow, Qoder, OpenClaude, Claude Code, Cursor, Mistral Vibe, Grok Build, Reasonix, gptme
    hint: `rewind demo` makes a session to play with
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


    session          none: no agent has left a session here or anywhere
    ");
}

#[test]
fn why_a_session_does_not_go_back_is_told_with_what_to_do() {
    let mut env = TestEnv::new();
    env.at(NOW);
    let mut s = Story::new(&env);
    env.write("kept", "one\n");
    env.write("lost", "one\n");
    env.write("differs", "one\n");
    s.prompt("work");
    s.edit("kept", "one", "two");
    s.edit("differs", "one", "two");
    s.unknown_write("lost", "new\n");
    s.bash("make test");
    s.save();
    env.write("differs", "by hand\n");
    let before = Tree::of(&env.home());
    assert_snapshot!(env.run(&["doctor"]).text(), @"
    exit: 0
    --- stdout
    config           [HOME]/.config/rewind/config.toml
    state            [STATE]
    largest capture  33 MB
    durability       kill
    git mode         off, unless an agent's hooks ask for it

    agent   hooks  settings
    claude  off    [HOME]/.claude/settings.json

    session          5e550000-0000-4000-8000-000000000001 of Claude Code, 1 turn
    conversation     goes back to before any turn
    code             goes back, but not 2 files:
      turn 0: lost: what was there before is not recorded
      differs: changed since the agent wrote it
      turn 0: shell command: make test
    --- stderr
    hint: `rewind init claude` captures what claude does not record
    hint: `rewind show 0` shows what differs; `--on-conflict` says what to do with it
    hint: `rewind init claude --git` captures also what shell commands do, from then on
    ");
    let elsewhere = env.run_in(&env.home(), &["doctor", "-s", ID]);
    assert_snapshot!(elsewhere.text(), @"
    exit: 0
    --- stdout
    config           [HOME]/.config/rewind/config.toml
    state            [STATE]
    largest capture  33 MB
    durability       kill
    git mode         off, unless an agent's hooks ask for it

    agent   hooks  settings
    claude  off    [HOME]/.claude/settings.json

    session          5e550000-0000-4000-8000-000000000001 of Claude Code, 1 turn
    conversation     goes back to before any turn
    code             does not go back: the session worked in `[WS]`, and this is `[HOME]`
    --- stderr
    hint: `rewind init claude` captures what claude does not record
    hint: to act there, add `--workspace [WS]`; to act here, `--workspace .`
    ");
    assert_eq!(before.changes(&Tree::of(&env.home())), [""; 0]);
    let none = env.run(&["doctor", "-s", "nosuch"]);
    assert_eq!(none.code, Some(5), "{}", none.text());
}

#[test]
fn a_session_that_goes_back_whole_has_no_complaint() {
    let env = TestEnv::new();
    let mut s = Story::new(&env);
    env.write("kept", "one\n");
    s.prompt("work");
    s.edit("kept", "one", "two");
    s.save();
    let run = env.run(&["doctor"]);
    assert!(
        run.stdout
            .contains("code             goes back to before any turn, all of it\n"),
        "{}",
        run.text()
    );
    assert!(
        run.stdout
            .contains("conversation     goes back to before any turn\n"),
        "{}",
        run.text()
    );
}
