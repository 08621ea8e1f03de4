//! The optional git mode: the whole work tree as a commit that no branch holds, through an index file of our own, so that
//! HEAD, the user's index, stash, hooks and config stay as they are. Uses the `git` that the user has.
//!
//! ```text
//! refs/rewind/<session>/<turn>       a commit without parents: the work tree when the prompt was sent
//! refs/rewind/<session>/<turn>-end   the work tree when the turn ended, where the agent tells of that
//! <sidecar>/git-index                which files are known unchanged since the last of them
//! ```
//!
//! Contents are those on disk: no filter and no line end conversion is applied. Ignored files are left out; nested
//! repositories and submodules are named and not entered.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Settings of the user's that would change what is stored, run something, or take time.
const SETTINGS: [&str; 9] = [
    "core.fsync=none",
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.fsmonitor=false",
    "core.splitIndex=false",
    "core.hooksPath=/dev/null",
    "core.logAllRefUpdates=false",
    "gc.auto=0",
    "advice.addEmbeddedRepo=false",
];

/// Variables that point git elsewhere; an agent may itself be run by a git hook.
const VARIABLES: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
];

/// A work tree, and our index of it.
#[derive(Debug, Clone)]
pub struct WorkTree {
    top: PathBuf,
    index: PathBuf,
}

/// How long git may take, in steps of [`STEP`].
#[derive(Debug, Clone, Copy)]
pub struct Patience(pub u32);

/// How often it is looked whether git is done.
pub const STEP: Duration = Duration::from_millis(2);

/// One path that differs between two trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Relative to the top of the work tree.
    pub path: PathBuf,
    /// The side before.
    pub before: Entry,
    /// The side after; `None` for what stands on disk.
    pub after: Option<Entry>,
}

/// One side of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// The path did not exist.
    Absent,
    /// A file: its blob and its permission bits.
    File(String, u32),
    /// A link, a submodule.
    Other,
}

impl WorkTree {
    /// The work tree that a folder is in; `None` where there is none.
    #[must_use]
    pub fn around(folder: &Path, sidecar: &Path) -> Option<Self> {
        let top = folder.ancestors().find(|f| f.join(".git").exists())?;
        Some(Self::at(top.to_path_buf(), sidecar))
    }

    /// The work tree with this top.
    #[must_use]
    pub fn at(top: PathBuf, sidecar: &Path) -> Self {
        Self {
            top,
            index: sidecar.join("git-index"),
        }
    }

    /// Its top folder.
    #[must_use]
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// Stores the work tree as it is now; returns the commit. The index file's folder must exist.
    ///
    /// # Errors
    /// git is not there, does not know what is asked of it, or takes too long.
    pub fn snapshot(&self, title: &str, largest: u64, patience: Patience) -> io::Result<String> {
        let mut left = patience;
        self.update(largest, &mut left)?;
        let mut write = self.git();
        write.arg("write-tree");
        let tree = word(&wait(write, &[], &mut left)?)?;
        let mut commit = self.git();
        commit.args(["commit-tree", &tree, "-m", title]);
        for who in ["AUTHOR", "COMMITTER"] {
            commit.env(format!("GIT_{who}_NAME"), "rewind");
            commit.env(format!("GIT_{who}_EMAIL"), "rewind@localhost");
        }
        word(&wait(commit, &[], &mut left)?)
    }

    /// Brings our index up to what is on disk, some files at a time: what was done when the time is over stays done.
    fn update(&self, largest: u64, left: &mut Patience) -> io::Result<()> {
        let mut list = self.git();
        list.args(["ls-files", "-z", "-m", "-d", "-o", "--exclude-standard"]);
        let found = wait(list, &[], left)?;
        let mut paths: Vec<&[u8]> = found.split(|b| *b == 0).filter(|p| is_plain(p)).collect();
        // One that is deleted is modified too.
        paths.sort_unstable();
        paths.dedup();
        for some in paths.chunks(AT_ONCE) {
            let mut there: Vec<(&[u8], &str)> = Vec::new();
            let mut lines = Vec::new();
            for path in some {
                match self.mode(path, largest)? {
                    Found::Gone => {
                        lines.extend_from_slice(format!("0 {}\t", "0".repeat(40)).as_bytes());
                        lines.extend_from_slice(path);
                        lines.push(0);
                    }
                    Found::File(mode) => there.push((path, mode)),
                    Found::Other => {}
                }
            }
            // As it is on disk: attributes of the work tree would have it converted.
            let mut hash = self.git();
            hash.args(["hash-object", "-w", "--no-filters", "--stdin-paths"]);
            let asked: Vec<u8> = there
                .iter()
                .flat_map(|(p, _)| [p, &b"\n"[..]].concat())
                .collect();
            let ids = if there.is_empty() {
                Vec::new()
            } else {
                wait(hash, &asked, left)?
            };
            for ((path, mode), id) in there.iter().zip(ids.split(|b| *b == b'\n')) {
                lines.extend_from_slice(format!("{mode} {}\t", word(id)?).as_bytes());
                lines.extend_from_slice(path);
                lines.push(0);
            }
            let mut index = self.git();
            index.args(["update-index", "-z", "--index-info"]);
            wait(index, &lines, left)?;
        }
        let mut refresh = self.git();
        refresh.args(["update-index", "-q", "--refresh"]);
        // It fails where a file changes meanwhile; then that file is looked at again next time.
        match wait(refresh, &[], left) {
            Err(e) if e.kind() == io::ErrorKind::TimedOut => Err(e),
            _ => Ok(()),
        }
    }

    fn mode(&self, path: &[u8], largest: u64) -> io::Result<Found> {
        use std::os::unix::fs::PermissionsExt;
        let full = self.top.join(OsStr::from_bytes(path));
        match std::fs::symlink_metadata(full) {
            Ok(m) if m.is_file() && m.len() <= largest => {
                let runs = m.permissions().mode() & 0o100 != 0;
                Ok(Found::File(if runs { "100755" } else { "100644" }))
            }
            Ok(_) => Ok(Found::Other),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Found::Gone),
            Err(e) if e.kind() == io::ErrorKind::NotADirectory => Ok(Found::Gone),
            Err(e) => Err(e),
        }
    }

    /// Names a commit, so that git keeps it.
    ///
    /// # Errors
    /// git refuses.
    pub fn name(&self, session: &str, turn: &str, commit: &str) -> io::Result<()> {
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '_'
            }
        };
        let session: String = session.chars().map(plain).collect();
        let name = format!("refs/rewind/{session}/{turn}");
        let mut update = self.git();
        update.args(["update-ref", &name, commit]);
        wait(update, &[], &mut Patience(1000)).map(|_| ())
    }

    /// What differs between two commits.
    ///
    /// # Errors
    /// git refuses: a commit is gone.
    pub fn between(&self, before: &str, after: &str) -> io::Result<Vec<Change>> {
        let mut diff = self.git();
        diff.args([
            "diff-tree",
            "-r",
            "-z",
            "--no-renames",
            "--no-commit-id",
            before,
            after,
        ]);
        Ok(changes(&output(diff)?, true))
    }

    /// What differs between a commit and the work tree; nothing is written.
    ///
    /// # Errors
    /// git refuses: the commit or the index is gone.
    pub fn since(&self, before: &str) -> io::Result<Vec<Change>> {
        if !self.index.exists() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "our index is gone"));
        }
        let mut diff = self.git();
        diff.args(["diff-index", "-z", "--no-renames", before, "--"]);
        let mut all = changes(&output(diff)?, false);
        let mut others = self.git();
        others.args(["ls-files", "-o", "-z", "--exclude-standard"]);
        let new = output(others)?;
        for path in new
            .split(|b| *b == 0)
            .filter(|p| !p.is_empty() && !p.ends_with(b"/"))
        {
            all.push(Change {
                path: PathBuf::from(OsString::from_vec(path.to_vec())),
                before: Entry::Absent,
                after: None,
            });
        }
        Ok(all)
    }

    /// The bytes of blobs, in order; `None` for one that is gone or longer than `most`, and for those that would make more
    /// than `all` bytes together.
    ///
    /// # Errors
    /// git refuses.
    pub fn blobs(&self, ids: &[&str], most: u64, all: u64) -> io::Result<Vec<Option<Vec<u8>>>> {
        let mut cat = self.git();
        cat.args(["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = cat.spawn()?;
        let (Some(mut to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let mut from = io::BufReader::new(from);
        let mut out: Vec<Option<Vec<u8>>> = Vec::new();
        let mut left = all;
        // One at a time, so that neither side waits for the other.
        for id in ids {
            writeln!(to, "{id}")?;
            to.flush()?;
            let bytes = blob(&mut from, most.min(left))?;
            left -= bytes.as_ref().map_or(0, |b| b.len() as u64).min(left);
            out.push(bytes);
        }
        drop(to);
        child.wait()?;
        Ok(out)
    }

    fn git(&self) -> Command {
        let mut git = Command::new("git");
        git.arg("-C").arg(&self.top);
        for setting in SETTINGS {
            git.args(["-c", setting]);
        }
        for name in VARIABLES {
            git.env_remove(name);
        }
        git.env("GIT_INDEX_FILE", &self.index)
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        git
    }
}

/// One answer of `cat-file --batch`: `<id> blob <len>`, the bytes, a newline; or `<id> missing`.
fn blob(from: &mut impl io::BufRead, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    from.read_until(b'\n', &mut head)?;
    let head = String::from_utf8_lossy(&head).into_owned();
    let words: Vec<&str> = head.trim_end().split(' ').collect();
    let [_, _, len] = words.as_slice() else {
        return Ok(None);
    };
    let len: u64 = len.parse().map_err(|_| io::ErrorKind::InvalidData)?;
    if len > most {
        io::copy(&mut from.take(len + 1), &mut io::sink())?;
        return Ok(None);
    }
    let mut bytes = Vec::new();
    from.take(len).read_to_end(&mut bytes)?;
    io::copy(&mut from.take(1), &mut io::sink())?;
    Ok((bytes.len() as u64 == len).then_some(bytes))
}

/// So many files are hashed by one process.
const AT_ONCE: usize = 1000;

/// What stands at a path that our index has otherwise.
enum Found {
    Gone,
    File(&'static str),
    Other,
}

/// A path that can be asked for on a line of its own; a folder is a repository inside.
fn is_plain(path: &[u8]) -> bool {
    !path.is_empty() && !path.ends_with(b"/") && !path.starts_with(b"\"") && !path.contains(&b'\n')
}

/// Gives git its input and waits for its answer, but no longer than that.
fn wait(mut command: Command, input: &[u8], patience: &mut Patience) -> io::Result<Vec<u8>> {
    if !input.is_empty() {
        command.stdin(Stdio::piped());
    }
    let mut child = command.spawn()?;
    let (to, from, said) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        let fed = to.map(|mut to| scope.spawn(move || to.write_all(input)));
        let answer = scope.spawn(move || read(from));
        let words = scope.spawn(move || read(said));
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if patience.0 == 0 {
                end(&mut child);
                return Err(io::Error::new(io::ErrorKind::TimedOut, "git took too long"));
            }
            patience.0 -= 1;
            std::thread::sleep(STEP);
        };
        // What it did not read it did not want: its status tells.
        drop(fed.map(std::thread::ScopedJoinHandle::join));
        let answer = answer
            .join()
            .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
        let words = words.join().ok().and_then(Result::ok).unwrap_or_default();
        if status.success() {
            return answer;
        }
        Err(io::Error::other(first_line(&words)))
    })
}

fn read(from: Option<impl Read>) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    if let Some(mut from) = from {
        from.read_to_end(&mut out)?;
    }
    Ok(out)
}

fn first_line(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said).into_owned();
    said.lines().next().unwrap_or("git failed").to_owned()
}

/// Ends git in a way that lets it take its lock file along.
fn end(child: &mut Child) {
    if let Some(pid) = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw)
    {
        // One that has ended meanwhile needs no signal.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    for _ in 0..50 {
        if child.try_wait().is_ok_and(|s| s.is_some()) {
            return;
        }
        std::thread::sleep(STEP);
    }
    let _ = child.kill();
    let _ = child.wait();
}

fn output(mut command: Command) -> io::Result<Vec<u8>> {
    let out = command.output()?;
    if out.status.success() {
        return Ok(out.stdout);
    }
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    Err(io::Error::other(
        said.lines().next().unwrap_or("git failed").to_owned(),
    ))
}

fn word(bytes: &[u8]) -> io::Result<String> {
    let text = std::str::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData)?;
    let id = text.trim();
    let hex = !id.is_empty() && id.bytes().all(|b| b.is_ascii_hexdigit());
    hex.then(|| id.to_owned())
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// `:<mode> <mode> <id> <id> <status>` NUL `<path>` NUL, for each change.
fn changes(raw: &[u8], told: bool) -> Vec<Change> {
    let mut parts = raw.split(|b| *b == 0);
    let mut out = Vec::new();
    while let (Some(head), Some(path)) = (parts.next(), parts.next()) {
        let head = String::from_utf8_lossy(head).into_owned();
        let words: Vec<&str> = head.trim_start_matches(':').split(' ').collect();
        let [old_mode, new_mode, old, new, _] = words.as_slice() else {
            continue;
        };
        out.push(Change {
            path: PathBuf::from(OsStr::from_bytes(path)),
            before: entry(old_mode, old),
            after: told.then(|| entry(new_mode, new)),
        });
    }
    out
}

fn entry(mode: &str, id: &str) -> Entry {
    match mode {
        "000000" => Entry::Absent,
        "100644" => Entry::File(id.to_owned(), 0o644),
        "100755" => Entry::File(id.to_owned(), 0o755),
        _ => Entry::Other,
    }
}
