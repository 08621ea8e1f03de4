//! Taking back, again and again, and what was changed in between.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::fsx::{Faulty, Real};
use crate::ops::apply::Context;
use crate::ops::tests::{World, tree};

fn undo_plan(w: &World, how: How) -> Result<Plan> {
    let target = w.journal.undo_target()?.unwrap();
    plan_undo(&w.journal, &w.root, &target.id, how)
}

fn how(on: OnConflict) -> How {
    How {
        on,
        scope: Scope::Both,
    }
}

/// A world after the full plan, and after somebody edited one of its files.
fn edited() -> World {
    let w = World::filled();
    w.apply(&w.full_plan()).unwrap();
    w.write("w/a", b"edited since", 0o644);
    w
}

fn bytes(w: &World, path: &str) -> Option<Vec<u8>> {
    std::fs::read(w.path(path)).ok()
}

#[test]
fn what_was_changed_since_is_a_conflict() {
    let w = edited();
    let plan = undo_plan(&w, How::default()).unwrap();
    let conflict = Conflict {
        path: World::safe("a"),
        why: ConflictKind::Changed,
    };
    assert_eq!(plan.conflicts, [conflict]);
    assert!(plan.steps.iter().all(|s| s.path != World::safe("a")));
}

#[test]
fn keep_takes_back_the_rest() {
    let w = edited();
    w.apply(&undo_plan(&w, how(OnConflict::Keep)).unwrap())
        .unwrap();
    assert_eq!(bytes(&w, "w/a").unwrap(), b"edited since");
    assert_eq!(bytes(&w, "w/sub/b").unwrap(), b"b by the agent");
}

#[test]
fn overwrite_can_itself_be_undone() {
    let w = edited();
    w.apply(&undo_plan(&w, how(OnConflict::Overwrite)).unwrap())
        .unwrap();
    assert_eq!(bytes(&w, "w/a").unwrap(), b"a by the agent\n");
    w.redo().unwrap();
    assert_eq!(bytes(&w, "w/a").unwrap(), b"edited since");
}

#[test]
fn beside_leaves_both() {
    let w = edited();
    w.apply(&undo_plan(&w, how(OnConflict::Beside)).unwrap())
        .unwrap();
    assert_eq!(bytes(&w, "w/a").unwrap(), b"edited since");
    assert_eq!(bytes(&w, "w/a.rewind").unwrap(), b"a by the agent\n");
}

#[test]
fn a_folder_in_the_way_is_never_overwritten() {
    let w = edited();
    std::fs::remove_file(w.path("w/a")).unwrap();
    std::fs::create_dir(w.path("w/a")).unwrap();
    let plan = undo_plan(&w, how(OnConflict::Overwrite)).unwrap();
    assert_eq!(plan.conflicts[0].why, ConflictKind::NotAFile);
    assert!(plan.steps.iter().all(|s| s.path != World::safe("a")));
}

#[test]
fn a_session_that_went_on_is_refused_whatever_the_policy() {
    let w = World::filled();
    w.apply(&w.full_plan()).unwrap();
    w.write(
        "agent/s.jsonl",
        b"{\"turn\":0}\n{\"turn\":\"other\"}\n",
        0o600,
    );
    for on in [
        OnConflict::Fail,
        OnConflict::Keep,
        OnConflict::Overwrite,
        OnConflict::Beside,
    ] {
        let e = undo_plan(&w, how(on)).unwrap_err();
        assert_eq!(e.kind, Kind::Conflict);
        assert!(e.hints[0].contains("--scope code"));
    }
    let code = How {
        on: OnConflict::Fail,
        scope: Scope::Code,
    };
    w.apply(&undo_plan(&w, code).unwrap()).unwrap();
    assert_eq!(bytes(&w, "w/a").unwrap(), b"a by the agent\n");
    assert!(
        bytes(&w, "agent/s.jsonl")
            .unwrap()
            .ends_with(b"\"other\"}\n")
    );
}

#[test]
fn saved_bytes_that_are_gone_or_changed_are_damaged() {
    for name in ["0", "session-0"] {
        for spoil in [
            (|p| std::fs::remove_file(p).unwrap()) as fn(&PathBuf),
            |p| std::fs::write(p, "spoiled").unwrap(),
        ] {
            let w = World::filled();
            w.apply(&w.full_plan()).unwrap();
            let id = w.journal.undo_target().unwrap().unwrap().id;
            spoil(&w.journal.saved(&id, name));
            let before = w.tree();
            let e = undo_plan(&w, How::default()).unwrap_err();
            assert_eq!(e.kind, Kind::Damaged);
            assert_eq!(w.tree(), before);
        }
    }
}

#[test]
fn what_is_back_already_is_left_and_the_stack_moves_on() {
    let w = World::filled();
    let before = w.tree();
    let step = w.step("a", World::file(b"a before", None));
    w.apply(&w.plan(vec![step], vec![])).unwrap();
    w.write("w/a", b"a by the agent\n", 0o644);
    let plan = undo_plan(&w, How::default()).unwrap();
    assert_eq!((plan.equal.len(), plan.steps.len()), (1, 0));
    w.apply(&plan).unwrap();
    assert_eq!(w.tree(), before);
    assert_eq!(w.journal.undo_target().unwrap(), None);
}

#[test]
fn an_operation_is_undone_once() {
    let w = World::filled();
    w.apply(&w.full_plan()).unwrap();
    let id = w.journal.undo_target().unwrap().unwrap().id;
    w.undo().unwrap();
    let again = plan_undo(&w.journal, &w.root, &id, How::default());
    assert_eq!(again.unwrap_err().kind, Kind::Conflict);
    let unknown = plan_undo(&w.journal, &w.root, "nosuch", How::default());
    assert_eq!(unknown.unwrap_err().kind, Kind::NotFound);
}

#[test]
fn a_folder_comes_back_with_its_mode() {
    use std::os::unix::fs::PermissionsExt;
    let w = World::filled();
    let mode = std::fs::Permissions::from_mode(0o750);
    std::fs::set_permissions(w.path("w/gone/far"), mode).unwrap();
    let before = w.tree();
    w.apply(&w.full_plan()).unwrap();
    w.undo().unwrap();
    assert_eq!(w.tree(), before);
}

#[test]
fn undo_of_an_undone_kill_works() {
    // The undo itself is killed at every change.
    for nth in 1.. {
        let w = World::filled();
        let before = w.tree();
        w.apply(&w.full_plan()).unwrap();
        let after = w.tree();
        let plan = undo_plan(&w, How::default()).unwrap();
        let disk = Faulty::dead_from(nth);
        let done = w.apply_on(&disk, &plan);
        w.recover().unwrap();
        let now = w.tree();
        assert!(now == before || now == after, "killed at {nth}");
        if now == after {
            w.undo().unwrap();
        }
        assert_eq!(w.tree(), before);
        w.assert_tidy("undone");
        if done.is_ok() {
            return;
        }
    }
}

/// One file of a random world: absent, or bytes and mode.
type Held = Option<(Vec<u8>, u32)>;

const PATHS: [&str; 6] = ["a", "b", "d/c", "d/e/f", "g/h", "-rf \n"];

fn held() -> impl Strategy<Value = Held> {
    let mode = prop_oneof![Just(0o644), Just(0o755), Just(0o600), Just(0o444)];
    proptest::option::of((proptest::collection::vec(any::<u8>(), 0..6), mode))
}

fn world() -> impl Strategy<Value = Vec<Held>> {
    proptest::collection::vec(held(), PATHS.len())
}

#[derive(Debug, Clone)]
enum Deed {
    Restore(Vec<Held>),
    Undo,
    Redo,
    Edit(usize, Held),
    Kill(Vec<Held>, usize),
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        3 => world().prop_map(Deed::Restore),
        3 => Just(Deed::Undo),
        2 => Just(Deed::Redo),
        1 => (0..PATHS.len(), held()).prop_map(|(i, h)| Deed::Edit(i, h)),
        2 => (world(), 1..120_usize).prop_map(|(w, n)| Deed::Kill(w, n)),
    ]
}

fn put(w: &World, i: usize, held: &Held) {
    let path = format!("w/{}", PATHS[i]);
    match held {
        Some((bytes, mode)) => w.write(path, bytes, *mode),
        None => drop(std::fs::remove_file(w.path(path))),
    }
}

fn restore_plan(w: &World, to: &[Held]) -> Plan {
    let mut steps = Vec::new();
    for (path, held) in PATHS.iter().zip(to) {
        let make = match held {
            Some((bytes, mode)) => World::file(bytes, Some(*mode)),
            None => Make::Absent(World::safe(path).folders()),
        };
        steps.push(w.step(path, make));
    }
    w.plan(steps, vec![])
}

/// Every content that is in the tree.
fn contents(w: &World) -> Vec<Vec<u8>> {
    w.tree().into_values().filter_map(|f| f.1).collect()
}

fn files(w: &World) -> BTreeMap<PathBuf, (u32, Option<Vec<u8>>)> {
    let mut files = w.tree();
    files.retain(|_, f| f.1.is_some());
    files
}

fn run(w: &World, deed: &Deed) {
    match deed {
        Deed::Restore(to) => {
            w.apply(&restore_plan(w, to)).unwrap();
            for (path, held) in PATHS.iter().zip(to) {
                let now = std::fs::read(w.path("w").join(path)).ok();
                assert_eq!(now, held.as_ref().map(|h| h.0.clone()));
            }
        }
        Deed::Edit(i, held) => put(w, *i, held),
        Deed::Undo | Deed::Redo => take_back(w, deed),
        Deed::Kill(to, nth) => {
            let before = files(w);
            let plan = restore_plan(w, to);
            let done = w.apply_on(&Faulty::dead_from(*nth), &plan);
            let recovered = w.recover().unwrap();
            assert!(recovered.is_none_or(|r| r.left.is_empty()));
            let all_old = files(w) == before;
            let is_new = PATHS.iter().zip(to).all(|(path, held)| {
                let now = std::fs::read(w.path("w").join(path)).ok();
                now == held.as_ref().map(|h| h.0.clone())
            });
            assert!(is_new || (all_old && done.is_err()));
        }
    }
}

fn take_back(w: &World, deed: &Deed) {
    let log = w.journal.log().unwrap();
    let undo = matches!(deed, Deed::Undo);
    let target = if undo {
        log.undo_target()
    } else {
        log.redo_target()
    };
    let Some(target) = target else { return };
    let take = if undo { plan_undo } else { plan_redo };
    let plan = take(&w.journal, &w.root, &target.id, how(OnConflict::Overwrite));
    w.apply(&plan.unwrap()).unwrap();
    let record = w.journal.record(target).unwrap();
    for step in &record.steps {
        let now = w.root.fingerprint(&step.path).unwrap().print;
        if step.saved.is_some() || !step.after.same_bytes(&step.before) {
            assert_eq!(now, step.before);
        } else if now.kind == FileKind::File {
            // It changed the mode alone, so that is all it can take back.
            assert_eq!(now.mode, step.before.mode);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_byte_that_existed_is_ever_lost(
        start in world(),
        deeds in proptest::collection::vec(deed(), 1..9),
    ) {
        let w = World::new();
        for (i, held) in start.iter().enumerate() {
            put(&w, i, held);
        }
        let mut seen = contents(&w);
        for deed in &deeds {
            run(&w, deed);
            if let Deed::Edit(..) = deed {
                // What a person overwrites is theirs to overwrite.
                seen.clear();
            }
            seen.extend(contents(&w));
            let saved: Vec<_> = tree(&w.journal.folder()).into_values().filter_map(|f| f.1).collect();
            let now = contents(&w);
            for bytes in &seen {
                prop_assert!(now.contains(bytes) || saved.contains(bytes));
            }
        }
    }
}

/// An operation that changed the mode of `a` alone.
fn mode_changed() -> World {
    let w = World::new();
    w.write("w/a", b"one", 0o755);
    let step = w.step("a", World::file(b"one", Some(0o644)));
    w.apply(&w.plan(vec![step], vec![])).unwrap();
    w
}

#[test]
fn a_mode_goes_back_alone_on_a_file_that_was_changed_since() {
    let w = mode_changed();
    w.write("w/a", b"by hand", 0o644);
    let plan = undo_plan(&w, how(OnConflict::Overwrite)).unwrap();
    w.apply(&plan).unwrap();
    let (mode, bytes) = files(&w).remove(&PathBuf::from("w/a")).unwrap();
    assert_eq!((mode & 0o777, bytes.unwrap()), (0o755, b"by hand".to_vec()));
}

#[test]
fn of_a_file_deleted_since_its_mode_alone_was_changed_nothing_goes_back() {
    for on in [OnConflict::Overwrite, OnConflict::Beside, OnConflict::Keep] {
        let w = mode_changed();
        std::fs::remove_file(w.path("w/a")).unwrap();
        let plan = undo_plan(&w, how(on)).unwrap();
        assert!(plan.steps.is_empty());
        assert_eq!(plan.conflicts.len(), 1, "{on:?}");
    }
}

#[test]
fn planning_writes_nothing() {
    let w = World::filled();
    w.apply(&w.full_plan()).unwrap();
    let look = || (w.tree(), tree(w.journal.state()));
    let before = look();
    undo_plan(&w, How::default()).unwrap();
    assert_eq!(look(), before);
    // And neither does a recovery with nothing to recover.
    let ctx = Context {
        disk: &Real::new(),
        journal: &w.journal,
        root: &w.root,
        now: chrono::DateTime::UNIX_EPOCH,
        id: "x",
        watch: crate::ops::apply::unwatched(),
    };
    assert_eq!(crate::ops::recover::recover(&ctx).unwrap(), None);
    assert_eq!(look(), before);
}
