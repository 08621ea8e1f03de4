//! The turn and edit rules on composed events, and the recorded sessions of the shared corpus.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::super::{Format, Head, Trouble, detect};
use super::Copilot;
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::{Change, Content, GapKind, Payload, Reason, Source, State};
use crate::model::session::Session;

const START: &str = r#"{"type":"session.start","data":{"sessionId":"5e55","version":1,"producer":"copilot-agent","context":{"cwd":"/w"}},"id":"s0","timestamp":"2026-08-01T08:00:00.000Z","parentId":null}"#;

struct World {
    dir: tempfile::TempDir,
    lines: Vec<String>,
}

impl World {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            lines: vec![START.to_owned()],
        }
    }

    fn event(mut self, kind: &str, data: &str) -> Self {
        let n = self.lines.len();
        self.lines.push(format!(
            r#"{{"type":"{kind}","data":{{{data}}},"id":"e{n}","timestamp":"2026-08-01T08:00:{n:02}.000Z","parentId":"e{}"}}"#,
            n - 1
        ));
        self
    }

    fn prompt(self, text: &str) -> Self {
        self.event(
            "user.message",
            &format!(r#""content":"{text}","transformedContent":"<now/>{text}""#),
        )
    }

    fn call(self, id: &str, tool: &str, args: &str) -> Self {
        self.event(
            "tool.execution_start",
            &format!(r#""toolCallId":"{id}","toolName":"{tool}","arguments":{args}"#),
        )
    }

    fn result(self, id: &str, success: &str) -> Self {
        self.event(
            "tool.execution_complete",
            &format!(r#""toolCallId":"{id}","success":{success},"result":{{"content":"x"}}"#),
        )
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("session-state/5e55")
    }

    fn copy(&self, bytes: &[u8]) -> String {
        let hash = hash(bytes);
        let backups = self.folder().join("rewind-file-snapshots/backups");
        std::fs::create_dir_all(&backups).unwrap();
        std::fs::write(backups.join(&hash), bytes).unwrap();
        hash
    }

    fn index(&self, snapshots: &str) {
        let folder = self.folder().join("rewind-file-snapshots");
        std::fs::create_dir_all(&folder).unwrap();
        let text = format!(r#"{{"schema":1,"snapshots":[{snapshots}]}}"#);
        std::fs::write(folder.join("index.json"), text).unwrap();
    }

    fn read(&self) -> Session {
        let path = self.folder().join("events.jsonl");
        std::fs::create_dir_all(self.folder()).unwrap();
        std::fs::write(&path, self.lines.join("\n") + "\n").unwrap();
        Copilot.read(&path, &Env::bare()).unwrap()
    }
}

fn hash(bytes: &[u8]) -> String {
    crate::fsx::hash::hex(&crate::fsx::hash::of_bytes(bytes))
}

fn held(hash: &str) -> String {
    format!(r#"{{"kind":"content","contentHash":"{hash}","backupFile":"{hash}","mode":33188}}"#)
}

fn file(path: &str, before: &str, after: &str) -> String {
    format!(r#""{path}":{{"path":"{path}","preimage":{before},"postimage":{after}}}"#)
}

fn snapshot(event: &str, files: &str) -> String {
    format!(r#"{{"eventId":"{event}","files":{{{files}}}}}"#)
}

fn prompts(session: &Session) -> Vec<&str> {
    session.turns.iter().map(|t| t.prompt.as_str()).collect()
}

#[test]
fn only_what_a_person_typed_is_a_turn() {
    let s = World::new()
        .prompt("first")
        .event("user.message", r#""content":"skill","source":"skill-pdf""#)
        .event(
            "user.message",
            r#""content":"go on","isAutopilotContinuation":true"#,
        )
        .event("user.message", r#""content":"sub","agentId":"a1""#)
        .event("abort", r#""reason":"user initiated""#)
        .prompt("second")
        .read();
    assert_eq!(prompts(&s), ["first", "second"]);
    assert!(s.turns[0].interrupted && !s.turns[1].interrupted);
    assert_eq!(
        (s.id.as_str(), s.root.as_deref()),
        ("5e55", Some(Path::new("/w")))
    );
    assert_eq!(s.turns[0].key, "e1");
    assert_eq!(s.turns[0].span.end, s.turns[1].span.start);
}

#[test]
fn a_file_of_another_program_is_not_taken_for_it() {
    let is = |line: &str| Copilot.is(&Head::of(Path::new("x.jsonl"), line.as_bytes().to_vec()));
    assert!(is(START));
    assert!(!is(&START.replace("copilot-agent", "somebody")));
    assert!(!is(
        &START.replace(r#""version":1"#, r#""vscodeVersion":"1.99""#)
    ));
    assert!(!is(r#"{"type":"session.start","data":{}}"#));
}

#[test]
fn events_of_a_newer_version_are_not_read() {
    let mut world = World::new();
    world.lines[0] = START.replace(r#""version":1"#, r#""version":2"#);
    let path = world.dir.path().join("e.jsonl");
    std::fs::write(&path, world.lines.join("\n")).unwrap();
    assert!(matches!(
        Copilot.read(&path, &Env::bare()),
        Err(Trouble::Newer { .. })
    ));
}

#[test]
fn a_failed_call_is_no_edit_and_a_shell_call_is_a_gap() {
    let world = World::new()
        .prompt("zero")
        .call(
            "c1",
            "edit",
            r#"{"path":"/w/a","old_str":"x","new_str":"y"}"#,
        )
        .result("c1", "false")
        .call("c2", "bash", r#"{"command":"rm -rf build"}"#)
        .result("c2", "true")
        .call(
            "c3",
            "edit",
            r#""{\"path\":\"/w/b\",\"old_str\":\"x\",\"new_str\":\"y\"}""#,
        )
        .result("c3", "true")
        .call("c4", "create", r#"{"path":"/w/c","file_text":"new\n"}"#);
    let s = world.read();
    let calls = Copilot.calls(&s, 0, &Env::bare()).unwrap();
    assert_eq!(calls.edits.len(), 1);
    assert!(calls.edits[0].path.path.ends_with("b"));
    let Change::Replace { old, .. } = &calls.edits[0].change else {
        panic!("{:?}", calls.edits[0].change)
    };
    assert_eq!(old.payload, Payload::Bytes(b"x".to_vec()));
    let gaps: Vec<_> = calls
        .gaps
        .iter()
        .map(|g| (g.kind, g.detail.as_str()))
        .collect();
    assert_eq!(
        gaps,
        [
            (GapKind::Shell, "rm -rf build"),
            (GapKind::Tool, "create: no result was recorded")
        ]
    );
}

#[test]
fn the_snapshot_of_a_turn_tells_what_its_files_were_and_became() {
    let world = World::new()
        .prompt("zero")
        .call(
            "c1",
            "edit",
            r#"{"path":"/w/a","old_str":"1","new_str":"2"}"#,
        )
        .result("c1", "true")
        .call(
            "c2",
            "edit",
            r#"{"path":"/w/a","old_str":"2","new_str":"3"}"#,
        )
        .result("c2", "true")
        .call("c3", "bash", r#"{"command":"make"}"#)
        .result("c3", "true");
    let (a, left, made) = (world.copy(b"1\r\n"), hash(b"3\r\n"), hash(b"o"));
    let files = [
        file("/w/a", &held(&a), &held(&left)),
        file("/w/out", r#"{"kind":"absent"}"#, &held(&made)),
        file("/w/same", &held(&a), &held(&a)),
    ];
    world.index(&snapshot("e1", &files.join(",")));
    let s = world.read();
    let edits = Copilot.calls(&s, 0, &Env::bare()).unwrap().edits;
    assert_eq!(edits.len(), 3, "an unchanged file is no edit");
    assert_eq!(
        (edits[0].source, edits[0].mode),
        (Source::Native, Some(0o644))
    );
    assert_eq!(bytes(&edits[0].before).unwrap(), b"1\r\n");
    assert!(matches!(edits[1].before, State::Unknown(_)));
    assert_eq!(sha(&edits[1].after), Some(left));
    assert_eq!(edits[2].before, State::Absent);
    assert_eq!(edits[2].path.path, Path::new("/w/out"));
    assert_eq!(sha(&edits[2].after), Some(made));
}

#[test]
fn a_copy_that_is_gone_is_unknown_and_never_the_neighbours() {
    let world = World::new()
        .prompt("zero")
        .call(
            "c1",
            "edit",
            r#"{"path":"/w/a","old_str":"1","new_str":"2"}"#,
        )
        .result("c1", "true");
    world.copy(b"other");
    world.index(&snapshot(
        "e1",
        &file("/w/a", &held(&hash(b"1")), &held(&hash(b"2"))),
    ));
    let edits = Copilot.calls(&world.read(), 0, &Env::bare()).unwrap().edits;
    assert_eq!(edits[0].before, State::Unknown(Reason::CopyGone));
    assert_eq!(edits[0].source, Source::Reversed);
    // Known by its hash alone it would bar the way back through the bytes on disk.
    assert_eq!(edits[0].after, State::Unknown(Reason::NotRecorded));
}

#[test]
fn a_backup_name_leads_nowhere_else_and_an_unknown_index_is_said() {
    let world = World::new().prompt("zero");
    let odd = format!(
        r#"{{"kind":"content","contentHash":"{}","backupFile":"../../secret"}}"#,
        hash(b"1")
    );
    world.index(&snapshot("e1", &file("/w/a", &odd, r#"{"kind":"absent"}"#)));
    let s = world.read();
    let edits = Copilot.calls(&s, 0, &Env::bare()).unwrap().edits;
    assert_eq!(edits[0].before, State::Unknown(Reason::NotRecorded));
    let index = world.folder().join("rewind-file-snapshots/index.json");
    std::fs::write(index, r#"{"schema":2,"snapshots":[]}"#).unwrap();
    let calls = Copilot.calls(&s, 0, &Env::bare()).unwrap();
    assert_eq!(calls.gaps[0].kind, GapKind::Checkpoint);
}

#[test]
fn the_cut_keeps_the_bytes_before_the_prompt_and_no_call_without_result() {
    let world = World::new()
        .prompt("zero")
        .call(
            "c1",
            "edit",
            r#"{"path":"/w/a","old_str":"1","new_str":"2"}"#,
        )
        .prompt("one")
        .prompt("two");
    let s = world.read();
    let cut = Copilot.cut(&s, 2, &Env::bare()).unwrap();
    let keep = (world.lines[..4].join("\n") + "\n").len() as u64;
    let want = FileChange::Truncate {
        path: s.path().to_path_buf(),
        keep,
        len: s.len,
    };
    assert_eq!(cut, [want]);
    assert!(matches!(
        Copilot.cut(&s, 1, &Env::bare()),
        Err(Trouble::Refused { .. })
    ));
    assert!(Copilot.cut(&s, 3, &Env::bare()).is_err());
}

#[test]
fn cut_at_every_byte_it_never_panics_and_turns_only_grow() {
    let world = World::new()
        .prompt("zero")
        .call("c1", "create", r#"{"path":"/w/a","file_text":"1"}"#)
        .result("c1", "true")
        .prompt("one");
    let text = world.lines.join("\n") + "\n";
    let path = world.dir.path().join("x.jsonl");
    let mut last = 0;
    for n in 0..=text.len() {
        std::fs::write(&path, &text.as_bytes()[..n]).unwrap();
        let s = Copilot.read(&path, &Env::bare()).unwrap();
        assert!(s.turns.len() >= last, "cut at {n}");
        last = s.turns.len();
        Copilot.calls(&s, 0, &Env::bare()).unwrap();
    }
    assert_eq!(last, 2);
}

#[test]
fn a_session_in_use_by_a_running_process_is_live() {
    let world = World::new().prompt("zero");
    let s = world.read();
    assert_eq!(Copilot.live(&s, &Env::bare()), None);
    let lock = |pid: u32| world.folder().join(format!("inuse.{pid}.lock"));
    std::fs::write(lock(u32::MAX - 1), "").unwrap();
    assert_eq!(Copilot.live(&s, &Env::bare()), None, "the process is gone");
    let pid = std::process::id();
    std::fs::write(lock(pid), "").unwrap();
    assert_eq!(
        Copilot.live(&s, &Env::bare()).and_then(|a| a.pid),
        Some(pid)
    );
    std::fs::remove_file(lock(pid)).unwrap();
    let hold = std::fs::File::create(world.folder().join(".hold")).unwrap();
    assert_eq!(Copilot.live(&s, &Env::bare()), None, "nobody holds it");
    hold.lock().unwrap();
    assert!(Copilot.live(&s, &Env::bare()).is_some());
}

fn bytes(state: &State) -> Option<Vec<u8>> {
    match state {
        State::Held(Content {
            payload: Payload::File(p),
            ..
        }) => Some(std::fs::read(p).unwrap()),
        _ => None,
    }
}

fn sha(state: &State) -> Option<String> {
    match state {
        State::Held(c) => c.sha256.map(|s| crate::fsx::hash::hex(&s)),
        _ => None,
    }
}

#[expect(clippy::print_stderr, reason = "a test says what it skips")]
fn corpus(case: &str) -> Option<(PathBuf, Session)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../shared/corpus/copilot")
        .join(case);
    let state = dir.join("home/.copilot/session-state");
    let found = std::fs::read_dir(state).ok().and_then(|entries| {
        entries
            .filter_map(|e| Some(e.ok()?.path().join("events.jsonl")))
            .find(|p| p.is_file())
    });
    let Some(path) = found else {
        eprintln!("skipped: the shared corpus is not here");
        return None;
    };
    let head = Head::read(&path).unwrap();
    assert_eq!(
        detect(&head, &Env::bare()).map(Format::agent),
        Some("copilot")
    );
    let session = Copilot.read(&path, &Env::bare()).unwrap();
    let card = Copilot.card(&head);
    assert_eq!((&card.id, &card.root), (&session.id, &session.root));
    assert_eq!(
        card.prompt.as_ref(),
        session.turns.first().map(|t| &t.prompt)
    );
    Some((dir, session))
}

#[test]
fn recorded_sessions_have_the_true_prompts() {
    for case in ["shop", "library"] {
        let Some((dir, session)) = corpus(case) else {
            return;
        };
        let truth = std::fs::read(dir.join("truth.json")).unwrap();
        let truth: serde_json::Value = serde_json::from_slice(&truth).unwrap();
        let want: Vec<_> = truth["prompts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p.as_str().unwrap())
            .collect();
        assert_eq!(prompts(&session), want, "{case}");
        assert_eq!(session.warnings.all(), [], "{case}");
    }
}

/// Each first touch is the file as it was when the turn began, and each last one as the turn left it.
#[test]
fn recorded_first_and_last_touches_are_the_true_bytes() {
    for case in ["shop", "library"] {
        let Some((dir, session)) = corpus(case) else {
            return;
        };
        let edits = Copilot.calls(&session, 0, &Env::bare()).unwrap().edits;
        let at = |when: &str, turn: u32, path: &Path| {
            let rel = path.strip_prefix("/home/dev/shop").unwrap();
            std::fs::read(dir.join(format!("{when}/{turn}")).join(rel)).ok()
        };
        let mut seen = HashSet::new();
        for e in edits.iter().filter(|e| seen.insert((e.turn, &e.path))) {
            let truth = at("before", e.turn, &e.path.path);
            assert!(!matches!(e.before, State::Unknown(_)), "{case} {e:?}");
            assert_eq!(bytes(&e.before), truth, "{case} {e:?}");
        }
        let mut seen = HashSet::new();
        for e in edits
            .iter()
            .rev()
            .filter(|e| seen.insert((e.turn, &e.path)))
        {
            let truth = at("ended", e.turn, &e.path.path).map(|b| hash(&b));
            assert_eq!(sha(&e.after), truth, "{case} {e:?}");
        }
        assert!(seen.len() > 5);
    }
}

fn fixture(name: &str) -> Session {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/copilot")
        .join(name);
    assert_eq!(
        detect(&Head::read(&path).unwrap(), &Env::bare()).map(Format::agent),
        Some("copilot")
    );
    Copilot.read(&path, &Env::bare()).unwrap()
}

#[test]
fn the_fixtures_show_what_their_readme_says() {
    let s = fixture("not-prompts.jsonl");
    assert_eq!(prompts(&s), ["add a test", "now run it"]);
    let s = fixture("snapshots/events.jsonl");
    let edits = Copilot.calls(&s, 0, &Env::bare()).unwrap().edits;
    assert_eq!(bytes(&edits[0].before).unwrap(), b"one\n");
    assert_eq!(edits[1].before, State::Absent);
    assert_eq!(sha(&edits[1].after), Some(hash(b"made\n")));
}
