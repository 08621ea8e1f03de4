//! A world of its own for each test: home, state, workspace and nothing of the machine's; the program run in it; and
//! what lies on disk, exactly enough to see that a file was not even touched.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A temporary world.
pub(crate) struct TestEnv {
    /// Removed when the test ends.
    _temp: TempDir,
    base: PathBuf,
    vars: BTreeMap<String, String>,
}

/// How a run of the program ended, with the paths of the test's world replaced by `[WS]`, `[HOME]` and `[TMP]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// The exit code; a run that a signal ended has none, and that is never right.
    pub(crate) code: Option<i32>,
}

impl Run {
    /// The whole of it, for a snapshot.
    pub(crate) fn text(&self) -> String {
        let code = self
            .code
            .map_or("killed by a signal".to_owned(), |c| c.to_string());
        format!(
            "exit: {code}\n--- stdout\n{}--- stderr\n{}",
            self.stdout, self.stderr
        )
    }
}

impl TestEnv {
    /// A world with an empty home and an empty workspace.
    pub(crate) fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        // The program prints canonical paths; on some systems the temporary folder is reached by a link.
        let base = temp.path().canonicalize().unwrap();
        for folder in ["home", "state", "tmp", "ws"] {
            fs::create_dir(base.join(folder)).unwrap();
        }
        let mut env = Self {
            _temp: temp,
            vars: BTreeMap::new(),
            base,
        };
        let home = env.home().to_str().unwrap().to_owned();
        for (name, value) in [
            ("HOME", home.clone()),
            ("XDG_CONFIG_HOME", format!("{home}/.config")),
            ("XDG_DATA_HOME", format!("{home}/.local/share")),
            ("XDG_CACHE_HOME", format!("{home}/.cache")),
            ("XDG_STATE_HOME", format!("{home}/.local/state")),
            ("REWIND_STATE_DIR", env.state().to_str().unwrap().to_owned()),
            ("TMPDIR", env.base.join("tmp").to_str().unwrap().to_owned()),
            ("PATH", "/usr/bin:/bin".to_owned()),
            ("LC_ALL", "C.UTF-8".to_owned()),
            ("TZ", "UTC".to_owned()),
            ("COLUMNS", "100".to_owned()),
        ] {
            env.set(name, &value);
        }
        env
    }

    /// Sets a variable for the runs that follow.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.vars.insert(name.to_owned(), value.to_owned());
    }

    /// Says what time it is in the runs that follow, so that ages are the same in every run.
    pub(crate) fn at(&mut self, time: &str) {
        self.set("REWIND_NOW", time);
    }

    /// The user's home folder.
    pub(crate) fn home(&self) -> PathBuf {
        self.base.join("home")
    }

    /// The workspace folder; the program is run in it.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.base.join("ws")
    }

    /// The folder that the program keeps its journal in.
    pub(crate) fn state(&self) -> PathBuf {
        self.base.join("state")
    }

    /// Writes a file of the workspace, and the folders that it needs.
    pub(crate) fn write(&self, path: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.workspace().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Runs the program in the workspace.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Run {
        self.run_in(&self.workspace(), args)
    }

    /// Runs the program in another folder.
    pub(crate) fn run_in<S: AsRef<OsStr>>(&self, folder: &Path, args: &[S]) -> Run {
        self.end(self.command(args).current_dir(folder))
    }

    /// Runs the program at another time than the world's.
    pub(crate) fn run_at<S: AsRef<OsStr>>(&self, now: &str, args: &[S]) -> Run {
        self.end(self.command(args).env("REWIND_NOW", now))
    }

    /// Runs the program until a crash point (`fsx::crash`) kills it; without a code where it did.
    pub(crate) fn run_killed_at<S: AsRef<OsStr>>(&self, point: &str, args: &[S]) -> Run {
        self.end(self.command(args).env("REWIND_CRASH_AT", point))
    }

    /// Runs the program as a user whom permission bits stop: where the tests run as root, without root's power to pass
    /// over them. `None` where that cannot be had; a test skips then, and says so.
    pub(crate) fn run_powerless<S: AsRef<OsStr>>(&self, args: &[S]) -> Option<Run> {
        let probe = self.base.join("tmp/probe");
        fs::create_dir_all(&probe).unwrap();
        fs::set_permissions(&probe, fs::Permissions::from_mode(0o555)).unwrap();
        let plain = self.command(args);
        if fs::write(probe.join("x"), "").is_err() {
            return Some(self.end(&mut { plain }));
        }
        fs::remove_file(probe.join("x")).unwrap();
        let without = |program: &OsStr| {
            let mut command = Command::new("setpriv");
            command
                .arg("--bounding-set=-dac_override,-dac_read_search")
                .arg(program);
            command
                .env_clear()
                .envs(&self.vars)
                .current_dir(self.workspace());
            command
        };
        let touch = without(OsStr::new("touch")).arg(probe.join("x")).output();
        if touch.is_ok_and(|o| !o.status.success()) && !probe.join("x").exists() {
            return Some(self.end(without(plain.get_program()).args(args)));
        }
        // Nothing depends on the line being seen.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: permission bits stop nobody here"
        );
        None
    }

    fn end(&self, command: &mut Command) -> Run {
        let output = command.stdin(Stdio::null()).output().unwrap();
        let run = Run {
            stdout: self.clean(&output.stdout),
            stderr: self.clean(&output.stderr),
            code: output.status.code(),
        };
        crate::json_page::hold(&run.stdout);
        crate::json_page::hold(&run.stderr);
        run
    }

    /// The program with these arguments, for a test that drives it by itself.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("rewind"));
        command
            .args(args)
            .env_clear()
            .envs(&self.vars)
            .current_dir(self.workspace())
            .stdin(Stdio::null());
        command
    }

    /// A text with the paths of this world replaced, so that it is the same in every run.
    pub(crate) fn clean(&self, bytes: &[u8]) -> String {
        let base = self.base.to_str().unwrap();
        let text = String::from_utf8_lossy(bytes)
            .replace(&format!("{base}/ws"), "[WS]")
            .replace(&format!("{base}/home"), "[HOME]")
            .replace(&format!("{base}/state"), "[STATE]")
            .replace(base, "[TMP]")
            // Claude Code names a folder after the path of the workspace.
            .replace(
                &base.replace(|c: char| !c.is_ascii_alphanumeric(), "-"),
                "[TMP-]",
            )
            .split_inclusive('\n')
            .map(sizes)
            .collect::<String>();
        ids(text)
    }
}

/// The sizes of a session file depend on the length of the paths in it.
fn sizes(line: &str) -> String {
    let Some(at) = ["(the first ", "(behind its "]
        .iter()
        .find_map(|words| Some(line.find(words)? + words.len()))
    else {
        return line.to_owned();
    };
    let (head, tail) = line.split_at(at);
    let parts: Vec<&str> = tail.split(' ').collect();
    let number = |p: &str| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit());
    let clean = |p: &str| {
        let bare = p.trim_end_matches('\n');
        let shown = if number(bare) { "[N]" } else { bare };
        format!("{shown}{}", &p[bare.len()..])
    };
    let parts: Vec<String> = parts.into_iter().map(clean).collect();
    format!("{head}{}", parts.join(" "))
}

/// Ids of operations hold the number of a process: each becomes `[OP1]`, `[OP2]`, … in the order of the text.
fn ids(text: String) -> String {
    let between = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
    let mut ids: Vec<String> = Vec::new();
    for id in text.split(between).filter(|w| is_id(w)) {
        if !ids.iter().any(|known| known == id) {
            ids.push(id.to_owned());
        }
    }
    let numbered = ids.iter().enumerate();
    numbered.fold(text, |text, (at, id)| {
        text.replace(id.as_str(), &format!("[OP{}]", at + 1))
    })
}

/// `20260302T120000000Z-<process in hex>-0`.
fn is_id(word: &str) -> bool {
    let parts: Vec<&str> = word.split('-').collect();
    let [stamp, process, count] = parts[..] else {
        return false;
    };
    let digits = |p: &str| !p.is_empty() && p.bytes().all(|b| b.is_ascii_hexdigit());
    stamp.len() == 19 && stamp.ends_with('Z') && digits(process) && digits(count)
}

/// What stands at a path: all of it, or only what a copy would have too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Kind and permission bits.
    pub(crate) mode: u32,
    /// Bytes of a file, target of a link; empty for the rest.
    pub(crate) bytes: Vec<u8>,
    /// When it was written, to the nanosecond, and its inode; equal only where nobody touched it.
    pub(crate) touch: Option<(i64, i64, u64)>,
}

/// A whole folder: every path below it, links not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tree(pub(crate) BTreeMap<PathBuf, Entry>);

impl Tree {
    /// Reads a folder.
    pub(crate) fn of(folder: &Path) -> Self {
        let mut entries = BTreeMap::new();
        let mut folders = vec![folder.to_path_buf()];
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(&next).unwrap() {
                let path = entry.unwrap().path();
                let below = path.strip_prefix(folder).unwrap().to_path_buf();
                let meta = fs::symlink_metadata(&path).unwrap();
                entries.insert(below, Entry::of(&path, &meta));
                if meta.is_dir() {
                    folders.push(path);
                }
            }
        }
        Self(entries)
    }

    /// The tree without times and inodes: what a copy of it would have too.
    pub(crate) fn contents(&self) -> Self {
        let mut tree = self.clone();
        for entry in tree.0.values_mut() {
            entry.touch = None;
        }
        tree
    }

    /// The paths that the other tree does not have, or has otherwise; one line each.
    pub(crate) fn changes(&self, other: &Self) -> Vec<String> {
        let paths: std::collections::BTreeSet<_> = self.0.keys().chain(other.0.keys()).collect();
        paths
            .into_iter()
            .filter_map(|path| {
                let name = path.display();
                match (self.0.get(path), other.0.get(path)) {
                    (Some(a), Some(b)) if a == b => None,
                    (Some(a), Some(b)) if a.bytes != b.bytes => Some(format!("{name}: bytes")),
                    (Some(a), Some(b)) if a.mode != b.mode => Some(format!("{name}: mode")),
                    (Some(_), Some(_)) => Some(format!("{name}: touched")),
                    (Some(_), None) => Some(format!("{name}: gone")),
                    (None, _) => Some(format!("{name}: new")),
                }
            })
            .collect()
    }
}

impl Entry {
    fn of(path: &Path, meta: &fs::Metadata) -> Self {
        let link = || fs::read_link(path).unwrap().into_os_string();
        let bytes = if meta.is_file() {
            fs::read(path).unwrap()
        } else if meta.is_symlink() {
            link().into_encoded_bytes()
        } else {
            Vec::new()
        };
        // A folder's own time changes with what is in it, so only files and links say that they were touched.
        let touch = (!meta.is_dir()).then(|| (meta.mtime(), meta.mtime_nsec(), meta.ino()));
        Self {
            mode: meta.mode(),
            bytes,
            touch,
        }
    }
}

/// Copies all that is in a folder into another one; what was read-only may be written.
pub(crate) fn copy(from: &Path, to: &Path) {
    let mut folders = vec![from.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let target = to.join(folder.strip_prefix(from).unwrap());
        fs::create_dir_all(&target).unwrap();
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let path = target.join(entry.file_name());
            fs::copy(entry.path(), &path).unwrap();
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode | 0o200)).unwrap();
        }
    }
}

/// The folder of recorded sessions beside the project, where there is one. A test that needs it skips without it, and
/// says so past the test runner, so that a skip is seen.
pub(crate) fn shared() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    if folder.join("corpus").is_dir() {
        return Some(folder);
    }
    let who = std::thread::current();
    let who = who.name().unwrap_or("a test").to_owned();
    // Nothing depends on the line being seen.
    let _ = writeln!(
        std::io::stderr(),
        "skipped: {who}: no recorded sessions in ../shared"
    );
    None
}

#[test]
fn nothing_of_the_machine_reaches_the_program() {
    let env = TestEnv::new();
    let command = env.command(&["list"]);
    let set: Vec<_> = command.get_envs().map(|(name, _)| name).collect();
    assert!(set.contains(&OsStr::new("HOME")), "{set:?}");
    assert!(!set.contains(&OsStr::new("CARGO")), "{set:?}");
    assert!(set.iter().all(|n| !n.to_str().unwrap().contains("CLAUDE")));
}

#[test]
fn a_run_ends_with_an_exit_code_and_writes_nothing_into_the_workspace() {
    let env = TestEnv::new();
    env.write("src/a.rs", "fn main() {}\n");
    let before = Tree::of(&env.workspace());
    let run = env.run(&["--version"]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(before.changes(&Tree::of(&env.workspace())), [""; 0]);
    let elsewhere = env.run_in(&env.home(), &["--version"]);
    assert_eq!(elsewhere, run);
}

#[test]
fn output_is_the_same_in_every_world() {
    let env = TestEnv::new();
    let text = format!(
        "{} {} {}",
        env.write("a", "").display(),
        env.home().display(),
        env.state().display()
    );
    assert_eq!(env.clean(text.as_bytes()), "[WS]/a [HOME] [STATE]");
    let text = "undo 20260302T120000123Z-7f-0 of 20260302T110000123Z-5-0, 20260302T120000123Z-7f-0";
    assert_eq!(env.clean(text.as_bytes()), "undo [OP1] of [OP2], [OP1]");
    let text = "cut x9  (the first 12 bytes stay, 345 are kept)\n77 bytes";
    let want = "cut x9  (the first [N] bytes stay, [N] are kept)\n77 bytes";
    assert_eq!(env.clean(text.as_bytes()), want);
}

#[test]
fn a_tree_shows_every_change_and_no_other() {
    let env = TestEnv::new();
    let path = env.write("d/a", "one");
    env.write("d/b", "two");
    env.write("d/c", "three");
    env.write("d/e", "five");
    let before = Tree::of(&env.workspace());
    assert_eq!(before.changes(&Tree::of(&env.workspace())), [""; 0]);
    // The same bytes in a new file: a copy, not the file that was there.
    fs::write(env.workspace().join("t"), "one").unwrap();
    fs::rename(env.workspace().join("t"), &path).unwrap();
    fs::write(env.workspace().join("d/b"), "2").unwrap();
    fs::remove_file(env.workspace().join("d/c")).unwrap();
    std::os::unix::fs::symlink("/etc", env.workspace().join("d/d")).unwrap();
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(env.workspace().join("d/e"), mode).unwrap();
    let after = Tree::of(&env.workspace());
    assert_eq!(
        before.changes(&after),
        [
            "d/a: touched",
            "d/b: bytes",
            "d/c: gone",
            "d/d: new",
            "d/e: mode"
        ]
    );
    let contents = before.contents().changes(&after.contents());
    assert_eq!(
        contents,
        ["d/b: bytes", "d/c: gone", "d/d: new", "d/e: mode"]
    );
}

#[test]
fn the_recorded_sessions_are_used_where_they_are() {
    let Some(shared) = shared() else { return };
    assert!(shared.join("corpus/claude").is_dir());
}
