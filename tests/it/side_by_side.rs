//! Captures, restores, undos and prunes at the same time: nothing that a kept point needs is lost, and what is kept is
//! whole. A few turns in the tests; `REWIND_SOAK=600` goes on for so many seconds.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::env::{Run, TestEnv};
use crate::hook::hook;
use crate::prune::turns;
use crate::story::{History, Story};

const SESSIONS: usize = 8;
/// Turns of each session where nothing is said of the time.
const TURNS: usize = 5;
/// Long after all of it, by the clock of the machine, which files are dated by: nothing is too young to go, and nobody
/// seems to be at work.
const LATER: &str = "2099-01-01T00:00:00Z";
const PRUNE: [&str; 9] = [
    "prune",
    "--all",
    "--older-than",
    "1s",
    "--keep-last",
    "3",
    "--journal",
    "--yes",
    "--quiet",
];

/// What the files of a session held before each of its turns.
type Held = BTreeMap<String, Option<String>>;

struct Session<'e> {
    env: &'e TestEnv,
    id: String,
    no: usize,
    story: Story<'e>,
    before: Vec<Held>,
    calls: usize,
}

impl<'e> Session<'e> {
    fn new(env: &'e TestEnv, no: usize) -> Self {
        let id = format!("5e550000-0000-4000-8000-{no:012}");
        Self {
            env,
            no,
            story: Story::with(env, &id, History::Off),
            id,
            before: Vec::new(),
            calls: 0,
        }
    }

    fn tell(&self, event: &str, mut more: serde_json::Value) {
        more["session_id"] = json!(self.id);
        more["transcript_path"] = json!(self.story.path());
        more["cwd"] = json!(self.env.workspace());
        more["hook_event_name"] = json!(event);
        hook(self.env, more.to_string().as_bytes());
    }

    fn paths(&self) -> Vec<String> {
        (0..4).map(|n| format!("s{}/f{n}", self.no)).collect()
    }

    fn held(&self) -> Held {
        let read = |p: &String| fs::read_to_string(self.env.workspace().join(p)).ok();
        self.paths()
            .into_iter()
            .map(|p| (p.clone(), read(&p)))
            .collect()
    }

    fn turn(&mut self) {
        let turn = self.before.len();
        self.before.push(self.held());
        let prompt = format!("turn {turn} of {}", self.no);
        self.tell("UserPromptSubmit", json!({"prompt": prompt}));
        self.story.prompt(&prompt);
        for n in [turn % 4, (turn + 1) % 4] {
            self.calls += 1;
            let path = format!("s{}/f{n}", self.no);
            let text = format!("{} wrote {turn} here\n", self.no).repeat(1 + turn % 50);
            let input = json!({"file_path": self.env.workspace().join(&path), "content": text});
            let call = json!({"tool_name": "Write", "tool_input": input,
                "tool_use_id": format!("c{}", self.calls), "tool_response": {}});
            self.tell("PreToolUse", call.clone());
            self.story.unknown_write(&path, &text);
            self.tell("PostToolUse", call);
        }
        self.story.answer();
        self.story.save();
    }

    fn restore(&self, turn: usize) {
        let path = self.story.path();
        let turn_text = turn.to_string();
        let args = [
            "restore",
            &turn_text,
            "--scope",
            "code",
            "--yes",
            "-s",
            path.to_str().unwrap(),
        ];
        let run = patient(self.env, &args);
        assert_eq!(run.code, Some(0), "{}: {}", self.id, run.text());
        assert_eq!(self.held(), self.before[turn], "{} turn {turn}", self.id);
    }

    fn oldest_kept(&self) -> usize {
        let kept = turns(&self.story.path().with_extension("ckpt"));
        kept.first().map_or(self.before.len(), |t| *t as usize)
    }
}

/// Again while another run has the folder (7).
fn patient(env: &TestEnv, args: &[&str]) -> Run {
    loop {
        let run = env.run(args);
        if run.code != Some(7) {
            return run;
        }
    }
}

/// Goes to one of the newest points and comes back, one session at a time: an undo takes back the newest of the folder.
fn there_and_back(session: &Session<'_>, one: &Mutex<()>) {
    let now = session.held();
    let _one = one.lock().unwrap();
    session.restore(session.before.len() - 1);
    let undone = patient(session.env, &["undo", "--yes"]);
    assert_eq!(undone.code, Some(0), "{}", undone.text());
    assert_eq!(session.held(), now, "{}", session.id);
}

#[test]
fn captures_restores_undos_and_prunes_side_by_side_lose_nothing_that_is_kept() {
    let env = TestEnv::new();
    let soak = std::env::var("REWIND_SOAK")
        .ok()
        .and_then(|s| s.parse().ok());
    let until = soak.map(|s| Instant::now() + Duration::from_secs(s));
    let goes_on = |turn: usize| until.map_or(turn < TURNS, |u| Instant::now() < u);
    let (one, busy, prunes) = (
        Mutex::new(()),
        AtomicUsize::new(SESSIONS),
        AtomicUsize::new(0),
    );
    let failed = AtomicBool::new(false);
    let sessions: Vec<Session<'_>> = std::thread::scope(|threads| {
        let work = |no| {
            let (env, one, busy, failed, goes_on) = (&env, &one, &busy, &failed, &goes_on);
            threads.spawn(move || {
                // Others must not wait for ever for one that failed.
                let ends = Ends { busy, failed };
                let mut session = Session::new(env, no);
                let mut turn = 0;
                while goes_on(turn) && !failed.load(Ordering::Relaxed) {
                    session.turn();
                    if turn % SESSIONS == no % SESSIONS || until.is_none() {
                        there_and_back(&session, one);
                    }
                    turn += 1;
                }
                drop(ends);
                session
            })
        };
        let working: Vec<_> = (0..SESSIONS).map(work).collect();
        for _ in 0..2 {
            threads.spawn(|| {
                while busy.load(Ordering::Relaxed) > 0 {
                    let run = env.run_at(LATER, &PRUNE);
                    // 3: a hook had the lock of one of them.
                    assert!(matches!(run.code, Some(0 | 3 | 7)), "{}", run.text());
                    prunes.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        working.into_iter().map(|w| w.join().unwrap()).collect()
    });
    let points = all_is_whole(&env, &sessions);
    let turns: usize = sessions.iter().map(|s| s.before.len()).sum();
    let prunes = prunes.load(Ordering::Relaxed);
    // Nothing depends on the line being seen.
    let _ = writeln!(
        std::io::stderr(),
        "{turns} turns, {prunes} prunes, {points} points kept"
    );
}

/// What is left is whole, and every point of it goes back to the recorded bytes; returns how many there are.
fn all_is_whole(env: &TestEnv, sessions: &[Session<'_>]) -> usize {
    assert_eq!(env.run_at(LATER, &PRUNE).code, Some(0));
    let whole = env.run(&["verify", "--all"]);
    assert_eq!(whole.code, Some(0), "{}", whole.text());
    let mut points = 0;
    for session in sessions {
        let oldest = session.oldest_kept();
        for turn in (oldest..session.before.len()).rev() {
            session.restore(turn);
            points += 1;
        }
    }
    assert_no_rest(env);
    assert_eq!(points, 3 * sessions.len(), "all older ones are gone");
    points
}

struct Ends<'a> {
    busy: &'a AtomicUsize,
    failed: &'a AtomicBool,
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.failed.store(true, Ordering::Relaxed);
        }
        self.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// No prune left anything half done.
fn assert_no_rest(env: &TestEnv) {
    let mut open = vec![env.home().join(".claude")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            assert!(!is_pruning(&path), "{}", path.display());
            if path.is_dir() {
                open.push(path);
            }
        }
    }
}

fn is_pruning(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "pruning")
}
