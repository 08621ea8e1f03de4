//! Whatever is done in whatever order, and wherever it is killed: no bytes are lost, and undo brings back what was
//! (`bugs.md` 97). A random agent, a random person and a random `rewind` share one workspace.
//!
//! Owed is every content that stood in the tree when a `rewind` began, and every content that the agent replaced: they
//! must be in the tree, in the journal, or in the agent's record. What a person (or a shell command) throws away
//! themselves is owed only as far as it was kept somewhere already.
//!
//! `PROPTEST_CASES=5000 cargo test --test it props` runs more than the few of every day.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::Config;
use rewind::fsx::crash;

use crate::bugs::json;
use crate::env::{Run, TestEnv, Tree};
use crate::story::{History, ID, Story, bytes};

const FILES: [&str; 3] = ["a.txt", "d/b.txt", "d/e/c.txt"];

/// What happens.
#[derive(Debug, Clone)]
enum Act {
    /// The user gives the agent a prompt.
    Prompt,
    /// The agent writes a whole file.
    Write(usize),
    /// The agent replaces a line.
    Edit(usize),
    /// The agent removes a file by a shell command.
    Shell(usize),
    /// The person writes a file.
    Hand(usize),
    /// The person removes a file.
    Remove(usize),
    /// `rewind`.
    Rewind(Call),
}

/// One call of `rewind`, and where it is killed.
#[derive(Debug, Clone)]
struct Call {
    what: What,
    on_conflict: &'static str,
    kill: Option<String>,
    /// Where the run that tidies up is killed.
    kill_again: Option<String>,
    then: Then,
}

#[derive(Debug, Clone)]
enum What {
    /// To before a turn, counted from the end, as far as there are so many.
    Restore(usize, &'static str),
    Undo,
    Redo,
}

/// What follows a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    /// The next run, at once.
    Settle,
    /// Whatever comes: the person and the agent may get in between.
    GoOn,
}

fn kill() -> impl Strategy<Value = Option<String>> {
    let point = (select(crash::POINTS), 1..3u32).prop_map(|(name, k)| format!("{name}:{k}"));
    prop_oneof![2 => Just(None), 1 => point.prop_map(Some)]
}

fn call() -> impl Strategy<Value = Call> {
    let scope = select(&["code", "conversation", "both"][..]);
    let what = prop_oneof![
        4 => (0..4usize, scope).prop_map(|(n, scope)| What::Restore(n, scope)),
        2 => Just(What::Undo),
        1 => Just(What::Redo),
    ];
    let how = select(&["fail", "keep", "overwrite", "beside"][..]);
    let then = select(&[Then::Settle, Then::Settle, Then::GoOn][..]);
    (what, how, kill(), kill(), then).prop_map(|(what, on_conflict, kill, kill_again, then)| Call {
        what,
        on_conflict,
        kill,
        kill_again,
        then,
    })
}

fn act() -> impl Strategy<Value = Act> {
    let file = || 0..FILES.len();
    prop_oneof![
        3 => Just(Act::Prompt),
        3 => file().prop_map(Act::Write),
        4 => file().prop_map(Act::Edit),
        1 => file().prop_map(Act::Shell),
        3 => file().prop_map(Act::Hand),
        1 => file().prop_map(Act::Remove),
        6 => call().prop_map(Act::Rewind),
    ]
}

/// Everything, as far as it has come.
struct World<'e> {
    env: &'e TestEnv,
    story: Story<'e>,
    /// Every state that the session ever had, by its bytes.
    known: BTreeMap<String, Story<'e>>,
    /// The number of the newest content; no two are the same.
    count: u32,
    owed: BTreeSet<String>,
    /// A killed run may have left something open.
    open: bool,
}

impl<'e> World<'e> {
    fn new(env: &'e TestEnv, history: History) -> Self {
        let mut world = Self {
            env,
            story: Story::with(env, ID, history),
            known: BTreeMap::new(),
            count: 0,
            owed: BTreeSet::new(),
            open: false,
        };
        for path in &FILES[..2] {
            let content = world.content();
            env.write(path, content);
        }
        world.tell(|story| {
            story.prompt("begin");
        });
        world
    }

    fn content(&mut self) -> String {
        self.count += 1;
        format!("first line\nversion {}\nlast line\n", self.count)
    }

    fn talk(&self) -> String {
        match fs::read_to_string(self.story.path()) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(e) => panic!("{e}"),
        }
    }

    fn file(&self, path: &str) -> Option<String> {
        bytes(self.env, path).map(|b| String::from_utf8(b).unwrap())
    }

    /// The agent goes on from its session file as it is: it must be one that it once was.
    fn tell(&mut self, act: impl FnOnce(&mut Story<'e>)) {
        let talk = self.talk();
        if self.known.is_empty() {
            self.known.insert(talk.clone(), self.story.clone());
        }
        let then = self.known.get(&talk);
        let then = then.unwrap_or_else(|| panic!("the session was never this:\n{talk}"));
        self.story.go_on_from(&then.clone());
        act(&mut self.story);
        self.story.save();
        self.known
            .insert(self.story.text().to_owned(), self.story.clone());
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Prompt => {
                let prompt = format!("prompt {}", self.count);
                self.tell(|story| drop(story.prompt(&prompt)));
            }
            Act::Write(n) => self.agent(FILES[*n], Story::write),
            Act::Edit(n) if self.file(FILES[*n]).is_some() => self.agent(FILES[*n], edit),
            Act::Edit(_) => {}
            Act::Shell(n) => {
                self.tell(|story| story.bash("rm"));
                self.throw_away(FILES[*n], None);
            }
            Act::Hand(n) => {
                let content = self.content();
                self.throw_away(FILES[*n], Some(&content));
            }
            Act::Remove(n) => self.throw_away(FILES[*n], None),
            Act::Rewind(call) => self.rewind(call),
        }
        self.nothing_is_lost(&format!("{act:?}"));
    }

    /// The agent replaces a file; what was there is in its record.
    fn agent(&mut self, path: &str, act: impl FnOnce(&mut Story<'e>, &str, &str)) {
        self.owed.extend(self.file(path));
        let new = self.content();
        if self.talk().is_empty() {
            // A session that was cut to nothing begins anew.
            self.tell(|story| drop(story.prompt("begin again")));
        }
        self.tell(|story| act(story, path, &new));
    }

    /// Somebody replaces or removes a file without a record: what is kept nowhere else is theirs to lose.
    fn throw_away(&mut self, path: &str, new: Option<&str>) {
        let old = self.file(path);
        match (new, &old) {
            (Some(new), _) => drop(self.env.write(path, new)),
            (None, Some(_)) => fs::remove_file(self.env.workspace().join(path)).unwrap(),
            (None, None) => {}
        }
        if let Some(old) = old
            && !Kept::in_world(self.env).holds(&old)
        {
            self.owed.remove(&old);
        }
    }

    fn rewind(&mut self, call: &Call) {
        let before = State::of(self);
        self.owed.extend(before.contents());
        let args = self.args(call);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let run = match &call.kill {
            Some(point) => self.env.run_killed_at(point, &args),
            None => self.env.run(&args),
        };
        self.nothing_is_lost(&format!("{args:?}, killed at {:?}", call.kill));
        let was_open = std::mem::replace(&mut self.open, run.code.is_none());
        if run.code.is_some() {
            if !was_open {
                self.what_was_said(call, &run, &before);
            }
            return;
        }
        if call.then == Then::Settle {
            self.settle(call.kill_again.as_deref());
            if !was_open {
                self.all_or_nothing(call, &before);
            }
        }
    }

    fn args(&self, call: &Call) -> Vec<String> {
        let mut args = match &call.what {
            What::Restore(back, scope) => {
                let known = self.known.get(&self.talk());
                let turns = known.map_or(1, |s| s.text().matches(TURN).count().max(1));
                let back = format!("-{}", (back % turns) + 1);
                vec!["restore".into(), back, "--scope".into(), (*scope).into()]
            }
            What::Undo => vec!["undo".into()],
            What::Redo => vec!["redo".into()],
        };
        args.extend(["--yes", "--json", "--on-conflict", call.on_conflict].map(String::from));
        args
    }

    /// An end with an exit code: it did what it says, and nothing where it says so.
    fn what_was_said(&self, call: &Call, run: &Run, before: &State) {
        let now = State::of(self);
        let code = run.code.unwrap();
        let done = now.committed - before.committed;
        match code {
            0 | 3 => {
                let status = json(run)["status"].as_str().unwrap().to_owned();
                let acted = matches!(status.as_str(), "done" | "partial");
                assert!(acted || status == "unchanged", "{status}");
                assert!(done <= 1 && (done == 0 || acted), "{}", run.text());
            }
            4 | 5 => assert_eq!(done, 0, "{}", run.text()),
            _ => panic!("an end that nothing here calls for: {}", run.text()),
        }
        if done == 0 {
            now.is(before, &run.text());
        }
        now.keeps_to(call, before);
    }

    /// The next run: it finishes what is open, or puts it back.
    fn settle(&mut self, kill: Option<&str>) {
        if let Some(point) = kill {
            drop(self.env.run_killed_at(point, &["log"]));
            self.nothing_is_lost(&format!("log, killed at {point}"));
        }
        let run = self.env.run(&["log"]);
        assert_eq!(run.code, Some(0), "{}", run.text());
        self.open = false;
        self.nothing_is_lost("log");
        self.every_file_has_one_name();
    }

    fn all_or_nothing(&self, call: &Call, before: &State) {
        let now = State::of(self);
        if now.committed == before.committed {
            now.is(before, &format!("{call:?} was killed and put back"));
        }
        now.keeps_to(call, before);
        let names = now.tree.0.keys().map(|p| p.to_string_lossy());
        let left: Vec<_> = names.filter(|n| n.contains(".rewind-")).collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    }

    fn nothing_is_lost(&self, after: &str) {
        let kept = Kept::in_world(self.env);
        let lost: Vec<_> = self.owed.iter().filter(|o| !kept.holds(o)).collect();
        assert!(lost.is_empty(), "lost after {after}: {lost:?}");
    }

    /// A second name of a file, in the journal, would keep every later restore from replacing it.
    fn every_file_has_one_name(&self) {
        use std::os::unix::fs::MetadataExt;
        for (path, _) in files(&self.env.workspace()) {
            let meta = fs::metadata(self.env.workspace().join(&path)).unwrap();
            assert_eq!(meta.nlink(), 1, "{}", path.display());
        }
    }

    /// How many operations can be undone.
    fn depth(&self) -> usize {
        let run = self.env.run(&["log", "--json"]);
        let log = json(&run);
        // What was taken back is "undone"; an undo itself is taken back by a redo.
        let counts = |o: &&serde_json::Value| o["status"] == "done" && o["act"] != "undo";
        log["operations"]
            .as_array()
            .unwrap()
            .iter()
            .filter(counts)
            .count()
    }
}

/// How a turn of the story begins.
const TURN: &str = "\"message\":{\"content\":\"";

/// The agent replaces the middle line, as it stands.
fn edit(story: &mut Story<'_>, path: &str, new: &str) {
    let middle = |text: &str| text.lines().nth(1).unwrap().to_owned();
    let old = story.now(path);
    story.edit(path, &middle(&old), &middle(new));
}

/// Tree, session and journal at one moment.
struct State {
    tree: Tree,
    talk: String,
    committed: usize,
}

impl State {
    fn of(world: &World<'_>) -> Self {
        let mut committed = 0;
        for (path, bytes) in files(&world.env.state()) {
            if path.ends_with("operations.jsonl") {
                let text = String::from_utf8(bytes).unwrap();
                committed += text.matches("\"event\":\"committed\"").count();
            }
        }
        Self {
            tree: Tree::of(&world.env.workspace()).contents(),
            talk: world.talk(),
            committed,
        }
    }

    /// The contents of the files.
    fn contents(&self) -> Vec<String> {
        let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).unwrap();
        let entries = self.tree.0.values().filter(|e| !e.bytes.is_empty());
        entries.map(|e| text(&e.bytes)).collect()
    }

    fn is(&self, other: &Self, what: &str) {
        assert_eq!(other.tree.changes(&self.tree), [""; 0], "{what}");
        assert_eq!(other.talk, self.talk, "{what}");
    }

    /// A restore of one half leaves the other alone.
    fn keeps_to(&self, call: &Call, before: &Self) {
        match call.what {
            What::Restore(_, "code") => assert_eq!(self.talk, before.talk),
            What::Restore(_, "conversation") => {
                assert_eq!(before.tree.changes(&self.tree), [""; 0]);
            }
            _ => {}
        }
    }
}

/// Everything that is kept anywhere: as files of their own, or as a text inside a record.
struct Kept {
    whole: BTreeSet<Vec<u8>>,
    records: String,
}

impl Kept {
    fn in_world(env: &TestEnv) -> Self {
        let mut kept = Self {
            whole: BTreeSet::new(),
            records: String::new(),
        };
        for folder in [env.workspace(), env.state(), env.home()] {
            for (_, bytes) in files(&folder) {
                if let Ok(text) = std::str::from_utf8(&bytes) {
                    kept.records.push_str(text);
                }
                kept.whole.insert(bytes);
            }
        }
        kept
    }

    fn holds(&self, content: &str) -> bool {
        self.whole.contains(content.as_bytes())
            || self
                .records
                .contains(&serde_json::to_string(content).unwrap())
    }
}

fn files(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let tree = Tree::of(folder).0.into_iter();
    let plain = tree.filter(|(_, e)| e.mode & 0o170_000 == 0o100_000);
    plain.map(|(path, e)| (path, e.bytes)).collect()
}

/// A few cases in the normal run, as many as are asked for with `PROPTEST_CASES`.
fn config(cases: u32) -> Config {
    let config = Config {
        failure_persistence: None,
        max_shrink_iters: 400,
        max_shrink_time: 20_000,
        ..Config::default()
    };
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => config,
        None => Config { cases, ..config },
    }
}

fn history() -> impl Strategy<Value = History> {
    select(&[History::Kept, History::Off][..])
}

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn bug_97_no_bytes_are_ever_lost(
        history in history(),
        acts in prop::collection::vec(act(), 4..24),
    ) {
        let env = TestEnv::new();
        let mut world = World::new(&env, history);
        for act in &acts {
            world.act(act);
        }
        world.settle(None);
    }

    #[test]
    fn bug_97_after_undo_of_everything_all_is_as_before(
        history in history(),
        acts in prop::collection::vec(act(), 2..12),
        calls in prop::collection::vec(call(), 1..5),
    ) {
        let env = TestEnv::new();
        let mut world = World::new(&env, history);
        for act in &acts {
            world.act(act);
        }
        world.settle(None);
        let before = State::of(&world);
        let depth = world.depth();
        for call in calls {
            let what = match call.what {
                // Nothing that was done before is taken back here.
                What::Undo if world.depth() <= depth => What::Restore(0, "both"),
                What::Redo if world.depth() <= depth => What::Restore(1, "code"),
                what => what,
            };
            world.act(&Act::Rewind(Call { what, then: Then::Settle, ..call }));
        }
        while world.depth() > depth {
            let run = env.run(&["undo", "--yes"]);
            assert_eq!(run.code, Some(0), "{}", run.text());
        }
        State::of(&world).is(&before, "after undo of everything");
        world.nothing_is_lost("undo of everything");
    }
}
