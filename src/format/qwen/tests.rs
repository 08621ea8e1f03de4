//! The rules of the tree on composed lines, and the recorded sessions of the shared corpus.

use std::path::{Path, PathBuf};

use super::super::{Format, Head, Trouble, detect, lines};
use super::Qwen;
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::{Change, Content, GapKind, Payload, Reason, State};
use crate::model::session::Session;

struct Log(String);

impl Log {
    fn record(mut self, id: &str, parent: &str, kind: &str, rest: &str) -> Self {
        let parent = if parent.is_empty() {
            "null".to_owned()
        } else {
            format!("\"{parent}\"")
        };
        let line = format!(
            "{{\"uuid\":\"{id}\",\"parentUuid\":{parent},\"sessionId\":\"s\",\"timestamp\":\"2026-06-15T14:40:22.000Z\",\"type\":\"{kind}\",\"cwd\":\"/w\"{rest}}}\n"
        );
        self.0.push_str(&line);
        self
    }

    fn user(self, id: &str, parent: &str, text: &str) -> Self {
        self.record(
            id,
            parent,
            "user",
            &format!(",\"message\":{{\"role\":\"user\",\"parts\":[{{\"text\":\"{text}\"}}]}}"),
        )
    }

    fn answer(self, id: &str, parent: &str) -> Self {
        self.record(
            id,
            parent,
            "assistant",
            ",\"message\":{\"role\":\"model\",\"parts\":[{\"text\":\"ok\"}]}",
        )
    }

    /// A call and its result, which hangs below it as `<id>r`.
    fn call(self, id: &str, parent: &str, args: &str, said: &str, result: &str) -> Self {
        self.record(id, parent, "assistant", &format!(",\"message\":{{\"role\":\"model\",\"parts\":[{{\"functionCall\":{{\"id\":\"c{id}\",{args}}}}}]}}"))
            .record(&format!("{id}r"), id, "tool_result", &format!(",\"message\":{{\"role\":\"user\",\"parts\":[{{\"functionResponse\":{{\"id\":\"c{id}\",\"response\":{{\"output\":\"{said}\"}}}}}}]}},\"toolCallResult\":{{\"callId\":\"c{id}\",{result}}}"))
    }

    fn read(&self) -> (tempfile::TempDir, Session) {
        read_bytes(self.0.as_bytes())
    }
}

fn read_bytes(bytes: &[u8]) -> (tempfile::TempDir, Session) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    std::fs::write(&path, bytes).unwrap();
    let session = Qwen.read(&path, &Env::bare()).unwrap();
    (dir, session)
}

fn prompts(session: &Session) -> Vec<&str> {
    session.turns.iter().map(|t| t.prompt.as_str()).collect()
}

fn kept(session: &Session, turn: u32) -> Vec<u8> {
    let changes = Qwen.cut(session, turn, &Env::bare()).unwrap();
    let [FileChange::Truncate { path, keep, .. }] = changes.as_slice() else {
        panic!("{changes:?}");
    };
    let mut bytes = std::fs::read(path).unwrap();
    bytes.truncate(usize::try_from(*keep).unwrap());
    bytes
}

const EDIT: &str =
    "\"name\":\"edit\",\"args\":{\"file_path\":\"/w/a\",\"old_string\":\"x\",\"new_string\":\"y\"}";

#[test]
fn only_what_a_person_wrote_is_a_turn() {
    let (_dir, s) = Log(String::new())
        .user("a", "", "first")
        .answer("b", "a")
        .record(
            "c",
            "b",
            "user",
            ",\"subtype\":\"notification\",\"message\":{\"parts\":[{\"text\":\"x\"}]}",
        )
        .record(
            "d",
            "c",
            "user",
            ",\"provenance\":\"system\",\"message\":{\"parts\":[{\"text\":\"x\"}]}",
        )
        .record(
            "e",
            "d",
            "user",
            ",\"provenance\":\"real_user\",\"message\":{\"parts\":[{\"text\":\"/second\"}]}",
        )
        .read();
    assert_eq!(prompts(&s), ["first", "/second"]);
    assert_eq!(s.root.as_deref(), Some(Path::new("/w")));
    assert_eq!(prompts(&read_bytes(&kept(&s, 1)).1), ["first"]);
}

#[test]
fn a_native_rewind_leaves_the_kept_branch() {
    let (_dir, s) = Log(String::new())
        .user("a", "", "zero")
        .answer("b", "a")
        .user("c", "b", "dropped")
        .call("d", "c", EDIT, "The file: x", "\"status\":\"success\",\"resultDisplay\":{\"originalContent\":\"x\",\"newContent\":\"y\"}")
        .record("r", "b", "system", ",\"subtype\":\"rewind\",\"systemPayload\":{\"truncatedCount\":1}")
        .user("e", "r", "one")
        .read();
    assert_eq!(prompts(&s), ["zero", "one"]);
    assert_eq!(s.abandoned, 1);
    assert_eq!(Qwen.calls(&s, 0, &Env::bare()).unwrap().edits, []);
    assert_eq!(prompts(&read_bytes(&kept(&s, 1)).1), ["zero"]);
}

#[test]
fn a_cut_that_would_bring_an_abandoned_branch_back_is_refused() {
    let (_dir, s) = Log(String::new())
        .user("a", "", "zero")
        .answer("b", "a")
        .user("c", "b", "dropped")
        .answer("d", "c")
        .user("e", "b", "one")
        .read();
    assert_eq!(prompts(&s), ["zero", "one"]);
    assert!(matches!(
        Qwen.cut(&s, 1, &Env::bare()),
        Err(Trouble::Refused { .. })
    ));
}

#[test]
fn the_states_of_an_edit_are_told_apart_and_a_failed_one_is_none() {
    let shown = |s: &str| {
        format!(
            "\"status\":\"success\",\"resultDisplay\":{{\"fileDiff\":\"Index\\n@@ -1 +1 @@\\n-x\\n+y\\n\",\"newContent\":\"y\",{s}}}"
        )
    };
    let (_dir, s) = Log(String::new())
        .user("a", "", "zero")
        .call("b", "a", EDIT, "Successfully created and wrote to new file: x", &shown("\"originalContent\":\"\""))
        .call("c", "br", EDIT, "Successfully overwrote file: x", &shown("\"originalContent\":\"\""))
        .call("d", "cr", EDIT, "something else", &shown("\"originalContent\":\"\""))
        .call("e", "dr", EDIT, "The file: x", &shown("\"originalContent\":\"x\""))
        .call("f", "er", EDIT, "The file: x", &shown("\"originalContent\":\"x\",\"truncatedForSession\":true,\"originalContentTruncated\":true,\"newContentTruncated\":true,\"fileDiffTruncated\":false"))
        .call("g", "fr", EDIT, "no", "\"status\":\"error\",\"resultDisplay\":\"not found\"")
        .call("h", "gr", "\"name\":\"run_shell_command\",\"args\":{\"command\":\"make\"}", "", "\"status\":\"success\"")
        .read();
    let calls = Qwen.calls(&s, 0, &Env::bare()).unwrap();
    assert_eq!(calls.edits.len(), 5);
    assert_eq!(calls.edits[0].before, State::Absent);
    assert_eq!(held(&s, &calls.edits[1].before), "");
    assert_eq!(
        calls.edits[2].before,
        State::Unknown(Reason::MaybeOverwritten)
    );
    assert_eq!(held(&s, &calls.edits[3].before), "x");
    assert_eq!(calls.edits[4].before, State::Unknown(Reason::NotRecorded));
    assert_eq!(calls.edits[4].after, State::Unknown(Reason::NotRecorded));
    assert!(matches!(calls.edits[4].change, Change::AnyOf(_)));
    assert_eq!(
        (calls.gaps[0].kind, calls.gaps[0].detail.as_str()),
        (GapKind::Shell, "make")
    );
}

#[test]
fn cut_at_every_byte_never_panics_and_turns_only_grow_with_the_bytes() {
    let log = Log(String::new())
        .user("a", "", "zero")
        .call("b", "a", EDIT, "x", "\"status\":\"success\"")
        .user("c", "br", "one")
        .0;
    let mut last = 0;
    for n in 0..log.len() {
        let (_dir, s) = read_bytes(&log.as_bytes()[..n]);
        assert!(s.turns.len() >= last && s.turns.len() <= 2, "cut at {n}");
        last = s.turns.len();
        Qwen.calls(&s, 0, &Env::bare()).unwrap();
    }
}

#[test]
fn other_formats_are_not_taken_for_this_one() {
    let is = |bytes: &[u8]| {
        detect(
            &Head::of(Path::new("x.jsonl"), bytes.to_vec()),
            &Env::bare(),
        )
        .map(Format::agent)
    };
    assert_eq!(
        is(Log(String::new()).user("a", "", "x").0.as_bytes()),
        Some("qwen")
    );
    assert_eq!(is(b"{\"uuid\":\"u\",\"parentUuid\":null,\"sessionId\":\"a\",\"type\":\"user\",\"message\":{}}"), Some("claude"));
    assert_eq!(is(b""), None);
}

#[test]
fn a_session_is_live_only_while_the_recorded_process_is_the_one_that_runs() {
    let (dir, s) = Log(String::new()).user("a", "", "zero").read();
    let says = |start: &str, id: &str| {
        let text = format!(
            "{{\"pid\":{},\"procStart\":\"{start}\",\"sessionId\":\"{id}\"}}",
            std::process::id()
        );
        std::fs::write(dir.path().join("s.runtime.json"), text).unwrap();
        Qwen.live(&s, &Env::bare()).is_some()
    };
    let line = std::fs::read_to_string("/proc/self/stat").unwrap();
    let start = line
        .rsplit_once(')')
        .unwrap()
        .1
        .split_ascii_whitespace()
        .nth(19)
        .unwrap();
    assert!(says(start, "s") && !says("1", "s") && !says(start, "other"));
}

fn held(session: &Session, state: &State) -> String {
    match state {
        State::Held(content) => String::from_utf8(bytes(session, content)).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn bytes(session: &Session, content: &Content) -> Vec<u8> {
    let Payload::Token(span) = &content.payload else {
        panic!("{content:?}");
    };
    let token = lines::read_span(session.path(), span.start, span.end).unwrap();
    super::super::json::string(&token, super::super::json::Broken::Refuse)
        .unwrap()
        .into_owned()
}

#[test]
fn the_fixture_reads_as_its_readme_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/qwen/a1b20000-0000-4000-8000-000000000001.jsonl");
    let head = Head::read(&path).unwrap();
    assert_eq!(detect(&head, &Env::bare()).map(Format::agent), Some("qwen"));
    let s = Qwen.read(&path, &Env::bare()).unwrap();
    assert_eq!(prompts(&s), ["add a test", "rename it"]);
    assert_eq!((s.abandoned, s.turns[0].compacted), (1, false));
    let calls = Qwen.calls(&s, 0, &Env::bare()).unwrap();
    let turns: Vec<_> = calls.edits.iter().map(|e| e.turn).collect();
    assert_eq!(turns, [0, 0, 1]);
    assert_eq!(calls.edits[1].before, State::Absent);
    assert!(
        matches!(calls.edits[2].change, Change::AnyOf(_)),
        "cut text"
    );
    assert_eq!(calls.gaps.len(), 1);
}

const CASES: [&str; 4] = ["shop", "library", "shop-0.24.4", "library-0.24.4"];

fn corpus(case: &str) -> Option<(PathBuf, serde_json::Value, Session)> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../shared/corpus/qwen")
        .join(case);
    let Ok(truth) = std::fs::read(dir.join("truth.json")) else {
        // Not `eprintln`: only `ui` prints. The name of the test says what was skipped.
        return None;
    };
    let file = super::entries(&dir.join("home/.qwen/projects/-home-dev-shop/chats"))
        .into_iter()
        .next()?;
    let session = Qwen.read(&file, &Env::bare()).unwrap();
    Some((dir, serde_json::from_slice(&truth).unwrap(), session))
}

#[test]
fn the_recorded_prompts_are_the_turns() {
    for case in CASES {
        let Some((_, truth, session)) = corpus(case) else {
            return;
        };
        let want: Vec<_> = truth["prompts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p.as_str().unwrap())
            .collect();
        // The client puts a space before a word that begins with `@`, and records the prompt so.
        let got: Vec<_> = session
            .turns
            .iter()
            .map(|t| t.prompt.replace("\n @@", "\n@@"))
            .collect();
        assert_eq!(got, want, "{case}");
        assert_eq!(session.warnings.all(), [], "{case}");
        assert_eq!(session.abandoned, 0, "{case}");
    }
}

/// Each first touch that the record knows is the file as it was when the turn began; CRLF is not in the record.
#[test]
fn recorded_first_touches_are_the_true_text() {
    for case in CASES {
        let Some((dir, _, session)) = corpus(case) else {
            return;
        };
        let mut seen = std::collections::HashSet::new();
        for e in Qwen.calls(&session, 0, &Env::bare()).unwrap().edits {
            if !seen.insert((e.turn, e.path.path.clone())) {
                continue;
            }
            let rel = e.path.path.strip_prefix("/home/dev/shop").unwrap();
            let truth = std::fs::read(dir.join(format!("before/{}", e.turn)).join(rel)).ok();
            let truth = truth.map(|t| String::from_utf8(t).unwrap().replace("\r\n", "\n"));
            let got = match &e.before {
                State::Unknown(_) if rel.ends_with("big.csv") => continue,
                State::Absent => None,
                state => Some(held(&session, state)),
            };
            assert_eq!(got, truth, "{case} {} turn {}", rel.display(), e.turn);
        }
        assert!(seen.len() > 5);
    }
}

/// A home with a session of two turns that edit `/w/a`, and the copies that its history names.
fn with_history(backups: &str, copies: &[(&str, &str)]) -> (tempfile::TempDir, Session) {
    let log = Log(String::new())
        .user("a", "", "one")
        .call("b", "a", EDIT, "The file: a was edited", "\"status\":\"success\",\"resultDisplay\":{\"originalContent\":\"x\\n\",\"newContent\":\"y\\n\"}")
        .record("s", "br", "system", &format!(",\"subtype\":\"file_history_snapshot\",\"systemPayload\":{{\"snapshots\":[{backups}]}}"))
        .user("c", "s", "two")
        .call("d", "c", EDIT, "The file: a was edited", "\"status\":\"success\",\"resultDisplay\":{\"originalContent\":\"\",\"newContent\":\"\",\"truncatedForSession\":true}");
    let (first, second) = log.0.split_once("{\"uuid\":\"c\"").unwrap();
    let second = format!("{{\"uuid\":\"c\"{second}").replace("14:40:22", "14:41:00");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("projects/-w/chats/s.jsonl");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, format!("{first}{second}")).unwrap();
    for (name, bytes) in copies {
        let copy = dir.path().join("file-history/s").join(name);
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::write(copy, bytes).unwrap();
    }
    let session = Qwen.read(&path, &Env::bare()).unwrap();
    (dir, session)
}

/// The first 16 hex digits of the SHA-256 of `/w/a`.
const OF_A: &str = "2d00e6ed0f996284";

fn snapshot(no: u32, at: &str, name: &str, made: &str) -> String {
    format!(
        "{{\"promptId\":\"s########{no}\",\"timestamp\":\"2026-06-15T{at}.100Z\",\"trackedFileBackups\":{{\"a\":{{\"backupFileName\":{name},\"version\":1,\"backupTime\":\"2026-06-15T{made}.200Z\"}}}}}}"
    )
}

fn befores(session: &Session) -> Vec<State> {
    let calls = Qwen.calls(session, 0, &Env::bare()).unwrap();
    calls.edits.into_iter().map(|e| e.before).collect()
}

fn from_copy(state: &State) -> Option<String> {
    match state {
        State::Held(Content {
            payload: Payload::File(path),
            ..
        }) => Some(std::fs::read_to_string(path).unwrap()),
        _ => None,
    }
}

#[test]
fn a_copy_of_the_client_holds_what_the_transcript_cut_off() {
    let (v1, v2) = (format!("{OF_A}@v1"), format!("{OF_A}@v2"));
    let told = [
        snapshot(0, "14:40:22", &format!("\"{v1}\""), "14:40:22"),
        snapshot(1, "14:41:00", &format!("\"{v2}\""), "14:41:00"),
    ];
    let copies = [(v1.as_str(), "x\r\n"), (v2.as_str(), "all of it")];
    let (_dir, s) = with_history(&told.join(","), &copies);
    let states = befores(&s);
    assert_eq!(
        from_copy(&states[0]).as_deref(),
        Some("x\r\n"),
        "the same text, and its own bytes"
    );
    assert_eq!(from_copy(&states[1]).as_deref(), Some("all of it"));
    // What is read from a later turn on is the same.
    let later = Qwen.calls(&s, 1, &Env::bare()).unwrap();
    assert_eq!(later.edits[0].before, states[1]);
}

#[test]
fn a_copy_that_is_not_of_the_moment_is_not_taken() {
    let v1 = format!("{OF_A}@v1");
    let name = format!("\"{v1}\"");
    let transcript =
        |s: &State| matches!(s, State::Held(c) if matches!(c.payload, Payload::Token(_)));
    // Its text differs from the transcript's.
    let (_dir, s) = with_history(
        &snapshot(0, "14:40:22", &name, "14:40:22"),
        &[(&v1, "other\n")],
    );
    assert!(transcript(&befores(&s)[0]));
    // It was written over by a later copy of the same name.
    let two = [
        snapshot(0, "14:40:22", &name, "14:40:22"),
        snapshot(1, "14:41:00", &name, "14:41:00"),
    ];
    let (_dir, s) = with_history(&two.join(","), &[(&v1, "x\n")]);
    assert!(transcript(&befores(&s)[0]));
    assert_eq!(from_copy(&befores(&s)[1]).as_deref(), Some("x\n"));
    // It is gone, or of another path, or the client failed to make it.
    let odd = [
        (
            snapshot(1, "14:41:00", &name, "14:41:00"),
            "gone@v1",
            State::Unknown(Reason::CopyGone),
        ),
        (
            snapshot(1, "14:41:00", "\"../x@v1\"", "14:41:00"),
            "x",
            State::Unknown(Reason::CopyGone),
        ),
        (
            snapshot(1, "14:41:00", &name, "14:41:00").replace("\"version\":1", "\"failed\":true"),
            v1.as_str(),
            State::Unknown(Reason::NotRecorded),
        ),
    ];
    for (told, copy, want) in odd {
        let (_dir, s) = with_history(&told, &[(copy, "x\n")]);
        assert_eq!(befores(&s)[1], want, "{told}");
    }
    // Two snapshots claim one turn.
    let two = [
        snapshot(1, "14:41:00", &name, "14:41:00"),
        snapshot(2, "14:41:01", &name, "14:41:00"),
    ];
    let (_dir, s) = with_history(&two.join(","), &[(&v1, "x\n")]);
    assert_eq!(befores(&s)[1], State::Unknown(Reason::NotRecorded));
}
