//! An agent that nobody knows, from its description alone: list, show, restore, undo, fork; and descriptions with mistakes in
//! them. The description is the example of `rewind-formats(5)`.

use std::fs;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use serde_json::Value;

use crate::env::{TestEnv, Tree, copy};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/described")
}

fn agents(env: &TestEnv) -> PathBuf {
    env.home().join(".config/rewind/agents")
}

/// A world in which the agent has worked, with the file as it left it.
fn world() -> (TestEnv, PathBuf) {
    let mut env = TestEnv::new();
    env.at("2026-06-15T15:00:00Z");
    copy(&fixture().join("config/agents"), &agents(&env));
    copy(&fixture().join("home"), &env.home());
    let session = env.home().join(".acme/sessions/acme-0001.jsonl");
    let text = fs::read_to_string(&session).unwrap();
    let root = env.workspace();
    let text = text.replace("/home/u/app", root.to_str().unwrap());
    fs::write(&session, text).unwrap();
    env.write("a.txt", "a baz\n");
    (env, session)
}

fn json(env: &TestEnv, args: &[&str]) -> Value {
    let run = env.run(args);
    serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.text()))
}

#[test]
fn its_turns_are_listed_with_what_they_did() {
    let (env, _) = world();
    assert_snapshot!(env.run(&["list"]).text(), @"
    exit: 0
    --- stdout
    turn  id  age         files  covered    prompt
       0  p1  59 min ago      1  all        rename foo
       1  p3  59 min ago      1  not shell  now to baz
       2  p4  58 min ago                    thanks
    --- stderr
    Acme Coder session acme-0001, 3 turns
    not shell: what the shell commands of that turn did to files is not recorded
    hint: `rewind doctor` tells why, and what to do about it
    hint: `rewind show 2` shows what going back to before turn 2 would change
    ");
    assert_snapshot!(env.run(&["show", "0"]).text(), @"
    exit: 0
    --- stdout
    turn 0  p1  59 min ago
    rename foo

    going back to before it:
      write   a.txt  (by undoing the edits)
      note    a.txt: the record does not tell what the agent left, so a later change of yours goes back with it

    --- a.txt
    +++ a.txt
    @@ -1 +1 @@
    -a baz
    +a foo

    not covered, so left as it is:
      turn 1: shell command: make
    --- stderr
    hint: `rewind restore 0 --scope code` goes there; `--scope both` takes the conversation along
    ");
}

#[test]
fn its_sessions_are_found() {
    let (env, _) = world();
    let found = json(&env, &["sessions", "--json"]);
    let one = &found["sessions"][0];
    assert_eq!(
        (&one["agent"], &one["id"]),
        (&"acme".into(), &"acme-0001".into())
    );
    assert_eq!(
        (&one["turns"], &one["prompt"]),
        (&3.into(), &"rename foo".into())
    );
    let of = json(&env, &["sessions", "--all", "--agent", "acme", "--json"]);
    assert_eq!(of["sessions"][0]["id"], "acme-0001");
}

#[test]
fn code_and_conversation_go_back_and_forth() {
    let (env, session) = world();
    let before = (
        Tree::of(&env.workspace()).contents(),
        fs::read(&session).unwrap(),
    );
    let back = env.run(&["restore", "0", "--scope", "both", "--yes"]);
    assert_snapshot!(back.text(), @"
    exit: 0
    --- stdout
      write   a.txt  (by undoing the edits)
      cut     [HOME]/.acme/sessions/acme-0001.jsonl  (the first [N] bytes stay, [N] are kept for an undo)
      note    a.txt: the record does not tell what the agent left, so a later change of yours goes back with it
    the prompt of turn 0:
    rename foo
    --- stderr
    took 1 file and the conversation back to before turn 0 (rename foo)
    not covered, so left as it is:
      turn 1: shell command: make
    hint: go on with `acme --continue acme-0001`
    hint: `rewind undo` takes this back
    ");
    assert_eq!(fs::read(env.workspace().join("a.txt")).unwrap(), b"a foo\n");
    let cut = fs::read(&session).unwrap();
    assert_eq!(cut.split(|b| *b == b'\n').count(), 2, "its start alone");
    assert!(before.1.starts_with(&cut));
    let undone = env.run(&["undo", "--yes"]);
    assert_eq!(undone.code, Some(0), "{}", undone.text());
    let after = (
        Tree::of(&env.workspace()).contents(),
        fs::read(&session).unwrap(),
    );
    assert_eq!(before, after);
}

#[test]
fn a_fork_has_a_new_id_where_a_record_owns_it() {
    let (env, session) = world();
    let made = json(&env, &["fork", "1", "--yes", "--json"]);
    let id = made["session"]["id"].as_str().unwrap();
    assert_eq!(made["resume"], format!("acme --continue {id}"));
    let path = session.with_file_name(format!("{id}.jsonl"));
    let (old, new) = (
        fs::read_to_string(&session).unwrap(),
        fs::read_to_string(path).unwrap(),
    );
    let kept: Vec<&str> = old.lines().take(8).collect();
    let want = kept.join("\n").replace(
        "\"session\":\"acme-0001\"",
        &format!("\"session\":\"{id}\""),
    );
    assert_eq!(new, want + "\n");
    assert!(new.contains("Renamed in acme-0001."));
}

#[test]
fn without_its_description_the_file_is_of_nobody() {
    let (env, session) = world();
    fs::remove_file(agents(&env).join("acme.toml")).unwrap();
    let session = session.to_str().unwrap();
    assert_snapshot!(env.run(&["list", "-s", session]).text(), @"
    exit: 6
    --- stdout
    --- stderr
    error: `[HOME]/.acme/sessions/acme-0001.jsonl` is no session file of a known agent
      [HOME]/.acme/sessions/acme-0001.jsonl: its first record has the keys `acme`, `kind`, `session`, `folder`, `at`
    nothing was changed
    hint: `rewind sessions --all` lists the session files that were found
    hint: `man rewind-formats` tells how to describe an agent
    ");
}

#[test]
fn a_description_may_allow_less() {
    let (env, session) = world();
    let path = agents(&env).join("acme.toml");
    let text = fs::read_to_string(&path).unwrap();
    let back = ["restore", "1", "--scope", "conversation", "--yes"];
    let before = fs::read(&session).unwrap();
    fs::write(&path, text.replace("rewind = \"cut\"", "rewind = \"fork\"")).unwrap();
    assert_snapshot!(env.run(&back).text(), @"
    exit: 6
    --- stdout
    --- stderr
    error: the description of `acme` allows forks only
    nothing was changed
    hint: `rewind fork` with the same turn makes a new session that ends before it
    hint: `--scope code` takes back the files and leaves the conversation alone
    ");
    fs::write(&path, text.replace("rewind = \"cut\"\n", "")).unwrap();
    assert_snapshot!(env.run(&back).text(), @"
    exit: 6
    --- stdout
    --- stderr
    error: the description of `acme` does not say that its conversations can be taken back; `rewind-formats(5)` tells how it would
    nothing was changed
    hint: `--scope code` takes back the files and leaves the conversation alone
    ");
    let forked = env.run(&["fork", "1", "--yes"]);
    assert_eq!(forked.code, Some(6), "{}", forked.text());
    assert_eq!(fs::read(&session).unwrap(), before);
}

#[test]
fn a_description_with_a_mistake_is_said_and_stops_nothing() {
    let (env, session) = world();
    let text = fs::read_to_string(agents(&env).join("acme.toml")).unwrap();
    let odd = |name: &str, text: &str| fs::write(agents(&env).join(name), text).unwrap();
    odd("b-unknown-key.toml", &format!("colour = 1\n{text}"));
    odd("c-no-toml.toml", "title = \n");
    odd("d-no-pointer.toml", &text.replace("\"/text\"", "\"text\""));
    odd(
        "e-all-files.toml",
        &text.replace(
            "[recognise]\n\"/acme\" = { exists = true }\n\"/kind\" = \"start\"",
            "[recognise]",
        ),
    );
    odd("f-place.toml", &text.replace("~/.acme", ".acme"));
    odd("g-resume.toml", &text.replace("{id}", ""));
    odd("claude.toml", &text);
    odd("aider.toml", &text);
    odd("Acme.toml", &text);
    fs::write(agents(&env).join("h-bytes.toml"), b"title = \"\xff\"").unwrap();
    odd("notes.txt", "no description");
    let run = env.run(&["sessions"]);
    let row = run.stdout.lines().last().unwrap().to_owned();
    assert!(row.starts_with("acme-0001  acme "), "{}", run.text());
    assert_snapshot!(run.stderr, @"
    1 session of [WS]
    warning: `[HOME]/.config/rewind/agents/Acme.toml` is left out: the name of the file is that of the agent: small letters, digits, `-`
    warning: `[HOME]/.config/rewind/agents/aider.toml` is left out: `aider` is the name of an agent that is known
    warning: `[HOME]/.config/rewind/agents/b-unknown-key.toml` is left out: line 1: unknown field `colour`, expected one of `title`, `sessions`, `rewind`, `resume`, `processes`, `time`, `recognise`, `session`, `prompt`, `call`, `result`, `tools`
    warning: `[HOME]/.config/rewind/agents/c-no-toml.toml` is left out: line 1: string values must be quoted, expected literal string
    warning: `[HOME]/.config/rewind/agents/claude.toml` is left out: `claude` is the name of an agent that is known
    warning: `[HOME]/.config/rewind/agents/d-no-pointer.toml` is left out: `text` is no pointer: one begins with `/`
    warning: `[HOME]/.config/rewind/agents/e-all-files.toml` is left out: `recognise` and `prompt.when` must say something: without it every file would fit
    warning: `[HOME]/.config/rewind/agents/f-place.toml` is left out: `sessions`: `.acme/sessions/*.jsonl` begins with none of `~`, `$` and `/`
    warning: `[HOME]/.config/rewind/agents/g-resume.toml` is left out: `resume` does not hold `{id}`
    warning: `[HOME]/.config/rewind/agents/h-bytes.toml` is left out: it is no UTF-8
    ");
    let of = env.run(&["sessions", "--agent", "c-no-toml"]);
    assert_snapshot!(of.text(), @"
    exit: 2
    --- stdout
    --- stderr
    error: `c-no-toml` is not described well
      [HOME]/.config/rewind/agents/c-no-toml.toml: line 1: string values must be quoted, expected literal string
    nothing was changed
    hint: `man rewind-formats` tells what a description says
    ");
    // Other commands go on, and say nothing of it.
    let list = env.run(&["list", "-s", session.to_str().unwrap()]);
    assert_eq!(
        (list.code, list.stderr.contains("left out")),
        (Some(0), false)
    );
}

#[test]
fn a_known_agent_keeps_its_files_whatever_a_description_says() {
    let (env, session) = world();
    let all = "sessions = [\"~/.acme/**/*.jsonl\"]\n[recognise]\n\"/sessionId\" = { exists = true }\n[prompt]\nwhen = { \"/type\" = \"user\" }\ntext = \"/sessionId\"\n";
    fs::write(agents(&env).join("thief.toml"), all).unwrap();
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/claude/delta.jsonl");
    let claude = session.with_file_name("claude.jsonl");
    fs::copy(demo, &claude).unwrap();
    let list = json(&env, &["list", "--json", "-s", claude.to_str().unwrap()]);
    assert_eq!(list["session"]["agent"], "claude");
}

#[test]
fn the_manual_shows_this_description() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("man/rewind-formats.5");
    let page = fs::read_to_string(page).unwrap();
    let (_, example) = page.split_once(".Bd -literal\n").unwrap();
    let (example, _) = example.split_once("\n.Ed").unwrap();
    let text = fs::read_to_string(fixture().join("config/agents/acme.toml")).unwrap();
    assert_eq!(example, text.trim_end());
}
