//! The turn rules on composed lines, and the recorded sessions of the shared corpus.

use std::path::PathBuf;

use super::super::{Format, Head, detect};
use super::Claude;
use crate::env::Env;
use crate::model::edit::{Change, Content, Payload, Source, State};
use crate::model::session::{Oddity, Session, TurnKind};

struct Lines(String, u32);

impl Lines {
    fn new() -> Self {
        Self(String::new(), 0)
    }

    fn raw(mut self, line: &str) -> Self {
        self.0.push_str(line);
        self.0.push('\n');
        self
    }

    fn user(self, id: &str, parent: &str, text: &str) -> Self {
        let content = serde_json::to_string(text).unwrap();
        self.message(id, parent, "user", &content, "")
    }

    fn message(mut self, id: &str, parent: &str, kind: &str, content: &str, more: &str) -> Self {
        self.1 += 1;
        let parent = if parent.is_empty() {
            "null".to_owned()
        } else {
            format!("\"{parent}\"")
        };
        let second = self.1;
        self.raw(&format!(
            "{{\"parentUuid\":{parent},\"isSidechain\":false,\"type\":\"{kind}\",\"message\":{{\"role\":\"{kind}\",\"content\":{content}}},\"uuid\":\"{id}\",\"timestamp\":\"2026-03-02T10:00:{second:02}.000Z\",\"cwd\":\"/w\",\"sessionId\":\"s\"{more}}}"
        ))
    }

    fn answer(self, id: &str, parent: &str) -> Self {
        self.message(
            id,
            parent,
            "assistant",
            "[{\"type\":\"text\",\"text\":\"ok\"}]",
            "",
        )
    }

    fn read(&self) -> (tempfile::TempDir, Session) {
        read_bytes(self.0.as_bytes())
    }
}

fn read_bytes(bytes: &[u8]) -> (tempfile::TempDir, Session) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    std::fs::write(&path, bytes).unwrap();
    let session = Claude.read(&path, &env()).unwrap();
    (dir, session)
}

fn env() -> Env {
    Env::bare()
}

fn prompts(session: &Session) -> Vec<&str> {
    session.turns.iter().map(|t| t.prompt.as_str()).collect()
}

#[test]
fn prompts_of_another_session_in_the_file_are_turns_and_said_to_be_of_another() {
    let text = Lines::new()
        .user("a", "", "one")
        .answer("b", "a")
        .0
        .replace("\"sessionId\":\"s\"", "\"sessionId\":\"before\"");
    let own = Lines::new().user("c", "b", "two").answer("d", "c").0;
    let (_dir, s) = read_bytes((text + &own).as_bytes());
    assert_eq!(prompts(&s), ["one", "two"]);
    assert_eq!(s.warnings.count(Oddity::OtherSession), 1);
    let (_dir, s) = read_bytes(own.as_bytes());
    assert_eq!(s.warnings.count(Oddity::OtherSession), 0);
}

#[test]
fn only_what_a_person_typed_is_a_turn() {
    let (_dir, s) = Lines::new()
        .user("a", "", "first")
        .answer("b", "a")
        .message("c", "b", "user", "[{\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"content\":\"x\"}]", "")
        .message("d", "c", "user", "\"meta\"", ",\"isMeta\":true")
        .message("e", "d", "user", "\"side\"", ",\"isSidechain\":true")
        .message("f", "e", "user", "\"note\"", ",\"origin\":{\"kind\":\"task-notification\"}")
        .user("g", "f", "<local-command-stdout>out</local-command-stdout>")
        .user("h", "g", "[Request interrupted by user]")
        .user("i", "h", "<command-name>/review</command-name>\n<command-args>a.rs</command-args>")
        .user("j", "i", "<bash-input>ls</bash-input>")
        .message("k", "j", "user", "[{\"type\":\"text\",\"text\":\"<ide_opened_file>x</ide_opened_file>\"},{\"type\":\"text\",\"text\":\"last\"}]", "")
        .read();
    assert_eq!(prompts(&s), ["first", "/review a.rs", "!ls", "last"]);
    assert_eq!(s.turns[1].kind, TurnKind::Command);
    assert!(s.turns[0].interrupted);
    assert_eq!(s.root.as_deref(), Some(std::path::Path::new("/w")));
}

#[test]
fn a_prompt_typed_while_the_agent_works_is_a_turn() {
    let (_dir, s) = Lines::new()
        .user("a", "", "first")
        .answer("b", "a")
        .raw("{\"parentUuid\":\"b\",\"type\":\"attachment\",\"attachment\":{\"type\":\"queued_command\",\"prompt\":\"also this\",\"commandMode\":\"prompt\",\"source_uuid\":\"q\"},\"uuid\":\"c\",\"sessionId\":\"s\"}")
        .raw("{\"parentUuid\":\"c\",\"type\":\"attachment\",\"attachment\":{\"type\":\"queued_command\",\"prompt\":\"done\",\"commandMode\":\"task-notification\"},\"uuid\":\"d\",\"sessionId\":\"s\"}")
        .answer("e", "d")
        .read();
    assert_eq!(prompts(&s), ["first", "also this"]);
    assert_eq!(
        (s.turns[1].kind, s.turns[1].key.as_str()),
        (TurnKind::Queued, "q")
    );
}

#[test]
fn turns_of_an_abandoned_branch_are_not_listed() {
    let lines = Lines::new()
        .user("a", "", "zero")
        .answer("b", "a")
        .user("c", "b", "abandoned")
        .answer("d", "c")
        .user("e", "b", "one")
        .answer("f", "e");
    let (_dir, s) = lines.read();
    assert_eq!(prompts(&s), ["zero", "one"]);
    assert_eq!(s.abandoned, 1);
    let cut = Claude.cut(&s, 1, &env()).unwrap();
    let crate::model::cut::FileChange::Truncate { keep, .. } = cut[0] else {
        panic!("no truncation")
    };
    let kept = &lines.0[..usize::try_from(keep).unwrap()];
    assert!(kept.ends_with('\n') && !kept.contains("abandoned"));
    assert_eq!(prompts(&read_bytes(kept.as_bytes()).1), ["zero"]);
}

#[test]
fn an_explicit_rewind_marker_ends_the_conversation_there() {
    let lines = Lines::new()
        .user("a", "", "zero")
        .answer("b", "a")
        .user("c", "b", "one")
        .answer("d", "c")
        .raw("{\"type\":\"last-prompt\",\"leafUuid\":\"b\",\"explicit\":true,\"rewound\":true,\"sessionId\":\"s\"}");
    assert_eq!(prompts(&lines.read().1), ["zero"]);
    let on = lines.user("e", "b", "anew");
    assert_eq!(prompts(&on.read().1), ["zero", "anew"]);
}

#[test]
fn a_compaction_is_announced_with_the_command_that_asked_for_it() {
    let lines = Lines::new()
        .user("a", "", "zero")
        .answer("b", "a")
        .raw("{\"type\":\"queue-operation\",\"operation\":\"enqueue\",\"content\":\"/compact\",\"sessionId\":\"s\"}")
        .raw("{\"parentUuid\":null,\"logicalParentUuid\":\"b\",\"type\":\"system\",\"subtype\":\"compact_boundary\",\"uuid\":\"x\",\"sessionId\":\"s\"}")
        .message("y", "x", "user", "\"summary\"", ",\"isCompactSummary\":true")
        .message("z", "y", "user", "\"<local-command-caveat>c</local-command-caveat>\"", ",\"isMeta\":true")
        .user("c", "z", "<command-name>/compact</command-name>")
        .user("d", "c", "two");
    let (_dir, s) = lines.read();
    assert_eq!(prompts(&s), ["zero", "/compact", "two"]);
    assert!(s.turns[0].compacted && !s.turns[2].compacted);
    let start = usize::try_from(s.turns[1].span.start).unwrap();
    assert!(lines.0[start..].starts_with("{\"type\":\"queue-operation\""));
}

#[test]
fn a_snapshot_stays_with_its_prompt_when_nothing_came_between() {
    let of = |id| {
        format!(
            r#"{{"type":"file-history-snapshot","messageId":"{id}","snapshot":{{"messageId":"{id}","trackedFileBackups":{{}}}},"isSnapshotUpdate":false}}"#
        )
    };
    let update = of("a").replacen(r#""messageId":"a""#, r#""messageId":"x""#, 1);
    let first = Lines::new().user("a", "", "one").raw(&of("a")).raw(&update);
    let kept = first.0.len() as u64;
    // The client was killed before it answered; and an older one tells of the snapshot before the prompt.
    let (_dir, session) = first.raw(&of("b")).user("b", "a", "two").read();
    assert_eq!(prompts(&session), ["one", "two"]);
    let spans: Vec<_> = session
        .turns
        .iter()
        .map(|t| (t.span.start, t.span.end))
        .collect();
    assert_eq!(spans, [(0, kept), (kept, session.len)]);
}

#[test]
fn a_record_glued_to_another_or_behind_a_torn_one_is_found() {
    let two = "{\"parentUuid\":null,\"type\":\"assistant\",\"message\":{\"role\":\"assistant\",\"content\":[]},\"uuid\":\"b\",\"sessionId\":\"s\"}{\"parentUuid\":\"b\",\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"glued\"},\"uuid\":\"c\",\"sessionId\":\"s\"}";
    let torn = "{\"parentUuid\":\"c\",\"type\":\"assistant\",\"message\":{\"role\":\"assistant\",\"content\":[{\"te{\"parentUuid\":\"c\",\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"torn\"},\"uuid\":\"d\",\"sessionId\":\"s\"}";
    let (_dir, s) = Lines::new().raw(two).raw(torn).read();
    assert_eq!(prompts(&s), ["glued", "torn"]);
    assert!(s.warnings.all().len() >= 2, "{:?}", s.warnings);
}

#[test]
fn dirty_bytes_are_counted_and_never_lose_a_turn() {
    let mut bytes = b"\xEF\xBB\xBF".to_vec();
    let line = |id: &str, parent: &str, text: &[u8]| {
        let mut l = format!("{{\"parentUuid\":{parent},\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"").into_bytes();
        l.extend_from_slice(text);
        l.extend_from_slice(format!("\"}},\"uuid\":\"{id}\",\"sessionId\":\"s\"}}").as_bytes());
        l
    };
    bytes.extend(line("a", "null", b"bom"));
    bytes.extend(b"\r\n\n   \n");
    bytes.extend([0; 500]);
    bytes.extend(line("b", "\"a\"", b"bad \xff byte"));
    bytes.push(b'\n');
    bytes.extend(line("c", "\"b\"", b"half \\ud83d pair"));
    bytes.push(b'\n');
    bytes.extend(b"not json at all\n");
    bytes.extend(line("d", "\"c\"", b"no newline"));
    let (_dir, s) = read_bytes(&bytes);
    assert_eq!(
        prompts(&s),
        [
            "bom",
            "bad \u{fffd} byte",
            "half \u{fffd} pair",
            "no newline"
        ]
    );
    assert_eq!(s.len, bytes.len() as u64);
}

#[test]
fn cut_at_every_byte_never_panics_and_turns_only_shrink() {
    let lines = Lines::new()
        .user("a", "", "zero")
        .answer("b", "a")
        .user("c", "b", "one")
        .raw("{\"type\":\"file-history-snapshot\",\"messageId\":\"c\",\"snapshot\":{\"messageId\":\"c\",\"trackedFileBackups\":{\"x\":{\"backupFileName\":null,\"version\":1}}},\"isSnapshotUpdate\":false}")
        .message("d", "c", "assistant", "[{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"Write\",\"input\":{\"file_path\":\"/w/x\",\"content\":\"y\"}}]", "")
        .message("e", "d", "user", "[{\"tool_use_id\":\"t\",\"type\":\"tool_result\",\"content\":\"ok\"}]", ",\"toolUseResult\":{\"type\":\"create\",\"filePath\":\"/w/x\",\"content\":\"y\"}");
    let whole = lines.read().1;
    let bytes = lines.0.as_bytes();
    let mut last = 0;
    for n in 0..bytes.len() {
        let (_dir, s) = read_bytes(&bytes[..n]);
        assert!(
            s.turns.len() >= last && s.turns.len() <= whole.turns.len(),
            "cut at {n}"
        );
        last = s.turns.len();
        Claude.calls(&s, 0, &env()).unwrap();
    }
}

#[test]
fn a_failed_edit_changes_nothing_and_a_created_file_was_absent() {
    let (_dir, s) = Lines::new()
        .user("a", "", "zero")
        .message("b", "a", "assistant", "[{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"Edit\",\"input\":{\"file_path\":\"/w/a\",\"old_string\":\"x\",\"new_string\":\"y\"}}]", "")
        .message("c", "b", "user", "[{\"tool_use_id\":\"t1\",\"type\":\"tool_result\",\"is_error\":true,\"content\":\"no\"}]", ",\"toolUseResult\":\"Error: no\"")
        .message("d", "c", "assistant", "[{\"type\":\"tool_use\",\"id\":\"t2\",\"name\":\"Write\",\"input\":{\"file_path\":\"/w/b\",\"content\":\"z\"}}]", "")
        .message("e", "d", "user", "[{\"tool_use_id\":\"t2\",\"type\":\"tool_result\",\"content\":\"ok\"}]", ",\"toolUseResult\":{\"type\":\"create\",\"filePath\":\"/w/b\",\"content\":\"z\",\"originalFile\":null}")
        .message("f", "e", "assistant", "[{\"type\":\"tool_use\",\"id\":\"t3\",\"name\":\"Write\",\"input\":{\"file_path\":\"/w/c\",\"content\":\"z\"}}]", "")
        .message("g", "f", "user", "[{\"tool_use_id\":\"t3\",\"type\":\"tool_result\",\"content\":\"ok\"}]", ",\"toolUseResult\":{\"type\":\"update\",\"filePath\":\"/w/c\",\"content\":\"z\",\"originalFile\":null}")
        .message("h", "g", "assistant", "[{\"type\":\"tool_use\",\"id\":\"t4\",\"name\":\"Bash\",\"input\":{\"command\":\"rm -rf /\"}}]", "")
        .read();
    let calls = Claude.calls(&s, 0, &env()).unwrap();
    assert_eq!(calls.edits.len(), 2);
    assert_eq!(calls.edits[0].before, State::Absent);
    assert!(matches!(calls.edits[1].before, State::Unknown(_)));
    assert_eq!(calls.gaps.len(), 1);
}

#[test]
fn other_formats_are_not_taken_for_this_one() {
    let is = |bytes: &[u8]| {
        detect(
            &Head::of(std::path::Path::new("x.jsonl"), bytes.to_vec()),
            &Env::bare(),
        )
        .map(Format::agent)
    };
    assert_eq!(is(b"{\"uuid\":\"u\",\"parentUuid\":null,\"sessionId\":\"a\",\"type\":\"user\",\"message\":{\"role\":\"user\",\"parts\":[]}}"), Some("qwen"));
    assert_eq!(is(b"{\"uuid\":\"u\",\"parentUuid\":null,\"sessionId\":\"session-1\",\"type\":\"user\",\"message\":{}}"), Some("iflow"));
    assert_eq!(is(b"{\"uuid\":\"u\",\"parentUuid\":null,\"sessionId\":\"a\",\"type\":\"user\",\"message\":{}}"), Some("claude"));
    assert_eq!(
        is(b"{\"display\":\"x\",\"timestamp\":1,\"project\":\"/w\",\"sessionId\":\"a\"}"),
        None
    );
    assert_eq!(is(b""), None);
    assert_eq!(is(&[0xff; 300]), None);
}

fn corpus(case: &str) -> Option<(PathBuf, serde_json::Value, Session)> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../shared/corpus/claude")
        .join(case);
    let Ok(truth) = std::fs::read(dir.join("truth.json")) else {
        // Not `eprintln`: only `ui` prints. The name of the test says what was skipped.
        return None;
    };
    let file = walk(&dir.join("home/.claude/projects"))
        .into_iter()
        .find(|p| {
            !p.to_string_lossy().contains("subagents")
                && p.extension().is_some_and(|e| e == "jsonl")
        })?;
    let session = Claude.read(&file, &env()).unwrap();
    Some((dir, serde_json::from_slice(&truth).unwrap(), session))
}

fn walk(dir: &std::path::Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for e in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if e.path().is_dir() {
            out.extend(walk(&e.path()));
        } else {
            out.push(e.path());
        }
    }
    out
}

#[test]
fn recorded_sessions_have_the_prompts_of_their_truth() {
    for case in [
        "shop",
        "shop-2.1.332",
        "library",
        "library-2.1.332",
        "compact",
        "compact-2.1.332",
        "subagent",
        "subagent-2.1.332",
    ] {
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
    }
}

#[test]
fn a_recorded_native_rewind_shows_the_active_branch() {
    let Some((_, truth, session)) = corpus("rewound") else {
        return;
    };
    let want: Vec<_> = truth["active"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p.as_str().unwrap())
        .collect();
    assert_eq!(prompts(&session), want);
    assert_eq!(session.abandoned, 3);
    let edits = Claude.calls(&session, 0, &env()).unwrap().edits;
    assert!(
        edits.iter().all(|e| !e.path.path.ends_with("README.md")),
        "an edit of an abandoned turn was used"
    );
}

/// Each first touch that the record knows is the file as it was when the turn began.
#[test]
fn recorded_first_touches_are_the_true_bytes() {
    for case in [
        "shop",
        "shop-2.1.332",
        "library",
        "library-2.1.332",
        "compact",
        "compact-2.1.332",
        "subagent",
        "subagent-2.1.332",
    ] {
        let Some((dir, _, session)) = corpus(case) else {
            return;
        };
        let mut seen = std::collections::HashSet::new();
        let mut known = 0;
        for e in Claude.calls(&session, 0, &env()).unwrap().edits {
            if !seen.insert((e.turn, e.path.path.clone())) {
                continue;
            }
            let rel = e.path.path.strip_prefix("/home/dev/shop").unwrap();
            let truth = std::fs::read(dir.join(format!("before/{}", e.turn)).join(rel)).ok();
            let got = match &e.before {
                State::Absent => None,
                State::Held(c) => Some(bytes(&session, c)),
                State::Unknown(r) => panic!("{case} {rel:?} turn {}: {r:?} {:?}", e.turn, e.change),
            };
            known += 1;
            assert_eq!(
                got,
                truth,
                "{case} {} turn {} {:?}",
                rel.display(),
                e.turn,
                e.source
            );
            let _ = (Source::Native, Change::Opaque);
        }
        assert!(known > 0);
    }
}

fn bytes(session: &Session, content: &Content) -> Vec<u8> {
    match &content.payload {
        Payload::File(p) => std::fs::read(p).unwrap(),
        Payload::Token(s) => {
            let t =
                super::super::lines::read_span(&session.files[s.file.0 as usize], s.start, s.end)
                    .unwrap();
            super::super::json::string(&t, super::super::json::Broken::Refuse)
                .unwrap()
                .into_owned()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_session_is_live_only_while_the_recorded_process_is_the_one_that_runs() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("projects/-w");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::create_dir_all(dir.path().join("sessions")).unwrap();
    let path = folder.join("s.jsonl");
    std::fs::write(&path, Lines::new().user("a", "", "zero").0).unwrap();
    let session = Claude.read(&path, &env()).unwrap();
    let pid = std::process::id();
    let proc = std::fs::read_to_string("/proc/self/stat").unwrap();
    let start = proc
        .rsplit_once(')')
        .unwrap()
        .1
        .split_ascii_whitespace()
        .nth(19)
        .unwrap();
    let record = |pid: u32, start: &str, id: &str, cwd: &str| {
        let text = format!(
            "{{\"pid\":{pid},\"procStart\":\"{start}\",\"sessionId\":\"{id}\",\"cwd\":\"{cwd}\"}}"
        );
        std::fs::write(dir.path().join("sessions/1.json"), text).unwrap();
        Claude.live(&session, &env()).and_then(|a| a.pid)
    };
    assert_eq!(Claude.live(&session, &env()), None, "no record");
    assert_eq!(record(pid, start, "s", "/other"), Some(pid));
    assert_eq!(
        record(pid, start, "stale", "/w"),
        Some(pid),
        "the id may be stale, the folder is not"
    );
    assert_eq!(record(pid, start, "other", "/other"), None);
    assert_eq!(
        record(pid, "1", "s", "/w"),
        None,
        "the number was used again"
    );
    assert_eq!(
        record(u32::MAX - 1, start, "s", "/w"),
        None,
        "the process is gone"
    );
}
