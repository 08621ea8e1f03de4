//! How long it takes to put ten thousand files back, beside `cp -a` and `git restore`; and whether they are back.
//! `cargo bench --bench restore`; the variables stand in `CONTRIBUTING.md`.
//!
//! Each tool has a workspace of its own with the same files. Before each run they are overwritten with the agent's
//! version, not deleted and made again: some file systems make files slowly for minutes after many were deleted.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "its figures are what a bench is for")]

mod measure;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use measure::{Tool, binary, installed, number, race, report, wanted};
use sha2::{Digest, Sha256};

const ID: &str = "5d0c1b7e-30a1-4c52-9f6e-2b8a4d1e7f10";

fn main() {
    if !wanted() {
        return;
    }
    let files = number("REWIND_BENCH_FILES").unwrap_or(10_000);
    if let Some(folder) = std::env::var_os("REWIND_BENCH_DIR") {
        bench(&PathBuf::from(folder), files);
        return;
    }
    if let Some(ext4) = Ext4::mount() {
        bench(&ext4.at, files);
    } else {
        println!("ext4: skipped, a loop mount needs root and mkfs.ext4");
    }
    let memory = Path::new("/dev/shm");
    let temp = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    };
    bench(temp.unwrap().path(), files);
}

/// A journalled file system in a file, mounted; taken away at the end.
struct Ext4 {
    at: PathBuf,
    /// Holds the file and the place; removed after the mount is gone.
    _temp: tempfile::TempDir,
}

impl Ext4 {
    fn mount() -> Option<Self> {
        let temp = tempfile::tempdir().ok()?;
        let (image, at) = (temp.path().join("image"), temp.path().join("at"));
        fs::create_dir(&at).ok()?;
        fs::File::create(&image).ok()?.set_len(4 << 30).ok()?;
        quiet("mkfs.ext4", &[Path::new("-q"), Path::new("-F"), &image])?;
        quiet("mount", &[Path::new("-o"), Path::new("loop"), &image, &at])?;
        Some(Self { at, _temp: temp })
    }
}

impl Drop for Ext4 {
    fn drop(&mut self) {
        // A mount that stays is seen by its owner; there is nothing more to be done here.
        let _ = quiet("umount", &[&self.at]);
    }
}

fn quiet(program: &str, args: &[&Path]) -> Option<()> {
    let mut command = Command::new(program);
    command
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().ok()?.success().then_some(())
}

/// Path of a file below a workspace.
fn name(no: usize) -> String {
    format!("d{:03}/f{no:05}.txt", no / 100)
}

/// Four kilobytes of text, with one line that the agent changes.
fn content(no: usize, value: &str) -> String {
    let mut text = format!("file {no}\nvalue = {value}-{no}\n");
    while text.len() < 4000 {
        let at = text.len();
        // Writing to a string does not fail.
        let _ = writeln!(text, "line {at} of file {no} stays as it is");
    }
    text
}

fn fill(folder: &Path, files: usize, value: &str) {
    for no in 0..files {
        let path = folder.join(name(no));
        if no % 100 == 0 {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
        }
        fs::write(path, content(no, value)).unwrap();
    }
}

/// Writes the session whose only turn changed every file, and the agent's copies of the files before it.
fn compose(home: &Path, root: &Path, files: usize) -> PathBuf {
    let projects = home.join(".claude/projects/-bench");
    let history = home.join(".claude/file-history").join(ID);
    fs::create_dir_all(&projects).unwrap();
    fs::create_dir_all(&history).unwrap();
    let root = root.to_str().unwrap();
    let prompt = "aaaaaaaa-0000-4000-8000-000000000000";
    let head = format!(
        "\"isSidechain\":false,\"cwd\":\"{root}\",\"sessionId\":\"{ID}\",\"version\":\"2.1.332\""
    );
    let at = "\"timestamp\":\"2026-03-02T10:00:00.000Z\"";
    let mut text = format!(
        "{{\"parentUuid\":null,{head},\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"change all\"}},\
         \"uuid\":\"{prompt}\",{at}}}\n\
         {{\"type\":\"file-history-snapshot\",\"messageId\":\"{prompt}\",\"snapshot\":{{\"messageId\":\"{prompt}\",\
         \"trackedFileBackups\":{{}},{at}}},\"isSnapshotUpdate\":false}}\n"
    );
    let mut parent = prompt.to_owned();
    for no in 0..files {
        let (path, rel) = (format!("{root}/{}", name(no)), name(no));
        let hash: String =
            Sha256::digest(path.as_bytes())
                .iter()
                .take(8)
                .fold(String::new(), |mut s, b| {
                    let _ = write!(s, "{b:02x}");
                    s
                });
        fs::write(history.join(format!("{hash}@v1")), content(no, "old")).unwrap();
        let (call, result) = (
            format!("bbbbbbbb-0000-4000-8000-{no:012x}"),
            format!("cccccccc-0000-4000-8000-{no:012x}"),
        );
        let _ = write!(
            text,
            "{{\"parentUuid\":\"{parent}\",{head},\"message\":{{\"id\":\"m{no}\",\"role\":\"assistant\",\"content\":[{{\
             \"type\":\"tool_use\",\"id\":\"toolu_{no}\",\"name\":\"Edit\",\"input\":{{\"file_path\":\"{path}\",\
             \"old_string\":\"old-{no}\",\"new_string\":\"new-{no}\"}}}}]}},\"type\":\"assistant\",\"uuid\":\"{call}\",{at}}}\n\
             {{\"type\":\"file-history-delta\",\"messageId\":\"{call}\",\"snapshotMessageId\":\"{prompt}\",\
             \"trackingPath\":\"{rel}\",\"backup\":{{\"backupFileName\":\"{hash}@v1\",\"version\":1,\
             \"backupTime\":\"2026-03-02T10:00:01.000Z\"}},{at}}}\n\
             {{\"parentUuid\":\"{call}\",{head},\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":[{{\
             \"tool_use_id\":\"toolu_{no}\",\"type\":\"tool_result\",\"content\":\"done\"}}]}},\"uuid\":\"{result}\",{at},\
             \"toolUseResult\":{{\"filePath\":\"{path}\",\"oldString\":\"old-{no}\",\"newString\":\"new-{no}\",\
             \"originalFile\":null,\"structuredPatch\":[],\"userModified\":false,\"replaceAll\":false}}}}\n"
        );
        parent = result;
    }
    let session = projects.join(format!("{ID}.jsonl"));
    fs::write(&session, text).unwrap();
    session
}

fn bench(base: &Path, files: usize) {
    let base = base.canonicalize().unwrap();
    let [home, ours, git, copy, synced, before] =
        ["home", "ours", "git", "copy", "synced", "before"].map(|f| base.join(f));
    for folder in [&home, &ours, &git, &copy, &synced, &before] {
        fs::create_dir_all(folder).unwrap();
    }
    fill(&before, files, "old");
    let session = compose(&home, &ours, files);
    let rewind = PathBuf::from(binary());
    let (rewind, session) = (rewind.to_str().unwrap(), session.to_str().unwrap());
    let restore = [
        rewind, "restore", "0", "--scope", "code", "--yes", "-s", session,
    ];
    let from = format!("{}/.", before.display());
    let sync = format!("cp -a '{from}' . && sync -f .");
    let mut tools = vec![
        Tool::new("cp -a", &copy, &["cp", "-a", &from, "."]),
        Tool::new("cp -a, sync -f", &synced, &["sh", "-c", &sync]),
        Tool::new("rewind restore", &ours, &restore),
    ];
    if installed("git") {
        commit(&git, files, &home);
        tools.push(Tool::new("git restore", &git, &["git", "restore", "."]));
    }
    let times = race(&tools, |tool| {
        fill(&tool.folder, files, "new");
        let state = home.join("state");
        if state.exists() {
            fs::remove_dir_all(&state).unwrap();
        }
        // What the preparation left to be written is not the tool's to write.
        let _ = quiet("sync", &[Path::new("-f"), &base]);
        let ms = tool.time(&home);
        for no in 0..files {
            let back = fs::read(tool.folder.join(name(no))).unwrap();
            assert!(
                back == content(no, "old").as_bytes(),
                "{}: {} is not back",
                tool.name,
                name(no)
            );
        }
        ms
    });
    let bench = format!("restore {files} files");
    report(
        &bench,
        &base,
        &times,
        &["cp -a", "cp -a, sync -f", "git restore"],
    );
    fill(&ours, files, "new");
    let rewind = tools.iter().find(|t| t.name == "rewind restore");
    if let Some(kb) = rewind.and_then(|t| t.peak(&home)) {
        println!("peak memory of `rewind restore`: {kb} KB\n");
    }
}

fn commit(folder: &Path, files: usize, home: &Path) {
    fill(folder, files, "old");
    for args in [
        ["git", "init", "-q"].as_slice(),
        &["git", "add", "."],
        &[
            "git",
            "-c",
            "user.name=b",
            "-c",
            "user.email=b@example.org",
            "commit",
            "-qm",
            "before",
        ],
    ] {
        Tool::new("git", folder, args).output(home);
    }
}
