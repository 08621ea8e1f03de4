//! Success that is said too early, and plans for a world that changed (`bugs.md` B 26 and 27): kills at every place, and
//! what the next run makes of them.

use std::fs;

use rewind::env::Env;
use rewind::error::Kind;
use rewind::model::point::{OnConflict, Scope, TurnName};
use rewind::ops::gather::Read;
use rewind::ops::journal::{Journal, operation_id};
use rewind::ops::{Real, apply, decide, discover};

use crate::bugs::{json, run, small, untouched};
use crate::env::{TestEnv, Tree};
use crate::story::bytes;

#[test]
fn bug_26_success_is_said_when_both_halves_are_on_the_disk() {
    let env = TestEnv::new();
    let story = small(&env);
    let args = ["restore", "0", "--scope", "both", "--yes"];
    let killed = env.run_killed_at("committed", &args);
    assert_eq!(killed.code, None, "{}", killed.text());
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"one\n");
    assert_eq!(fs::read(story.path()).unwrap(), b"");
    // Whatever comes next finds it done, and it can be taken back.
    let log = json(&run(&env, 0, &["log", "--json"]));
    assert_eq!(log["operations"][0]["status"], "done");
    run(&env, 0, &["undo", "--yes"]);
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"two\n");
    assert_eq!(fs::read_to_string(story.path()).unwrap(), story.text());
}

#[test]
fn bug_26_before_that_nothing_is_said_and_it_is_both_or_neither() {
    for point in rewind::fsx::crash::POINTS {
        let env = TestEnv::new();
        let story = small(&env);
        let args = ["restore", "0", "--scope", "both", "--yes"];
        let killed = env.run_killed_at(point, &args);
        if killed.code.is_none() {
            assert!(
                !killed.stderr.contains("took"),
                "{point}: {}",
                killed.text()
            );
            assert!(
                !killed.stdout.contains("a.txt"),
                "{point}: {}",
                killed.text()
            );
        }
        run(&env, 0, &["log"]);
        let file = bytes(&env, "a.txt").unwrap();
        let talk = fs::read_to_string(story.path()).unwrap();
        let both = file == b"one\n" && talk.is_empty();
        let neither = file == b"two\n" && talk == story.text();
        assert!(both || neither, "{point}: {file:?} beside {talk}");
        assert_eq!(Tree::of(&env.workspace()).0.len(), 1, "{point}: left-overs");
        // And it can be tried again: no name in the journal is in the way.
        if neither {
            run(&env, 0, &args);
            assert_eq!(bytes(&env, "a.txt").unwrap(), b"one\n", "{point}");
        }
    }
}

#[test]
fn bug_26_the_next_command_settles_it_whichever_it_is() {
    for command in ["list", "show", "restore", "undo", "log"] {
        let env = TestEnv::new();
        small(&env);
        let args = ["restore", "0", "--scope", "both", "--yes"];
        // The conversation is cut to nothing already, and the operation is not closed.
        assert_eq!(env.run_killed_at("session-placed", &args).code, None);
        let more: &[&str] = match command {
            "show" => &["0"],
            "restore" => &args[1..],
            "undo" => &["--yes"],
            _ => &[],
        };
        let next = env.run(&[&[command], more].concat());
        assert!(
            next.stderr
                .contains("had been interrupted; it was finished"),
            "{command}: {}",
            next.text()
        );
        assert_eq!(Tree::of(&env.workspace()).0.len(), 1, "{command}");
    }
}

#[test]
fn bug_26_files_go_back_when_the_conversation_went_on_before_it_was_cut() {
    let env = TestEnv::new();
    let mut story = small(&env);
    story.write("new.txt", "new\n");
    story.save();
    let before = Tree::of(&env.workspace()).contents();
    let args = ["restore", "0", "--scope", "both", "--yes"];
    assert_eq!(env.run_killed_at("placed", &args).code, None);
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"one\n");
    // The agent is still there, and says something.
    story.answer();
    story.save();
    let next = run(&env, 0, &["log"]);
    assert!(
        next.stderr.contains("had been interrupted"),
        "{}",
        next.text()
    );
    let after = Tree::of(&env.workspace()).contents();
    assert_eq!(before.changes(&after), [""; 0], "{}", next.text());
    assert_eq!(fs::read_to_string(story.path()).unwrap(), story.text());
    let log = json(&run(&env, 0, &["log", "--json"]));
    assert_eq!(log["operations"][0]["status"], "aborted");
}

/// The surroundings of a run, for a test that stops between plan and apply.
fn surroundings(env: &TestEnv) -> Env {
    Env {
        temp: std::path::PathBuf::from("/tmp"),
        home: Some(env.home()),
        cwd: env.workspace(),
        state: Some(env.state()),
        config: None,
        vars: std::collections::BTreeMap::new(),
        now: chrono::Utc::now(),
        crash: None,
        exe: None,
        pid: std::process::id(),
        interactive: false,
        tty: false,
        columns: None,
    }
}

#[test]
fn bug_27_a_plan_for_a_world_that_changed_is_stale() {
    let env = TestEnv::new();
    let mut story = small(&env);
    story.prompt("and a new file");
    story.write("b.txt", "b\n");
    story.save();
    let around = surroundings(&env);
    let found = discover::pick(&around, None, None).unwrap();
    let read = Read::new(&found, &around).unwrap();
    let root = read.root_to_change(&around, None).unwrap();
    let turn = read.turn(&TurnName::Number(0)).unwrap();
    let timeline = read.timeline(&root, turn.no, &around).unwrap();
    let plan = decide::restore(
        &root,
        &read.session,
        read.point(turn),
        Scope::Code,
        timeline,
        &decide::Only::default(),
        OnConflict::Overwrite,
    );
    assert_eq!(plan.steps.len(), 2);
    // The person saves the file between the preview and the yes.
    env.write("b.txt", "b, and what I just typed\n");
    let journal = Journal::open(around.state.as_deref(), &root).unwrap();
    let context = apply::Context {
        disk: &Real::new(),
        journal: &journal,
        root: &root,
        now: around.now,
        id: &operation_id(around.now, around.pid, 0),
        watch: rewind::ops::apply::unwatched(),
    };
    let refused = untouched(&env, || apply::apply(&plan, &context).unwrap_err());
    assert_eq!(refused.kind, Kind::Conflict);
    assert_eq!(refused.message, "the plan is stale");
    assert_eq!(refused.changed, "nothing was changed");
    let named: Vec<_> = refused.paths.iter().map(|(p, _)| p.clone()).collect();
    assert_eq!(named, [env.workspace().join("b.txt")]);
}
