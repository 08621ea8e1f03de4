//! The composed session of the fixtures, and the recorded sessions of the shared corpus.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::super::{Format, Head, Trouble, detect};
use super::Kimi;
use crate::env::Env;
use crate::fsx::hash;
use crate::model::cut::FileChange;
use crate::model::edit::{Content, GapKind, Payload, Reason, Source, State};
use crate::model::session::Session;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/kimi/session_demo")
}

fn wire(folder: &Path) -> PathBuf {
    folder.join("agents/main/wire.jsonl")
}

fn read(path: &Path) -> Session {
    Kimi.read(path, &Env::bare()).unwrap()
}

fn prompts(session: &Session) -> Vec<&str> {
    session.turns.iter().map(|t| t.prompt.as_str()).collect()
}

/// A copy of the fixture whose wire file may be changed.
fn copied(wire_bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = wire(dir.path());
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, wire_bytes).unwrap();
    std::fs::copy(fixture().join("state.json"), dir.path().join("state.json")).unwrap();
    (dir, path)
}

#[test]
fn only_what_a_person_typed_and_did_not_undo_is_a_turn() {
    let path = wire(&fixture());
    let head = Head::read(&path).unwrap();
    assert_eq!(detect(&head, &Env::bare()).map(Format::agent), Some("kimi"));
    let s = read(&path);
    assert_eq!(prompts(&s), ["count on", "typed again"]);
    assert_eq!(s.abandoned, 1);
    assert_eq!((s.turns[1].no, s.turns[1].key.as_str()), (1, "msg_2"));
    let card = Kimi.card(&head);
    assert_eq!((&card.id, &card.root), (&s.id, &s.root));
    assert_eq!(s.root.as_deref(), Some(Path::new("/home/u/app")));
    assert_eq!(card.prompt.as_deref(), Some("count on"));
}

#[test]
fn the_older_client_is_another_format() {
    let is = |line: &str| Kimi.is(&Head::of(Path::new("wire.jsonl"), line.as_bytes().to_vec()));
    assert!(is(
        r#"{"type":"metadata","protocol_version":"2.0","created_at":1}"#
    ));
    assert!(!is(r#"{"type":"metadata","protocol_version":"1.8"}"#));
}

#[test]
fn the_history_tells_what_files_were_and_undone_turns_do_not_count() {
    let s = read(&wire(&fixture()));
    let calls = Kimi.calls(&s, 0, &Env::bare()).unwrap();
    assert_eq!(calls.edits.len(), 2, "{:?}", calls.edits);
    let [edit, write] = [&calls.edits[0], &calls.edits[1]];
    assert_eq!(edit.source, Source::Native);
    assert_eq!(bytes(&s, &edit.before).unwrap(), b"one\n");
    assert_eq!(bytes(&s, &edit.after).unwrap(), b"two\n");
    assert_eq!(write.before, State::Absent);
    assert_eq!(bytes(&s, &write.after).unwrap(), b"new\n");
    assert_eq!(
        calls
            .gaps
            .iter()
            .map(|g| (g.turn, g.kind))
            .collect::<Vec<_>>(),
        [(1, GapKind::Shell)]
    );
    assert_eq!(Kimi.calls(&s, 1, &Env::bare()).unwrap().edits, []);
}

#[test]
fn a_copy_that_is_gone_is_unknown_and_a_key_leads_nowhere_else() {
    let text = std::fs::read_to_string(wire(&fixture())).unwrap();
    let (_dir, path) = copied(text.as_bytes());
    let edits = Kimi.calls(&read(&path), 0, &Env::bare()).unwrap().edits;
    assert_eq!(edits[0].before, State::Unknown(Reason::CopyGone));
    let odd = text.replace("file-history/aa@v1", "file-history/../../state.json");
    let (_dir, path) = copied(odd.as_bytes());
    let edits = Kimi.calls(&read(&path), 0, &Env::bare()).unwrap().edits;
    assert_eq!(edits[0].before, State::Unknown(Reason::NotRecorded));
}

#[test]
fn a_call_whose_end_is_not_told_is_a_gap_and_no_edit() {
    let text = std::fs::read_to_string(wire(&fixture())).unwrap();
    let odd = text.replace("Wrote 4 bytes", "Something else");
    let (_dir, path) = copied(odd.as_bytes());
    let calls = Kimi.calls(&read(&path), 0, &Env::bare()).unwrap();
    assert_eq!(calls.edits.len(), 1);
    assert_eq!((calls.gaps[0].turn, calls.gaps[0].kind), (0, GapKind::Tool));
}

#[test]
fn the_cut_keeps_the_bytes_before_the_prompt() {
    let path = wire(&fixture());
    let s = read(&path);
    let text = std::fs::read_to_string(&path).unwrap();
    let at = text.find("typed again").unwrap();
    let keep = text[..at].rfind('\n').unwrap() as u64 + 1;
    let want = FileChange::Truncate {
        path: path.clone(),
        keep,
        len: text.len() as u64,
    };
    assert_eq!(Kimi.cut(&s, 1, &Env::bare()).unwrap(), [want]);
    assert!(matches!(
        Kimi.cut(&s, 2, &Env::bare()),
        Err(Trouble::Refused { .. })
    ));
    let (_dir, kept) = copied(&text.as_bytes()[..usize::try_from(keep).unwrap()]);
    assert_eq!(prompts(&read(&kept)), ["count on"]);
}

#[test]
fn cut_anywhere_it_never_panics() {
    let bytes = std::fs::read(wire(&fixture())).unwrap();
    let (_dir, path) = copied(&bytes);
    for n in (0..bytes.len()).step_by(7) {
        std::fs::write(&path, &bytes[..n]).unwrap();
        Kimi.calls(&read(&path), 0, &Env::bare()).unwrap();
    }
}

fn bytes(session: &Session, state: &State) -> Option<Vec<u8>> {
    let State::Held(content) = state else {
        return None;
    };
    let contents = crate::ops::contents::Contents::new(session);
    let Content { payload, .. } = content;
    assert!(matches!(payload, Payload::File(_) | Payload::Token(_)));
    Some(contents.load(content).unwrap())
}

#[expect(clippy::print_stderr, reason = "a test says what it skips")]
fn corpus(case: &str) -> Option<(PathBuf, Session)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../shared/corpus/kimi")
        .join(case);
    let env = Env {
        home: Some(dir.join("home")),
        ..Env::bare()
    };
    let Some(path) = Kimi.places(&env, None).pop() else {
        eprintln!("skipped: the shared corpus is not here");
        return None;
    };
    Some((dir, read(&path)))
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
        assert_eq!(session.root.as_deref(), Some(Path::new("/home/dev/shop")));
    }
}

/// Each first touch is the file as it was when the turn began, each recorded last one as the turn left it.
#[test]
fn recorded_first_and_last_touches_are_the_true_bytes() {
    for case in ["shop", "library"] {
        let Some((dir, session)) = corpus(case) else {
            return;
        };
        let edits = Kimi.calls(&session, 0, &Env::bare()).unwrap().edits;
        let at = |when: &str, turn: u32, path: &Path| {
            let rel = path.strip_prefix("/home/dev/shop").unwrap();
            std::fs::read(dir.join(format!("{when}/{turn}")).join(rel)).ok()
        };
        let mut seen = HashSet::new();
        for e in edits.iter().filter(|e| seen.insert((e.turn, &e.path))) {
            assert!(!matches!(e.before, State::Unknown(_)), "{case} {e:?}");
            let truth = at("before", e.turn, &e.path.path);
            assert_eq!(bytes(&session, &e.before), truth, "{case} {e:?}");
        }
        let mut seen = HashSet::new();
        let last = edits
            .iter()
            .rev()
            .filter(|e| seen.insert((e.turn, &e.path)));
        for e in last.filter(|e| !matches!(e.after, State::Unknown(_))) {
            let truth = at("ended", e.turn, &e.path.path).map(|b| hash::of_bytes(&b));
            let got = bytes(&session, &e.after).map(|b| hash::of_bytes(&b));
            assert_eq!(got, truth, "{case} {e:?}");
        }
        assert!(edits.len() > 5);
    }
}
