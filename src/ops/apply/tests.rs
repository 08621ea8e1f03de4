//! Kills, failures and meddling at every change that the engine makes.

#![expect(clippy::print_stderr, reason = "a skipped test says so")]

use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::io::Errno;

use super::*;
use crate::fsx::{Faulty, Op, Real, Verdict};
use crate::ops::plan::{Bytes, Make, SessionMake};
use crate::ops::recover::Close;
use crate::ops::tests::{Tree, World, fast, tree};

/// What the full plan makes of the filled world.
fn after_full_plan() -> Tree {
    let w = World::filled();
    w.apply(&w.full_plan()).unwrap();
    w.tree()
}

#[test]
fn a_plan_is_done_whole_and_reported() {
    let w = World::filled();
    let done = w.apply(&w.full_plan()).unwrap();
    w.assert_tidy("done");
    let now = w.tree();
    let file = |path: &str| now.get(Path::new(path)).cloned();
    let held = |mode, bytes: &[u8]| Some((mode, Some(bytes.to_vec())));
    assert_eq!(file("w/a"), held(0o644, b"a before"));
    assert_eq!(file("w/sub/b"), held(0o600, b""));
    assert_eq!(file("w/new/deep/d"), held(0o751, b"was deleted"));
    assert_eq!(file("w/new/d2"), held(0o644, b"also"));
    assert_eq!(file("w/e"), held(0o700, b"same bytes"));
    assert_eq!(file("w/gone"), None);
    assert_eq!(file("w/untouched"), held(0o640, b"mine"));
    assert_eq!(file("agent/s.jsonl"), held(0o600, b"{\"turn\":0}\n"));
    assert_eq!(file("agent/index.json"), held(0o644, b"{}"));
    assert_eq!(file("agent/cache"), None);
    assert_eq!(file("agent/log"), held(0o644, b"xyz"));
    assert_eq!(file("agent/made"), held(0o600, b"new"));
    assert_eq!(done.written.len(), 5);
    assert_eq!(done.removed, [World::safe("gone/far/c")]);
    assert_eq!(done.modes, [World::safe("e")]);
    assert_eq!(done.session.len(), 5);
    assert_eq!(done.recovered, None);
}

#[test]
fn undo_and_redo_alternate_bytes_modes_and_folders() {
    let w = World::filled();
    let before = w.tree();
    w.apply(&w.full_plan()).unwrap();
    let after = w.tree();
    for round in 0..3 {
        w.undo().unwrap();
        assert_eq!(w.tree(), before, "undo {round}");
        w.redo().unwrap();
        assert_eq!(w.tree(), after, "redo {round}");
        w.assert_tidy("round");
    }
}

#[test]
fn a_kill_at_any_change_leaves_all_old_or_all_new() {
    let after = after_full_plan();
    let (mut finished, mut reverted) = (0, 0);
    for nth in 1.. {
        let w = World::filled();
        let before = w.tree();
        let plan = w.full_plan();
        let disk = Faulty::dead_from(nth);
        let killed = w.apply_on(&disk, &plan);
        let recovered = w.recover().unwrap();
        let when = format!("killed at {nth}");
        let now = w.tree();
        match recovered.map(|r| (r.close, r.left)) {
            Some((Close::Finished, left)) => {
                assert_eq!((now, left), (after.clone(), vec![]), "{when}");
                finished += 1;
            }
            Some((Close::Reverted, left)) => {
                assert_eq!((now, left), (before.clone(), vec![]), "{when}");
                reverted += 1;
            }
            None if killed.is_ok() => {
                assert_eq!(now, after, "{when}");
                assert!(finished > 5 && reverted > 20, "{finished} {reverted}");
                return;
            }
            None => {
                assert!(now == before || now == after, "{when}");
            }
        }
        // Whatever was saved before the record was written is removed by the next apply.
        if w.tree() == before {
            w.apply(&plan).unwrap();
        } else {
            w.undo().unwrap();
            assert_eq!(w.tree(), before, "{when}, undone");
        }
        w.assert_tidy(&when);
    }
}

#[test]
fn a_recovery_may_be_killed_too() {
    let after = after_full_plan();
    let changes = {
        let w = World::filled();
        let disk = Faulty::dead_from(usize::MAX);
        w.apply_on(&disk, &w.full_plan()).unwrap();
        disk.asked()
    };
    for nth in (1..=changes).step_by(3) {
        for mth in (1..).step_by(4) {
            let w = World::filled();
            let before = w.tree();
            drop(w.apply_on(&Faulty::dead_from(nth), &w.full_plan()));
            let disk = Faulty::dead_from(mth);
            let first = w.recover_on(&disk);
            let second = w.recover().unwrap();
            assert!(second.is_none_or(|r| r.left.is_empty()));
            let now = w.tree();
            assert!(now == before || now == after, "killed at {nth}, {mth}");
            if first.is_ok() && disk.asked() < mth {
                break;
            }
        }
    }
}

#[test]
fn any_failing_change_leaves_everything_as_before() {
    let after = after_full_plan();
    for errno in [Errno::NOSPC, Errno::ACCESS, Errno::IO, Errno::INVAL] {
        for nth in 1.. {
            let w = World::filled();
            let before = w.tree();
            let disk = Faulty::once(nth, errno.raw_os_error());
            let done = w.apply_on(&disk, &w.full_plan());
            let when = format!("{errno:?} at {nth}");
            if let Err(e) = done {
                assert_eq!(w.tree(), before, "{when}: {e:?}");
                if matches!(errno, Errno::NOSPC | Errno::ACCESS) {
                    assert_eq!(e.kind, Kind::Storage, "{when}: {e:?}");
                }
                assert!(!e.paths.is_empty(), "{when}: {e:?}");
            } else {
                assert_eq!(w.tree(), after, "{when}");
            }
            w.assert_tidy(&when);
            if disk.asked() < nth {
                break;
            }
        }
    }
}

#[test]
fn two_failures_in_a_row_are_recovered_by_the_next_run() {
    let after = after_full_plan();
    for nth in 1.. {
        let w = World::filled();
        let before = w.tree();
        let disk = Faulty::new(
            nth,
            4,
            Errno::IO.raw_os_error(),
            crate::fsx::faulty::Harm::Torn,
        );
        let done = w.apply_on(&disk, &w.full_plan());
        drop(w.recover().unwrap());
        let now = w.tree();
        assert!(now == before || now == after, "at {nth}: {done:?}");
        assert!(done.is_err() || now == after, "at {nth}");
        if disk.asked() < nth {
            return;
        }
    }
}

/// A disk that fails at one change, and at a later one or from there on.
struct Twice {
    at: usize,
    then: std::ops::Range<usize>,
    asked: AtomicUsize,
}

impl Disk for Twice {
    fn ask(&self, _op: Op) -> Verdict {
        let nth = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        if nth == self.at || self.then.contains(&nth) {
            return Verdict::Fail(Errno::IO.into());
        }
        Verdict::Go
    }
}

#[test]
fn a_closing_line_that_landed_and_failed_does_not_hide_a_mix() {
    let after = after_full_plan();
    let count = Faulty::dead_from(usize::MAX);
    let w = World::filled();
    w.apply_on(&count, &w.full_plan()).unwrap();
    // The last change of all makes `committed` durable: the line is there, and the run is told that it failed.
    let last = count.asked();
    for more in 1..200 {
        let w = World::filled();
        let before = w.tree();
        let disk = Twice {
            at: last,
            then: last + more..last + more + 1,
            asked: AtomicUsize::new(0),
        };
        w.apply_on(&disk, &w.full_plan()).unwrap_err();
        drop(w.recover().unwrap());
        let now = w.tree();
        assert!(now == before || now == after, "then at {more}");
        w.assert_tidy("closed");
        if disk.asked.load(Ordering::SeqCst) < last + more {
            assert_eq!(now, before);
            return;
        }
    }
}

#[test]
fn putting_back_may_be_killed_too() {
    let after = after_full_plan();
    let count = Faulty::dead_from(usize::MAX);
    let w = World::filled();
    w.apply_on(&count, &w.full_plan()).unwrap();
    for at in (1..=count.asked()).rev().step_by(5) {
        for more in (1..).step_by(3) {
            let w = World::filled();
            let before = w.tree();
            let disk = Twice {
                at,
                then: at + more..usize::MAX,
                asked: AtomicUsize::new(0),
            };
            let done = w.apply_on(&disk, &w.full_plan());
            drop(w.recover().unwrap());
            let now = w.tree();
            assert!(now == before || now == after, "{at}, {more}: {done:?}");
            w.assert_tidy("put back");
            if disk.asked.load(Ordering::SeqCst) < at + more {
                break;
            }
        }
    }
}

#[test]
fn saved_bytes_are_copied_to_another_file_system() {
    let (memory, disk) = (fast(), tempfile::tempdir().unwrap());
    let device = |dir: &tempfile::TempDir| std::fs::metadata(dir.path()).unwrap().dev();
    if device(&memory) == device(&disk) {
        eprintln!("skipped: there is one file system only");
        return;
    }
    let w = World::in_folders(memory, disk);
    w.fill();
    let before = w.tree();
    w.apply(&w.full_plan()).unwrap();
    let after = w.tree();
    w.undo().unwrap();
    assert_eq!(w.tree(), before);
    w.redo().unwrap();
    assert_eq!(w.tree(), after);
    w.assert_tidy("copied");
}

#[test]
fn copied_bytes_come_back_after_a_kill() {
    for nth in 1.. {
        let (memory, disk) = (fast(), tempfile::tempdir().unwrap());
        let w = World::in_folders(memory, disk);
        w.write("w/a", b"old", 0o755);
        w.write("w/b", b"old b", 0o644);
        let before = w.tree();
        let steps = vec![
            w.step("a", World::file(b"new", None)),
            w.step("b", Make::Absent(vec![])),
        ];
        let dead = Faulty::new(
            nth,
            9,
            Errno::IO.raw_os_error(),
            crate::fsx::faulty::Harm::Torn,
        );
        let done = w.apply_on(&dead, &w.plan(steps, vec![]));
        drop(w.recover().unwrap());
        if dead.asked() < nth {
            assert!(done.is_ok());
            return;
        }
        let now = w.tree();
        let a = now.get(Path::new("w/a")).and_then(|f| f.1.clone());
        assert!(now == before || (a.as_deref() == Some(b"new") && now.len() + 1 == before.len()));
    }
}

/// A disk on which somebody acts just before the n-th change.
struct Meddled<'a> {
    nth: usize,
    asked: AtomicUsize,
    act: &'a (dyn Fn() + Sync),
}

impl Disk for Meddled<'_> {
    fn ask(&self, _op: Op) -> Verdict {
        if self.asked.fetch_add(1, Ordering::SeqCst) + 1 == self.nth {
            (self.act)();
        }
        Verdict::Go
    }
}

/// Whether bytes are anywhere: in the tree or in what the journal saved.
fn is_somewhere(w: &World, bytes: &[u8]) -> bool {
    let within = |t: Tree| t.values().any(|(_, b)| b.as_deref() == Some(bytes));
    within(w.tree()) || within(tree(&w.journal.folder()))
}

#[test]
fn no_byte_that_somebody_writes_meanwhile_is_lost() {
    let theirs = b"written by somebody at this very moment";
    let in_place = |path: &Path| {
        let open = std::fs::OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(path);
        if let Ok(mut file) = open {
            std::io::Write::write_all(&mut file, theirs).unwrap();
            return true;
        }
        false
    };
    let by_rename = |path: &Path| {
        let temp = path.with_file_name("editor.tmp");
        if std::fs::write(&temp, theirs).is_err() {
            return false;
        }
        std::fs::rename(&temp, path).is_ok()
    };
    let ways: [&(dyn Fn(&Path) -> bool + Sync); 2] = [&in_place, &by_rename];
    for way in ways {
        for target in ["w/a", "w/gone/far/c", "w/new/d2", "w/e", "agent/index.json"] {
            for nth in 1.. {
                let w = World::filled();
                let wrote = AtomicUsize::new(0);
                let act = || {
                    if way(&w.path(target)) {
                        wrote.store(1, Ordering::SeqCst);
                    }
                };
                let disk = Meddled {
                    nth,
                    asked: AtomicUsize::new(0),
                    act: &act,
                };
                let done = w.apply_on(&disk, &w.full_plan());
                if wrote.load(Ordering::SeqCst) == 1 {
                    let kept = is_somewhere(&w, theirs);
                    assert!(kept, "{target} at {nth}: lost; {done:?}");
                }
                if disk.asked.load(Ordering::SeqCst) < nth {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_session_that_grows_meanwhile_is_busy_and_whole() {
    for nth in 1.. {
        let w = World::filled();
        let path = w.path("agent/s.jsonl");
        let act = || {
            use std::io::Write;
            let open = std::fs::OpenOptions::new().append(true).open(&path);
            open.unwrap().write_all(b"{\"turn\":3}\n").unwrap();
        };
        let disk = Meddled {
            nth,
            asked: AtomicUsize::new(0),
            act: &act,
        };
        let done = w.apply_on(&disk, &w.full_plan());
        let text = std::fs::read_to_string(&path).unwrap();
        if disk.asked.load(Ordering::SeqCst) < nth {
            assert!(done.is_ok());
            return;
        }
        // Either it grew before the cut, and then nothing happened; or the agent wrote into the cut file.
        match done {
            Err(e) => {
                assert!(
                    matches!(e.kind, Kind::Busy | Kind::Conflict | Kind::Failed),
                    "{nth}: {e:?}"
                );
                assert!(text.starts_with("{\"turn\":0}\n"), "{nth}");
                assert!(text.ends_with("{\"turn\":3}\n"), "{nth}: {text}");
            }
            Ok(_) => assert_eq!(text, "{\"turn\":0}\n{\"turn\":3}\n", "{nth}"),
        }
    }
}

#[test]
fn a_stale_plan_writes_nothing() {
    let w = World::filled();
    let plan = w.full_plan();
    w.write("w/sub/b", b"edited since", 0o755);
    let before = w.tree();
    let e = w.apply(&plan).unwrap_err();
    assert_eq!(e.kind, Kind::Conflict);
    assert_eq!(e.paths.len(), 1);
    assert_eq!(e.changed, "nothing was changed");
    assert_eq!(w.tree(), before);
    w.assert_tidy("stale");
}

#[test]
fn a_session_that_grew_since_the_plan_is_busy() {
    let w = World::filled();
    let plan = w.full_plan();
    w.write(
        "agent/s.jsonl",
        b"{\"turn\":0}\n{\"turn\":1}\n{\"turn\":2}\n{\"turn\":3}\n",
        0o600,
    );
    let before = w.tree();
    assert_eq!(w.apply(&plan).unwrap_err().kind, Kind::Busy);
    assert_eq!(w.tree(), before);
}

#[test]
fn another_run_at_work_is_busy() {
    let w = World::filled();
    let held = w.journal.hold(&Real::new()).unwrap();
    let before = w.tree();
    assert_eq!(w.apply(&w.full_plan()).unwrap_err().kind, Kind::Busy);
    drop(held);
    let locked = w
        .journal
        .hold_session(&Real::new(), &w.path("agent/log").canonicalize().unwrap());
    assert_eq!(w.apply(&w.full_plan()).unwrap_err().kind, Kind::Busy);
    assert_eq!(w.tree(), before);
    drop(locked);
    w.apply(&w.full_plan()).unwrap();
}

#[test]
fn what_is_no_plain_file_is_never_replaced() {
    let kinds: [fn(&Path); 4] = [
        |p| std::fs::create_dir(p).unwrap(),
        |p| symlink("untouched", p).unwrap(),
        |p| {
            let fifo = rustix::fs::FileType::Fifo;
            let mode = rustix::fs::Mode::RWXU;
            rustix::fs::mknodat(rustix::fs::CWD, p, fifo, mode, 0).unwrap();
        },
        |p| std::fs::hard_link(p.with_file_name("untouched"), p).unwrap(),
    ];
    for make in kinds {
        let w = World::filled();
        let plan = w.full_plan();
        std::fs::remove_file(w.path("w/a")).unwrap();
        make(&w.path("w/a"));
        let mut fresh = plan.clone();
        fresh.steps[0] = w.step("a", World::file(b"x", None));
        let before = w.tree();
        for plan in [plan, fresh] {
            assert_eq!(w.apply(&plan).unwrap_err().kind, Kind::Conflict);
        }
        assert_eq!(w.tree(), before);
    }
}

#[test]
fn a_link_that_replaces_a_parent_is_not_followed() {
    let w = World::filled();
    let plan = w.full_plan();
    std::fs::rename(w.path("w/sub"), w.path("outside")).unwrap();
    symlink("../outside", w.path("w/sub")).unwrap();
    let before = w.tree();
    assert_eq!(w.apply(&plan).unwrap_err().kind, Kind::Conflict);
    assert_eq!(w.tree(), before);
}

#[test]
fn bytes_that_are_not_those_of_the_plan_are_damaged() {
    let w = World::filled();
    let before = w.tree();
    let mut wrong = World::file(b"other", None);
    if let Make::File { bytes, .. } = &mut wrong {
        *bytes = Bytes::Held(b"wrong".to_vec());
    }
    let mut missing = World::file(b"other", None);
    if let Make::File { bytes, .. } = &mut missing {
        *bytes = Bytes::File(w.path("nowhere"));
    }
    for make in [wrong, missing] {
        let steps = vec![w.step("a", make), w.step("e", Make::Mode(0o600))];
        let e = w.apply(&w.plan(steps, vec![])).unwrap_err();
        assert_eq!(e.kind, Kind::Damaged);
        assert_eq!(w.tree(), before);
        w.assert_tidy("damaged");
    }
}

#[test]
fn a_linked_session_stays_a_link() {
    let w = World::filled();
    std::fs::rename(w.path("agent/log"), w.path("real-log")).unwrap();
    symlink("../real-log", w.path("agent/log")).unwrap();
    let cut = SessionMake::Truncate { keep: 0 };
    w.apply(&w.plan(vec![], vec![w.session("log", cut)]))
        .unwrap();
    assert!(
        std::fs::symlink_metadata(w.path("agent/log"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(std::fs::read(w.path("real-log")).unwrap(), b"");
    w.undo().unwrap();
    assert_eq!(std::fs::read(w.path("real-log")).unwrap(), b"x");
}

#[test]
fn untouched_files_keep_inode_and_times() {
    let w = World::filled();
    let look = || {
        let meta = std::fs::metadata(w.path("w/untouched")).unwrap();
        (
            meta.ino(),
            meta.mtime(),
            meta.mtime_nsec(),
            meta.ctime_nsec(),
        )
    };
    let before = look();
    w.apply(&w.full_plan()).unwrap();
    w.undo().unwrap();
    assert_eq!(look(), before);
}

#[test]
fn a_rollback_brings_back_the_very_file() {
    let w = World::filled();
    let look = || {
        let meta = std::fs::metadata(w.path("w/a")).unwrap();
        (meta.ino(), meta.mtime(), meta.mtime_nsec())
    };
    let before = look();
    // The last change but one of a whole apply fails: everything was in place by then.
    let count = Faulty::dead_from(usize::MAX);
    let other = World::filled();
    other.apply_on(&count, &other.full_plan()).unwrap();
    let disk = Faulty::once(count.asked() - 1, Errno::NOSPC.raw_os_error());
    w.apply_on(&disk, &w.full_plan()).unwrap_err();
    assert_eq!(look(), before);
    w.assert_tidy("rolled back");
}

#[test]
fn the_journal_is_not_a_target() {
    let w = World::filled();
    let state = w.path("w/state");
    let journal = Journal::open(Some(&state), &w.root).unwrap();
    let step = w.step("state/roots/x", World::file(b"x", None));
    let ctx = Context {
        disk: &Real::new(),
        journal: &journal,
        root: &w.root,
        now: DateTime::UNIX_EPOCH,
        id: "x",
        watch: crate::ops::apply::unwatched(),
    };
    let e = apply(&w.plan(vec![step], vec![]), &ctx).unwrap_err();
    assert_eq!(e.kind, Kind::Failed);
}

#[test]
fn an_empty_restore_makes_nothing() {
    let w = World::filled();
    let done = w.apply(&w.plan(vec![], vec![])).unwrap();
    assert_eq!(done, Applied::default());
    assert!(!w.journal.state().exists());
}

#[test]
fn thousands_of_files_go_through() {
    let w = World::new();
    let mut steps = Vec::new();
    for n in 0..2000 {
        let path = format!("d{}/f{n}", n % 40);
        w.write(
            Path::new("w").join(&path),
            format!("old {n}").as_bytes(),
            0o644,
        );
        steps.push(w.step(&path, World::file(format!("new {n}").as_bytes(), None)));
    }
    let before = w.tree();
    w.apply(&w.plan(steps, vec![])).unwrap();
    let after = w.tree();
    assert!(before != after && before.len() == after.len());
    w.undo().unwrap();
    assert_eq!(w.tree(), before);
    w.assert_tidy("many");
}
