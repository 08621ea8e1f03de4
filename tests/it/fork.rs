//! `rewind fork` as a user sees it, and on a disk that fails: either a whole new session or nothing, and the old one as
//! it was to the last bit. That each agent takes a fork up is its format's matter.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use rewind::env::Env;
use rewind::error::Result;
use rewind::fsx::{Disk, Faulty, Real};
use rewind::model::fork::NewSession;
use rewind::ops::fork;
use rewind::ops::gather::Read;
use serde_json::{Value, json};

use crate::env::{Run, TestEnv, Tree};
use crate::story::{ID, Story, bytes};

/// Three turns: `a` is changed in turn 0, made again in 1 and 2.
fn told(env: &TestEnv) -> PathBuf {
    env.write("a", "zero\n");
    let mut s = Story::new(env);
    s.prompt(&format!("first, with {ID} in it"));
    s.edit("a", "zero", "one");
    s.answer();
    s.prompt("second");
    s.edit("a", "one", "two");
    s.answer();
    s.prompt("third\nof two lines");
    s.edit("a", "two", "three");
    s.answer();
    s.save()
}

fn json(run: &Run) -> Value {
    assert_eq!(run.code, Some(0), "{}", run.text());
    serde_json::from_str(&run.stdout).unwrap()
}

fn prompts(env: &TestEnv, session: &str) -> Vec<String> {
    let list = json(&env.run(&["list", "--json", "-s", session]));
    let turns = list["turns"].as_array().unwrap();
    let prompt = |t: &Value| t["prompt"].as_str().unwrap().to_owned();
    turns.iter().map(prompt).collect()
}

#[test]
fn a_fork_holds_the_turns_before_and_the_old_session_is_untouched() {
    let env = TestEnv::new();
    let old = told(&env);
    let before = (
        fs::read(&old).unwrap(),
        fs::metadata(&old).unwrap().mtime_nsec(),
    );
    let run = env.run(&["fork", "2", "--yes"]);
    let made = fs::read_dir(old.parent().unwrap())
        .unwrap()
        .map(|e| e.unwrap().path());
    let new = made.into_iter().find(|p| *p != old).unwrap();
    let id = new.file_stem().unwrap().to_str().unwrap();
    assert_snapshot!(run.text().replace(id, "[ID]"), @"
    exit: 0
    --- stdout
    the prompt of turn 2:
    third
    of two lines
    --- stderr
    made session [ID] with turns 0 to 1
    in [HOME]/.claude/projects/[TMP-]-ws/[ID].jsonl
    hint: go on with `claude --resume [ID]`
    ");
    assert_eq!(
        prompts(&env, id),
        [format!("first, with {ID} in it").as_str(), "second"]
    );
    let after = (
        fs::read(&old).unwrap(),
        fs::metadata(&old).unwrap().mtime_nsec(),
    );
    assert_eq!(before, after);
    let bits = |p: &Path| fs::metadata(p).unwrap().mode();
    assert_eq!(bits(&new), bits(&old));
}

#[test]
fn files_go_back_in_a_fork_as_in_the_session_that_it_comes_from() {
    let env = TestEnv::new();
    told(&env);
    let new = json(&env.run(&["fork", "2", "--yes", "--json"]));
    let id = new["session"]["id"].as_str().unwrap();
    assert_ne!(id, ID);
    env.write("a", "two\n");
    let back = env.run(&["restore", "0", "--scope", "code", "--yes", "-s", id]);
    assert_eq!(back.code, Some(0), "{}", back.text());
    assert_eq!(bytes(&env, "a").unwrap(), b"zero\n");
}

#[test]
fn a_dry_run_makes_nothing_and_without_a_yes_nobody_is_asked() {
    let env = TestEnv::new();
    let old = told(&env);
    let there = || fs::read_dir(old.parent().unwrap()).unwrap().count();
    let planned = json(&env.run(&["fork", "-1", "--dry-run", "--json"]));
    assert_eq!(
        (&planned["status"], &planned["turn"]),
        (&json!("planned"), &json!(2))
    );
    let refused = env.run(&["fork", "1"]);
    assert_eq!(refused.code, Some(2), "{}", refused.text());
    let nothing = env.run(&["fork", "0", "--yes"]);
    assert_snapshot!(nothing.text(), @"
    exit: 6
    --- stdout
    --- stderr
    error: a fork before turn 0 would hold no turn at all
    nothing was changed
    hint: start a new session in the agent instead
    ");
    assert_eq!(there(), 1);
}

#[test]
fn checkpoints_of_the_kept_turns_go_along_and_share_their_blobs() {
    let env = TestEnv::new();
    env.write("data", [0xff, 0xfe]);
    let mut s = Story::new(&env);
    let keys = ["first", "second", "third"].map(|p| {
        let key = s.prompt(p);
        s.bash("./convert");
        s.answer();
        key
    });
    let old = s.save();
    let side = old.with_extension("ckpt");
    let sha = |b: &[u8]| rewind::ops::hex(&rewind::fsx::hash::of_bytes(b));
    let blob = |b: &[u8]| {
        let name = sha(b);
        let folder = PathBuf::from("blobs").join(&name[..2]).join(&name[2..4]);
        fs::create_dir_all(side.join(&folder)).unwrap();
        fs::write(side.join(&folder).join(&name), b).unwrap();
        (folder.join(&name), name)
    };
    let (kept, late) = (blob(&[0xff, 0xfe]), blob(&[0xfd]));
    for (no, (key, (_, name))) in keys.iter().zip([&kept, &kept, &late]).enumerate() {
        let prompt = ["first", "second", "third"][no];
        let record = json!({"schemaVersion": 2, "turn": no, "prompt": prompt, "messageId": key, "sessionId": ID,
            "files": [{"path": "data", "content": null, "sha256": name, "blobRef": name, "mode": 0o644,
                       "captureSource": "hook"}]});
        fs::write(side.join(format!("turn-{no}.json")), record.to_string()).unwrap();
    }
    fs::write(side.join("index.json"), "{}").unwrap();
    let new = json(&env.run(&["fork", "2", "--yes", "--json"]));
    assert_eq!(new["checkpoints"], json!(2));
    let folder = old.with_file_name(format!("{}.ckpt", new["session"]["id"].as_str().unwrap()));
    let record: Value =
        serde_json::from_slice(&fs::read(folder.join("turn-1.json")).unwrap()).unwrap();
    assert_eq!(record["sessionId"], new["session"]["id"]);
    assert!(!folder.join("turn-2.json").exists());
    let inode = |f: &Path| fs::metadata(f.join(&kept.0)).unwrap().ino();
    assert_eq!(inode(&folder), inode(&side));
    assert!(!folder.join(&late.0).exists());
    let id = new["session"]["id"].as_str().unwrap();
    env.write("data", "converted");
    let back = env.run(&[
        "restore",
        "1",
        "--scope",
        "code",
        "--yes",
        "--on-conflict",
        "overwrite",
        "-s",
        id,
    ]);
    assert_eq!(back.code, Some(0), "{}", back.text());
    assert_eq!(bytes(&env, "data").unwrap(), [0xff, 0xfe]);
}

/// A fork before turn 2 on a disk of the test's.
fn make(env: &TestEnv, old: &Path, disk: &dyn Disk) -> Result<()> {
    let surroundings = Env {
        home: Some(env.home()),
        config: None,
        vars: BTreeMap::new(),
        ..Env::of_process().unwrap()
    };
    let found = rewind::ops::discover::at(old, &surroundings)?;
    let read = Read::new(&found, &surroundings)?;
    let new = NewSession {
        seed: fork::seed(),
        at: surroundings.now,
        name: None,
    };
    let plan = fork::plan(&read, 2, &new, &surroundings)?;
    fork::make(&plan, &read, disk, &surroundings).map(drop)
}

fn sessions(env: &TestEnv) -> usize {
    json(&env.run(&["sessions", "--json"]))["sessions"]
        .as_array()
        .unwrap()
        .len()
}

#[test]
fn a_disk_that_fails_once_leaves_a_whole_fork_or_nothing_at_all() {
    for nth in 1.. {
        let env = TestEnv::new();
        let old = told(&env);
        let (was, all) = (fs::read(&old).unwrap(), Tree::of(&env.home()));
        let disk = Faulty::once(nth, 28);
        let made = make(&env, &old, &disk);
        assert_eq!(fs::read(&old).unwrap(), was);
        match made {
            Ok(()) => assert_eq!(sessions(&env), 2, "at {nth}"),
            Err(e) => assert_eq!(Tree::of(&env.home()), all, "at {nth}: {e}"),
        }
        if disk.asked() < nth {
            return;
        }
    }
}

#[test]
fn a_kill_at_any_change_leaves_the_agent_with_a_whole_fork_or_none() {
    for nth in 1.. {
        let env = TestEnv::new();
        let old = told(&env);
        let was = fs::read(&old).unwrap();
        let disk = Faulty::dead_from(nth);
        let made = make(&env, &old, &disk);
        assert_eq!(fs::read(&old).unwrap(), was);
        for session in json(&env.run(&["sessions", "--json"]))["sessions"]
            .as_array()
            .unwrap()
        {
            assert_ne!(session["turns"], json!(0), "at {nth}");
            assert!(session["turns"].as_u64().unwrap() >= 2, "at {nth}");
        }
        if disk.asked() < nth {
            assert!(made.is_ok());
            assert_eq!(sessions(&env), 2);
            return;
        }
    }
}

#[test]
fn a_place_that_is_taken_is_left_alone() {
    let env = TestEnv::new();
    let old = told(&env);
    let surroundings = Env {
        home: Some(env.home()),
        config: None,
        vars: BTreeMap::new(),
        ..Env::of_process().unwrap()
    };
    let found = rewind::ops::discover::at(&old, &surroundings).unwrap();
    let read = Read::new(&found, &surroundings).unwrap();
    let new = NewSession {
        seed: fork::seed(),
        at: surroundings.now,
        name: None,
    };
    let plan = fork::plan(&read, 1, &new, &surroundings).unwrap();
    let taken = &plan.fork.session().unwrap().path;
    fs::write(taken, "somebody's").unwrap();
    assert!(fork::make(&plan, &read, &Real::new(), &surroundings).is_err());
    assert_eq!(fs::read(taken).unwrap(), b"somebody's");
    assert!(fork::plan(&read, 1, &new, &surroundings).is_err());
}
