//! Checkpoints beside a session: the best source there is, whatever the agent. The layout is that of `design.md` §6.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::env::TestEnv;
use crate::story::{History, ID, Story, bytes};

/// A SHA-256, as blobs are named.
pub(crate) fn sha(bytes: &[u8]) -> String {
    use std::fmt::Write;
    Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut out, b| {
            write!(out, "{b:02x}").unwrap();
            out
        })
}

struct Sidecar(PathBuf);

impl Sidecar {
    fn beside(story: &Story<'_>) -> Self {
        let folder = story.path().with_extension("ckpt");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("index.json"), "{}").unwrap();
        Self(folder)
    }

    fn blob(&self, content: &[u8]) -> String {
        let name = sha(content);
        let folder = self.0.join("blobs").join(&name[..2]).join(&name[2..4]);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(&name), content).unwrap();
        name
    }

    fn turn(&self, no: u32, message: &str, prompt: &str, files: &Value) {
        let record = json!({"schemaVersion": 2, "turn": no, "time": "2026-03-02T10:00:00Z", "prompt": prompt,
            "messageId": message, "sessionId": ID, "files": files, "coverage": "complete", "coverageGaps": []});
        fs::write(self.0.join(format!("turn-{no}.json")), record.to_string()).unwrap();
    }
}

fn restore(env: &TestEnv, turn: &str) -> crate::env::Run {
    env.run(&["restore", turn, "--scope", "code", "--yes", "-s", ID])
}

#[test]
fn a_sidecar_knows_bytes_modes_and_files_that_the_transcript_does_not() {
    let env = TestEnv::new();
    let raw = b"\xff\xfe not text \x00\r\n".to_vec();
    env.write("data.bin", &raw);
    env.write("run.sh", "#!/bin/sh\n");
    let mut s = Story::with(&env, ID, History::Off);
    let key = s.prompt("change them");
    s.bash("./convert");
    s.save();
    let side = Sidecar::beside(&s);
    let name = side.blob(&raw);
    side.turn(0, &key, "change them", &json!([
        {"path": "data.bin", "content": null, "sha256": name, "blobRef": name, "mode": 0o600, "captureSource": "hook",
         "afterSha256": sha(b"converted"), "afterExisted": true, "afterMode": 0o644},
        {"path": "run.sh", "content": "#!/bin/sh\n", "sha256": sha(b"#!/bin/sh\n"), "mode": 0o755, "captureSource": "hook"},
        {"path": "made.txt", "content": null, "captureSource": "hook", "afterSha256": sha(b"made"), "afterExisted": true, "afterMode": 0o644},
    ]));
    env.write("data.bin", "converted");
    env.write("made.txt", "made");
    let run = restore(&env, "0");
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(bytes(&env, "data.bin").unwrap(), raw);
    assert_eq!(bytes(&env, "made.txt"), None);
    let mode = |p: &str| {
        fs::metadata(env.workspace().join(p))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!((mode("data.bin"), mode("run.sh")), (0o600, 0o755));
    assert_eq!(env.run(&["undo", "--yes"]).code, Some(0));
    assert_eq!(bytes(&env, "data.bin").unwrap(), b"converted");
    assert_eq!(mode("run.sh"), 0o644);
}

#[test]
fn a_blob_that_is_not_what_was_saved_is_never_written() {
    let env = TestEnv::new();
    env.write("a.txt", "new\n");
    let mut s = Story::with(&env, ID, History::Off);
    let key = s.prompt("change it");
    s.bash("sed -i s/old/new/ a.txt");
    s.save();
    let side = Sidecar::beside(&s);
    let name = side.blob(b"old\n");
    fs::write(
        side.0
            .join("blobs")
            .join(&name[..2])
            .join(&name[2..4])
            .join(&name),
        "bad\n",
    )
    .unwrap();
    side.turn(
        0,
        &key,
        "change it",
        &json!([{"path": "a.txt", "content": null, "sha256": name, "blobRef": name}]),
    );
    let run = restore(&env, "0");
    assert_eq!(run.code, Some(3), "{}", run.text());
    assert!(
        run.text()
            .contains("a.txt: the saved copy is not what was saved"),
        "{}",
        run.text()
    );
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"new\n");
}

#[test]
fn a_corrupt_checkpoint_loses_only_itself() {
    let env = TestEnv::new();
    env.write("a.txt", "one\n");
    env.write("b.txt", "one\n");
    let mut s = Story::with(&env, ID, History::Off);
    let first = s.prompt("first");
    s.bash("echo two > a.txt");
    let second = s.prompt("second");
    s.bash("echo two > b.txt");
    s.save();
    let side = Sidecar::beside(&s);
    let one = json!([{"path": "a.txt", "content": "one\n", "sha256": sha(b"one\n")}]);
    let two = json!([{"path": "b.txt", "content": "one\n", "sha256": sha(b"one\n")}]);
    side.turn(0, &first, "first", &one);
    side.turn(1, &second, "second", &two);
    env.write("a.txt", "two\n");
    env.write("b.txt", "two\n");
    fs::write(side.0.join("turn-0.json"), "{\"schemaVersion\":2,\"tur").unwrap();
    let run = restore(&env, "1");
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(bytes(&env, "b.txt").unwrap(), b"one\n");
    assert_eq!(env.run(&["undo", "--yes"]).code, Some(0));
    // Before turn 0 nothing is known for certain: the lost record may have held any path.
    let run = restore(&env, "0");
    assert_eq!(run.code, Some(3), "{}", run.text());
    assert_eq!(bytes(&env, "b.txt").unwrap(), b"two\n");
}

#[test]
fn a_checkpoint_of_one_of_several_turns_keeps_a_later_one_from_standing_in() {
    let env = TestEnv::new();
    env.write("a.txt", "now\n");
    env.write("b.txt", "now\n");
    let mut s = Story::with(&env, ID, History::Off);
    s.prompt("again");
    s.bash("echo > a.txt");
    s.prompt("again");
    s.bash("echo > a.txt");
    let third = s.prompt("third");
    s.bash("echo > a.txt");
    s.save();
    let side = Sidecar::beside(&s);
    let file = |path: &str, content: &str| json!({"path": path, "content": content, "sha256": sha(content.as_bytes())});
    // Hooks were off for one of the two turns; the record does not say for which.
    let record = json!({"schemaVersion": 2, "turn": 0, "prompt": "again", "files": [file("a.txt", "first\n")]});
    fs::write(side.0.join("turn-0.json"), record.to_string()).unwrap();
    let files = json!([file("a.txt", "third\n"), file("b.txt", "third\n")]);
    side.turn(2, &third, "third", &files);
    let run = restore(&env, "0");
    assert_eq!(run.code, Some(3), "{}", run.text());
    assert_eq!(
        bytes(&env, "a.txt").unwrap(),
        b"now\n",
        "a later turn's state is no substitute"
    );
    assert_eq!(bytes(&env, "b.txt").unwrap(), b"third\n");
    let run = restore(&env, "2");
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(bytes(&env, "a.txt").unwrap(), b"third\n");
}
