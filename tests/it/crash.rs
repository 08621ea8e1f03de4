//! The program is really killed, at each of its crash points, and run again. Each child is this test binary with one
//! ignored test, in its own process group of one: nothing but the kernel tidies up after it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on is to stop")]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use chrono::DateTime;
use rewind::fsx::crash::{CrashPlan, POINTS};
use rewind::fsx::tree::{Root, SafePath};
use rewind::fsx::{Real, hash};
use rewind::model::point::Scope;
use rewind::ops::apply::{Context, apply};
use rewind::ops::journal::{Journal, operation_id};
use rewind::ops::plan::{
    Act, Bytes, Make, Plan, Point, SessionMake, SessionMark, SessionStep, Step,
};
use rewind::ops::recover::recover;
use rewind::ops::undo::{How, plan_undo};

/// Where the child works, at which point it dies, and what it does: `apply`, `recover`.
const DIR: &str = "CRASH_TEST_DIR";
const AT: &str = "CRASH_TEST_AT";
const DO: &str = "CRASH_TEST_DO";

/// Paths below a folder, with mode and bytes of the plain files.
type Tree = BTreeMap<PathBuf, (u32, Option<Vec<u8>>)>;

/// A child under this umask shows that it does not leak into what is restored (`bugs.md` 52).
const UMASK: u32 = 0o077;

#[test]
#[ignore = "it is the child of the other tests here, and dies"]
fn child() {
    let Some(dir) = std::env::var_os(DIR).map(PathBuf::from) else {
        return;
    };
    let at = std::env::var(AT).unwrap_or_default();
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(UMASK));
    let disk = Real::with_crash(CrashPlan::parse(&at));
    match std::env::var(DO).as_deref() {
        Ok("apply") => {
            with_context(&dir, &disk, |ctx| {
                drop(apply(&plan(&dir), ctx).unwrap());
            });
        }
        Ok("recover") => with_context(&dir, &disk, |ctx| drop(recover(ctx).unwrap())),
        other => panic!("{other:?}"),
    }
}

fn with_context<R>(dir: &Path, disk: &Real, act: impl FnOnce(&Context<'_>) -> R) -> R {
    let root = Root::open(&dir.join("w")).unwrap();
    let journal = Journal::open(Some(&dir.join("state")), &root).unwrap();
    let id = operation_id(DateTime::UNIX_EPOCH, std::process::id(), 0);
    act(&Context {
        disk,
        journal: &journal,
        root: &root,
        now: DateTime::UNIX_EPOCH,
        id: &id,
        watch: rewind::ops::apply::unwatched(),
    })
}

fn write(path: &Path, bytes: &[u8], mode: u32) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn filled() -> tempfile::TempDir {
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let dir = dir.unwrap();
    let at = |path: &str| dir.path().join(path);
    write(&at("w/a"), b"after", 0o755);
    write(&at("w/b"), b"after b", 0o600);
    write(&at("w/made/new"), b"made", 0o644);
    write(&at("w/m"), b"m", 0o644);
    write(&at("agent/s.jsonl"), b"{}\n{\"cut\":1}\n", 0o600);
    write(&at("agent/side"), b"side", 0o644);
    dir
}

fn plan(dir: &Path) -> Plan {
    let root = Root::open(&dir.join("w")).unwrap();
    let safe = |path: &str| SafePath::new(Path::new(path)).unwrap();
    let file = |bytes: &[u8], mode| Make::File {
        bytes: Bytes::Held(bytes.to_vec()),
        sha256: hash::of_bytes(bytes),
        len: bytes.len() as u64,
        mode,
    };
    let step = |path: &str, make| Step {
        expect: root.fingerprint(&safe(path)).unwrap().print,
        path: safe(path),
        make,
        source: None,
        turn: None,
    };
    let session = |name: &str, make| {
        let path = dir.join("agent").join(name);
        SessionStep {
            expect: SessionMark::read(&path).unwrap(),
            path,
            make,
        }
    };
    Plan {
        act: Act::Restore,
        root: root.path().to_path_buf(),
        point: Point {
            agent: "claude".into(),
            session: "s".into(),
            path: dir.join("agent/s.jsonl"),
            turn: 0,
            key: "k".into(),
            prompt: "p".into(),
        },
        scope: Scope::Both,
        steps: vec![
            step("a", file(b"before", Some(0o755))),
            step("b", file(b"before b", Some(0o444))),
            step("made/new", Make::Absent(vec![safe("made")])),
            step("lost/found", file(b"found", None)),
            step("m", Make::Mode(0o600)),
        ],
        session: vec![
            session("s.jsonl", SessionMake::Truncate { keep: 3 }),
            session("side", SessionMake::Write(Bytes::Held(b"other".to_vec()))),
        ],
        equal: vec![],
        conflicts: vec![],
        missing: vec![],
        outside: vec![],
        unsure: vec![],
        gaps: vec![],
    }
}

fn tree(dir: &Path) -> Tree {
    let mut all = Tree::new();
    let mut todo = vec![dir.join("w"), dir.join("agent")];
    while let Some(at) = todo.pop() {
        for entry in std::fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            let meta = std::fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() {
                todo.push(path.clone());
            }
            let bytes = meta.is_file().then(|| std::fs::read(&path).unwrap());
            let below = path.strip_prefix(dir).unwrap().to_path_buf();
            all.insert(below, (meta.permissions().mode() & 0o7777, bytes));
        }
    }
    all
}

fn run(dir: &Path, what: &str, at: &str) -> ExitStatus {
    Command::new(std::env::current_exe().unwrap())
        .args(["crash::child", "--exact", "--ignored", "--test-threads=1"])
        .env(DIR, dir)
        .env(AT, at)
        .env(DO, what)
        .output()
        .unwrap()
        .status
}

fn killed(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    status.signal() == Some(9)
}

fn assert_whole(dir: &Path, before: &Tree, after: &Tree, when: &str) {
    let now = tree(dir);
    assert!(now == *before || now == *after, "{when}: {:?}", now.keys());
    let saved = dir.join("state/roots");
    let filling = std::fs::read_dir(saved).into_iter().flatten().flatten();
    for root in filling {
        let names = std::fs::read_dir(root.path().join("saved")).unwrap();
        for name in names {
            let name = name.unwrap().file_name();
            assert!(
                !name.to_string_lossy().ends_with(".tmp"),
                "{when}: {}",
                name.display()
            );
        }
    }
}

#[test]
fn a_kill_at_any_point_leaves_all_old_or_all_new() {
    let done = filled();
    assert!(run(done.path(), "apply", "").success());
    let after = tree(done.path());
    let mode = |path: &str| after.get(Path::new(path)).unwrap().0;
    assert_eq!(
        [mode("w/a"), mode("w/b"), mode("w/lost/found")],
        [0o755, 0o444, 0o644]
    );
    assert_eq!([mode("w/lost"), mode("agent/s.jsonl")], [0o755, 0o600]);
    // Those of a recovery are reached by the other test, those of a prune by `prune`.
    let applies = |p: &&&str| !p.starts_with("recover") && !p.starts_with("prune");
    for point in POINTS.iter().filter(applies) {
        let mut reached = 0;
        for k in 1.. {
            let dir = filled();
            let before = tree(dir.path());
            let at = format!("{point}:{k}");
            if !killed(run(dir.path(), "apply", &at)) {
                break;
            }
            reached += 1;
            assert!(run(dir.path(), "recover", "").success(), "{at}");
            assert_whole(dir.path(), &before, &after, &at);
            take_back(dir.path(), &before, &after);
        }
        assert!(reached > 0, "{point} is never reached");
    }
}

/// After a recovery everything works as ever: undone where it is done, done where it is not.
fn take_back(dir: &Path, before: &Tree, after: &Tree) {
    if tree(dir) == *before {
        assert!(run(dir, "apply", "").success());
        assert_eq!(tree(dir), *after);
        return;
    }
    with_context(dir, &Real::new(), |ctx| {
        let target = ctx.journal.undo_target().unwrap().unwrap();
        let plan = plan_undo(ctx.journal, ctx.root, &target.id, How::default()).unwrap();
        apply(&plan, ctx).unwrap();
    });
    assert_eq!(tree(dir), *before);
}

#[test]
fn a_recovery_may_be_killed_at_any_point() {
    let done = filled();
    assert!(run(done.path(), "apply", "").success());
    let after = tree(done.path());
    for first in [
        "prepared",
        "staged",
        "committing",
        "placed-one:3",
        "session-placed",
    ] {
        for second in ["locked", "recovering", "placed-one", "recovered"] {
            let dir = filled();
            let before = tree(dir.path());
            assert!(killed(run(dir.path(), "apply", first)));
            let again = killed(run(dir.path(), "recover", second));
            assert!(again || !second.starts_with("recover"), "{first}, {second}");
            assert!(run(dir.path(), "recover", "").success());
            assert_whole(dir.path(), &before, &after, &format!("{first}, {second}"));
        }
    }
}
