//! `rewind prune`: what goes, what stays and why; that what stays is enough for every point that is left; that a kill at
//! any moment leaves what the next run finishes.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::env::{Run, TestEnv, Tree};
use crate::sidecar::sha;
use crate::story::{History, NOW, Story, bytes, touch};
use crate::wrap;

const DAY: u64 = 86_400;
/// How old the turns of [`kept`] are, in days.
const AGES: [u64; 6] = [60, 50, 40, 35, 20, 2];

/// A blob that is as old as that; returns its name.
fn blob(sidecar: &Path, content: &[u8], age: u64) -> String {
    let name = sha(content);
    let folder = sidecar.join("blobs").join(&name[..2]).join(&name[2..4]);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(&name), content).unwrap();
    touch(&folder.join(&name), age);
    name
}

/// The session of that id: a turn for each age, in each of which `a` and a file of its own are overwritten, which only the
/// sidecar knows of.
pub(crate) fn told(env: &TestEnv, id: &str) -> PathBuf {
    let mut s = Story::with(env, id, History::Off);
    let sidecar = s.path().with_extension("ckpt");
    fs::create_dir_all(&sidecar).unwrap();
    fs::write(sidecar.join("index.json"), "{}\n").unwrap();
    env.write("a", "a 0\n");
    for (turn, age) in AGES.iter().enumerate() {
        let key = s.prompt(&format!("turn {turn}"));
        let own = format!("own-{turn}");
        env.write(&own, format!("before {turn}\n"));
        let file = |path: &str, content: &str, after: &str| {
            let name = blob(&sidecar, content.as_bytes(), age * DAY);
            json!({"path": path, "content": null, "sha256": name, "blobRef": name, "mode": 0o644,
                   "captureSource": "hook", "afterSha256": sha(after.as_bytes()), "afterExisted": true,
                   "afterMode": 0o644})
        };
        let (a, next) = (format!("a {turn}\n"), format!("a {}\n", turn + 1));
        let files = [
            file("a", &a, &next),
            file(&own, &format!("before {turn}\n"), "after\n"),
        ];
        s.unknown_write("a", &next);
        s.unknown_write(&own, "after\n");
        s.answer();
        let record = json!({"schemaVersion": 2, "turn": turn, "time": "2026-01-01T00:00:00Z",
            "prompt": format!("turn {turn}"), "messageId": key, "sessionId": id, "root": env.workspace(),
            "files": files, "coverage": "complete", "coverageGaps": []});
        touch(
            &s.checkpoint(u32::try_from(turn).unwrap(), record.to_string()),
            age * DAY,
        );
    }
    touch(&s.save(), DAY);
    sidecar
}

const ID: &str = "5e550000-0000-4000-8000-000000000001";

/// A session with checkpoints of all ages, and its sidecar.
pub(crate) fn kept() -> (TestEnv, PathBuf) {
    let mut env = TestEnv::new();
    env.at(NOW);
    let sidecar = told(&env, ID);
    (env, sidecar)
}

fn prune(env: &TestEnv, more: &[&str]) -> Run {
    env.run(&[&["prune", "--yes"], more].concat())
}

/// The numbers of the checkpoints that are there.
pub(crate) fn turns(sidecar: &Path) -> Vec<u32> {
    let mut all: Vec<u32> = fs::read_dir(sidecar)
        .into_iter()
        .flatten()
        .filter_map(|e| {
            let name = e.unwrap().file_name().into_string().unwrap();
            name.strip_prefix("turn-")?
                .strip_suffix(".json")?
                .parse()
                .ok()
        })
        .collect();
    all.sort_unstable();
    all
}

fn blobs(sidecar: &Path) -> BTreeSet<String> {
    let tree = Tree::of(&sidecar.join("blobs"));
    let names = tree.0.keys().filter_map(|p| p.file_name()?.to_str());
    names.filter(|n| n.len() == 64).map(str::to_owned).collect()
}

/// Every point that is left gives back the bytes that were recorded, and the others say that they cannot.
fn holds(env: &TestEnv, from: usize) {
    for turn in (from..AGES.len()).rev() {
        let run = env.run(&["restore", &turn.to_string(), "--scope", "code", "--yes"]);
        assert_eq!(run.code, Some(0), "{}", run.text());
        assert_eq!(bytes(env, "a").unwrap(), format!("a {turn}\n").as_bytes());
        for own in turn..AGES.len() {
            let now = bytes(env, &format!("own-{own}")).unwrap();
            assert_eq!(now, format!("before {own}\n").as_bytes());
        }
        assert_eq!(env.run(&["undo", "--yes"]).code, Some(0));
    }
}

#[test]
fn the_oldest_go_and_every_point_that_is_left_is_whole() {
    let (env, sidecar) = kept();
    let session = Tree::of(&env.home().join(".claude/projects"));
    let plan = env.run(&["prune", "--dry-run"]);
    assert_snapshot!(plan.text(), @"
    exit: 0
    --- stdout
    [HOME]/.claude/projects/[TMP-]-ws/5e550000-0000-4000-8000-000000000001.ckpt  (Claude Code)
      remove     checkpoints 0 to 3 (4): older than the limit
      keep       checkpoint 4: younger than the limit
      keep       checkpoint 5: among the newest of its session
    --- stderr
    would remove 4 checkpoints, and free 45 KB
    ");
    let before = Tree::of(&env.home());
    let done = prune(&env, &[]);
    assert_snapshot!(done.text(), @"
    exit: 0
    --- stdout
    [HOME]/.claude/projects/[TMP-]-ws/5e550000-0000-4000-8000-000000000001.ckpt  (Claude Code)
      remove     checkpoints 0 to 3 (4): older than the limit
      keep       checkpoint 4: younger than the limit
      keep       checkpoint 5: among the newest of its session
    --- stderr
    removed 4 checkpoints and operations, freed 45 KB
    ");
    assert_eq!(plan.stdout, done.stdout);
    assert_eq!(turns(&sidecar), [4, 5]);
    assert_eq!(blobs(&sidecar).len(), 4);
    let is_session = |p: &&PathBuf| p.extension().is_some_and(|e| e == "jsonl");
    let now = Tree::of(&env.home().join(".claude/projects"));
    for path in session.0.keys().filter(is_session) {
        assert_eq!(session.0[path].bytes, now.0[path].bytes);
    }
    drop(before);
    holds(&env, 4);
    let gone = env.run(&["restore", "2", "--scope", "code", "--yes"]);
    assert_eq!(gone.code, Some(3), "{}", gone.text());
    assert!(gone.stderr.contains("pruned"), "{}", gone.text());
    let again = prune(&env, &[]);
    assert_eq!(again.code, Some(0));
    assert!(
        again.stderr.contains("nothing to prune"),
        "{}",
        again.text()
    );
}

#[test]
fn a_kill_at_any_moment_comes_to_the_same_end() {
    let (env, sidecar) = kept();
    assert_eq!(prune(&env, &[]).code, Some(0));
    let names = |t: &Tree| -> BTreeSet<PathBuf> { t.0.keys().cloned().collect() };
    let end = names(&Tree::of(&sidecar));
    let points = [
        "prune-marked",
        "prune-marked:3",
        "prune-all-marked",
        "prune-blob",
        "prune-blob:5",
        "prune-record",
        "prune-record:3",
    ];
    for point in points {
        let (env, sidecar) = kept();
        let killed = env.run_killed_at(point, &["prune", "--yes"]);
        assert_eq!(killed.code, None, "{point}: {}", killed.text());
        // What is left in between is right, too: no point says that it is whole and is not.
        let list = env.run(&["list", "--json"]);
        assert_eq!(list.code, Some(0), "{}", list.text());
        let between = env.run(&["restore", "5", "--scope", "code", "--yes"]);
        assert_eq!(between.code, Some(0), "{point}: {}", between.text());
        assert_eq!(env.run(&["undo", "--yes"]).code, Some(0));
        // The operation that just went there would keep the point for a day.
        let done = prune(&env, &[]);
        assert_eq!(done.code, Some(0), "{point}: {}", done.text());
        assert_eq!(names(&Tree::of(&sidecar)), end, "{point}");
        holds(&env, 4);
    }
}

#[test]
fn what_is_pinned_stays_with_all_that_it_needs_and_its_name_is_a_turn() {
    let (env, sidecar) = kept();
    assert_snapshot!(env.run(&["pin", "2", "--name", "before-the-move"]).text(), @"
    exit: 0
    --- stdout
    --- stderr
    turn 2 is pinned as `before-the-move`: no prune takes what it needs
    ");
    assert_eq!(
        prune(&env, &["--older-than", "1s", "--keep-last", "0"]).code,
        Some(0)
    );
    assert_eq!(turns(&sidecar), [2, 3, 4, 5]);
    let shown = env.run(&["restore", "before-the-move", "--scope", "code", "--yes"]);
    assert_eq!(shown.code, Some(0), "{}", shown.text());
    assert_eq!(bytes(&env, "a").unwrap(), b"a 2\n");
    for odd in ["3", "-1", "", "--x", "a\nb"] {
        let run = env.run(&["pin", "3", &format!("--name={odd}")]);
        assert_eq!(run.code, Some(2), "{odd}: {}", run.text());
    }
    let taken = env.run(&["pin", "3", "--name", "before-the-move"]);
    assert_eq!(taken.code, Some(2), "{}", taken.text());
    assert_eq!(env.run(&["unpin", "before-the-move"]).code, Some(0));
    assert_eq!(env.run(&["unpin", "before-the-move"]).code, Some(5));
    assert_eq!(env.run(&["undo", "--yes"]).code, Some(0));
    // The rewind that went to turn 2 a moment ago still needs it.
    assert_eq!(prune(&env, &["--older-than", "1s"]).code, Some(0));
    assert_eq!(turns(&sidecar), [2, 3, 4, 5]);
}

#[test]
fn pins_that_cannot_be_read_keep_everything() {
    let (env, sidecar) = kept();
    fs::create_dir_all(env.state()).unwrap();
    fs::write(env.state().join("pins.jsonl"), "{\"schema\":\"rew").unwrap();
    let run = prune(&env, &[]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert!(
        run.stdout.contains("the pins cannot be read"),
        "{}",
        run.text()
    );
    assert_eq!(turns(&sidecar).len(), AGES.len());
}

#[test]
fn the_newest_stays_whatever_its_age_unless_asked() {
    let (env, sidecar) = kept();
    assert_eq!(
        prune(&env, &["--older-than", "1s", "--keep-last", "2"]).code,
        Some(0)
    );
    assert_eq!(turns(&sidecar), [4, 5]);
    assert_eq!(prune(&env, &["--older-than", "1s"]).code, Some(0));
    assert_eq!(turns(&sidecar), [5]);
    assert_eq!(
        prune(&env, &["--older-than", "1s", "--keep-last", "0"]).code,
        Some(0)
    );
    assert_eq!(turns(&sidecar), [0; 0]);
    assert_eq!(blobs(&sidecar).len(), 0);
}

/// `bugs.md` 61-74: a clock that jumped back makes nothing old.
#[test]
fn a_checkpoint_of_2099_stays_and_keeps_what_comes_behind_it() {
    let (mut env, sidecar) = kept();
    let file = fs::File::options()
        .append(true)
        .open(sidecar.join("turn-1.json"))
        .unwrap();
    let far = std::time::UNIX_EPOCH + std::time::Duration::from_secs(4_070_908_800);
    file.set_modified(far).unwrap();
    let run = prune(&env, &[]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(turns(&sidecar), [1, 2, 3, 4, 5]);
    assert!(
        run.stdout.contains("the clock is not to be trusted"),
        "{}",
        run.text()
    );
    // A clock that is far behind makes everything of the future.
    env.at("2001-01-01T00:00:00Z");
    assert_eq!(prune(&env, &[]).code, Some(0));
    assert_eq!(turns(&sidecar), [1, 2, 3, 4, 5]);
}

#[test]
fn a_record_that_cannot_be_read_goes_to_quarantine_and_no_content_with_it() {
    let (env, sidecar) = kept();
    let path = sidecar.join("turn-1.json");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    touch(&path, 50 * DAY);
    let all = blobs(&sidecar);
    let run = prune(&env, &[]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert!(
        run.stdout.contains("quarantine checkpoint 1"),
        "{}",
        run.text()
    );
    assert_eq!(turns(&sidecar), [4, 5]);
    let there = fs::read(sidecar.join("quarantine/turn-1.json.unreadable")).unwrap();
    assert_eq!(there, &whole[..whole.len() / 2]);
    assert_eq!(blobs(&sidecar), all, "what it named is not known");
    holds(&env, 4);
}

#[test]
fn a_session_at_work_is_passed_over() {
    let (env, sidecar) = kept();
    let session = sidecar.with_extension("jsonl");
    touch(&session, 60);
    let run = prune(&env, &[]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert!(run.stdout.contains("an agent is at work"), "{}", run.text());
    assert_eq!(turns(&sidecar).len(), AGES.len());
}

#[test]
fn a_hook_that_has_the_lock_is_not_disturbed() {
    let (env, sidecar) = kept();
    let lock = fs::File::create(sidecar.join("lock")).unwrap();
    lock.lock().unwrap();
    let run = prune(&env, &[]);
    assert_eq!(run.code, Some(3), "{}", run.text());
    assert!(run.stderr.contains("a hook is at work"), "{}", run.text());
    assert_eq!(turns(&sidecar).len(), AGES.len());
    drop(lock);
    assert_eq!(prune(&env, &[]).code, Some(0));
    assert_eq!(turns(&sidecar), [4, 5]);
}

#[test]
fn the_size_takes_the_oldest_of_all_however_young() {
    let (env, sidecar) = kept();
    let other = told(&env, "5e550000-0000-4000-8000-000000000002");
    let run = prune(&env, &["--older-than", "2000d", "--max-size", "60kB"]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert!(
        run.stdout.contains("all together are too large"),
        "{}",
        run.text()
    );
    // A record and two contents of 4 KiB each a turn: 48 KiB are four turns.
    assert_eq!((turns(&sidecar), turns(&other)), (vec![4, 5], vec![4, 5]));
    let none = prune(&env, &["--max-size", "1B"]);
    assert_eq!(none.code, Some(0));
    assert_eq!(
        (turns(&sidecar), turns(&other)),
        (vec![5], vec![5]),
        "the newest stays"
    );
}

#[test]
fn checkpoints_without_a_session_go_only_when_that_is_asked_for() {
    let (env, sidecar) = kept();
    let other = told(&env, "5e550000-0000-4000-8000-000000000002");
    fs::remove_file(sidecar.with_extension("jsonl")).unwrap();
    // What others call a checkpoint.
    let theirs = sidecar.parent().unwrap().join("model.ckpt");
    fs::create_dir_all(&theirs).unwrap();
    fs::write(theirs.join("index.json"), "{}\n").unwrap();
    fs::write(theirs.join("weights.bin"), "w").unwrap();
    let kept = prune(&env, &["--all"]);
    assert_eq!(kept.code, Some(0), "{}", kept.text());
    assert_eq!((turns(&sidecar).len(), turns(&other).len()), (6, 2));
    assert!(
        kept.stdout.contains("`--orphans` removes such ones"),
        "{}",
        kept.text()
    );
    let young = prune(&env, &["--orphans"]);
    assert_eq!(young.code, Some(0), "{}", young.text());
    assert_eq!(turns(&sidecar), [4, 5], "the young ones stay all the same");
    assert_eq!(
        prune(&env, &["--orphans", "--older-than", "1s"]).code,
        Some(0)
    );
    assert!(!sidecar.exists());
    assert!(theirs.join("weights.bin").exists() && theirs.join("index.json").exists());
}

#[test]
fn a_link_in_the_place_of_the_contents_is_not_followed() {
    let (env, sidecar) = kept();
    let elsewhere = env.home().join("elsewhere");
    fs::rename(sidecar.join("blobs"), &elsewhere).unwrap();
    symlink(&elsewhere, sidecar.join("blobs")).unwrap();
    let before = Tree::of(&elsewhere);
    assert_eq!(prune(&env, &[]).code, Some(0));
    assert_eq!(before.changes(&Tree::of(&elsewhere)), [""; 0]);
}

#[test]
fn a_store_that_may_not_be_written_is_named_and_the_rest_is_done() {
    use std::os::unix::fs::PermissionsExt;
    let (env, sidecar) = kept();
    let other = told(&env, "5e550000-0000-4000-8000-000000000002");
    fs::write(sidecar.join("lock"), "").unwrap();
    fs::set_permissions(&sidecar, fs::Permissions::from_mode(0o555)).unwrap();
    let run = env.run_powerless(&["prune", "--yes"]);
    fs::set_permissions(&sidecar, fs::Permissions::from_mode(0o755)).unwrap();
    let Some(run) = run else { return };
    assert_eq!(run.code, Some(3), "{}", run.text());
    assert!(run.stderr.contains("left: "), "{}", run.text());
    assert_eq!((turns(&sidecar).len(), turns(&other)), (6, vec![4, 5]));
}

#[test]
fn what_old_rewinds_replaced_goes_only_when_asked_and_the_newest_way_back_stays() {
    let (mut env, _) = kept();
    for turn in ["5", "4"] {
        let run = env.run(&["restore", turn, "--scope", "code", "--yes"]);
        assert_eq!(run.code, Some(0), "{}", run.text());
    }
    let saved = |env: &TestEnv| {
        let roots = Tree::of(&env.state().join("roots"));
        roots
            .0
            .keys()
            .filter(|p| p.to_str().unwrap().contains("/saved/"))
            .count()
    };
    let all = saved(&env);
    env.at("2026-06-01T00:00:00Z");
    assert_eq!(prune(&env, &[]).code, Some(0));
    assert_eq!(saved(&env), all);
    let run = prune(&env, &["--journal"]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert!(
        run.stdout.contains("the newest that can be undone"),
        "{}",
        run.text()
    );
    assert!(saved(&env) < all);
    let log: Value = serde_json::from_str(&env.run(&["log", "--json"]).stdout).unwrap();
    let status: Vec<_> = log["operations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| o["status"].as_str().unwrap())
        .collect();
    assert_eq!(status, ["pruned", "done"]);
    assert_eq!(env.run(&["undo", "--yes"]).code, Some(0));
    let no_more = env.run(&["undo", "--yes"]);
    assert_eq!(no_more.code, Some(5), "{}", no_more.text());
    let whole = env.run(&["verify"]);
    assert_eq!(whole.code, Some(0), "{}", whole.text());
}

/// Nothing is written but names, so a disk without a free block is no reason not to.
#[test]
fn a_full_disk_is_emptied_all_the_same() {
    let (env, sidecar) = kept();
    fs::create_dir_all(env.state()).unwrap();
    let script = "
        cp -a \"$HOME/.claude\" \"$OUT\"
        mount -t tmpfs -o size=1m none \"$HOME/.claude\"
        mount -t tmpfs -o size=4k none \"$STATE\"
        cp -a \"$OUT/.\" \"$HOME/.claude/\"
        cat /dev/zero > \"$HOME/.claude/fill\" 2>/dev/null || true
        cat /dev/zero > \"$STATE/fill\" 2>/dev/null || true
        code=0
        \"$@\" || code=$?
        rm -rf \"$OUT\" \"$HOME/.claude/fill\"
        cp -a \"$HOME/.claude\" \"$OUT\"
        exit $code";
    let Some(run) = wrap::in_mounts(&env, script, &["prune", "--yes"]) else {
        return;
    };
    // What was removed could not be written down, and that is said.
    assert_eq!(run.code, Some(3), "{}", run.text());
    assert!(
        run.stderr.contains("could not be written down"),
        "{}",
        run.text()
    );
    let below = sidecar.strip_prefix(env.home().join(".claude")).unwrap();
    let after = env.home().join("out").join(below);
    assert_eq!(turns(&after), [4, 5], "{}", run.text());
    assert_eq!(blobs(&after).len(), 4);
}

#[test]
fn without_a_yes_nothing_goes_and_what_went_is_recorded() {
    let (env, sidecar) = kept();
    assert_eq!(env.run(&["prune"]).code, Some(2));
    assert_eq!(turns(&sidecar).len(), 6);
    let quiet = prune(&env, &["--quiet"]);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
    let log: Value = serde_json::from_str(&env.run(&["log", "--prune", "--json"]).stdout).unwrap();
    let removal = &log["removals"][0];
    assert_eq!(removal["session"], ID);
    assert_eq!(removal["removed"].as_array().unwrap().len(), 4);
    assert!(removal["freed"].as_u64().unwrap() > 0);
    let shown = env.run(&["log", "--prune"]);
    assert!(shown.stdout.contains("45 KB        4"), "{}", shown.text());
}

#[test]
fn a_config_that_cannot_be_read_removes_nothing() {
    let (env, sidecar) = kept();
    let config = env.home().join(".config/rewind");
    fs::create_dir_all(&config).unwrap();
    fs::write(
        config.join("config.toml"),
        "[retention]\nolder_than = \"soon\"\n",
    )
    .unwrap();
    let run = prune(&env, &[]);
    assert_eq!(run.code, Some(1), "{}", run.text());
    assert_eq!(turns(&sidecar).len(), 6);
    fs::write(
        config.join("config.toml"),
        "[retention]\nolder_than = \"45d\"\n",
    )
    .unwrap();
    assert_eq!(prune(&env, &[]).code, Some(0));
    assert_eq!(turns(&sidecar), [2, 3, 4, 5]);
}

#[test]
fn verify_names_each_damage_and_what_it_costs() {
    let (env, sidecar) = kept();
    assert_snapshot!(env.run(&["verify"]).text(), @"
    exit: 0
    --- stdout
    --- stderr
    all is whole: 6 checkpoints in 1 sidecar, 12 contents and 0 operations
    ");
    let name = sha(b"before 3\n");
    let path = sidecar
        .join("blobs")
        .join(&name[..2])
        .join(&name[2..4])
        .join(&name);
    fs::write(&path, "other\n").unwrap();
    fs::write(sidecar.join("turn-0.json"), "{").unwrap();
    let gone = sha(b"before 5\n");
    fs::remove_file(
        sidecar
            .join("blobs")
            .join(&gone[..2])
            .join(&gone[2..4])
            .join(&gone),
    )
    .unwrap();
    fs::remove_file(sidecar.join("index.json")).unwrap();
    let before = Tree::of(&env.home());
    let run = env.run(&["verify"]);
    assert_snapshot!(run.text(), @"
    exit: 8
    --- stdout
    [HOME]/.claude/projects/[TMP-]-ws/5e550000-0000-4000-8000-000000000001.ckpt/turn-0.json: the checkpoint cannot be read
      needed by checkpoint 0
    [HOME]/.claude/projects/[TMP-]-ws/5e550000-0000-4000-8000-000000000001.ckpt/blobs/3f/e4/3fe4ce19ccf8e3c8e202c28ba357615b73337ea061834c02b847cf6cfe3296ac: it is not what was saved
      needed by checkpoint 3
      cannot go back there: own-3
    [HOME]/.claude/projects/[TMP-]-ws/5e550000-0000-4000-8000-000000000001.ckpt/blobs/26/83/26834ae709b135db4966e774d9f761c059d95853f16776f2cf8f039f0646b6a5: it is gone
      needed by checkpoint 5
      cannot go back there: own-5
    --- stderr
    warning: 3 damages among 6 checkpoints in 1 sidecar, 11 contents and 0 operations
    2 contents are named by nothing; a prune of that session removes them
    ");
    assert_eq!(before.changes(&Tree::of(&env.home())), [""; 0]);
    let repaired = env.run(&["verify", "--repair"]);
    assert_eq!(repaired.code, Some(8));
    assert!(sidecar.join("index.json").exists());
}
