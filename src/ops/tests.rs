//! A small workspace with a session beside it, for the tests of what changes files: a plan that does one of everything,
//! and looks at all that may differ afterwards.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use chrono::{DateTime, Utc};

use super::apply::{Applied, Context, apply};
use super::journal::{Journal, Status, operation_id};
use super::plan::{Act, Bytes, Make, Plan, Point, SessionMake, SessionMark, SessionStep, Step};
use super::recover::{Recovered, recover};
use super::undo::{How, plan_redo, plan_undo};
use crate::error::Result;
use crate::fsx::tree::{Root, SafePath};
use crate::fsx::{Disk, Real, hash};
use crate::model::point::Scope;

/// Everything below a folder: kind or bytes, and mode.
pub(crate) type Tree = BTreeMap<PathBuf, (u32, Option<Vec<u8>>)>;

pub(crate) struct World {
    pub(crate) dir: tempfile::TempDir,
    _state: tempfile::TempDir,
    pub(crate) root: Root,
    pub(crate) journal: Journal,
    counter: AtomicU32,
}

/// A name that is no UTF-8.
pub(crate) const ODD: &[u8] = b"-rf \xff\n\"q\"";

/// In memory where that is to be had: nothing here depends on the file system, and syncs are many.
pub(crate) fn fast() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

impl World {
    pub(crate) fn new() -> Self {
        Self::in_folders(fast(), fast())
    }

    pub(crate) fn in_folders(dir: tempfile::TempDir, state: tempfile::TempDir) -> Self {
        std::fs::create_dir(dir.path().join("w")).unwrap();
        std::fs::create_dir(dir.path().join("agent")).unwrap();
        let root = Root::open(&dir.path().join("w")).unwrap();
        let journal = Journal::open(Some(&state.path().join("rewind")), &root).unwrap();
        Self {
            dir,
            _state: state,
            root,
            journal,
            counter: AtomicU32::new(0),
        }
    }

    /// One of everything that can be changed, and things that must not be.
    pub(crate) fn filled() -> Self {
        let w = Self::new();
        w.fill();
        w
    }

    pub(crate) fn fill(&self) {
        self.write("w/a", b"a by the agent\n", 0o644);
        self.write("w/sub/b", b"b by the agent", 0o755);
        self.write("w/gone/far/c", b"made by the agent", 0o600);
        self.write("w/e", b"same bytes", 0o644);
        self.write("w/untouched", b"mine", 0o640);
        let odd = Path::new("w").join(OsStr::from_bytes(ODD));
        self.write(odd, b"\xC4\xE3\r\n", 0o444);
        self.write(
            "agent/s.jsonl",
            b"{\"turn\":0}\n{\"turn\":1}\n{\"turn\":2}\n",
            0o600,
        );
        self.write("agent/index.json", b"{\"turns\":3}", 0o644);
        self.write("agent/cache", b"derived", 0o644);
        self.write("agent/log", b"x", 0o644);
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, bytes: &[u8], mode: u32) {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(below)
    }

    pub(crate) fn safe(path: impl AsRef<OsStr>) -> SafePath {
        SafePath::new(Path::new(&path)).unwrap()
    }

    pub(crate) fn file(bytes: &[u8], mode: Option<u32>) -> Make {
        Make::File {
            bytes: Bytes::Held(bytes.to_vec()),
            sha256: hash::of_bytes(bytes),
            len: bytes.len() as u64,
            mode,
        }
    }

    pub(crate) fn step(&self, path: impl AsRef<OsStr>, make: Make) -> Step {
        let path = Self::safe(path);
        Step {
            expect: self.root.fingerprint(&path).unwrap().print,
            path,
            make,
            source: None,
            turn: Some(1),
        }
    }

    pub(crate) fn session(&self, name: &str, make: SessionMake) -> SessionStep {
        let path = self.path("agent").join(name);
        SessionStep {
            expect: SessionMark::read(&path).unwrap(),
            path,
            make,
        }
    }

    pub(crate) fn plan(&self, steps: Vec<Step>, session: Vec<SessionStep>) -> Plan {
        Plan {
            act: Act::Restore,
            root: self.root.path().to_path_buf(),
            point: Point {
                agent: "claude".into(),
                session: "s".into(),
                path: self.path("agent/s.jsonl"),
                turn: 1,
                key: "k".into(),
                prompt: "do it".into(),
            },
            scope: Scope::Both,
            steps,
            session,
            equal: vec![],
            conflicts: vec![],
            missing: vec![],
            outside: vec![],
            unsure: vec![],
            gaps: vec![],
        }
    }

    pub(crate) fn full_plan(&self) -> Plan {
        let gone = vec![Self::safe("gone/far"), Self::safe("gone")];
        let steps = vec![
            self.step("a", Self::file(b"a before", None)),
            self.step("sub/b", Self::file(b"", Some(0o600))),
            self.step("gone/far/c", Make::Absent(gone)),
            self.step("new/deep/d", Self::file(b"was deleted", Some(0o751))),
            self.step("new/d2", Self::file(b"also", None)),
            self.step("e", Make::Mode(0o700)),
            self.step(OsStr::from_bytes(ODD), Self::file(b"\xff", None)),
        ];
        let session = vec![
            self.session("s.jsonl", SessionMake::Truncate { keep: 11 }),
            self.session(
                "index.json",
                SessionMake::Write(Bytes::Held(b"{}".to_vec())),
            ),
            self.session("cache", SessionMake::Absent),
            self.session("log", SessionMake::Extend(Bytes::Held(b"yz".to_vec()))),
            self.session("made", SessionMake::Write(Bytes::Held(b"new".to_vec()))),
        ];
        self.plan(steps, session)
    }

    pub(crate) fn tree(&self) -> Tree {
        tree(self.dir.path())
    }

    fn with_context<R>(&self, disk: &dyn Disk, act: impl FnOnce(&Context<'_>) -> R) -> R {
        let now = DateTime::<Utc>::UNIX_EPOCH;
        let counter = self.counter.fetch_add(1, Ordering::SeqCst);
        let id = operation_id(now, 1, counter);
        act(&Context {
            disk,
            journal: &self.journal,
            root: &self.root,
            now,
            id: &id,
            watch: crate::ops::apply::unwatched(),
        })
    }

    pub(crate) fn apply_on(&self, disk: &dyn Disk, plan: &Plan) -> Result<Applied> {
        self.with_context(disk, |ctx| apply(plan, ctx))
    }

    pub(crate) fn apply(&self, plan: &Plan) -> Result<Applied> {
        self.apply_on(&Real::new(), plan)
    }

    pub(crate) fn recover_on(&self, disk: &dyn Disk) -> Result<Option<Recovered>> {
        self.with_context(disk, recover)
    }

    pub(crate) fn recover(&self) -> Result<Option<Recovered>> {
        self.recover_on(&Real::new())
    }

    pub(crate) fn undo(&self) -> Result<Applied> {
        let target = self.journal.undo_target()?.unwrap();
        let plan = plan_undo(&self.journal, &self.root, &target.id, How::default())?;
        assert_eq!((&*plan.conflicts, &*plan.missing), (&[][..], &[][..]));
        self.apply(&plan)
    }

    pub(crate) fn redo(&self) -> Result<Applied> {
        let target = self.journal.redo_target()?.unwrap();
        let plan = plan_redo(&self.journal, &self.root, &target.id, How::default())?;
        assert_eq!((&*plan.conflicts, &*plan.missing), (&[][..], &[][..]));
        self.apply(&plan)
    }

    /// Nothing of ours is left anywhere but the journal of closed operations.
    pub(crate) fn assert_tidy(&self, when: &str) {
        for path in self.tree().keys() {
            let name = path.to_string_lossy();
            assert!(!name.contains(".rewind-"), "{when}: {name} is left");
        }
        let Ok(saved) = std::fs::read_dir(self.journal.folder().join("saved")) else {
            return;
        };
        let log = self.journal.log().unwrap();
        for entry in saved {
            let name = entry.unwrap().file_name();
            let op = log.find(name.to_str().unwrap());
            let done = op.is_some_and(|o| o.status == Status::Committed);
            assert!(done, "{when}: saved {} is left", name.display());
        }
        assert_eq!(log.open().count(), 0, "{when}: an operation is open");
    }
}

pub(crate) fn tree(dir: &Path) -> Tree {
    let mut all = Tree::new();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(at) = todo.pop() {
        let entries = match std::fs::read_dir(&at) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            other => other.unwrap(),
        };
        for entry in entries {
            let path = entry.unwrap().path();
            let meta = std::fs::symlink_metadata(&path).unwrap();
            let bytes = meta.is_file().then(|| std::fs::read(&path).unwrap());
            if meta.is_dir() {
                todo.push(path.clone());
            }
            let below = path.strip_prefix(dir).unwrap().to_path_buf();
            all.insert(below, (meta.permissions().mode() & 0o7777, bytes));
        }
    }
    all
}
