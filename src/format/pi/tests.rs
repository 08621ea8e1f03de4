//! The composed session of the fixtures, the rules of the tree, and the recorded sessions of the shared corpus.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::super::{Format, Head, Trouble, detect};
use super::Pi;
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::{Change, GapKind, Reason, State};
use crate::model::fork::NewSession;
use crate::model::session::{Oddity, Session};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/pi/branches.jsonl")
}

fn read(path: &Path) -> Session {
    Pi.read(path, &Env::bare()).unwrap()
}

fn read_text(text: &str) -> (tempfile::TempDir, Session) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    std::fs::write(&path, text).unwrap();
    let session = read(&path);
    (dir, session)
}

fn prompts(session: &Session) -> Vec<&str> {
    session.turns.iter().map(|t| t.prompt.as_str()).collect()
}

fn keep(session: &Session, turn: u32) -> Result<u64, Trouble> {
    let cut = Pi.cut(session, turn, &Env::bare())?;
    match cut.as_slice() {
        [FileChange::Truncate { keep, len, .. }] if *len == session.len => Ok(*keep),
        other => panic!("{other:?}"),
    }
}

const HEAD: &str =
    r#"{"type":"session","version":3,"id":"s1","timestamp":"2026-05-25T00:50:00.000Z","cwd":"/w"}"#;

fn user(id: &str, parent: &str, text: &str) -> String {
    let parent = match parent {
        "" => "null".to_owned(),
        p => format!("\"{p}\""),
    };
    format!(
        r#"{{"type":"message","id":"{id}","parentId":{parent},"message":{{"role":"user","content":"{text}"}}}}"#
    )
}

fn file(lines: &[String]) -> String {
    lines
        .iter()
        .fold(format!("{HEAD}\n"), |all, l| all + l + "\n")
}

#[test]
fn only_prompts_of_the_active_branch_are_turns() {
    let head = Head::read(&fixture()).unwrap();
    assert_eq!(detect(&head, &Env::bare()).map(Format::agent), Some("pi"));
    let s = read(&fixture());
    assert_eq!(prompts(&s), ["count on", "typed again"]);
    assert_eq!(s.abandoned, 1);
    assert_eq!(s.root.as_deref(), Some(Path::new("/home/u/app")));
    let card = Pi.card(&head);
    assert_eq!((&card.id, &card.root), (&s.id, &s.root));
    assert_eq!(card.prompt.as_deref(), Some("count on"));
}

#[test]
fn files_that_begin_alike_are_not_taken_for_it() {
    let is = |line: &str| Pi.is(&Head::of(Path::new("x.jsonl"), line.as_bytes().to_vec()));
    assert!(is(HEAD));
    assert!(is(r#"{"type":"session","id":"s","cwd":"/w"}"#), "version 1");
    assert!(!is(r#"{"type":"session","version":0,"id":"s","cwd":"/w"}"#));
    assert!(!is(r#"{"type":"session_start","id":"s","cwd":"/w"}"#));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    std::fs::write(&path, HEAD.replace(":3", ":4")).unwrap();
    assert!(matches!(
        Pi.read(&path, &Env::bare()),
        Err(Trouble::Newer { .. })
    ));
}

#[test]
fn an_edit_that_may_have_matched_loosely_is_not_undone() {
    let s = read(&fixture());
    let calls = Pi.calls(&s, 0, &Env::bare()).unwrap();
    let paths: Vec<_> = calls
        .edits
        .iter()
        .map(|e| (e.turn, e.path.path.to_str().unwrap()))
        .collect();
    assert_eq!(paths, [(0, "a.txt"), (0, "b.txt"), (1, "new.txt")]);
    assert!(matches!(&calls.edits[0].change, Change::Several(all) if all.len() == 2));
    assert_eq!(calls.edits[1].before, State::Unknown(Reason::NotReversible));
    assert_eq!(calls.edits[1].change, Change::Opaque);
    assert_eq!(
        calls.edits[2].before,
        State::Unknown(Reason::MaybeOverwritten)
    );
    assert!(matches!(calls.edits[2].after, State::Held(_)));
    assert!(calls.edits[2].during.is_some());
    let gaps: Vec<_> = calls.gaps.iter().map(|g| (g.turn, g.kind)).collect();
    assert_eq!(gaps, [(0, GapKind::Shell)]);
}

#[test]
fn the_cut_ends_behind_the_entry_that_the_turn_hangs_below() {
    let s = read(&fixture());
    let text = std::fs::read_to_string(fixture()).unwrap();
    let at = text.find("\"x1\"").unwrap();
    let end = at + text[at..].find('\n').unwrap() + 1;
    assert_eq!(keep(&s, 1).unwrap(), end as u64);
    // Nothing of the kept bytes makes another branch the active one.
    assert_eq!(prompts(&read_text(&text[..end]).1), ["count on",]);
    assert!(keep(&s, 2).is_err());
}

#[test]
fn an_abandoned_branch_behind_the_kept_turns_goes_with_the_tail() {
    let text = file(&[
        user("a", "", "zero"),
        user("b", "a", "abandoned"),
        user("c", "a", "one"),
    ]);
    let (_dir, s) = read_text(&text);
    assert_eq!(prompts(&s), ["zero", "one"]);
    let kept = &text[..usize::try_from(keep(&s, 1).unwrap()).unwrap()];
    assert!(!kept.contains("abandoned") && kept.ends_with('\n'));
    assert_eq!(prompts(&read_text(kept).1), ["zero"]);
    assert_eq!(keep(&s, 0).unwrap(), HEAD.len() as u64 + 1);
}

#[test]
fn a_leaf_row_ends_the_conversation_and_is_not_cut_away() {
    let leaf = r#"{"type":"leaf","id":"l","targetId":"a"}"#.to_owned();
    let (_dir, s) = read_text(&file(&[user("a", "", "zero"), user("b", "a", "one"), leaf]));
    assert_eq!(prompts(&s), ["zero"]);
    let cut = Pi.cut(&s, 0, &Env::bare()).unwrap();
    assert!(matches!(cut.as_slice(), [FileChange::Append { .. }]));
}

#[test]
fn old_files_without_ids_are_one_line_of_turns() {
    let one = r#"{"type":"message","message":{"role":"user","content":"zero"}}"#;
    let two = r#"{"type":"message","message":{"role":"user","content":"one"}}"#;
    let (_dir, s) = read_text(&format!("{HEAD}\n{one}\n{two}\n").replace(r#""version":3,"#, ""));
    assert_eq!(prompts(&s), ["zero", "one"]);
}

#[test]
fn a_lost_parent_is_counted_and_a_compaction_marks_what_it_took() {
    let compaction = r#"{"type":"compaction","id":"k","parentId":"b","firstKeptEntryId":"b"}"#;
    let (_dir, s) = read_text(&file(&[
        user("a", "gone", "zero"),
        user("b", "a", "one"),
        compaction.to_owned(),
        user("c", "k", "two"),
    ]));
    assert_eq!(prompts(&s), ["zero", "one", "two"]);
    assert_eq!(s.warnings.count(Oddity::LostParent), 1);
    let compacted: Vec<_> = s.turns.iter().map(|t| t.compacted).collect();
    assert_eq!(compacted, [true, false, false]);
    assert!(keep(&s, 0).is_err(), "it hangs below nothing that is there");
}

#[test]
fn entries_that_name_each_other_end_the_walk() {
    let (_dir, s) = read_text(&file(&[user("a", "b", "zero"), user("b", "a", "one")]));
    assert!(!s.turns.is_empty());
}

#[test]
fn cut_anywhere_it_never_panics() {
    let text = std::fs::read(fixture()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    for n in (0..text.len()).step_by(7) {
        std::fs::write(&path, &text[..n]).unwrap();
        Pi.calls(&read(&path), 0, &Env::bare()).unwrap();
    }
}

#[test]
fn every_home_of_its_kin_is_looked_into() {
    let home = tempfile::tempdir().unwrap();
    let env = Env {
        home: Some(home.path().to_path_buf()),
        ..Env::bare()
    };
    let make = |name: &str| {
        let path = home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, HEAD).unwrap();
        path
    };
    let mut all = vec![
        make(".pi/agent/sessions/--w--/a.jsonl"),
        make(".omp/agent/sessions/other/b.jsonl"),
        make(".prime/agent/sessions/--w--/c.jsonl"),
        make(".openclaw/agents/main/sessions/d.jsonl"),
    ];
    make(".openclaw/agents/main/sessions/d.trajectory.jsonl");
    let elsewhere = make(".pi/agent/sessions/--x--/e.jsonl");
    all.sort();
    assert_eq!(Pi.places(&env, Some(Path::new("/w"))), all);
    assert!(Pi.places(&env, None).contains(&elsewhere));
}

#[test]
fn a_conversation_of_openclaw_goes_back_by_a_row_that_names_its_leaf() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d.jsonl");
    let answer =
        r#"{"type":"message","id":"b","parentId":"a","message":{"role":"assistant","content":[]}}"#;
    let lines = [
        user("a", "", "one"),
        answer.to_owned(),
        user("c", "b", "two"),
    ];
    std::fs::write(&path, file(&lines)).unwrap();
    std::fs::write(dir.path().join("sessions.json"), "{}").unwrap();
    for (turn, leaf, left) in [(1, "\"b\"", vec!["one"]), (0, "null", vec![])] {
        let session = read(&path);
        let before = session.turns.len();
        let cut = Pi.cut(&session, turn, &Env::bare()).unwrap();
        let [FileChange::Append { bytes, len, .. }] = cut.as_slice() else {
            panic!("{cut:?}");
        };
        assert_eq!(*len, session.len);
        let row = String::from_utf8(bytes.clone()).unwrap();
        assert!(row.contains(&format!("\"targetId\":{leaf}")), "{row}");
        assert!(row.contains(&format!("\"appendParentId\":{leaf}")), "{row}");
        let mut all = std::fs::read(&path).unwrap();
        all.extend(bytes);
        std::fs::write(&path, all).unwrap();
        let now = read(&path);
        assert_eq!(prompts(&now), left);
        assert_eq!(
            now.abandoned as usize,
            lines.len() - 1 - now.turns.len(),
            "{before}"
        );
        assert!(Pi.fork(&now, 1, &new(), &Env::bare()).is_err());
    }
}

fn new() -> NewSession {
    NewSession {
        seed: uuid::Uuid::nil(),
        at: chrono::DateTime::UNIX_EPOCH,
        name: None,
    }
}

#[test]
fn a_session_behind_another_one_in_its_file_is_said_to_be_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("two.jsonl");
    let two = file(&[user("a", "", "one")]) + &file(&[user("b", "", "two")]);
    std::fs::write(&path, two).unwrap();
    let s = read(&path);
    assert_eq!(prompts(&s), ["two"]);
    assert_eq!(s.warnings.count(Oddity::OtherSession), 1);
}

#[expect(clippy::print_stderr, reason = "a test says what it skips")]
fn corpus(case: &str) -> Option<(PathBuf, Session)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../shared/corpus/pi")
        .join(case);
    let env = Env {
        home: Some(dir.join("home")),
        ..Env::bare()
    };
    let Some(path) = Pi.places(&env, Some(Path::new("/home/dev/shop"))).pop() else {
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
    }
}

/// Each edit, redone on the true bytes from before its turn, gives the true bytes from after it; undone, it gives the
/// first ones back.
#[test]
fn recorded_edits_lead_from_the_true_bytes_to_the_true_bytes() {
    use crate::ops::{change, contents::Contents};
    let mut proved = 0;
    for case in ["shop", "library"] {
        let Some((dir, session)) = corpus(case) else {
            return;
        };
        let contents = Contents::new(&session);
        let look = |c: &crate::model::edit::Content| contents.load(c).ok();
        let edits = Pi.calls(&session, 0, &Env::bare()).unwrap().edits;
        let mut many = HashSet::new();
        let mut once = HashSet::new();
        for e in &edits {
            if !once.insert((e.turn, &e.path)) {
                many.insert((e.turn, &e.path));
            }
        }
        for e in edits.iter().filter(|e| !many.contains(&(e.turn, &e.path))) {
            let at = |when: &str| {
                std::fs::read(dir.join(format!("{when}/{}", e.turn)).join(&e.path.path)).ok()
            };
            let after = at("ended").unwrap();
            if let State::Held(c) = &e.after {
                assert_eq!(contents.load(c).unwrap(), after, "{case} {e:?}");
            } else if e.change == Change::Opaque {
                // Nothing in the record could show a loose match, so it is a gap.
                continue;
            } else {
                let before = at("before").unwrap();
                let redone = change::redo(&e.change, &before, &look);
                assert_eq!(redone.as_ref(), Some(&after), "{case} {e:?}");
                let undone = change::undo(&e.change, &after, &look);
                assert_eq!(undone, Some(before), "{case} {e:?}");
            }
            proved += 1;
        }
    }
    assert!(proved > 3, "{proved}");
}
