//! The JSON contract: the members of each object and their types, that a dry run lists what is then done, that every
//! failure is an object. `json_page` holds the manual page to it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use insta::assert_snapshot;
use serde_json::Value;

use crate::env::{Run, TestEnv};
use crate::story::{Story, shop};

fn parse(text: &str) -> Value {
    assert_eq!(text.lines().count(), 1, "not one line: {text}");
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// The result of a run that must have one, and no error beside it.
#[track_caller]
fn result(run: &Run) -> Value {
    assert!(matches!(run.code, Some(0 | 3)), "{}", run.text());
    assert!(!run.stderr.contains("rewind.error"), "{}", run.text());
    parse(&run.stdout)
}

/// The events of a run, in order.
pub(crate) fn events(run: &Run) -> Vec<Value> {
    let read = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    run.stdout.lines().map(read).collect()
}

/// Each member with its types, one a line; what is in a list is named with `[]`.
pub(crate) type Shape = BTreeMap<String, BTreeSet<&'static str>>;

pub(crate) fn shape(value: &Value) -> Shape {
    let mut shape = Shape::new();
    let mut open = vec![(String::new(), value)];
    while let Some((at, value)) = open.pop() {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(items) => {
                open.extend(items.iter().map(|i| (format!("{at}[]"), i)));
                "array"
            }
            Value::Object(members) => {
                let dot = if at.is_empty() { "" } else { "." };
                open.extend(members.iter().map(|(k, v)| (format!("{at}{dot}{k}"), v)));
                "object"
            }
        };
        if !at.is_empty() {
            shape.entry(at).or_default().insert(kind);
        }
    }
    shape
}

fn lines(shape: &Shape) -> String {
    let line = |(at, kinds): (&String, &BTreeSet<&str>)| {
        let kinds: Vec<&str> = kinds.iter().copied().collect();
        format!("{at}: {}", kinds.join(", "))
    };
    shape.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A story in which every list of a plan has something in it.
fn everything(env: &mut TestEnv) {
    env.at(crate::story::NOW);
    for name in ["edited", "outside", "differs", "back", "lost"] {
        env.write(name, "one\n");
    }
    let mut s = Story::new(env);
    s.prompt("talk");
    s.answer();
    s.prompt("work\non all");
    s.edit("edited", "one", "two");
    s.edit("outside", "one", "two");
    s.edit("differs", "one", "two");
    s.edit("back", "one", "two");
    s.unknown_write("lost", "new\n");
    s.write("new/made", "made\n");
    s.bash("make test");
    s.answer();
    env.write("outside", "two\nby hand\n");
    s.prompt("more");
    s.edit("outside", "two", "three");
    s.answer();
    let path = s.save();
    env.write("differs", "two\nby hand\n");
    env.write("back", "one\n");
    env.write(".aider.chat.history.md", "#### hello\n");
    let described = env.home().join(".config/rewind/agents/odd.toml");
    fs::create_dir_all(described.parent().unwrap()).unwrap();
    fs::write(described, "title = 1\n").unwrap();
    let mut session = fs::read(&path).unwrap();
    session.extend_from_slice(b"{\"type\":\"us");
    fs::write(path, session).unwrap();
}

const KEEP: [&str; 3] = ["--yes", "--on-conflict", "keep"];

/// One object of each kind, by its schema.
pub(crate) fn objects() -> BTreeMap<String, Value> {
    let mut env = TestEnv::new();
    everything(&mut env);
    let mut all = vec![
        result(&env.run(&["sessions", "--json"])),
        result(&env.run(&["list", "--json"])),
        result(&env.run(&["show", "1", "--json"])),
        result(&env.run(&["fork", "1", "--dry-run", "--json"])),
        result(&env.run(&["doctor", "--json"])),
    ];
    let both = ["restore", "1", "--scope", "both", "--json"];
    let refused = env.run(&[&both[..], &["--yes"]].concat());
    assert_eq!(refused.code, Some(4), "{}", refused.text());
    all.push(parse(&refused.stderr));
    let lines = ["restore", "1", "--scope", "both", "--json=lines"];
    all.extend(events(&env.run(&[&lines[..], &KEEP].concat())));
    all.push(result(&env.run(&["undo", "--yes", "--json"])));
    all.push(result(&env.run(&[&both[..], &KEEP].concat())));
    all.push(result(&env.run(&["undo", "--yes", "--json"])));
    all.push(result(&env.run(&["redo", "--yes", "--json"])));
    all.push(result(&env.run(&["log", "--json"])));
    all.push(result(&env.run(&["init", "codex", "--json"])));
    all.push(result(&env.run(&["deinit", "claude", "--json"])));
    all.push(result(&env.run(&["demo", "--json"])));
    all.push(result(&env.run(&["man", "--json", "--out", "."])));
    all.push(result(&env.run(&["completions", "fish", "--json"])));
    all.extend(stores());
    let schema = |v: &Value| v["schema"].as_str().unwrap().to_owned();
    all.into_iter().map(|v| (schema(&v), v)).collect()
}

/// What is said about what is kept.
fn stores() -> Vec<Value> {
    let (env, sidecar) = crate::prune::kept();
    let busy = crate::prune::told(&env, "5e550000-0000-4000-8000-000000000002");
    let named = ["-s", "5e550000-0000-4000-8000-000000000001"];
    let with = |args: &[&str]| env.run(&[args, &named, &["--json"]].concat());
    let mut all = vec![result(&with(&["pin", "5", "--name", "here"]))];
    assert_eq!(
        with(&["restore", "5", "--scope", "code", "--yes"]).code,
        Some(0)
    );
    fs::write(sidecar.join("turn-4.json"), "{").unwrap();
    fs::remove_file(sidecar.join("index.json")).unwrap();
    let damaged = with(&["verify", "--repair"]);
    assert_eq!(damaged.code, Some(8), "{}", damaged.text());
    fs::remove_dir_all(sidecar.join("blobs")).unwrap();
    all.push(parse(&with(&["verify"]).stdout));
    let repaired = parse(&damaged.stdout)["repaired"].clone();
    all[1]["repaired"] = repaired;
    let lock = fs::File::create(busy.join("lock")).unwrap();
    lock.lock().unwrap();
    all.push(result(&env.run(&["prune", "--yes", "--journal", "--json"])));
    all.push(result(&env.run(&["log", "--prune", "--json"])));
    all
}

#[test]
#[expect(clippy::too_many_lines, reason = "they are the snapshots")]
fn each_object_has_these_members() {
    let objects = objects();
    let of = |schema: &str| lines(&shape(&objects[schema]));
    assert_snapshot!(of("rewind.sessions/1"), @"
    faults: array
    faults[]: object
    faults[].path: string
    faults[].why: string
    schema: string
    sessions: array
    sessions[]: object
    sessions[].agent: string
    sessions[].id: string
    sessions[].live: boolean
    sessions[].modified: string
    sessions[].path: string
    sessions[].prompt: string
    sessions[].size: number
    sessions[].started: string
    sessions[].turns: number
    sessions[].workspace: string
    unsupported: array
    unsupported[]: object
    unsupported[].agent: string
    unsupported[].instead: string
    unsupported[].path: string
    unsupported[].why: string
    ");
    assert_snapshot!(of("rewind.doctor/1"), @"
    agents: array
    agents[]: object
    agents[].agent: string
    agents[].hooks: string
    agents[].settings: string
    config: object
    config.durable: boolean
    config.git: boolean
    config.git_limit_ms: number
    config.largest: number
    faults: array
    faults[]: object
    faults[].path: string
    faults[].why: string
    schema: string
    session: object
    session.agent: string
    session.code: null
    session.conflicts: array
    session.conflicts[]: object
    session.conflicts[].path: string
    session.conflicts[].reason: string
    session.conversation: null
    session.gaps: array
    session.gaps[]: object
    session.gaps[].detail: string
    session.gaps[].kind: string
    session.gaps[].turn: number
    session.id: string
    session.live: boolean
    session.missing: array
    session.missing[]: object
    session.missing[].path: string
    session.missing[].reason: string
    session.missing[].turn: number
    session.path: string
    session.turns: number
    session.workspace: string
    ");
    assert_snapshot!(of("rewind.init/1"), @"
    agent: string
    events: array
    events[]: string
    path: string
    schema: string
    status: string
    then: string
    ");
    assert_snapshot!(of("rewind.deinit/1"), @"
    agent: string
    events: array
    events[]: string
    path: string
    schema: string
    status: string
    then: null
    ");
    assert_snapshot!(of("rewind.man/1"), @"
    folder: object
    folder.path: string
    pages: array
    pages[]: object
    pages[].name: string
    pages[].text: string
    schema: string
    ");
    assert_snapshot!(of("rewind.completions/1"), @"
    schema: string
    script: string
    shell: string
    ");
    assert_snapshot!(of("rewind.fork/1"), @"
    checkpoints: number
    from: object
    from.agent: string
    from.id: string
    from.path: string
    from.workspace: string
    name: null
    prompt: string
    resume: string
    schema: string
    session: object
    session.agent: string
    session.id: string
    session.path: string
    session.workspace: string
    status: string
    turn: number
    turn_id: string
    unlisted: array
    ");
    assert_snapshot!(of("rewind.list/1"), @"
    abandoned: number
    schema: string
    session: object
    session.agent: string
    session.id: string
    session.path: string
    session.workspace: string
    total: number
    turns: array
    turns[]: object
    turns[].at: string
    turns[].compacted: boolean
    turns[].coverage: string
    turns[].files: array
    turns[].files[]: object
    turns[].files[].known: string
    turns[].files[].path: string
    turns[].files[].source: string
    turns[].gaps: array
    turns[].gaps[]: object
    turns[].gaps[].detail: string
    turns[].gaps[].kind: string
    turns[].gaps[].turn: number
    turns[].id: string
    turns[].interrupted: boolean
    turns[].kind: string
    turns[].prompt: string
    turns[].turn: number
    warnings: array
    warnings[]: object
    warnings[].count: number
    warnings[].kind: string
    warnings[].offset: number
    ");
    assert_snapshot!(of("rewind.show/1"), @"
    conflicts: array
    conflicts[]: object
    conflicts[].path: string
    conflicts[].reason: string
    folders: array
    folders[]: object
    folders[].path: string
    gaps: array
    gaps[]: object
    gaps[].detail: string
    gaps[].kind: string
    gaps[].turn: number
    missing: array
    missing[]: object
    missing[].path: string
    missing[].reason: string
    missing[].turn: number
    operation: null
    outside: array
    outside[]: object
    outside[].after_turn: number
    outside[].before_turn: number
    outside[].path: string
    prompt: string
    resume: string
    root: object
    root.path: string
    schema: string
    scope: string
    session: object
    session.agent: string
    session.id: string
    session.path: string
    session.workspace: string
    session_steps: array
    status: string
    steps: array
    steps[]: object
    steps[].action: string
    steps[].after: null, object
    steps[].after.len: number
    steps[].after.mode: null
    steps[].after.sha256: string
    steps[].before: object
    steps[].before.len: number
    steps[].before.mode: number
    steps[].before.sha256: string
    steps[].path: string
    steps[].source: string
    steps[].turn: number
    turn: number
    turn_id: string
    unchanged: array
    unchanged[]: object
    unchanged[].path: string
    unsure: array
    ");
    assert_snapshot!(of("rewind.restore/1"), @"
    conflicts: array
    conflicts[]: object
    conflicts[].path: string
    conflicts[].reason: string
    folders: array
    folders[]: object
    folders[].path: string
    gaps: array
    gaps[]: object
    gaps[].detail: string
    gaps[].kind: string
    gaps[].turn: number
    missing: array
    missing[]: object
    missing[].path: string
    missing[].reason: string
    missing[].turn: number
    operation: string
    outside: array
    outside[]: object
    outside[].after_turn: number
    outside[].before_turn: number
    outside[].path: string
    prompt: string
    resume: string
    root: object
    root.path: string
    schema: string
    scope: string
    session: object
    session.agent: string
    session.id: string
    session.path: string
    session.workspace: string
    session_steps: array
    session_steps[]: object
    session_steps[].action: string
    session_steps[].keep: number
    session_steps[].len: number
    session_steps[].path: string
    status: string
    steps: array
    steps[]: object
    steps[].action: string
    steps[].after: null, object
    steps[].after.len: number
    steps[].after.mode: null
    steps[].after.sha256: string
    steps[].before: object
    steps[].before.len: number
    steps[].before.mode: number
    steps[].before.sha256: string
    steps[].path: string
    steps[].source: string
    steps[].turn: number
    turn: number
    turn_id: string
    unchanged: array
    unchanged[]: object
    unchanged[].path: string
    unsure: array
    ");
    assert_snapshot!(of("rewind.undo/1"), @"
    conflicts: array
    folders: array
    gaps: array
    missing: array
    of: string
    operation: string
    outside: array
    prompt: string
    resume: null
    root: object
    root.path: string
    schema: string
    scope: string
    session: object
    session.agent: string
    session.id: string
    session.path: string
    session.workspace: string
    session_steps: array
    session_steps[]: object
    session_steps[].action: string
    session_steps[].len: number
    session_steps[].path: string
    status: string
    steps: array
    steps[]: object
    steps[].action: string
    steps[].after: object
    steps[].after.len: number
    steps[].after.mode: number
    steps[].after.sha256: string
    steps[].before: null, object
    steps[].before.len: number
    steps[].before.mode: number
    steps[].before.sha256: string
    steps[].path: string
    steps[].source: null
    steps[].turn: null
    turn: number
    turn_id: string
    unchanged: array
    unsure: array
    ");
    assert_snapshot!(of("rewind.log/1"), @"
    operations: array
    operations[]: object
    operations[].act: string
    operations[].agent: string
    operations[].at: string
    operations[].files: number
    operations[].of: null, string
    operations[].operation: string
    operations[].prompt: string
    operations[].scope: string
    operations[].session: string
    operations[].status: string
    operations[].turn: number
    root: object
    root.path: string
    schema: string
    ");
    assert_snapshot!(of("rewind.error/1"), @"
    causes: array
    changed: string
    code: number
    hints: array
    hints[]: string
    kind: string
    message: string
    paths: array
    paths[]: object
    paths[].path: string
    paths[].reason: string
    schema: string
    ");
    let redo = shape(&objects["rewind.redo/1"]);
    let undo = shape(&objects["rewind.undo/1"]);
    let top = |s: &Shape| -> BTreeSet<String> {
        let top = |k: &&String| !k.contains(['.', '[']);
        s.keys().filter(top).cloned().collect()
    };
    assert_eq!(top(&redo), top(&undo));
}

/// What a plan lists, without what only the doing can tell.
fn plan(mut value: Value) -> Value {
    let members = value.as_object_mut().unwrap();
    // An id is numbered by its place in the text.
    members.remove("of");
    for name in ["status", "operation"] {
        assert!(members.remove(name).is_some(), "{name}");
    }
    value
}

/// `bugs.md` 45: what is shown is what is done.
#[test]
fn a_dry_run_lists_what_is_then_done() {
    for how in ["keep", "overwrite", "beside"] {
        for scope in ["code", "conversation", "both"] {
            let mut env = TestEnv::new();
            everything(&mut env);
            let words = [
                "restore",
                "1",
                "--json",
                "--scope",
                scope,
                "--on-conflict",
                how,
            ];
            let dry = result(&env.run(&[&words[..], &["--dry-run"]].concat()));
            assert_eq!(dry["status"], "planned");
            assert_eq!(dry["operation"], Value::Null);
            let done = result(&env.run(&[&words[..], &["--yes"]].concat()));
            assert!(done["operation"].is_string());
            assert_eq!(plan(dry), plan(done), "{how} {scope}");
            for back in ["undo", "redo"] {
                let dry = result(&env.run(&[back, "--dry-run", "--json"]));
                let done = result(&env.run(&[back, "--yes", "--json"]));
                assert_eq!(done["status"], "done");
                assert_eq!(plan(dry), plan(done), "{back} {how} {scope}");
            }
        }
    }
}

#[test]
fn a_dry_run_of_what_will_be_refused_says_refused_and_why() {
    let mut env = TestEnv::new();
    everything(&mut env);
    let words = ["restore", "1", "--json", "--scope", "code"];
    let dry = env.run(&[&words[..], &["--dry-run"]].concat());
    let refused = env.run(&[&words[..], &["--yes"]].concat());
    assert_eq!(parse(&dry.stdout)["status"], "refused");
    assert_eq!(parse(&dry.stdout)["conflicts"][0]["path"], "differs");
    assert_eq!((dry.code, &dry.stderr), (refused.code, &refused.stderr));
    assert_eq!(refused.stdout, "");
    assert_eq!(parse(&refused.stderr)["paths"][0]["path"], "differs");
}

#[test]
fn the_status_says_how_it_ended() {
    let mut env = TestEnv::new();
    shop(&mut env);
    let status = |args: &[&str]| result(&env.run(args))["status"].clone();
    let restore = ["restore", "1", "--scope", "code", "--yes", "--json"];
    assert_eq!(status(&restore), "done");
    assert_eq!(status(&restore), "unchanged");
    assert_eq!(status(&["undo", "--yes", "--json"]), "done");
    env.write("a.txt", "by hand\n");
    assert_eq!(
        status(&[&restore[..], &["--on-conflict", "keep"]].concat()),
        "partial"
    );
}

#[test]
fn every_failure_is_an_object_on_standard_error() {
    let mut env = TestEnv::new();
    shop(&mut env);
    env.write("a.txt", "by hand\n");
    env.write("notes", "no session\n");
    for (args, code, kind) in [
        (
            ["restore", "1", "--scope", "code", "--yes"].as_slice(),
            4,
            "conflict",
        ),
        (&["restore", "1", "--scope", "code"], 2, "usage"),
        (&["restore", "1", "--yes"], 2, "usage"),
        (&["list", "--no-such-option"], 2, "usage"),
        (&["nosuch"], 2, "usage"),
        (&["show", "9"], 5, "not-found"),
        (&["list", "nosuch"], 5, "not-found"),
        (&["undo", "--yes"], 5, "not-found"),
        (&["list", "-s", "notes"], 6, "unsupported"),
    ] {
        let run = env.run(&[args, &["--json"]].concat());
        assert_eq!(run.code, Some(code), "{}", run.text());
        assert_eq!(run.stdout, "", "{}", run.text());
        let error = parse(&run.stderr);
        assert_eq!(error["schema"], "rewind.error/1");
        assert_eq!(
            (&error["code"], &error["kind"]),
            (&code.into(), &kind.into())
        );
        assert!(!error["message"].as_str().unwrap().is_empty());
        assert_eq!(error["changed"], "nothing was changed", "{}", run.text());
        assert!(
            !error["hints"].as_array().unwrap().is_empty(),
            "{}",
            run.text()
        );
    }
}
