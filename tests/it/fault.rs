//! A disk that is really full.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on is to stop")]
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

use std::path::Path;
use std::process::Command;

use chrono::DateTime;
use rewind::error::Kind;
use rewind::fsx::tree::{Root, SafePath};
use rewind::fsx::{Real, hash};
use rewind::model::point::Scope;
use rewind::ops::apply::{Context, apply};
use rewind::ops::journal::Journal;
use rewind::ops::plan::{Act, Bytes, Make, Plan, Point, Step};

/// A file system of one megabyte, gone with this.
struct Small {
    dir: tempfile::TempDir,
}

impl Small {
    fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]);
        let done = command.arg(dir.path()).output();
        done.is_ok_and(|o| o.status.success())
            .then_some(Self { dir })
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        drop(Command::new("umount").arg(self.dir.path()).output());
    }
}

fn plan(root: &Root, names: &[&str], bytes: &[u8]) -> Plan {
    let step = |name: &&str| {
        let path = SafePath::new(Path::new(name)).unwrap();
        Step {
            expect: root.fingerprint(&path).unwrap().print,
            path,
            make: Make::File {
                bytes: Bytes::Held(bytes.to_vec()),
                sha256: hash::of_bytes(bytes),
                len: bytes.len() as u64,
                mode: None,
            },
            source: None,
            turn: None,
        }
    };
    Plan {
        act: Act::Restore,
        root: root.path().to_path_buf(),
        point: Point {
            agent: "codex".into(),
            session: "s".into(),
            path: "/s".into(),
            turn: 0,
            key: "k".into(),
            prompt: "p".into(),
        },
        scope: Scope::Code,
        steps: names.iter().map(step).collect(),
        session: vec![],
        equal: vec![],
        conflicts: vec![],
        missing: vec![],
        outside: vec![],
        unsure: vec![],
        gaps: vec![],
    }
}

/// Two files of 300 kB in one megabyte, to be replaced by as many: the second has no room. With the journal on the
/// same file system or on another.
#[test]
fn a_full_disk_changes_nothing() {
    for state_inside in [true, false] {
        let Some(small) = Small::mount() else {
            eprintln!("skipped: no file system can be mounted here");
            return;
        };
        let other = tempfile::tempdir().unwrap();
        let work = small.dir.path().join("w");
        std::fs::create_dir(&work).unwrap();
        for name in ["a", "b"] {
            std::fs::write(work.join(name), vec![b'o'; 300_000]).unwrap();
        }
        let root = Root::open(&work).unwrap();
        let outer = if state_inside { &small.dir } else { &other };
        let state = outer.path().join("state");
        let journal = Journal::open(Some(&state), &root).unwrap();
        let ctx = Context {
            disk: &Real::new(),
            journal: &journal,
            root: &root,
            now: DateTime::UNIX_EPOCH,
            id: "op",
            watch: rewind::ops::apply::unwatched(),
        };
        let e = apply(&plan(&root, &["a", "b"], &vec![b'n'; 300_000]), &ctx).unwrap_err();
        assert_eq!((e.kind, e.paths.len()), (Kind::Storage, 1));
        assert_eq!(e.changed, "nothing was changed");
        let names: Vec<_> = std::fs::read_dir(&work)
            .unwrap()
            .map(|n| n.unwrap().file_name())
            .collect();
        assert_eq!(names.len(), 2);
        for name in names {
            assert_eq!(std::fs::read(work.join(name)).unwrap(), vec![b'o'; 300_000]);
        }
        assert_eq!(
            std::fs::read_dir(journal.folder().join("saved"))
                .unwrap()
                .count(),
            0
        );
    }
}
