//! `--json=lines`: what another program hears while a rewind is done, and that it hears nothing that is not so.

use std::io::Read;
use std::process::Stdio;

use serde_json::Value;

use crate::env::{Run, TestEnv};
use crate::json::events;
use crate::story::{Story, shop};

/// The names of a run's events, one after the other, each name once for a row of the same.
fn names(run: &Run) -> Vec<String> {
    let name = |e: &Value| e["event"].as_str().unwrap().to_owned();
    let mut names: Vec<String> = events(run).iter().map(name).collect();
    names.dedup();
    names
}

const BOTH: [&str; 5] = ["restore", "1", "--scope", "both", "--json=lines"];

/// As from cron: no terminal, nothing to answer with, JSON in and out, and codes that tell what happened.
#[test]
fn bug_93_a_script_drives_it_without_a_terminal() {
    let mut env = TestEnv::new();
    shop(&mut env);
    let asked = env.run(&BOTH);
    assert_eq!(asked.code, Some(2), "nobody can say yes: {}", asked.text());
    assert_eq!(asked.stdout, "");
    let all = events(&env.run(&["list", "--json=lines"]));
    let turn = all[0]["result"]["turns"][1]["id"].as_str().unwrap();
    let args = ["restore", turn, "--scope", "both", "--yes", "--json=lines"];
    let run = env.run(&args);
    assert_eq!(run.code, Some(0), "{}", run.text());
    let undo = ["undo", "--yes", "--json=lines"];
    let taken_back = env.run(&undo);
    assert_eq!(taken_back.code, Some(0), "{}", taken_back.text());
    let again = env.run(&undo);
    assert_eq!(again.code, Some(5), "{}", again.text());
}

#[test]
fn a_rewind_tells_its_plan_each_step_and_its_end_in_this_order() {
    let mut env = TestEnv::new();
    shop(&mut env);
    let run = env.run(&[&BOTH[..], &["--yes"]].concat());
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(names(&run), ["planned", "step", "rewound", "done"]);
    let all = events(&run);
    let plan = &all[0]["plan"];
    assert_eq!(plan["status"], "planned");
    let steps: Vec<&Value> = all.iter().filter(|e| e["event"] == "step").collect();
    let planned = plan["steps"].as_array().unwrap().len();
    let session = plan["session_steps"].as_array().unwrap().len();
    assert_eq!(steps.len(), planned + session);
    for (n, step) in (1..).zip(&steps) {
        assert_eq!((&step["n"], &step["of"]), (&n.into(), &steps.len().into()));
    }
    let (rewound, done) = (&all[all.len() - 2], &all[all.len() - 1]["result"]);
    assert_eq!(rewound["operation"], done["operation"]);
    assert_eq!(rewound["prompt"], plan["prompt"]);
    assert_eq!(done["status"], "done");
    let undo = env.run(&["undo", "--yes", "--json=lines"]);
    assert_eq!(names(&undo), ["planned", "step", "rewound", "done"]);
}

#[test]
fn a_refusal_names_each_conflict_and_says_no_more_than_that() {
    let mut env = TestEnv::new();
    shop(&mut env);
    env.write("a.txt", "by hand\n");
    for more in [["--yes"].as_slice(), &["--dry-run"]] {
        let run = env.run(&[&BOTH[..], more].concat());
        assert_eq!(run.code, Some(4), "{}", run.text());
        let all = events(&run);
        assert_eq!(all[0]["plan"]["status"], "refused");
        assert_eq!(all[1]["event"], "conflict");
        assert_eq!(all[1]["path"], "a.txt");
        assert!(
            all.iter()
                .all(|e| e["event"] != "step" && e["event"] != "rewound")
        );
        let error: Value = serde_json::from_str(run.stderr.trim()).unwrap();
        assert_eq!(error["schema"], "rewind.error/1");
    }
}

#[test]
fn nothing_to_do_is_no_rewind() {
    let mut env = TestEnv::new();
    shop(&mut env);
    let code = ["restore", "1", "--scope", "code", "--yes", "--json=lines"];
    assert_eq!(env.run(&code).code, Some(0));
    assert_eq!(names(&env.run(&code)), ["planned", "done"]);
}

#[test]
fn every_other_command_tells_its_result_as_the_end() {
    let mut env = TestEnv::new();
    shop(&mut env);
    for command in [
        &["list"][..],
        &["show", "1"],
        &["sessions"],
        &["log"],
        &["doctor"],
    ] {
        let lines = env.run(&[command, &["--json=lines"]].concat());
        let object = env.run(&[command, &["--json"]].concat());
        assert_eq!(names(&lines), ["done"]);
        let object: Value = serde_json::from_str(&object.stdout).unwrap();
        assert_eq!(events(&lines)[0]["result"], object);
    }
}

#[test]
fn a_reader_that_goes_away_does_not_stop_the_rewind_half_way() {
    let env = TestEnv::new();
    let mut s = Story::new(&env);
    s.prompt("many");
    for n in 0..200 {
        s.write(&format!("f{n}.txt"), "made\n");
    }
    s.save();
    let args = ["restore", "0", "--scope", "code", "--yes", "--json=lines"];
    let mut command = env.command(&args);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0; 1]).unwrap();
    drop(out);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let left = (0..200).filter(|n| env.workspace().join(format!("f{n}.txt")).exists());
    assert_eq!(left.count(), 0);
}
