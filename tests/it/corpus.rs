//! Sessions that real agents recorded, held against what is known of them: every point gives back the files as they were
//! then, and the turns are the prompts. They lie in `../shared/corpus`; without it the tests skip and say so.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::env::{Run, TestEnv, Tree, copy, shared};
use crate::screen::Screen;

/// One recorded case.
struct Case {
    folder: PathBuf,
    truth: Value,
}

impl Case {
    fn open(folder: PathBuf) -> Self {
        let text = fs::read(folder.join("truth.json")).unwrap();
        let truth = serde_json::from_slice(&text).unwrap();
        Self { folder, truth }
    }

    fn name(&self) -> String {
        let parts: Vec<_> = self.folder.iter().rev().take(2).collect();
        format!("{}/{}", parts[1].display(), parts[0].display())
    }

    fn turns(&self) -> &[Value] {
        self.truth["turns"].as_array().map_or(&[], Vec::as_slice)
    }

    /// A world with the agent's home and the workspace as it was at the end.
    fn lay(&self, workspace: &str) -> TestEnv {
        let env = TestEnv::new();
        copy(&self.folder.join("home"), &env.home());
        copy(&self.folder.join(workspace), &env.workspace());
        env
    }

    fn last(&self) -> String {
        format!("ended/{}", self.turns().len() - 1)
    }

    fn read(&self, tree: &str, turn: usize, path: &str) -> Option<Vec<u8>> {
        fs::read(self.folder.join(format!("{tree}/{turn}")).join(path)).ok()
    }

    /// The paths that the agent's edit tools changed from a turn on, each as it was when the first of those turns began;
    /// `None` where it did not exist.
    fn expected(&self, from: usize) -> BTreeMap<String, Option<Vec<u8>>> {
        let mut want = BTreeMap::new();
        for (turn, told) in self.turns().iter().enumerate().skip(from) {
            for op in told["agent"].as_array().unwrap() {
                for path in touched(op) {
                    let before = self.read("before", turn, path);
                    if before != self.read("ended", turn, path) {
                        want.entry(path.to_owned()).or_insert(before);
                    }
                }
            }
        }
        want
    }
}

fn touched(op: &Value) -> Vec<&str> {
    let word = |at: usize| op[at].as_str().unwrap();
    match word(0) {
        "write" | "edit" | "delete" => vec![word(1)],
        "move" => vec![word(1), word(2)],
        _ => Vec::new(),
    }
}

/// The cases of an agent, those with a list of turns; none without the recorded sessions.
fn cases(agent: &str) -> Vec<Case> {
    let Some(shared) = shared() else {
        return Vec::new();
    };
    let folder = shared.join("corpus").join(agent);
    let mut all: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    all.sort();
    all.into_iter()
        .map(Case::open)
        .filter(|c| !c.turns().is_empty())
        .collect()
}

/// The files below a folder that end in `.jsonl`, sub-agents' apart.
fn sessions(env: &TestEnv) -> Vec<PathBuf> {
    let tree = Tree::of(&env.home());
    let is_session = |p: &&PathBuf| {
        p.extension().is_some_and(|e| e == "jsonl") && !p.iter().any(|part| part == "subagents")
    };
    tree.0
        .keys()
        .filter(is_session)
        .map(|p| env.home().join(p))
        .collect()
}

fn run(env: &TestEnv, session: &Path, args: &[&str]) -> Run {
    let named = ["-s", session.to_str().unwrap(), "-w", "."];
    env.run(&[args, &named].concat())
}

fn object(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|e| panic!("{e}: {}", run.text()))
}

fn prompts(env: &TestEnv, session: &Path) -> Vec<String> {
    let run = run(env, session, &["list", "--json"]);
    let list = object(&run);
    let turns = list["turns"].as_array().unwrap();
    turns
        .iter()
        .map(|t| t["prompt"].as_str().unwrap().to_owned())
        .collect()
}

fn files(tree: &Tree) -> BTreeMap<&str, &[u8]> {
    const FOLDER: u32 = 0o040_000;
    tree.0
        .iter()
        .filter(|(_, e)| e.mode & 0o170_000 != FOLDER)
        .map(|(p, e)| (p.to_str().unwrap(), e.bytes.as_slice()))
        .collect()
}

/// Restores one point and holds it against the rule; returns the paths that were named as not to be had.
fn restore_point(case: &Case, turn: usize) -> Vec<String> {
    let env = case.lay(&case.last());
    let session = sessions(&env).remove(0);
    let before = Tree::of(&env.workspace());
    let args = [
        "restore",
        &turn.to_string(),
        "--scope",
        "code",
        "--yes",
        "--json",
    ];
    let run = run(&env, &session, &args);
    let what = format!("{} turn {turn}: {}", case.name(), run.text());
    assert!(matches!(run.code, Some(0 | 3)), "{what}");
    let now = Tree::of(&env.workspace());
    let (was, is) = (files(&before), files(&now));
    let mut want = case.expected(turn);
    if case.name().contains("subagent") && turn == 0 {
        // What a sub-agent did belongs to the turn that called it (`formats/measured.md`).
        want.insert("by-agent.txt".to_owned(), None);
    }
    let out = object(&run);
    let missing: Vec<&str> = out["missing"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["path"].as_str().unwrap())
        .collect();
    let mut gaps = Vec::new();
    let all: BTreeSet<&str> = was.keys().chain(is.keys()).copied().collect();
    for path in all.into_iter().chain(want.keys().map(String::as_str)) {
        let is = is.get(path).copied();
        match want.get(path) {
            Some(want) if is == want.as_deref() => {}
            Some(_) if run.code == Some(3) && missing.iter().any(|m| m.ends_with(path)) => {
                assert_eq!(
                    is,
                    was.get(path).copied(),
                    "{path} was named as left, in {what}"
                );
                gaps.push(path.to_owned());
            }
            Some(_) => panic!("{path} is not what it was, in {what}"),
            None => assert_eq!(is, was.get(path).copied(), "{path} is no edit's, in {what}"),
        }
    }
    gaps.sort();
    gaps.dedup();
    gaps
}

#[test]
fn every_point_of_a_recorded_claude_session_gives_its_files_back() {
    for case in cases("claude") {
        for turn in 0..case.turns().len() {
            assert_eq!(
                restore_point(&case, turn),
                [""; 0],
                "{} {turn}",
                case.name()
            );
        }
    }
}

/// Codex records diffs alone. Two things then cannot be known: whether an "add" replaced a file (the birth of a copied
/// file proves nothing), and what stood behind a change that somebody made by hand between two turns.
#[test]
fn every_point_of_a_recorded_codex_session_gives_its_files_back_or_names_them() {
    for case in cases("codex") {
        let turns = case.turns();
        for from in 0..turns.len() {
            let unknowable = |path: &String| {
                (from..turns.len()).any(|turn| {
                    let ops = turns[turn]["agent"].as_array().unwrap();
                    let add = |op: &Value| op[0] == "write" && op[1] == path.as_str();
                    let by_hand = turn + 1 < turns.len()
                        && case.read("ended", turn, path) != case.read("before", turn + 1, path);
                    ops.iter().any(add) || by_hand
                })
            };
            let gaps = restore_point(&case, from);
            assert!(
                gaps.iter().all(unknowable),
                "{} {from}: {gaps:?}",
                case.name()
            );
        }
    }
}

#[test]
fn the_turns_of_a_recorded_session_are_its_prompts() {
    for case in cases("claude").into_iter().chain(cases("codex")) {
        let env = case.lay(&case.last());
        let session = sessions(&env).remove(0);
        let told: Vec<&str> = case.truth["prompts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p.as_str().unwrap())
            .collect();
        assert_eq!(prompts(&env, &session), told, "{}", case.name());
    }
}

#[test]
fn every_rewind_of_a_recorded_session_is_undone_to_the_last_byte() {
    for case in cases("claude").into_iter().chain(cases("codex")) {
        let env = case.lay(&case.last());
        let session = sessions(&env).remove(0);
        let before = (
            Tree::of(&env.workspace()).contents(),
            Tree::of(&env.home()).contents(),
        );
        for turn in 1..case.turns().len() {
            let whole = fs::read(&session).unwrap();
            let done = run(
                &env,
                &session,
                &["restore", &turn.to_string(), "--scope", "both", "--yes"],
            );
            let what = format!("{} turn {turn}: {}", case.name(), done.text());
            assert!(matches!(done.code, Some(0 | 3)), "{what}");
            let cut = fs::read(&session).unwrap();
            assert!(whole.starts_with(&cut) && cut.len() < whole.len(), "{what}");
            assert_eq!(prompts(&env, &session).len(), turn, "{what}");
            let undone = env.run(&["undo", "--yes"]);
            assert_eq!(undone.code, Some(0), "{what}{}", undone.text());
            let now = (
                Tree::of(&env.workspace()).contents(),
                Tree::of(&env.home()).contents(),
            );
            assert_eq!(before.0.changes(&now.0), [""; 0], "{what}");
            assert_eq!(before.1.changes(&now.1), [""; 0], "{what}");
        }
    }
}

/// As a person does it: the turn before the last, code and conversation, yes; then `rewind undo`.
#[test]
fn the_picker_takes_recorded_sessions_back_and_undo_brings_them_forward() {
    let shops = |agent| {
        cases(agent)
            .into_iter()
            .filter(|c| c.folder.ends_with("shop"))
    };
    for case in shops("claude").chain(shops("codex")) {
        let env = case.lay(&case.last());
        let session = sessions(&env).remove(0);
        let n = case.turns().len();
        let before = Tree::of(&env.workspace()).contents();
        let whole = fs::read(&session).unwrap();
        let args = ["-s", session.to_str().unwrap(), "-w", "."];
        let Some(mut screen) = Screen::start(&env, &args, (40, 100)) else {
            return;
        };
        screen.shows(&format!("{n} of {n}"));
        screen.keys("\x1b[A\r");
        screen.shows("> Code and conversation");
        screen.keys("\r");
        let preview = screen.shows("esc: back");
        assert!(preview.contains("Do it?"), "{preview}");
        assert_eq!(
            before.changes(&Tree::of(&env.workspace()).contents()),
            [""; 0]
        );
        screen.keys("y");
        let (code, report) = screen.ends();
        assert!(matches!(code, Some(0 | 3)), "{}: {report}", case.name());
        assert!(
            report.contains("`rewind undo -w .` takes this back"),
            "{report}"
        );
        assert_eq!(prompts(&env, &session).len(), n - 2, "{report}");
        let now = Tree::of(&env.workspace()).contents();
        for (path, bytes) in case.expected(n - 2) {
            let held = fs::read(env.workspace().join(&path)).ok();
            assert!(
                held == bytes || report.contains(&path),
                "{}: {path}",
                case.name()
            );
        }
        assert_ne!(before.changes(&now), [""; 0], "{report}");
        assert_eq!(env.run(&["undo", "--yes"]).code, Some(0));
        assert_eq!(
            before.changes(&Tree::of(&env.workspace()).contents()),
            [""; 0]
        );
        assert_eq!(fs::read(&session).unwrap(), whole);
    }
}

/// `formats/measured.md`, "Claude Code's own /rewind, recorded".
#[test]
fn turns_that_claude_code_itself_took_back_are_not_used() {
    let Some(shared) = shared() else { return };
    let case = Case::open(shared.join("corpus/claude/rewound"));
    let env = case.lay("ended");
    let session = sessions(&env).remove(0);
    let active: Vec<&str> = case.truth["active"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p.as_str().unwrap())
        .collect();
    assert_eq!(prompts(&env, &session), active);
    let list = object(&run(&env, &session, &["list", "--json"]));
    let abandoned = case.truth["abandoned"].as_array().unwrap();
    assert_eq!(list["abandoned"], abandoned.len());

    let done = run(
        &env,
        &session,
        &["restore", "2", "--scope", "code", "--yes"],
    );
    assert_eq!(done.code, Some(0), "{}", done.text());
    let now = Tree::of(&env.workspace());
    let rewound = Tree::of(&case.folder.join("rewound-to"));
    let edited: BTreeSet<&str> = files(&now).keys().copied().collect();
    for path in ["src/cart.py", "run.sh", "README.md", "tests/test_cart.py"] {
        assert!(edited.contains(path), "{path}");
        assert_eq!(files(&now)[path], files(&rewound)[path], "{path}");
    }
}

/// `formats/measured.md`, "A native Codex revert and fork, recorded".
#[test]
fn a_codex_thread_goes_on_in_its_newest_rollout_and_its_parent_is_never_cut() {
    let Some(shared) = shared() else { return };
    let case = Case::open(shared.join("corpus/codex/reverted"));
    let env = case.lay("ended");
    let files_of = sessions(&env);
    let named = |part: &str| {
        let fits = |p: &&PathBuf| p.file_name().unwrap().to_str().unwrap().contains(part);
        files_of.iter().find(fits).unwrap()
    };
    let thread = case.truth["thread"].as_str().unwrap();
    let (revert, parent) = (named("_"), named(&format!("{thread}.jsonl")));
    let fork = named(case.truth["fork"].as_str().unwrap());
    let firsts = |session: &Path| -> Vec<String> {
        let line = |p: String| p.lines().next().unwrap().chars().take(12).collect();
        prompts(&env, session).into_iter().map(line).collect()
    };
    assert_eq!(
        firsts(revert),
        ["Add a total ", "Write the si", "After the re"]
    );
    assert_eq!(
        firsts(fork),
        [
            "Add a total ",
            "Write the si",
            "Use a dict f",
            "Rewrite the ",
            "Just explain",
            "In the fork:"
        ]
    );
    let before = (Tree::of(&env.workspace()), Tree::of(&env.home()));
    for turn in 0..5 {
        let args = ["restore", &turn.to_string(), "--scope", "both", "--yes"];
        let refused = run(&env, parent, &args);
        assert_eq!(refused.code, Some(6), "{turn}: {}", refused.text());
        assert!(
            refused.stderr.contains("nothing was changed"),
            "{}",
            refused.text()
        );
    }
    assert_eq!(before.0.changes(&Tree::of(&env.workspace())), [""; 0]);
    assert_eq!(before.1.changes(&Tree::of(&env.home())), [""; 0]);

    // The thread's own last turn, and one that lies in the parent: the files go back through the base.
    let done = run(&env, fork, &["restore", "5", "--scope", "both", "--yes"]);
    assert_eq!(done.code, Some(0), "{}", done.text());
    let readme = fs::read(env.workspace().join("README.md")).unwrap();
    assert_eq!(
        readme,
        fs::read(case.folder.join("between/README.md")).unwrap()
    );
}
