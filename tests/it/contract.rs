//! What holds for every format, tried on all of its fixtures: it reads whatever it is given without a panic, its turns
//! lie in order inside the file, and a conversation that is cut before turn N has exactly the turns before N left.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::mem::{Discriminant, discriminant};
use std::path::{Path, PathBuf};

use rewind::env::Env;
use rewind::error::Kind;
use rewind::format::{self, Access, Format, Head, Trouble};
use rewind::fsx::Real;
use rewind::model::cut::FileChange;
use rewind::model::edit::{Change, Edit, State};
use rewind::model::fork::NewSession;
use rewind::model::session::{FileNo, Session};
use rewind::ops::fork;
use rewind::ops::gather::Read;

use crate::env::{TestEnv, Tree};

/// A fixture in a home of its own, where it may be changed.
struct Case {
    world: TestEnv,
    path: PathBuf,
    format: &'static dyn Format,
    env: Env,
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// All session files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "jsonl")
                || path.ends_with("current.json")
            {
                out.push(path);
            }
        }
    }
    out.sort();
    out
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}

/// What a file is told to be, by somebody who has described an agent of his own.
fn told(file: &Path) -> Option<&'static dyn Format> {
    let env = Env {
        config: Some(fixtures().join("described/config")),
        ..Env::of_process().unwrap()
    };
    format::detect(&Head::read(file).unwrap(), &env)
}

/// Every fixture that is a session: the folder that stands for a home, and the file.
fn specs() -> Vec<(PathBuf, PathBuf)> {
    let mut out = Vec::new();
    let agents = format::ALL.iter().map(|f| f.agent());
    for set in agents.chain(["demo/home", "described/home"]) {
        let set = fixtures().join(set);
        let known = |file: &PathBuf| told(file).is_some();
        let files = files(&set).into_iter().filter(known);
        out.extend(files.map(|file| (set.clone(), file)));
    }
    out
}

fn cases() -> impl Iterator<Item = Case> {
    specs()
        .into_iter()
        .map(|(set, file)| Case::new(&set, &file))
}

impl Case {
    fn new(set: &Path, file: &Path) -> Self {
        let world = TestEnv::new();
        copy(set, &world.home());
        let env = Env {
            home: Some(world.home()),
            cwd: world.workspace(),
            vars: BTreeMap::new(),
            config: Some(fixtures().join("described/config")),
            ..Env::of_process().unwrap()
        };
        Self {
            path: world.home().join(file.strip_prefix(set).unwrap()),
            format: told(file).unwrap(),
            world,
            env,
        }
    }

    fn name(&self) -> String {
        let below = self.path.strip_prefix(self.world.home()).unwrap();
        format!("{} {}", self.format.agent(), below.display())
    }

    fn read(&self) -> Result<Session, Trouble> {
        self.format.read(&self.path, &self.env)
    }

    /// Reads all that a format tells of these bytes, and checks what it tells. Any error is fine, a panic is not.
    fn survives(&self, bytes: &[u8], what: &str) {
        fs::write(&self.path, bytes).unwrap();
        let head = Head::read(&self.path).unwrap();
        let card = self.format.card(&head);
        let _: Option<&str> = format::detect(&head, &self.env).map(Format::agent);
        let Ok(session) = self.read() else { return };
        sound(&session, &format!("{} {what}", self.name()));
        let _: bool = card.id == session.id;
        let _: Option<String> = self.format.resume(&session);
        for from in [0, u32::MAX] {
            let Ok(calls) = self.format.calls(&session, from, &self.env) else {
                continue;
            };
            let turns = u32::try_from(session.turns.len()).unwrap();
            assert!(calls.edits.iter().all(|e| e.turn < turns), "{what}");
            assert!(calls.gaps.iter().all(|g| g.turn < turns), "{what}");
        }
        for turn in [0, 1, u32::try_from(session.turns.len()).unwrap()] {
            let Ok(changes) = self.format.cut(&session, turn, &self.env) else {
                continue;
            };
            for change in &changes {
                if let FileChange::Truncate { path, keep, len } = change {
                    let there = fs::metadata(path).unwrap().len();
                    assert_eq!(*len, there, "{} {what}", self.name());
                    assert!(keep <= len, "{} {what}", self.name());
                }
            }
        }
    }
}

/// The turns are numbered from 0, have keys of their own, and lie one behind the other inside their files.
fn sound(session: &Session, what: &str) {
    let mut ends: BTreeMap<FileNo, u64> = BTreeMap::new();
    let mut keys = BTreeSet::new();
    for (no, turn) in session.turns.iter().enumerate() {
        assert_eq!(turn.no as usize, no, "{what}");
        assert!(!turn.key.is_empty(), "{what}: turn {no}");
        assert!(keys.insert(&turn.key), "{what}: the key of turn {no} twice");
        let span = turn.span;
        let file = &session.files[span.file.0 as usize];
        let len = fs::metadata(file).unwrap().len();
        let end = ends.entry(span.file).or_default();
        assert!(*end <= span.start, "{what}: turn {no} begins in another");
        assert!(span.start < span.end, "{what}: turn {no} is empty");
        assert!(span.end <= len, "{what}: turn {no} leaves the file");
        let inside = (span.start..span.end).contains(&turn.line);
        assert!(inside, "{what}: the prompt of turn {no} is elsewhere");
        *end = span.end;
    }
}

#[test]
fn each_format_has_fixtures_and_they_are_told_to_be_its() {
    let seen: BTreeSet<&str> = cases().map(|c| c.format.agent()).collect();
    let known = format::ALL.iter().map(|f| f.agent());
    assert_eq!(seen, known.chain(["acme"]).collect());
    // Signatures collide, so the order of the formats is part of the answer.
    for (set, file) in specs() {
        let folder = set.file_name().unwrap().to_str().unwrap();
        let agent = match set.strip_prefix(fixtures()).unwrap().to_str() {
            Some("demo/home") => "claude",
            Some("described/home") => "acme",
            _ => folder,
        };
        let told = told(&file).unwrap();
        assert_eq!(told.agent(), agent, "{}", file.display());
    }
    for case in cases() {
        assert!(format::of_agent(case.format.agent(), &case.env).is_some());
    }
}

#[test]
fn turns_lie_in_order_inside_their_files() {
    let mut turns = 0;
    for case in cases() {
        match case.read() {
            Ok(session) => {
                sound(&session, &case.name());
                assert_eq!(session.agent, case.format.agent());
                // An event log is read together with the session that it belongs to; a session of Gemini may lie in
                // two files, of which the client would go on with one.
                let stands_for = ["s.events.jsonl", "updates.jsonl"];
                if !stands_for.iter().any(|n| case.path.ends_with(n)) && session.agent != "gemini" {
                    assert_eq!(session.path(), case.path, "{}", case.name());
                }
                let len = fs::metadata(session.path()).unwrap().len();
                assert_eq!(session.len, len, "{}", case.name());
                turns += session.turns.len();
            }
            Err(e) => assert!(matches!(e, Trouble::Newer { .. }), "{}: {e}", case.name()),
        }
    }
    assert!(turns > 20, "only {turns} turns in all fixtures");
}

/// So many places of a file are tried, with `REWIND_TEST_ALL` set every single one.
fn places(len: usize, most: usize) -> impl Iterator<Item = usize> {
    let all = std::env::var_os("REWIND_TEST_ALL").is_some();
    (0..len).step_by(if all { 1 } else { len / most + 1 })
}

#[test]
fn a_file_cut_off_at_any_byte_is_read_as_far_as_it_goes() {
    for case in cases() {
        let whole = fs::read(&case.path).unwrap();
        for cut in places(whole.len(), 100) {
            case.survives(&whole[..cut], &format!("cut at {cut}"));
        }
    }
}

#[test]
fn lines_that_are_lost_doubled_or_swapped_are_survived() {
    for case in cases() {
        let whole = fs::read(&case.path).unwrap();
        let lines: Vec<&[u8]> = whole.split_inclusive(|b| *b == b'\n').collect();
        for n in 0..lines.len() {
            let mut lost = lines.clone();
            lost.remove(n);
            case.survives(&lost.concat(), &format!("without line {n}"));
            let mut doubled = lines.clone();
            doubled.insert(n, lines[n]);
            case.survives(&doubled.concat(), &format!("line {n} doubled"));
            for other in [n + 1, lines.len() - 1] {
                let mut swapped = lines.clone();
                swapped.swap(n, other.min(lines.len() - 1));
                let what = format!("lines {n} and {other} swapped");
                case.survives(&swapped.concat(), &what);
            }
        }
    }
}

#[test]
fn bytes_that_are_overwritten_are_survived() {
    for case in cases() {
        let whole = fs::read(&case.path).unwrap();
        for at in places(whole.len(), 10) {
            for byte in [0, 0xFF, b'{', b'"', b'\n', b'9'] {
                let mut odd = whole.clone();
                odd[at] = byte;
                case.survives(&odd, &format!("{byte} at {at}"));
            }
        }
    }
}

/// Does what a cut says, as the engine would.
fn carry_out(changes: &[FileChange]) {
    for change in changes {
        match change {
            FileChange::Truncate { path, keep, len } => {
                let bytes = fs::read(path).unwrap();
                assert_eq!(bytes.len() as u64, *len);
                fs::write(path, &bytes[..usize::try_from(*keep).unwrap()]).unwrap();
            }
            FileChange::Append { path, bytes, len } => {
                let mut all = fs::read(path).unwrap();
                assert_eq!(all.len() as u64, *len);
                all.extend(bytes);
                fs::write(path, all).unwrap();
            }
            FileChange::Replace { path, bytes } => fs::write(path, bytes).unwrap(),
            FileChange::Remove { path } => {
                fs::remove_file(path).unwrap();
            }
        }
    }
}

#[test]
fn a_session_that_is_cut_before_a_turn_has_the_turns_before_it() {
    let mut done: BTreeMap<&str, usize> = BTreeMap::new();
    for (set, file) in specs() {
        let case = Case::new(&set, &file);
        let name = &case.name();
        let Ok(session) = case.read() else {
            continue;
        };
        for turn in 0..session.turns.len() {
            // A world of its own for each cut: the one before it is gone with its files.
            let case = Case::new(&set, &file);
            let session = case.read().unwrap();
            let no = u32::try_from(turn).unwrap();
            let changes = match case.format.cut(&session, no, &case.env) {
                Ok(changes) => changes,
                Err(Trouble::Refused { .. } | Trouble::ForkInstead { .. }) => continue,
                Err(e) => panic!("{name}, turn {turn}: {e}"),
            };
            let before = case.format.calls(&session, 0, &case.env).unwrap();
            carry_out(&changes);
            *done.entry(case.format.agent()).or_default() += turn.min(1);
            if fs::metadata(&case.path).unwrap().len() == 0 {
                assert_eq!(turn, 0, "{name}: nothing is left of it");
                continue;
            }
            let left = case
                .read()
                .unwrap_or_else(|e| panic!("{name}, turn {turn}: {e}"));
            sound(&left, name);
            let told = |s: &Session| -> Vec<(String, String)> {
                let turns = s.turns.iter().take(turn);
                turns.map(|t| (t.key.clone(), t.prompt.clone())).collect()
            };
            assert_eq!(left.turns.len(), turn, "{name}, turn {turn}");
            assert_eq!(told(&left), told(&session), "{name}, turn {turn}");
            assert_eq!(left.id, session.id, "{name}, turn {turn}");
            // What the kept turns did is told as before.
            let after = case.format.calls(&left, 0, &case.env).unwrap();
            let kept: Vec<_> = before.edits.iter().filter(|e| e.turn < no).collect();
            let kept: Vec<_> = kept.iter().map(|e| (e.turn, &e.path, &e.change)).collect();
            let now: Vec<_> = after
                .edits
                .iter()
                .map(|e| (e.turn, &e.path, &e.change))
                .collect();
            assert_eq!(now, kept, "{name}, turn {turn}");
        }
    }
    // A format that refuses every cut would pass without having shown anything.
    let shown = |f: &&dyn Format| f.access() != Access::InPlace || done.contains_key(f.agent());
    assert!(
        format::ALL.iter().all(shown) && done.contains_key("acme"),
        "{done:?}"
    );
}

/// What an edit is, without the places of its contents, which are others in another file.
fn shape(edit: &Edit) -> (u32, PathBuf, Discriminant<State>, Discriminant<Change>) {
    let (before, change) = (discriminant(&edit.before), discriminant(&edit.change));
    (edit.turn, edit.path.path.clone(), before, change)
}

#[test]
fn a_fork_has_the_turns_before_and_what_they_did_and_changes_nothing_that_was_there() {
    let mut done: BTreeMap<&str, usize> = BTreeMap::new();
    for (set, file) in specs() {
        let turns = Case::new(&set, &file).read().map_or(0, |s| s.turns.len());
        for turn in 1..turns {
            let case = Case::new(&set, &file);
            let (name, no) = (case.name(), u32::try_from(turn).unwrap());
            let read = Read {
                pins: rewind::ops::pins::Pins::default(),
                format: case.format,
                session: case.read().unwrap(),
            };
            let new = NewSession {
                seed: fork::seed(),
                at: case.env.now,
                name: None,
            };
            let plan = match fork::plan(&read, no, &new, &case.env) {
                Ok(plan) => plan,
                Err(e) if e.kind == Kind::Unsupported => continue,
                Err(e) => panic!("{name}, turn {turn}: {e}"),
            };
            let before = Tree::of(&case.world.home());
            let forked = fork::make(&plan, &read, &Real::new(), &case.env)
                .unwrap_or_else(|e| panic!("{name}, turn {turn}: {e} {:?}", e.paths));
            let after = Tree::of(&case.world.home());
            let listed = |l: &String| l.ends_with("session_index.jsonl: bytes");
            let mut changes = before.changes(&after);
            changes.retain(|c| !c.ends_with(": new") && !listed(c));
            assert!(changes.is_empty(), "{name}, turn {turn}: {changes:?}");
            let edits = |s: &Session| {
                let calls = case.format.calls(s, 0, &case.env).unwrap();
                // What turns did that the agent took back is told of the old session only, as unknown.
                let known = |e: &&Edit| e.turn < no && !matches!(e.change, Change::Opaque);
                let kept = calls.edits.iter().filter(known);
                kept.map(shape).collect::<Vec<_>>()
            };
            assert_eq!(
                edits(&forked.session),
                edits(&read.session),
                "{name}, turn {turn}"
            );
            assert_eq!(
                forked.session.root, read.session.root,
                "{name}, turn {turn}"
            );
            *done.entry(case.format.agent()).or_default() += 1;
        }
    }
    let shown = |f: &&dyn Format| f.access() == Access::ReadOnly || done.contains_key(f.agent());
    assert!(
        format::ALL.iter().all(shown) && done.contains_key("acme"),
        "{done:?}"
    );
}

#[test]
fn calls_of_later_turns_are_those_of_all_turns_from_there_on() {
    for case in cases() {
        let Ok(session) = case.read() else { continue };
        let all = case.format.calls(&session, 0, &case.env).unwrap();
        for from in 0..u32::try_from(session.turns.len()).unwrap() {
            let some = case.format.calls(&session, from, &case.env).unwrap();
            let want: Vec<_> = all.edits.iter().filter(|e| e.turn >= from).collect();
            let want: Vec<_> = want
                .iter()
                .map(|e| (e.turn, &e.call, &e.path, &e.change))
                .collect();
            let got: Vec<_> = some
                .edits
                .iter()
                .map(|e| (e.turn, &e.call, &e.path, &e.change))
                .collect();
            assert_eq!(got, want, "{} from {from}", case.name());
            let want: Vec<_> = all.gaps.iter().filter(|g| g.turn >= from).collect();
            assert_eq!(
                some.gaps.iter().collect::<Vec<_>>(),
                want,
                "{} from {from}",
                case.name()
            );
        }
    }
}

/// A member that no agent writes, at the end of every record.
const OWN: &str = ",\"zz-own\":[1.0,\"\\u00e9 as it is\"]}";

#[test]
fn members_that_nobody_knows_go_along_as_they_are() {
    let mut done = BTreeSet::new();
    for (set, file) in specs() {
        let case = Case::new(&set, &file);
        let name = &case.name();
        let Ok(session) = case.read() else { continue };
        for file in session.files.iter().filter(|f| f.is_file()) {
            let text = fs::read_to_string(file).unwrap();
            let more = text.lines().map(|l| match l.strip_suffix('}') {
                Some(open) => format!("{open}{OWN}\n"),
                None => format!("{l}\n"),
            });
            fs::write(file, more.collect::<String>()).unwrap();
        }
        let Ok(session) = case.read() else { continue };
        let read = Read {
            pins: rewind::ops::pins::Pins::default(),
            format: case.format,
            session,
        };
        let Some(last) = read.session.turns.len().checked_sub(1) else {
            continue;
        };
        let no = u32::try_from(last).unwrap();
        let new = NewSession {
            seed: fork::seed(),
            at: case.env.now,
            name: None,
        };
        let Ok(plan) = fork::plan(&read, no, &new, &case.env) else {
            continue;
        };
        let forked = fork::make(&plan, &read, &Real::new(), &case.env)
            .unwrap_or_else(|e| panic!("{name}: {e} {:?}", e.paths));
        let lines = |s: &Session| -> (usize, usize) {
            let text = fs::read_to_string(s.path()).unwrap();
            let own = text.lines().filter(|l| l.ends_with(OWN)).count();
            (own, text.lines().count())
        };
        let (own, all) = lines(&forked.session);
        // What stands in a log of events is told anew in the messages that it makes.
        if own > 0 || read.session.files.len() < 2 {
            assert!(own > 0, "{name}: none of {all} lines");
            done.insert(case.format.agent());
        }
    }
    let shown = |f: &&dyn Format| f.access() == Access::ReadOnly || done.contains(f.agent());
    assert!(format::ALL.iter().all(shown), "{done:?}");
}

#[test]
fn an_empty_file_and_a_first_line_alone_are_read() {
    for case in cases() {
        let whole = fs::read(&case.path).unwrap();
        let first = whole
            .iter()
            .position(|b| *b == b'\n')
            .unwrap_or(whole.len());
        for (what, end) in [
            ("empty", 0),
            ("its header", first),
            ("with its end", first + 1),
        ] {
            case.survives(&whole[..end.min(whole.len())], what);
        }
        fs::write(&case.path, &whole[..first]).unwrap();
        if let Ok(session) = case.read()
            && session.path() == case.path
        {
            let own = session.turns.iter().filter(|t| t.span.file == FileNo(0));
            assert!(own.count() <= 1, "{}", case.name());
        }
    }
}
