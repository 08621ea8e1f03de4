//! What disks, other processes and other things at a path do to a restore: all or nothing, and said so.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::{Path, PathBuf};

use rewind::env::Env;
use rewind::error::{Kind, Result};
use rewind::fsx::{Disk, Faulty, Real};
use rewind::model::point::{OnConflict, Scope, TurnName};
use rewind::ops::gather::Read;
use rewind::ops::journal::{self, Journal};
use rewind::ops::plan::Plan;
use rewind::ops::{Root, apply, cut, decide, discover};

use crate::env::{Run, TestEnv, Tree};
use crate::story::{Story, bytes};
use crate::wrap;

const RESTORE: [&str; 5] = ["restore", "0", "--scope", "both", "--yes"];

/// Ten files in five folders, all edited in one turn; a turn of talk before it.
fn ten(env: &TestEnv) -> Story<'_> {
    let mut s = Story::new(env);
    for n in 0..10 {
        env.write(&format!("d{}/f{n}", n / 2), format!("old {n}\n"));
    }
    s.prompt("change all");
    for n in 0..10 {
        s.edit(&format!("d{}/f{n}", n / 2), "old", "new");
    }
    s.save();
    s
}

#[track_caller]
fn nothing_happened(env: &TestEnv, run: &Run, (before, session): (&Tree, &[u8]), code: i32) {
    assert_eq!(run.code, Some(code), "{}", run.text());
    let text = &run.stderr;
    let said = text.contains("nothing was changed")
        || text.contains("everything that was changed was put back");
    assert!(said, "{}", run.text());
    let changes = before.changes(&Tree::of(&env.workspace()));
    // What was changed and put back may be told by its inode, never by its bytes.
    let real: Vec<_> = changes
        .iter()
        .filter(|c| !c.ends_with(": touched"))
        .collect();
    assert_eq!(real, [""; 0], "{}", run.text());
    let files = fs::read_dir(env.home().join(".claude/projects")).unwrap();
    let folder = files.map(|f| f.unwrap().path()).next().unwrap();
    let left = Tree::of(&folder);
    assert_eq!(left.0.len(), 1, "{left:?}");
    assert_eq!(left.0.values().next().unwrap().bytes, session);
}

#[test]
fn a_read_only_folder_among_ten_files_leaves_all_ten_as_they_were() {
    let env = TestEnv::new();
    let session = fs::read(ten(&env).path()).unwrap();
    let before = Tree::of(&env.workspace());
    let script = "mount --bind \"$WS/d2\" \"$WS/d2\"\nmount -o remount,bind,ro \"$WS/d2\"\ncd \"$WS\"\nexec \"$@\"";
    let Some(run) = wrap::in_mounts(&env, script, &RESTORE) else {
        return;
    };
    nothing_happened(&env, &run, (&before, &session), 9);
    assert!(run.stderr.contains("d2/f4"), "{}", run.text());
    let run = env.run(&["undo", "--yes"]);
    assert_eq!(run.code, Some(5), "nothing was done: {}", run.text());
    // And with the folder writable again it works.
    assert_eq!(env.run(&RESTORE).code, Some(0));
    assert_eq!(bytes(&env, "d2/f4").unwrap(), b"old 4\n");
}

#[test]
fn a_read_only_session_folder_leaves_code_and_conversation_as_they_were() {
    let env = TestEnv::new();
    let story = ten(&env);
    let session = fs::read(story.path()).unwrap();
    let before = Tree::of(&env.workspace());
    let folder = story.path().parent().unwrap().to_path_buf();
    let folder = folder.strip_prefix(env.home()).unwrap();
    let folder = format!("\"$WS/../home/{}\"", folder.display());
    let script =
        format!("mount --bind {folder} {folder}\nmount -o remount,bind,ro {folder}\nexec \"$@\"");
    let Some(run) = wrap::in_mounts(&env, &script, &RESTORE) else {
        return;
    };
    nothing_happened(&env, &run, (&before, &session), 9);
}

#[test]
fn a_full_disk_leaves_all_as_it_was() {
    let env = TestEnv::new();
    for n in 0..4 {
        env.write(&format!("f{n}"), vec![b'o'; 400 << 10]);
    }
    let mut s = Story::new(&env);
    s.prompt("shorten all");
    for n in 0..4 {
        s.write(&format!("f{n}"), "short\n");
    }
    let session = fs::read(s.save()).unwrap();
    let before = Tree::of(&env.workspace());
    // Room for two of the four old files.
    let script = "
        cp -a \"$WS\" \"$OUT\"
        mount -t tmpfs -o size=1m none \"$WS\"
        cp -a \"$OUT/.\" \"$WS/\"
        cd \"$WS\"
        code=0
        \"$@\" || code=$?
        rm -rf \"$OUT\"
        cp -a \"$WS\" \"$OUT\"
        exit $code";
    let Some(run) = wrap::in_mounts(&env, script, &RESTORE) else {
        return;
    };
    nothing_happened(&env, &run, (&before, &session), 9);
    let after = Tree::of(&env.home().join("out"));
    let changes = before.contents().changes(&after.contents());
    assert_eq!(changes, [""; 0], "{}", run.text());
}

#[test]
fn a_full_disk_for_the_journal_leaves_all_as_it_was() {
    let env = TestEnv::new();
    env.write("f", b"small\n");
    let mut s = Story::new(&env);
    s.prompt("fill it");
    s.write("f", &"n".repeat(2 << 20));
    let session = fs::read(s.save()).unwrap();
    let before = Tree::of(&env.workspace());
    let script = "mount -t tmpfs -o size=1m none \"$STATE\"\nexec \"$@\"";
    let Some(run) = wrap::in_mounts(&env, script, &RESTORE) else {
        return;
    };
    nothing_happened(&env, &run, (&before, &session), 9);
}

#[test]
fn what_is_no_plain_file_with_one_name_is_named_and_left_and_the_rest_goes_back() {
    let env = TestEnv::new();
    let odd = ["link", "fifo", "folder", "hard", "dev", "under/file"];
    for name in ["plain", "dangling"].into_iter().chain(odd) {
        env.write(name, "one\n");
    }
    let mut s = Story::new(&env);
    s.prompt("change all");
    for name in ["plain", "dangling"].into_iter().chain(odd) {
        s.edit(name, "one", "two");
    }
    s.write("made", "new\n");
    s.save();
    let at = |name: &str| env.workspace().join(name);
    let elsewhere = env.home().join("elsewhere");
    fs::rename(at("link"), &elsewhere).unwrap();
    symlink(&elsewhere, at("link")).unwrap();
    for name in ["fifo", "folder", "dangling", "dev", "made"] {
        fs::remove_file(at(name)).unwrap();
    }
    symlink("nowhere", at("dangling")).unwrap();
    symlink("/dev/zero", at("dev")).unwrap();
    let fifo = std::process::Command::new("mkfifo")
        .arg(at("fifo"))
        .status();
    assert!(fifo.unwrap().success());
    fs::create_dir(at("folder")).unwrap();
    env.write("folder/inside", "mine\n");
    fs::hard_link(at("hard"), at("other-name")).unwrap();
    fs::remove_dir_all(at("under")).unwrap();
    env.write("under", "a file now\n");
    env.write("made/inside", "mine\n");
    let before = Tree::of(&env.workspace());
    for how in ["fail", "overwrite", "beside"] {
        let run = env.run(&[
            "restore",
            "0",
            "--scope",
            "code",
            "--yes",
            "--on-conflict",
            how,
        ]);
        assert_eq!(run.code, Some(3), "{how}: {}", run.text());
        for name in odd.into_iter().chain(["dangling", "made"]) {
            assert!(run.text().contains(name), "{how}, {name}: {}", run.text());
        }
        assert_eq!(
            before.changes(&Tree::of(&env.workspace())),
            ["plain: bytes"],
            "{how}"
        );
    }
    assert_eq!(fs::read(&elsewhere).unwrap(), b"two\n");
    let kind = fs::symlink_metadata(at("fifo")).unwrap().file_type();
    assert!(kind.is_fifo());
}

/// The lock file of the workspace's journal.
pub(crate) fn lock_file(env: &TestEnv) -> PathBuf {
    let roots = fs::read_dir(env.state().join("roots")).unwrap();
    let folder = roots.map(|f| f.unwrap().path()).next().unwrap();
    folder.join("lock")
}

#[test]
fn of_two_rewinds_at_once_one_waits_for_its_turn_with_exit_7() {
    let env = TestEnv::new();
    let story = ten(&env);
    let session = fs::read(story.path()).unwrap();
    for args in [&RESTORE[..], &["undo", "--yes"]] {
        assert_eq!(env.run(args).code, Some(0));
    }
    let before = Tree::of(&env.workspace());
    // The lock is the kernel's: whoever holds it, it is another process for the program.
    let held = fs::File::options()
        .append(true)
        .open(lock_file(&env))
        .unwrap();
    held.lock().unwrap();
    for args in [&RESTORE[..], &["redo", "--yes"]] {
        let run = env.run(args);
        nothing_happened(&env, &run, (&before, &session), 7);
        assert!(run.stderr.contains("another rewind"), "{}", run.text());
    }
    // Who only reads need not wait.
    for args in [&["list"][..], &["show", "0"], &["log"]] {
        assert_eq!(env.run(args).code, Some(0), "{args:?}");
    }
    drop(held);
    // A program that another test is just starting may hold a copy of it for a moment more.
    assert!((0..100).any(|_| env.run(&RESTORE).code == Some(0)));
}

#[test]
fn of_two_rewinds_that_start_together_each_is_done_or_busy() {
    let env = TestEnv::new();
    ten(&env);
    let children: Vec<_> = (0..4)
        .map(|_| {
            let mut command = env.command(&["restore", "0", "--scope", "code", "--yes"]);
            command.stdout(std::process::Stdio::null());
            command.stderr(std::process::Stdio::null());
            command.spawn().unwrap()
        })
        .collect();
    let codes: Vec<_> = children
        .into_iter()
        .map(|mut c| c.wait().unwrap().code().unwrap())
        .collect();
    // A late one finds the files back already, or changed since it planned; one that looked while another was at work
    // sees files with two names, and says that it left them.
    assert!(codes.iter().all(|c| [0, 3, 4, 7].contains(c)), "{codes:?}");
    assert!(codes.contains(&0), "{codes:?}");
    for n in 0..10 {
        let file = format!("d{}/f{n}", n / 2);
        assert_eq!(bytes(&env, &file).unwrap(), format!("old {n}\n").as_bytes());
    }
    let run = env.run(&["undo", "--yes"]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(bytes(&env, "d0/f0").unwrap(), b"new 0\n");
}

/// A restore that is planned and not yet done, as between the preview and the `y` of a person.
struct Planned {
    root: Root,
    journal: Journal,
    plan: Plan,
    env: Env,
}

fn planned(world: &TestEnv, session: &Path) -> Planned {
    let env = Env {
        home: Some(world.home()),
        cwd: world.workspace(),
        state: Some(world.state()),
        config: None,
        vars: std::collections::BTreeMap::new(),
        ..Env::of_process().unwrap()
    };
    let found = discover::pick(&env, session.to_str(), None).unwrap();
    let read = Read::new(&found, &env).unwrap();
    let root = read.root_to_change(&env, None).unwrap();
    let point = read.point(read.turn(&TurnName::Number(0)).unwrap());
    let timeline = read.timeline(&root, 0, &env).unwrap();
    let only = decide::Only::default();
    let mut plan = decide::restore(
        &root,
        &read.session,
        point,
        Scope::Both,
        timeline,
        &only,
        OnConflict::Fail,
    );
    plan.session = cut::steps(read.format.cut(&read.session, 0, &env).unwrap()).unwrap();
    let journal = Journal::open(env.state.as_deref(), &root).unwrap();
    Planned {
        root,
        journal,
        plan,
        env,
    }
}

impl Planned {
    /// Does it on a new disk of that kind. The other tests of this process start programs, and one that was forked and
    /// is not yet the program holds every lock of this process for that moment: so not the first "busy" counts.
    fn apply<D: Disk>(&self, nth: u32, disk: impl Fn() -> D) -> Result<apply::Applied> {
        let id = journal::operation_id(self.env.now, self.env.pid, nth);
        for _ in 0..100_000 {
            let disk = disk();
            let ctx = apply::Context {
                disk: &disk,
                journal: &self.journal,
                root: &self.root,
                now: self.env.now,
                id: &id,
                watch: rewind::ops::apply::unwatched(),
            };
            match apply::apply(&self.plan, &ctx) {
                Err(e) if e.message.starts_with("another rewind") => std::thread::yield_now(),
                other => return other,
            }
        }
        panic!("the lock is never free");
    }
}

#[test]
fn a_session_that_grows_between_plan_and_apply_is_busy() {
    let env = TestEnv::new();
    let path = ten(&env).path();
    let planned = planned(&env, &path);
    let before = Tree::of(&env.workspace());
    let mut session = fs::read(&path).unwrap();
    session.extend(b"{\"type\":\"summary\",\"summary\":\"more\",\"leafUuid\":\"x\"}\n");
    fs::write(&path, &session).unwrap();
    let error = planned.apply(0, Real::new).unwrap_err();
    assert_eq!(error.kind, Kind::Busy, "{error:?}");
    assert_eq!(error.changed, "nothing was changed");
    assert_eq!(error.paths[0].0, path);
    assert_eq!(before.changes(&Tree::of(&env.workspace())), [""; 0]);
    assert_eq!(fs::read(&path).unwrap(), session);
}

#[test]
fn what_changes_between_plan_and_apply_makes_the_plan_stale() {
    let env = TestEnv::new();
    let path = ten(&env).path();
    let planned = planned(&env, &path);
    let session = fs::read(&path).unwrap();
    env.write("d3/f7", "mine\n");
    let before = Tree::of(&env.workspace());
    let error = planned.apply(0, Real::new).unwrap_err();
    assert_eq!(error.kind, Kind::Conflict, "{error:?}");
    assert_eq!(error.changed, "nothing was changed");
    assert!(error.paths.iter().any(|(p, _)| p.ends_with("d3/f7")));
    assert_eq!(before.changes(&Tree::of(&env.workspace())), [""; 0]);
    assert_eq!(fs::read(&path).unwrap(), session);
    // The same for the session: as long as before, and not the same.
    env.write("d3/f7", "new 7\n");
    let mut other = session.clone();
    let last = other.len() - 3;
    other[last] ^= 1;
    fs::write(&path, &other).unwrap();
    let error = planned.apply(0, Real::new).unwrap_err();
    assert_eq!(error.kind, Kind::Conflict, "{error:?}");
    assert_eq!(fs::read(&path).unwrap(), other);
}

/// The disk is full at each single change of a whole restore: nothing is left half done, and what is said is so.
#[test]
fn a_disk_that_fills_up_at_any_moment_leaves_all_as_it_was() {
    const NO_SPACE: i32 = 28;
    let env = TestEnv::new();
    env.write("a", "one\n");
    let mut s = Story::new(&env);
    s.prompt("change and make");
    s.edit("a", "one", "two");
    s.write("made/b", "new\n");
    let path = s.save();
    let session = fs::read(&path).unwrap();
    let before = Tree::of(&env.workspace()).contents();
    let planned = planned(&env, &path);
    for nth in 1..500 {
        let disk = || Faulty::once(nth as usize, NO_SPACE);
        let Err(error) = planned.apply(nth, disk) else {
            assert!(nth > 20, "only {nth} changes");
            assert_eq!(bytes(&env, "a").unwrap(), b"one\n");
            return;
        };
        assert_eq!(error.kind, Kind::Storage, "{nth}: {error:?}");
        let now = Tree::of(&env.workspace()).contents();
        assert_eq!(before.changes(&now), [""; 0], "{nth}: {error:?}");
        assert_eq!(fs::read(&path).unwrap(), session, "{nth}: {error:?}");
        let beside = Tree::of(path.parent().unwrap());
        assert_eq!(beside.0.len(), 1, "{nth}: {error:?} {beside:?}");
    }
    panic!("a restore of two files makes more than 500 changes");
}
