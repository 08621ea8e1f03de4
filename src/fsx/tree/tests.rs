//! Paths that lie, and what stands where a file should be.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::*;
use crate::fsx::sys;
use crate::model::edit::RecordedPath;

struct World {
    dir: tempfile::TempDir,
    root: Root,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("w/sub/deep")).unwrap();
        std::fs::create_dir(dir.path().join("out")).unwrap();
        std::fs::write(dir.path().join("out/k"), "secret").unwrap();
        std::fs::write(dir.path().join("w/a"), "a").unwrap();
        symlink("../out", dir.path().join("w/link")).unwrap();
        symlink("sub", dir.path().join("w/inner")).unwrap();
        symlink("w", dir.path().join("alias")).unwrap();
        let root = Root::open(&dir.path().join("w")).unwrap();
        Self { dir, root }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(below)
    }

    fn resolve(&self, path: impl Into<PathBuf>) -> Result<PathBuf, Reason> {
        let path = RecordedPath::new(path);
        let safe = self.root.resolve(&path, None)?;
        Ok(safe.as_path().to_path_buf())
    }
}

#[test]
fn spellings_of_one_file_are_one_path() {
    let w = World::new();
    for spelled in [
        "a",
        "./a",
        "sub/../a",
        "sub/./../a",
        "sub/deep/../../a",
        "a/",
        "nosuch/../a",
    ] {
        assert_eq!(
            w.resolve(spelled).as_deref(),
            Ok(Path::new("a")),
            "{spelled}"
        );
    }
    for spelled in ["w/a", "alias/a", "out/../w/a", "alias/sub/../a"] {
        let absolute = w.path(spelled);
        assert_eq!(
            w.resolve(&absolute).as_deref(),
            Ok(Path::new("a")),
            "{spelled}"
        );
    }
}

#[test]
fn what_leads_out_is_refused() {
    let w = World::new();
    assert_eq!(w.resolve("../out/k"), Err(Reason::OutsideRoot));
    assert_eq!(w.resolve("/etc/passwd"), Err(Reason::OutsideRoot));
    assert_eq!(w.resolve(w.path("out/k")), Err(Reason::OutsideRoot));
    assert_eq!(w.resolve(w.path("w2/a")), Err(Reason::OutsideRoot));
    assert_eq!(w.resolve("link/k"), Err(Reason::NotAFile));
    assert_eq!(w.resolve("inner/x"), Err(Reason::NotAFile));
    assert_eq!(w.resolve("link/../a"), Err(Reason::NotAFile));
    assert_eq!(w.resolve("a/b"), Err(Reason::NotAFile));
    assert_eq!(w.resolve(w.path("w")), Err(Reason::NotAFile));
    assert_eq!(w.resolve("sub/.git/config"), Err(Reason::BadName));
    assert_eq!(w.resolve(OsStr::from_bytes(b"a\0b")), Err(Reason::BadName));
}

#[test]
fn a_link_at_the_end_is_seen_as_a_link() {
    let w = World::new();
    let safe = w.root.resolve(&RecordedPath::new("link"), None).unwrap();
    assert_eq!(
        w.root.fingerprint(&safe).unwrap().print.kind,
        FileKind::Link
    );
}

#[test]
fn recorded_paths_follow_a_moved_root() {
    let w = World::new();
    let old = Path::new("/nowhere/old");
    let at = |path: &str, base: Option<&str>| {
        let path = RecordedPath {
            path: path.into(),
            base: base.map(PathBuf::from),
        };
        let safe = w.root.resolve(&path, Some(old))?;
        Ok::<_, Reason>(safe.as_path().to_path_buf())
    };
    assert_eq!(at("/nowhere/old/src/b", None).unwrap(), Path::new("src/b"));
    assert_eq!(
        at("b", Some("/nowhere/old/sub")).unwrap(),
        Path::new("sub/b")
    );
    assert_eq!(at("b", Some("sub")).unwrap(), Path::new("sub/b"));
    assert_eq!(at("/nowhere/other/b", None), Err(Reason::OutsideRoot));
    let here = w.path("w/a");
    assert_eq!(at(here.to_str().unwrap(), None).unwrap(), Path::new("a"));
}

#[test]
fn a_path_below_the_live_root_is_not_rebased() {
    let w = World::new();
    let inner = w.path("w/sub");
    let path = RecordedPath::new(w.path("w/sub/deep/x"));
    let safe = w.root.resolve(&path, Some(&inner)).unwrap();
    assert_eq!(safe.as_path(), Path::new("sub/deep/x"));
}

#[test]
fn walking_by_steps_follows_no_link_either() {
    let w = World::new();
    assert!(sys::open_by_steps(w.root.fd(), Path::new("sub/deep")).is_ok());
    assert!(sys::open_by_steps(w.root.fd(), Path::new("link")).is_err());
    assert!(sys::open_by_steps(w.root.fd(), Path::new("inner/deep")).is_err());
    assert!(sys::open_by_steps(w.root.fd(), Path::new("../out")).is_err());
}

#[test]
fn looks_tell_kinds_apart_without_opening_them() {
    let w = World::new();
    let fifo = w.path("w/fifo");
    rustix::fs::mknodat(
        w.root.fd(),
        "fifo",
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    assert!(fifo.exists());
    let kind = |name: &str| {
        let safe = SafePath::new(Path::new(name)).unwrap();
        w.root.fingerprint(&safe).unwrap().print.kind
    };
    assert_eq!(kind("fifo"), FileKind::Other);
    assert_eq!(kind("sub"), FileKind::Dir);
    assert_eq!(kind("link"), FileKind::Link);
    assert_eq!(kind("a"), FileKind::File);
    assert_eq!(kind("none"), FileKind::Absent);
    assert_eq!(kind("no/such/folder"), FileKind::Absent);
}

#[test]
fn only_not_found_is_absence() {
    let w = World::new();
    let below_a_file = SafePath::new(Path::new("a/b")).unwrap();
    assert!(w.root.fingerprint(&below_a_file).is_err());
    let through_a_link = SafePath::new(Path::new("link/k")).unwrap();
    assert!(w.root.fingerprint(&through_a_link).is_err());
    assert!(w.root.read(&through_a_link).is_err());
}

#[test]
fn a_look_sees_bytes_mode_and_names() {
    use std::os::unix::fs::PermissionsExt;
    let w = World::new();
    let odd = w.path("w").join(OsStr::from_bytes(b"-rf \xff\n"));
    std::fs::write(&odd, b"\xC4\xE3\r\n").unwrap();
    std::fs::set_permissions(&odd, std::fs::Permissions::from_mode(0o751)).unwrap();
    std::fs::hard_link(&odd, w.path("w/twin")).unwrap();
    let safe = SafePath::new(Path::new(OsStr::from_bytes(b"-rf \xff\n"))).unwrap();
    let look = w.root.fingerprint(&safe).unwrap();
    let hash = crate::fsx::hash::of_bytes(b"\xC4\xE3\r\n");
    assert_eq!(look.print, Fingerprint::file(0o751, 4, &hash));
    assert_eq!(look.nlink, 2);
    assert_eq!(w.root.read(&safe).unwrap(), b"\xC4\xE3\r\n");
}

#[test]
fn more_folders_than_are_held_open_still_work() {
    let w = World::new();
    let folders = Folders::new(&w.root);
    for n in 0..450 {
        let name = format!("d{n}");
        std::fs::create_dir(w.path("w").join(&name)).unwrap();
        std::fs::write(w.path("w").join(&name).join("f"), &name).unwrap();
    }
    for n in 0..450 {
        let safe = SafePath::new(Path::new(&format!("d{n}/f"))).unwrap();
        assert_eq!(folders.look(&safe).unwrap().print.kind, FileKind::File);
        assert!(look_at(folders.of(&safe).unwrap().as_fd(), OsStr::new("f")).is_ok());
    }
}
