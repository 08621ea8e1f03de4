//! The rules of the log on composed lines, and the recorded sessions of the shared corpus.

use std::path::{Path, PathBuf};

use super::super::{Format, Head, Trouble, detect, lines};
use super::Gemini;
use crate::env::Env;
use crate::model::cut::FileChange;
use crate::model::edit::{Content, GapKind, Payload, Reason, State};
use crate::model::session::{Oddity, Session};

const ID: &str = "5b0c0000-0000-4000-8000-000000000001";

/// A log, line by line.
#[derive(Clone)]
struct Log(String, u32);

impl Log {
    fn new() -> Self {
        Self(String::new(), 0).header().raw(
            "{\"$set\":{\"messages\":[{\"id\":\"c\",\"type\":\"user\",\"content\":[{\"text\":\"<session_context>\\n- **Workspace Directories:**\\n  - /w\\n\"}]}]}}",
        )
    }

    fn raw(mut self, line: &str) -> Self {
        self.0.push_str(line);
        self.0.push('\n');
        self
    }

    fn header(self) -> Self {
        // The hash is that of `/w`.
        let hash = super::place::hash_of(Path::new("/w"));
        self.raw(&format!("{{\"sessionId\":\"{ID}\",\"projectHash\":\"{hash}\",\"startTime\":\"2026-06-01T09:00:00.000Z\",\"lastUpdated\":\"2026-06-01T09:00:00.000Z\",\"kind\":\"main\"}}"))
    }

    fn message(mut self, id: &str, kind: &str, content: &str, more: &str) -> Self {
        self.1 += 1;
        let second = self.1;
        self.raw(&format!("{{\"id\":\"{id}\",\"timestamp\":\"2026-06-01T09:00:{second:02}.000Z\",\"type\":\"{kind}\",\"content\":{content}{more}}}"))
            .raw(&format!("{{\"$set\":{{\"lastUpdated\":\"2026-06-01T09:00:{second:02}.000Z\"}}}}"))
    }

    fn user(self, id: &str, text: &str) -> Self {
        let text = serde_json::to_string(text).unwrap();
        self.message(id, "user", &format!("[{{\"text\":{text}}}]"), "")
    }

    fn answer(self, id: &str) -> Self {
        self.message(id, "gemini", "\"ok\"", "")
    }

    fn calls(self, id: &str, calls: &str) -> Self {
        self.message(id, "gemini", "\"\"", &format!(",\"toolCalls\":[{calls}]"))
    }

    /// The list of messages, under their ids.
    fn set(self, ids: &[&str]) -> Self {
        let list: Vec<String> = ids
            .iter()
            .map(|id| format!("{{\"id\":\"{id}\",\"type\":\"user\",\"content\":[{{\"text\":\"said before\"}}]}}"))
            .collect();
        self.raw(&format!(
            "{{\"$set\":{{\"messages\":[{}]}}}}",
            list.join(",")
        ))
    }

    fn read(&self) -> (tempfile::TempDir, Session) {
        read_bytes(self.0.as_bytes())
    }
}

fn read_bytes(bytes: &[u8]) -> (tempfile::TempDir, Session) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("session-2026-06-01T09-00-5b0c0000.jsonl");
    std::fs::write(&path, bytes).unwrap();
    let session = Gemini.read(&path, &Env::bare()).unwrap();
    (dir, session)
}

fn prompts(session: &Session) -> Vec<&str> {
    session.turns.iter().map(|t| t.prompt.as_str()).collect()
}

/// What is left of the session's own file by a cut.
fn kept(session: &Session, turn: u32) -> Vec<u8> {
    let changes = Gemini.cut(session, turn, &Env::bare()).unwrap();
    let [FileChange::Truncate { path, keep, .. }] = changes.as_slice() else {
        panic!("{changes:?}");
    };
    let mut bytes = std::fs::read(path).unwrap();
    bytes.truncate(usize::try_from(*keep).unwrap());
    bytes
}

fn refused(session: &Session, turn: u32) -> bool {
    matches!(
        Gemini.cut(session, turn, &Env::bare()),
        Err(Trouble::Refused { .. } | Trouble::ForkInstead { .. })
    )
}

/// A call of `write_file` or `replace` that went well.
fn edit(id: &str, path: &str, shown: &str) -> String {
    format!(
        "{{\"id\":\"{id}\",\"name\":\"write_file\",\"args\":{{\"file_path\":\"{path}\",\"content\":\"new\"}},\"status\":\"success\",\"timestamp\":\"2026-06-01T09:00:30.000Z\",\"resultDisplay\":{{\"fileDiff\":\"d\",\"filePath\":\"{path}\"{shown}}}}}"
    )
}

#[test]
fn only_what_a_person_wrote_is_a_turn() {
    let (_dir, s) = Log::new()
        .user("a", "first")
        .answer("b")
        .message(
            "c1",
            "user",
            "[{\"functionResponse\":{\"id\":\"t\",\"response\":{}}}]",
            "",
        )
        .message("d", "info", "\"a note\"", "")
        .user("e", "<hook_context>x</hook_context>")
        .user("f", "<state_snapshot>x</state_snapshot>")
        .user("g", "/quit")
        .user("h", "/is this a path?")
        .answer("i")
        .message(
            "j",
            "user",
            "\"a string\"",
            ",\"displayContent\":[{\"text\":\"as it was typed\"}]",
        )
        .message(
            "k",
            "user",
            "[{\"inlineData\":{\"mimeType\":\"image/png\",\"data\":\"\"}}]",
            "",
        )
        .read();
    assert_eq!(
        prompts(&s),
        [
            "first",
            "/is this a path?",
            "as it was typed",
            "[image/png]"
        ]
    );
    assert_eq!(s.root.as_deref(), Some(Path::new("/w")));
    assert_eq!(s.id, ID);
}

#[test]
fn a_turn_begins_at_the_prompt_and_the_file_may_end_there() {
    let log = Log::new()
        .user("a", "zero")
        .answer("b")
        .user("d", "one")
        .answer("e");
    let (_dir, s) = log.read();
    let left = kept(&s, 1);
    assert!(log.0.as_bytes().starts_with(&left) && left.ends_with(b"}}\n"));
    assert!(!String::from_utf8_lossy(&left).contains("\"one\""));
    assert_eq!(prompts(&read_bytes(&left).1), ["zero"]);
}

#[test]
fn a_resumed_session_keeps_its_turns_and_their_numbers() {
    let log = Log::new()
        .user("a", "zero")
        .answer("b")
        .header()
        .set(&["c"])
        .set(&["c", "a", "b"])
        .user("d", "one")
        .answer("e");
    let (_dir, s) = log.read();
    assert_eq!(prompts(&s), ["zero", "one"]);
    assert!(s.turns.iter().all(|t| !t.compacted && !t.interrupted));
}

#[test]
fn turns_that_the_agent_rewound_are_not_listed() {
    let log = Log::new()
        .user("a", "zero")
        .answer("b")
        .user("d", "dropped")
        .calls(
            "e",
            &edit(
                "t",
                "/w/x",
                ",\"originalContent\":\"old\",\"isNewFile\":false",
            ),
        )
        .raw("{\"$rewindTo\":\"d\"}")
        .user("f", "one")
        .answer("g");
    let (_dir, s) = log.read();
    assert_eq!(prompts(&s), ["zero", "one"]);
    assert_eq!(s.abandoned, 1);
    assert_eq!(Gemini.calls(&s, 0, &Env::bare()).unwrap().edits, []);
    assert_eq!(prompts(&read_bytes(&kept(&s, 1)).1), ["zero"]);
    // An id that is not in the list empties it, as in the client.
    let (_dir, s) = log.raw("{\"$rewindTo\":\"nobody\"}").read();
    assert_eq!(prompts(&s), Vec::<&str>::new());
}

#[test]
fn a_compressed_turn_stays_a_turn_and_is_marked() {
    let log = Log::new()
        .user("a", "zero")
        .answer("b")
        .set(&["c", "summary"])
        .user("d", "one")
        .answer("e");
    let (_dir, s) = log.read();
    assert_eq!(prompts(&s), ["zero", "one"]);
    assert!(s.turns[0].compacted && !s.turns[0].interrupted && !s.turns[1].compacted);
}

#[test]
fn a_stopped_turn_stays_a_turn_because_its_files_stay_written() {
    let log = Log::new()
        .user("a", "zero")
        .answer("b")
        .user("d", "stopped")
        .calls(
            "e",
            &edit(
                "t",
                "/w/x",
                ",\"originalContent\":\"old\",\"isNewFile\":false",
            ),
        )
        .set(&["c", "a", "b"])
        .user("f", "two")
        .answer("g");
    let (_dir, s) = log.read();
    assert_eq!(prompts(&s), ["zero", "stopped", "two"]);
    assert!(s.turns[1].interrupted && !s.turns[1].compacted);
    assert_eq!(Gemini.calls(&s, 1, &Env::bare()).unwrap().edits.len(), 1);
}

#[test]
fn the_states_of_an_edit_are_told_apart() {
    let shown = |s: &str| format!(",\"newContent\":\"new\",{s}");
    let calls = [
        edit(
            "t0",
            "/w/new",
            &shown("\"originalContent\":\"\",\"isNewFile\":true"),
        ),
        edit(
            "t1",
            "/w/empty",
            &shown("\"originalContent\":\"\",\"isNewFile\":false"),
        ),
        edit(
            "t2",
            "/w/held",
            &shown("\"originalContent\":\"old\",\"isNewFile\":false"),
        ),
        edit(
            "t3",
            "/w/null",
            &shown("\"originalContent\":null,\"isNewFile\":false"),
        ),
        edit("t4", "/w/older", &shown("\"originalContent\":\"\"")),
    ]
    .join(",");
    let (_dir, s) = Log::new().user("a", "zero").calls("b", &calls).read();
    let edits = Gemini.calls(&s, 0, &Env::bare()).unwrap().edits;
    assert_eq!(edits.len(), 5);
    assert_eq!(edits[0].before, State::Absent);
    assert_eq!(held(&s, &edits[1].before), "");
    assert_eq!(held(&s, &edits[2].before), "old");
    assert_eq!(edits[3].before, State::Unknown(Reason::NotRecorded));
    assert_eq!(edits[4].before, State::Unknown(Reason::MaybeOverwritten));
    assert!(edits.iter().all(|e| held(&s, &e.after) == "new"));
    assert!(edits[0].during.is_some());
}

#[test]
fn a_failed_call_changes_nothing_and_a_repeated_one_counts_once() {
    let good = edit(
        "t0",
        "/w/a",
        ",\"originalContent\":\"old\",\"isNewFile\":false",
    );
    let failed = "{\"id\":\"t1\",\"name\":\"replace\",\"args\":{\"file_path\":\"/w/b\",\"old_string\":\"x\",\"new_string\":\"y\"},\"status\":\"error\",\"resultDisplay\":\"not found\"}";
    let shell = "{\"id\":\"t2\",\"name\":\"run_shell_command\",\"args\":{\"command\":\"make\"},\"status\":\"error\"}";
    let foreign = "{\"id\":\"t3\",\"name\":\"mcp_files_write\",\"args\":{},\"status\":\"success\"}";
    let read = "{\"id\":\"t4\",\"name\":\"read_file\",\"args\":{\"file_path\":\"/w/c\"},\"status\":\"success\"}";
    let (_dir, s) = Log::new()
        .user("a", "zero")
        .calls("b", &good)
        .calls(
            "b",
            &[good.as_str(), failed, shell, foreign, read].join(","),
        )
        .read();
    let calls = Gemini.calls(&s, 0, &Env::bare()).unwrap();
    assert_eq!(calls.edits.len(), 1);
    let gaps: Vec<_> = calls
        .gaps
        .iter()
        .map(|g| (g.kind, g.detail.as_str()))
        .collect();
    assert_eq!(
        gaps,
        [(GapKind::Shell, "make"), (GapKind::Tool, "mcp_files_write")]
    );
}

#[test]
fn only_the_turns_that_are_asked_for_are_read() {
    let call = |id, path| edit(id, path, ",\"originalContent\":\"old\",\"isNewFile\":false");
    let (_dir, s) = Log::new()
        .user("a", "zero")
        .calls("b", &call("t0", "/w/a"))
        .user("d", "one")
        .calls("e", &call("t1", "/w/b"))
        .read();
    let edits = Gemini.calls(&s, 1, &Env::bare()).unwrap().edits;
    assert_eq!(edits.len(), 1);
    assert_eq!(
        (edits[0].turn, edits[0].path.path.as_path()),
        (1, Path::new("/w/b"))
    );
}

#[test]
fn what_a_sub_agent_wrote_belongs_to_the_turn_it_worked_in() {
    let (dir, s) = Log::new().user("a", "zero").answer("b").read();
    let folder = dir.path().join(ID);
    std::fs::create_dir(&folder).unwrap();
    let call = edit(
        "t",
        "/w/sub",
        ",\"originalContent\":\"\",\"isNewFile\":true",
    );
    std::fs::write(folder.join("x.jsonl"), Log::new().calls("z", &call).0).unwrap();
    let s = Gemini.read(s.path(), &Env::bare()).unwrap();
    let edits = Gemini.calls(&s, 0, &Env::bare()).unwrap().edits;
    assert_eq!(edits.len(), 1);
    assert_eq!(edits[0].before, State::Absent);
}

/// The client writes a header into a new file at each resume, and goes on in the old one.
#[test]
fn a_header_in_a_second_file_is_no_session_of_its_own() {
    let home = tempfile::tempdir().unwrap();
    let chats = home.path().join(".gemini/tmp/w/chats");
    std::fs::create_dir_all(&chats).unwrap();
    std::fs::write(chats.parent().unwrap().join(".project_root"), "/w").unwrap();
    let own = chats.join("session-2026-06-01T09-00-5b0c0000.jsonl");
    let stub = chats.join("session-2026-06-01T09-30-5b0c0000.jsonl");
    std::fs::write(&own, Log::new().user("a", "zero").answer("b").0).unwrap();
    std::fs::write(&stub, Log::new().0).unwrap();
    let env = Env {
        home: Some(home.path().to_path_buf()),
        ..Env::bare()
    };
    assert_eq!(
        Gemini.places(&env, Some(Path::new("/w"))),
        std::slice::from_ref(&own)
    );
    assert_eq!(
        Gemini.places(&env, Some(Path::new("/v"))),
        Vec::<PathBuf>::new()
    );
    for path in [&own, &stub] {
        let s = Gemini.read(path, &env).unwrap();
        assert_eq!((s.path(), prompts(&s)), (own.as_path(), vec!["zero"]));
        kept(&s, 0);
    }
}

#[test]
fn a_session_in_two_files_is_one_and_is_cut_only_where_the_client_follows() {
    let dir = tempfile::tempdir().unwrap();
    let first = dir.path().join("session-2026-06-01T09-00-5b0c0000.jsonl");
    let second = dir.path().join("session-2026-06-01T09-30-5b0c0000.jsonl");
    let call = edit(
        "t",
        "/w/a",
        ",\"originalContent\":\"old\",\"isNewFile\":false",
    );
    let early = Log::new()
        .user("a", "zero")
        .calls("b", &call)
        .user("d", "one")
        .answer("e");
    let mut late = Log::new().set(&["c", "a", "b", "d", "e"]);
    late.1 = early.1;
    let late = late
        .user("f", "two")
        .answer("g")
        .user("h", "three")
        .answer("i");
    std::fs::write(&first, &early.0).unwrap();
    std::fs::write(&second, &late.0).unwrap();
    for path in [&first, &second] {
        let s = Gemini.read(path, &Env::bare()).unwrap();
        assert_eq!(prompts(&s), ["zero", "one", "two", "three"]);
        assert_eq!(s.path(), second);
        assert!(s.turns.iter().all(|t| !t.compacted));
        let edits = Gemini.calls(&s, 0, &Env::bare()).unwrap().edits;
        assert_eq!(held(&s, &edits[0].before), "old");
        assert!(
            refused(&s, 1),
            "the turn is in the file that is not resumed"
        );
        assert!(refused(&s, 2), "the first file would be the newest again");
        kept(&s, 3);
    }
}

#[test]
fn a_document_of_an_older_version_is_read_and_never_cut() {
    let call = edit(
        "t",
        "/w/a",
        ",\"originalContent\":\"old\",\"isNewFile\":false",
    );
    let text = format!(
        "{{\n  \"sessionId\": \"{ID}\",\n  \"projectHash\": \"9f\",\n  \"startTime\": \"2026-06-01T09:00:00.000Z\",\n  \"lastUpdated\": \"x\",\n  \"messages\": [\n    {{\"id\": \"a\", \"type\": \"user\", \"content\": \"zero\"}},\n    {{\"id\": \"b\", \"type\": \"gemini\", \"content\": \"\", \"toolCalls\": [{call}]}},\n    {{\"id\": \"c\", \"type\": \"user\", \"content\": \"one\"}}\n  ]\n}}\n"
    );
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("session-2026-06-01T09-00-5b0c0000.json");
    for text in [
        text.clone(),
        serde_json::from_str::<serde_json::Value>(&text)
            .unwrap()
            .to_string(),
    ] {
        std::fs::write(&path, text).unwrap();
        let head = Head::read(&path).unwrap();
        assert_eq!(
            detect(&head, &Env::bare()).map(Format::agent),
            Some("gemini")
        );
        assert_eq!(Gemini.card(&head).prompt.as_deref(), Some("zero"));
        let s = Gemini.read(&path, &Env::bare()).unwrap();
        assert_eq!(prompts(&s), ["zero", "one"]);
        let edits = Gemini.calls(&s, 0, &Env::bare()).unwrap().edits;
        assert_eq!(held(&s, &edits[0].before), "old");
        assert!(refused(&s, 1));
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
    assert_eq!(is(Log::new().0.as_bytes()), Some("gemini"));
    assert_eq!(
        is(b"{\"uuid\":\"u\",\"sessionId\":\"s\",\"projectHash\":\"h\"}"),
        None
    );
    assert_eq!(is(b"{\"sessionId\":\"s\",\"message\":\"a log\"}"), None);
    assert_eq!(
        is(b"{\n  \"sessionId\": \"s\",\n  \"history\": []\n}"),
        None
    );
    assert_eq!(is(b"{\n"), None);
    assert_eq!(is(b""), None);
}

#[test]
fn dirty_bytes_are_counted_and_never_lose_a_turn() {
    let log = Log::new().user("a", "zero").0;
    let mut bytes = b"\xEF\xBB\xBF".to_vec();
    bytes.extend(log.as_bytes());
    bytes.extend(b"\r\n\n");
    bytes.extend([0; 300]);
    bytes.extend(b"no json\n{\"id\":\"b\",\"type\":\"user\",\"content\":\"one\"}{\"id\":\"d\",\"type\":\"user\",\"content\":\"glued\"}\n");
    bytes.extend(b"{\"id\":\"e\",\"type\":\"user\",\"content\":\"torn");
    let (_dir, s) = read_bytes(&bytes);
    assert_eq!(prompts(&s), ["zero", "one", "glued"]);
    assert_eq!(s.warnings.count(Oddity::TornTail), 1);
    assert!(refused(&s, 2), "a cut in the middle of a line");
}

#[test]
fn cut_at_every_byte_never_panics_and_turns_only_shrink() {
    let call = edit(
        "t",
        "/w/a",
        ",\"originalContent\":\"old\",\"isNewFile\":false",
    );
    let log = Log::new()
        .user("a", "zero")
        .calls("b", &call)
        .header()
        .set(&["c", "a", "b"])
        .user("d", "one")
        .0;
    let mut last = 0;
    for n in 0..log.len() {
        let (_dir, s) = read_bytes(&log.as_bytes()[..n]);
        assert!(
            s.turns.len() >= last && s.turns.len() <= 2,
            "cut at {n}: {:?}",
            prompts(&s)
        );
        last = s.turns.len();
        Gemini.calls(&s, 0, &Env::bare()).unwrap();
    }
}

#[test]
fn a_session_is_live_only_while_its_newest_record_is_a_moment_old() {
    let (_dir, s) = Log::new().user("a", "zero").read();
    let at = |seconds: i64| {
        let written = super::super::time("2026-06-01T09:00:01.000Z").unwrap();
        let env = Env {
            now: written + chrono::TimeDelta::seconds(seconds),
            ..Env::bare()
        };
        Gemini.live(&s, &env).is_some()
    };
    assert!(at(1) && !at(60) && !at(-60));
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
    let file = &session.files[usize::from(span.file.0)];
    let token = lines::read_span(file, span.start, span.end).unwrap();
    super::super::json::string(&token, super::super::json::Broken::Refuse)
        .unwrap()
        .into_owned()
}

fn fixture(name: &str) -> Session {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/gemini")
        .join(name);
    let head = Head::read(&path).unwrap();
    assert_eq!(
        detect(&head, &Env::bare()).map(Format::agent),
        Some("gemini")
    );
    Gemini.read(&path, &Env::bare()).unwrap()
}

#[test]
fn the_fixtures_read_as_their_readme_says() {
    let log = fixture("tmp/app/chats/session-2026-06-01T09-00-5b0c0000.jsonl");
    assert_eq!(prompts(&log), ["add a test", "and a note", "rename it"]);
    assert!(log.turns[1].interrupted && log.abandoned == 1);
    assert_eq!(log.root.as_deref(), Some(Path::new("/home/u/app")));
    let calls = Gemini.calls(&log, 0, &Env::bare()).unwrap();
    let paths: Vec<_> = calls
        .edits
        .iter()
        .map(|e| (e.turn, e.path.path.to_str().unwrap()))
        .collect();
    assert_eq!(
        paths,
        [
            (0, "/home/u/app/a.py"),
            (1, "/home/u/app/note.md"),
            (2, "/home/u/app/a.py")
        ]
    );
    assert_eq!(calls.gaps.len(), 1);
    let stub = fixture("tmp/app/chats/session-2026-06-01T10-30-5b0c0000.jsonl");
    assert_eq!(stub, log);
    let older = fixture("session-2025-08-01T09-00-77aa0000.json");
    assert_eq!(prompts(&older), ["fix the typo"]);
    assert!(refused(&older, 0));
}

fn corpus(case: &str) -> Option<(PathBuf, serde_json::Value, Session)> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../shared/corpus/gemini")
        .join(case);
    let Ok(truth) = std::fs::read(dir.join("truth.json")) else {
        // Not `eprintln`: only `ui` prints. The name of the test says what was skipped.
        return None;
    };
    let chats = dir.join("home/.gemini/tmp/shop/chats");
    let file = super::place::entries(&chats).into_iter().next()?;
    let session = Gemini.read(&file, &Env::bare()).unwrap();
    Some((dir, serde_json::from_slice(&truth).unwrap(), session))
}

#[test]
fn the_recorded_prompts_are_the_turns() {
    for case in ["shop", "library"] {
        let Some((_, truth, session)) = corpus(case) else {
            return;
        };
        let want: Vec<_> = truth["prompts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p.as_str().unwrap())
            .collect();
        assert_eq!(prompts(&session), want, "{case}");
        assert_eq!(session.warnings.all(), [], "{case}");
        assert_eq!(session.abandoned, 0, "{case}");
        assert_eq!(session.root.as_deref(), Some(Path::new("/home/dev/shop")));
    }
}

/// Each first touch that the record knows is the file as it was when the turn began; CRLF is not in the record.
#[test]
fn recorded_first_touches_are_the_true_text() {
    for case in ["shop", "library"] {
        let Some((dir, _, session)) = corpus(case) else {
            return;
        };
        let mut seen = std::collections::HashSet::new();
        for e in Gemini.calls(&session, 0, &Env::bare()).unwrap().edits {
            if !seen.insert((e.turn, e.path.path.clone())) {
                continue;
            }
            let rel = e.path.path.strip_prefix("/home/dev/shop").unwrap();
            let truth = std::fs::read(dir.join(format!("before/{}", e.turn)).join(rel)).ok();
            let truth = truth.map(|t| String::from_utf8(t).unwrap().replace("\r\n", "\n"));
            let got = match &e.before {
                State::Absent => None,
                state => Some(held(&session, state)),
            };
            assert_eq!(got, truth, "{case} {} turn {}", rel.display(), e.turn);
        }
        assert!(seen.len() > 5);
    }
}
