//! A journal that was cut off: what is whole in it still counts, and no byte that a rewind replaced is lost.

use std::fs;
use std::path::{Path, PathBuf};

use rewind::ops::Root;
use rewind::ops::journal::Journal;

use crate::env::{TestEnv, Tree};
use crate::hostile_disk::lock_file;
use crate::story::{Story, bytes};

/// The journal's log.
fn log_file(env: &TestEnv) -> PathBuf {
    lock_file(env).with_file_name("operations.jsonl")
}

/// Two restores of different files, each an operation of its own.
fn two_operations(env: &TestEnv) -> Vec<u8> {
    env.write("a", "one\n");
    env.write("b", "one\n");
    let mut s = Story::new(env);
    s.prompt("change both");
    s.edit("a", "one", "two");
    s.edit("b", "one", "two");
    s.save();
    for name in ["a", "b"] {
        let args = ["restore", "0", "--scope", "code", "--yes", "--", name];
        let run = env.run(&args);
        assert_eq!(run.code, Some(0), "{}", run.text());
    }
    fs::read(log_file(env)).unwrap()
}

#[test]
fn a_journal_that_was_cut_off_at_any_byte_keeps_what_is_whole() {
    let env = TestEnv::new();
    let whole = two_operations(&env);
    let log = log_file(&env);
    let root = Root::open(&env.workspace()).unwrap();
    let journal = Journal::open(Some(&env.state()), &root).unwrap();
    let all: Vec<_> = journal
        .log()
        .unwrap()
        .operations
        .into_iter()
        .map(|o| o.id)
        .collect();
    assert_eq!(all.len(), 2);
    let ends: Vec<usize> = whole
        .iter()
        .enumerate()
        .filter(|(_, b)| **b == b'\n')
        .map(|(i, _)| i)
        .collect();
    for cut in 0..whole.len() {
        fs::write(&log, &whole[..cut]).unwrap();
        let seen = journal.log().unwrap();
        // A line without its end is still a whole one.
        let lines = ends.iter().filter(|e| **e <= cut).count();
        let ids: Vec<_> = seen.operations.iter().map(|o| o.id.clone()).collect();
        let known = usize::from(lines >= 1) + usize::from(lines >= 4);
        assert_eq!(ids, all[..known], "cut at {cut}");
        let done = match lines {
            0..3 => None,
            3..6 => Some(&all[0]),
            _ => Some(&all[1]),
        };
        assert_eq!(seen.undo_target().map(|o| &o.id), done, "cut at {cut}");
        for operation in &seen.operations {
            journal.record(operation).unwrap();
        }
    }
}

/// At the ends of lines, one byte around them, and in their middle, with the program itself: it never dies of it, and the
/// bytes that it replaced are all still there, in the workspace or in what it saved.
#[test]
fn a_cut_journal_loses_no_byte_and_undoes_what_is_whole() {
    let env = TestEnv::new();
    let whole = two_operations(&env);
    let log = log_file(&env);
    let saved = log.with_file_name("saved");
    let keep = env.home().join("keep");
    let copy = |from: &Path, to: &Path| {
        let _: std::io::Result<()> = fs::remove_dir_all(to);
        let done = std::process::Command::new("cp")
            .arg("-a")
            .args([from, to])
            .status();
        assert!(done.unwrap().success());
    };
    copy(&saved, &keep);
    let mut cuts = vec![0, 1, whole.len()];
    let mut start = 0;
    for (end, _) in whole.iter().enumerate().filter(|(_, b)| **b == b'\n') {
        cuts.extend([start + (end - start) / 2, end - 1, end, end + 1]);
        start = end + 1;
    }
    for cut in cuts {
        copy(&keep, &saved);
        env.write("a", "one\n");
        env.write("b", "one\n");
        fs::write(&log, &whole[..cut]).unwrap();
        // A line without its end is still a whole one.
        let end = (cut + 1).min(whole.len());
        let whole_lines = whole[..end].split(|b| *b == b'\n').count() - 1;
        let run = env.run(&["undo", "--yes"]);
        let (a, b) = (bytes(&env, "a").unwrap(), bytes(&env, "b").unwrap());
        let what = format!("cut at {cut}, {whole_lines} lines: {}", run.text());
        let two = b"two\n".to_vec();
        match whole_lines {
            // Nothing is known; all stays as it is.
            0 => assert_eq!(
                (run.code, &a[..], &b[..]),
                (Some(5), &b"one\n"[..], &b"one\n"[..]),
                "{what}"
            ),
            // The first was not known to have ended, so it is taken back or done; then the rest is nothing.
            1..3 => assert!(matches!(run.code, Some(0 | 5)) && b == b"one\n", "{what}"),
            3 => assert_eq!(
                (run.code, &a, &b[..]),
                (Some(0), &two, &b"one\n"[..]),
                "{what}"
            ),
            // The second is settled first; undo then takes back the newest that was done.
            4..6 => assert!(run.code == Some(0) && (a == two || b == two), "{what}"),
            _ => assert_eq!(
                (run.code, &a[..], &b),
                (Some(0), &b"one\n"[..], &two),
                "{what}"
            ),
        }
        // What the two restores replaced is in the workspace or in the journal.
        let held = Tree::of(&saved);
        let copies = held.0.values().filter(|e| e.bytes == two).count();
        let here = usize::from(a == two) + usize::from(b == two);
        assert!(copies + here >= 2, "{what}\n{held:?}");
    }
}
