//! The log with cut and garbage lines, and the undo stack.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::fsx::Real;
use crate::fsx::tree::{Fingerprint, SafePath};
use crate::model::point::Scope;
use crate::ops::plan::{Act, Point};
use crate::ops::tests::World;

fn record(id: &str, act: Act) -> Record {
    Record {
        id: id.into(),
        at: time(DateTime::UNIX_EPOCH),
        act,
        point: Point {
            agent: "codex".into(),
            session: "s".into(),
            path: OsStr::from_bytes(b"/agent/\xff.jsonl").into(),
            turn: 3,
            key: "k".into(),
            prompt: "line\nline".into(),
        },
        scope: Scope::Code,
        steps: vec![StepRecord {
            path: SafePath::new(Path::new(OsStr::from_bytes(b"a\xff\n"))).unwrap(),
            before: Fingerprint::absent(),
            after: Fingerprint::file(0o644, 1, &[7; 32]),
            saved: None,
            stage: None,
        }],
        made_folders: vec![],
        removed_folders: vec![],
        session: vec![],
    }
}

/// A journal with these acts done, one operation each: its ids are `op0`, `op1`, and so on.
fn journal_of(acts: &[Act]) -> (World, Journal) {
    let w = World::new();
    let held = w.journal.hold(&Real::new()).unwrap();
    for (i, act) in acts.iter().enumerate() {
        let id = format!("op{i}");
        done(&held, &record(&id, act.clone()));
    }
    drop(held);
    let journal = w.journal.clone();
    (w, journal)
}

fn done(held: &Held, record: &Record) {
    let at = DateTime::UNIX_EPOCH;
    let disk = Real::new();
    for event in [
        Event::Prepared(record),
        Event::Committing(&record.id, at),
        Event::Committed(&record.id, at, None),
    ] {
        held.append(&disk, &event).unwrap();
    }
}

fn undo(n: usize) -> Act {
    Act::Undo(format!("op{n}"))
}

fn redo(n: usize) -> Act {
    Act::Redo(format!("op{n}"))
}

fn targets(acts: &[Act]) -> (Option<String>, Option<String>) {
    let (_w, journal) = journal_of(acts);
    let id = |o: Option<Operation>| o.map(|o| o.id);
    (
        id(journal.undo_target().unwrap()),
        id(journal.redo_target().unwrap()),
    )
}

#[test]
fn undo_and_redo_walk_a_stack_of_any_depth() {
    use Act::Restore as R;
    let some = |n: usize| Some(format!("op{n}"));
    assert_eq!(targets(&[]), (None, None));
    assert_eq!(targets(&[R, R]), (some(1), None));
    assert_eq!(targets(&[R, R, undo(1)]), (some(0), some(2)));
    assert_eq!(targets(&[R, R, undo(1), undo(0)]), (None, some(3)));
    assert_eq!(
        targets(&[R, R, undo(1), undo(0), redo(3)]),
        (some(4), some(2))
    );
    assert_eq!(
        targets(&[R, R, undo(1), undo(0), redo(3), undo(4)]),
        (None, some(5))
    );
    // A restore forgets what could be redone.
    assert_eq!(targets(&[R, undo(0), R]), (some(2), None));
    // An undo of one in the middle.
    assert_eq!(targets(&[R, R, undo(0)]), (some(1), some(2)));
}

#[test]
fn a_record_survives_the_journal_to_the_last_byte() {
    let (_w, journal) = journal_of(&[Act::Restore]);
    let operations = journal.operations().unwrap();
    let back = journal.record(&operations[0]).unwrap();
    assert_eq!(back, record("op0", Act::Restore));
    assert_eq!((operations[0].steps, operations[0].session), (1, 0));
}

#[test]
fn a_spoiled_line_loses_only_itself() {
    let (_w, journal) = journal_of(&[Act::Restore, Act::Restore]);
    let path = journal.folder().join("operations.jsonl");
    let log = std::fs::read(&path).unwrap();
    let lines: Vec<&[u8]> = log.split_inclusive(|b| *b == b'\n').collect();
    for garbage in [
        &b"\0\0\0\0"[..],
        b"{\"schema\":\"rewind.operation/1\",\"event\":\"prep",
        b"[[[[",
        b"\xff\xfe",
        b"{\"schema\":\"other/1\",\"event\":\"prepared\"}",
    ] {
        for at in 0..=lines.len() {
            let mut spoiled = lines[..at].concat();
            spoiled.extend_from_slice(garbage);
            spoiled.push(b'\n');
            spoiled.extend_from_slice(&lines[at..].concat());
            std::fs::write(&path, &spoiled).unwrap();
            let log = journal.log().unwrap();
            assert_eq!(log.operations.len(), 2);
            assert_eq!(log.spoiled.len(), 1);
            assert_eq!(log.spoiled[0].line, at + 1);
            assert!(log.operations.iter().all(|o| o.status == Status::Committed));
            assert!(journal.record(&log.operations[1]).is_ok());
        }
    }
}

#[test]
fn a_log_cut_at_any_byte_can_be_read_and_appended_to() {
    let (_w, journal) = journal_of(&[Act::Restore]);
    let path = journal.folder().join("operations.jsonl");
    let log = std::fs::read(&path).unwrap();
    for end in 0..log.len() {
        std::fs::write(&path, &log[..end]).unwrap();
        let held = journal.hold(&Real::new()).unwrap();
        done(&held, &record("later", Act::Restore));
        let log = journal.log().unwrap();
        let later = log.find("later").unwrap();
        assert_eq!(later.status, Status::Committed, "cut at {end}");
        assert!(log.spoiled.len() <= 1, "cut at {end}");
    }
}

#[test]
fn a_newer_version_is_said_and_not_guessed_at() {
    let (w, journal) = journal_of(&[Act::Restore]);
    let path = journal.folder().join("operations.jsonl");
    let mut log = std::fs::read(&path).unwrap();
    log.extend_from_slice(
        b"{\"schema\":\"rewind.operation/2\",\"event\":\"prepared\",\"id\":\"x\"}\n",
    );
    std::fs::write(&path, log).unwrap();
    assert_eq!(
        journal.log().unwrap().newer.as_deref(),
        Some("rewind.operation/2")
    );
    assert_eq!(w.recover().unwrap_err().kind, Kind::Unsupported);
}

#[test]
fn names_in_a_record_that_are_no_names_are_refused() {
    let w = World::new();
    let held = w.journal.hold(&Real::new()).unwrap();
    let mut evil = record("op0", Act::Restore);
    evil.steps[0].saved = Some("../../../etc/passwd".into());
    done(&held, &evil);
    done(&held, &record("../op1", Act::Restore));
    let log = w.journal.log().unwrap();
    assert_eq!(log.operations.len(), 1);
    assert!(w.journal.record(&log.operations[0]).is_err());
}

#[test]
fn reading_makes_nothing() {
    let w = World::new();
    assert_eq!(w.journal.log().unwrap(), Log::default());
    assert_eq!(w.recover().unwrap(), None);
    assert!(!w.journal.state().exists());
}

#[test]
fn the_journal_is_private() {
    let (_w, journal) = journal_of(&[Act::Restore]);
    let mode = |path: PathBuf| {
        let meta = std::fs::metadata(path).unwrap();
        meta.permissions().mode() & 0o777
    };
    let folder = journal.folder();
    assert_eq!(mode(journal.state().to_path_buf()), 0o700);
    assert_eq!(mode(folder.clone()), 0o700);
    assert_eq!(mode(folder.join("saved")), 0o700);
    for file in ["root", "lock", "operations.jsonl"] {
        assert_eq!(mode(folder.join(file)), 0o600);
    }
}

#[test]
fn no_state_folder_is_said() {
    let w = World::new();
    let e = Journal::open(None, &w.root).unwrap_err();
    assert_eq!(e.kind, Kind::Failed);
    assert!(e.hints[0].contains("REWIND_STATE_DIR"));
}

#[test]
fn ids_sort_by_time_and_differ() {
    let at = |ms| DateTime::from_timestamp_millis(ms).unwrap();
    let ids = [
        operation_id(at(999), 7, 0),
        operation_id(at(1000), 7, 0),
        operation_id(at(1000), 7, 1),
        operation_id(at(1_800_000_000_000), 1, 0),
    ];
    assert!(ids.is_sorted());
    assert!(ids.iter().all(|id| record::is_name(id)));
}
