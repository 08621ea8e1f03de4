//! Tells a Claude Code session while the workspace changes with it, so that a test says what happened and not how it is
//! written down: `story.prompt("…")`, `story.edit(…)`, `story.bash(…)`, then `story.save()`. The records are those of
//! version 2.1.332 (`formats/claude-code.md`), composed here. What a person changes in between, a test writes itself.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::env::TestEnv;

/// The id that sessions have unless a test names another.
pub(crate) const ID: &str = "5e550000-0000-4000-8000-000000000001";

/// Whether the agent kept its own copies of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum History {
    Kept,
    /// Only the transcript tells what was there before.
    Off,
}

/// A session that is being told. A clone is the session as it was at that moment.
#[derive(Clone)]
pub(crate) struct Story<'e> {
    env: &'e TestEnv,
    /// The folder that the agent works in.
    root: PathBuf,
    id: String,
    history: History,
    lines: String,
    count: u32,
    last: Option<String>,
    prompt: String,
    /// Path → version of its newest backup, `None` when it did not exist, and the bytes of it.
    tracked: BTreeMap<String, (u32, Option<Vec<u8>>)>,
    /// Path → the newest version that was ever given to a copy.
    versions: BTreeMap<String, u32>,
}

impl<'e> Story<'e> {
    pub(crate) fn new(env: &'e TestEnv) -> Self {
        Self::with(env, ID, History::Kept)
    }

    pub(crate) fn with(env: &'e TestEnv, id: &str, history: History) -> Self {
        Self {
            env,
            root: env.workspace(),
            id: id.to_owned(),
            history,
            lines: String::new(),
            count: 0,
            last: None,
            prompt: String::new(),
            tracked: BTreeMap::new(),
            versions: BTreeMap::new(),
        }
    }

    /// The agent works in this folder below the workspace.
    pub(crate) fn below(mut self, folder: &str) -> Self {
        self.root = self.env.workspace().join(folder);
        self
    }

    /// The agent reads its session again, as it stood when the clone was made: what was told since is no part of it.
    /// Ids and copies are not used a second time.
    pub(crate) fn go_on_from(&mut self, then: &Self) {
        self.lines.clone_from(&then.lines);
        self.last.clone_from(&then.last);
        self.prompt.clone_from(&then.prompt);
        self.tracked.clone_from(&then.tracked);
    }

    /// The time that the next record is of.
    pub(crate) fn clock(&self) -> String {
        let second = self.count + 1;
        format!("2026-03-02T10:{:02}:{:02}.000Z", second / 60, second % 60)
    }

    /// A record of the conversation; returns its id.
    fn record(&mut self, kind: &str, message: &Value, more: &[(&str, Value)]) -> String {
        let now = self.clock();
        self.count += 1;
        let id = format!("{:08x}-0000-4000-8000-000000000000", self.count);
        let mut record = json!({
            "parentUuid": self.last, "isSidechain": false, "type": kind, "message": message, "uuid": id,
            "timestamp": now,
            "cwd": self.root, "sessionId": self.id, "version": "2.1.332",
        });
        for (name, value) in more {
            record[*name] = value.clone();
        }
        self.line(&record);
        self.last = Some(id.clone());
        id
    }

    /// A line as it is; a test may put in anything.
    pub(crate) fn line(&mut self, record: &Value) {
        writeln!(self.lines, "{record}").unwrap();
    }

    /// Starts a turn; returns its key.
    pub(crate) fn prompt(&mut self, text: &str) -> String {
        let message = json!({"role": "user", "content": text});
        let id = self.record("user", &message, &[]);
        self.prompt.clone_from(&id);
        if self.history == History::Kept {
            let map = self.base();
            self.line(&json!({
                "type": "file-history-snapshot", "messageId": id,
                "snapshot": {"messageId": id, "trackedFileBackups": map, "timestamp": "2026-03-02T10:00:00.000Z"},
                "isSnapshotUpdate": false,
            }));
        }
        id
    }

    /// The next prompt hangs below this record, as after the agent's own `/rewind`.
    pub(crate) fn rewind_to(&mut self, record: &str) {
        self.last = Some(record.to_owned());
    }

    /// The id of the newest record.
    pub(crate) fn tip(&self) -> String {
        self.last.clone().unwrap()
    }

    /// The map of a base snapshot: every tracked file is looked at again.
    fn base(&mut self) -> Value {
        let mut map = serde_json::Map::new();
        let paths: Vec<String> = self.tracked.keys().cloned().collect();
        for path in paths {
            let now = fs::read(self.full(&path)).ok();
            let (version, known) = self.tracked[&path].clone();
            let version = if known == now {
                version
            } else {
                self.next_version(&path)
            };
            self.tracked.insert(path.clone(), (version, now.clone()));
            let backup = self.backup(&path, version, now.as_deref());
            map.insert(path, backup);
        }
        Value::Object(map)
    }

    /// What a file holds now, as the agent reads it before an edit.
    pub(crate) fn now(&self, path: &str) -> String {
        fs::read_to_string(self.full(path)).unwrap()
    }

    fn next_version(&mut self, path: &str) -> u32 {
        let newest = self.versions.entry(path.to_owned()).or_default();
        *newest += 1;
        *newest
    }

    fn full(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// The folder of the agent's copies.
    pub(crate) fn copies(&self) -> PathBuf {
        self.env.home().join(".claude/file-history").join(&self.id)
    }

    /// The name of a copy.
    pub(crate) fn copy_name(&self, path: &str, version: u32) -> String {
        let full = self.full(path);
        let digest = Sha256::digest(full.as_os_str().as_encoded_bytes());
        let hex: String = digest.iter().take(8).fold(String::new(), |mut out, b| {
            write!(out, "{b:02x}").unwrap();
            out
        });
        format!("{hex}@v{version}")
    }

    fn backup(&self, path: &str, version: u32, bytes: Option<&[u8]>) -> Value {
        let name = bytes.map(|b| {
            let name = self.copy_name(path, version);
            fs::create_dir_all(self.copies()).unwrap();
            fs::write(self.copies().join(&name), b).unwrap();
            name
        });
        json!({"backupFileName": name, "version": version, "backupTime": format!("2026-03-02T10:00:{:02}.000Z", version % 60)})
    }

    /// Before an edit: the first touch ever of a path is kept.
    fn track(&mut self, path: &str) {
        if self.history == History::Off || self.tracked.contains_key(path) {
            return;
        }
        let now = fs::read(self.full(path)).ok();
        let version = self.next_version(path);
        let backup = self.backup(path, version, now.as_deref());
        self.tracked.insert(path.to_owned(), (version, now));
        let prompt = self.prompt.clone();
        self.line(&json!({
            "type": "file-history-delta", "messageId": "a", "snapshotMessageId": prompt,
            "trackingPath": path, "backup": backup, "timestamp": "2026-03-02T10:00:00.000Z",
        }));
    }

    fn call(&mut self, name: &str, input: &Value) -> String {
        let id = format!("toolu_{:04}", self.count);
        let block = json!([{"type": "tool_use", "id": id, "name": name, "input": input}]);
        self.record(
            "assistant",
            &json!({"role": "assistant", "content": block}),
            &[],
        );
        id
    }

    fn result(&mut self, call: &str, result: Value) {
        let block = json!([{"tool_use_id": call, "type": "tool_result", "content": "done"}]);
        let message = json!({"role": "user", "content": block});
        self.record("user", &message, &[("toolUseResult", result)]);
    }

    /// The agent writes a whole file.
    pub(crate) fn write(&mut self, path: &str, content: &str) {
        let full = self.full(path);
        let old = fs::read(&full).ok();
        let call = self.call("Write", &json!({"file_path": full, "content": content}));
        self.track(path);
        fs::create_dir_all(full.parent().unwrap()).unwrap();
        fs::write(&full, content).unwrap();
        let kind = if old.is_some() { "update" } else { "create" };
        let original = old.map(|b| String::from_utf8_lossy(&b).replace("\r\n", "\n"));
        let result = json!({"type": kind, "filePath": full, "content": content, "structuredPatch": [], "originalFile": original});
        self.result(&call, result);
    }

    /// The agent replaces a text that stands once; line ends of the file are kept, as the agent keeps them.
    pub(crate) fn edit(&mut self, path: &str, old: &str, new: &str) {
        let full = self.full(path);
        let before = fs::read(&full).unwrap();
        let call = self.call(
            "Edit",
            &json!({"file_path": full, "old_string": old, "new_string": new}),
        );
        self.track(path);
        let crlf = memmem(&before, b"\r\n");
        let raw = |t: &str| {
            if crlf {
                t.replace('\n', "\r\n")
            } else {
                t.to_owned()
            }
        };
        let after = swap(&before, raw(old).as_bytes(), raw(new).as_bytes());
        let mode = fs::metadata(&full).unwrap().permissions();
        fs::write(&full, after).unwrap();
        fs::set_permissions(&full, mode).unwrap();
        let original = String::from_utf8_lossy(&before).replace("\r\n", "\n");
        let result = json!({"filePath": full, "oldString": old, "newString": new, "originalFile": original,
            "structuredPatch": [], "userModified": false, "replaceAll": false});
        self.result(&call, result);
    }

    /// The agent writes over a file, and neither its copies nor its answer tell what was there.
    pub(crate) fn unknown_write(&mut self, path: &str, content: &str) {
        let full = self.full(path);
        let call = self.call("Write", &json!({"file_path": full, "content": content}));
        self.env.write(path, content);
        let result = json!({"type": "update", "filePath": full, "content": content, "structuredPatch": [], "originalFile": null});
        self.result(&call, result);
    }

    /// The agent tries an edit that fails.
    pub(crate) fn failed_edit(&mut self, path: &str) {
        let call = self.call(
            "Edit",
            &json!({"file_path": self.full(path), "old_string": "x", "new_string": "y"}),
        );
        self.result(&call, json!("Error: String to replace not found in file."));
    }

    /// The agent runs a shell command; what it does, the test does.
    pub(crate) fn bash(&mut self, command: &str) {
        let call = self.call("Bash", &json!({"command": command}));
        self.result(
            &call,
            json!({"stdout": "", "stderr": "", "interrupted": false}),
        );
    }

    /// The agent reads, without a change.
    pub(crate) fn read(&mut self, path: &str) {
        let call = self.call("Read", &json!({"file_path": self.full(path)}));
        self.result(
            &call,
            json!({"type": "text", "file": {"filePath": self.full(path), "content": "x"}}),
        );
    }

    /// The agent answers.
    pub(crate) fn answer(&mut self) {
        let message = json!({"role": "assistant", "content": [{"type": "text", "text": "Done."}]});
        self.record("assistant", &message, &[]);
    }

    /// The bytes of the session so far.
    pub(crate) fn text(&self) -> &str {
        &self.lines
    }

    /// Writes the session file; returns its path.
    pub(crate) fn save(&self) -> PathBuf {
        let path = self.path();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &self.lines).unwrap();
        path
    }

    /// Writes a checkpoint into the folder of our own sidecar, as it is.
    pub(crate) fn checkpoint(&self, turn: u32, record: impl AsRef<[u8]>) -> PathBuf {
        let folder = self.path().with_extension("ckpt");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("turn-{turn}.json"));
        fs::write(&path, record).unwrap();
        path
    }

    /// Where the session file lies.
    pub(crate) fn path(&self) -> PathBuf {
        let name: String = self
            .root
            .to_str()
            .unwrap()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        let folder = self.env.home().join(".claude/projects").join(name);
        folder.join(format!("{}.jsonl", self.id))
    }
}

fn memmem(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|w| w == text)
}

fn swap(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let at = bytes
        .windows(old.len())
        .position(|w| w == old)
        .expect("the text is there");
    [&bytes[..at], new, &bytes[at + old.len()..]].concat()
}

/// The bytes of a file of the workspace; `None` when it is not there.
pub(crate) fn bytes(env: &TestEnv, path: &str) -> Option<Vec<u8>> {
    match fs::read(env.workspace().join(Path::new(path))) {
        Ok(b) => Some(b),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
        Err(e) => panic!("{path}: {e}"),
    }
}

/// What time it is in [`shop`].
pub(crate) const NOW: &str = "2026-03-02T12:00:00Z";

/// The story that most tests of a command tell: three turns that edit, create and edit, and a shell command. Returns the
/// path of the session.
pub(crate) fn shop(env: &mut TestEnv) -> PathBuf {
    env.at(NOW);
    env.write("a.txt", "one\n");
    env.write("keep/notes.txt", "mine\n");
    let mut s = Story::new(env);
    s.prompt("two instead of one");
    s.edit("a.txt", "one", "two");
    s.answer();
    s.prompt("a new file");
    s.write("new/b.txt", "b\n");
    s.bash("make test");
    s.answer();
    s.prompt("three instead of two\nand say why");
    s.edit("a.txt", "two", "three");
    s.answer();
    let path = s.save();
    touch(&path, 3600);
    path
}

/// Sets the time of a file to so many seconds before [`NOW`].
pub(crate) fn touch(path: &Path, seconds: u64) {
    let now = chrono::DateTime::parse_from_rfc3339(NOW).unwrap();
    let now = u64::try_from(now.timestamp()).unwrap();
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(now - seconds);
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_modified(time).unwrap();
}
