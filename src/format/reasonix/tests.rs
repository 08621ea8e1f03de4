//! Turns, calls, cuts and locks of composed sessions.

use std::path::{Path, PathBuf};

use super::*;
use crate::format::detect;
use crate::model::edit::{GapKind, Payload, State};
use crate::model::session::{FileNo, Oddity};

const PLAIN: &str = "20260610-060322.123456000-m.jsonl";

fn fixture(name: &str) -> PathBuf {
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/reasonix");
    base.join(name)
}

/// A copy of a fixture folder that may be changed.
fn copy(name: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut stack = vec![(fixture(name), dir.path().to_path_buf())];
    while let Some((from, to)) = stack.pop() {
        for entry in std::fs::read_dir(&from).unwrap() {
            let entry = entry.unwrap();
            let target = to.join(entry.file_name());
            if entry.path().is_dir() {
                std::fs::create_dir(&target).unwrap();
                stack.push((entry.path(), target));
            } else {
                std::fs::copy(entry.path(), target).unwrap();
            }
        }
    }
    dir
}

fn env() -> Env {
    Env {
        home: Some("/nonexistent/home".into()),
        now: crate::format::time("2026-11-01T12:00:00Z").unwrap(),
        ..Env::bare()
    }
}

fn read(path: &Path) -> Session {
    Reasonix.read(path, &env()).unwrap()
}

fn prompts(session: &Session) -> Vec<&str> {
    session.turns.iter().map(|t| t.prompt.as_str()).collect()
}

fn write(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

/// Does what a cut says, so that the result can be read again.
fn apply(changes: &[FileChange]) {
    for change in changes {
        match change {
            FileChange::Truncate { path, keep, len } => {
                let bytes = std::fs::read(path).unwrap();
                assert_eq!(bytes.len() as u64, *len);
                std::fs::write(path, &bytes[..usize::try_from(*keep).unwrap()]).unwrap();
            }
            FileChange::Append { path, bytes, len } => {
                let mut old = std::fs::read(path).unwrap();
                assert_eq!(old.len() as u64, *len);
                old.extend_from_slice(bytes);
                std::fs::write(path, old).unwrap();
            }
            FileChange::Replace { path, bytes } => std::fs::write(path, bytes).unwrap(),
            FileChange::Remove { path } => std::fs::remove_file(path).unwrap(),
        }
    }
}

fn cut(session: &Session, turn: u32) -> Result<Vec<FileChange>, Trouble> {
    Reasonix.cut(session, turn, &env())
}

fn is_refused(result: &Result<Vec<FileChange>, Trouble>) -> bool {
    matches!(
        result,
        Err(Trouble::Refused { .. } | Trouble::ForkInstead { .. })
    )
}

// Turns.

#[test]
fn only_what_a_person_sent_is_a_turn() {
    let s = read(&fixture("plain").join(PLAIN));
    assert_eq!(
        prompts(&s),
        ["add a parser", "now rename <p> to q", "third"]
    );
    let keys: Vec<&str> = s.turns.iter().map(|t| t.key.as_str()).collect();
    assert_eq!(keys, ["m1", "m7", "m14"]);
    assert_eq!(s.root.as_deref(), Some(Path::new("/home/dev/shop")));
    assert_eq!(s.id, "20260610-060322.123456000-m");
    assert_eq!(s.turns[0].at.unwrap().timestamp_millis(), 1_781_071_402_123);
    assert!(s.warnings.all().is_empty());
}

#[test]
fn spans_of_turns_meet_and_reach_the_end() {
    let s = read(&fixture("plain").join(PLAIN));
    for pair in s.turns.windows(2) {
        assert_eq!(pair[0].span.end, pair[1].span.start);
    }
    assert_eq!(s.turns[2].span.end, s.len);
    let bytes = std::fs::read(s.path()).unwrap();
    let line = usize::try_from(s.turns[1].line).unwrap();
    assert!(bytes[line..].starts_with(b"{\"role\":\"user\",\"content\":\"<active-goal>"));
}

#[test]
fn values_may_span_and_share_lines() {
    let s = read(&fixture("stream/s.jsonl"));
    assert_eq!(prompts(&s), ["one", "two"]);
    assert_eq!(s.turns[1].key, "m3");
}

#[test]
fn a_broken_value_costs_its_line_only() {
    let dir = tempfile::tempdir().unwrap();
    let user = |t: &str| format!(r#"{{"role":"user","origin":"user","content":"{t}"}}"#);
    let text = format!(
        "{}\n{{\"role\":\"user\",\"content\":\"torn\n{}\n{{\"role\":\"tool\",\n{}\nrubbish\n{}\n{{\"role\":\"us",
        user("a"),
        user("b"),
        user("c"),
        user("d")
    );
    let s = read(&write(dir.path(), "s.jsonl", &text));
    assert_eq!(prompts(&s), ["a", "b", "c", "d"]);
    assert_eq!(s.warnings.count(Oddity::BadLine), 3);
    assert_eq!(s.warnings.count(Oddity::TornTail), 1);
}

#[test]
fn prompts_are_handed_back_as_they_were_typed() {
    for (raw, clean) in [
        ("plain", "plain"),
        (
            "<hook-context a=\"1\">x</hook-context>\n<memory-update>y</memory-update>\nz",
            "z",
        ),
        ("[Plan mode: read only] do it", "do it"),
        ("do it\n<memory-recall>m</memory-recall>", "do it"),
        (
            "<memory-compiler-execution><source_event>fix it</source_event></memory-compiler-execution>",
            "fix it",
        ),
        (
            r#"<memory-compiler-execution>{"source_event":"fix\nit"}</memory-compiler-execution>"#,
            "fix\nit",
        ),
        ("<b>bold</b> stays", "<b>bold</b> stays"),
        ("<active-goal>never closed", "<active-goal>never closed"),
        (
            "<active-goals>other</active-goals>",
            "<active-goals>other</active-goals>",
        ),
        (
            "<memory-recall>alone</memory-recall>",
            "<memory-recall>alone</memory-recall>",
        ),
        ("", ""),
    ] {
        assert_eq!(clean_prompt(raw), clean, "{raw}");
    }
}

#[test]
fn raw_content_is_the_prompt_unless_the_layout_was_between() {
    let dir = tempfile::tempdir().unwrap();
    let text = r#"{"role":"user","content":"injected","raw_content":"typed"}
{"role":"user","content":"typed too","provider_content":"injected"}
{"role":"user","origin":"host","content":"host"}
{"role":"user","local_only":true,"content":"shown only"}
"#;
    let s = read(&write(dir.path(), "s.jsonl", text));
    assert_eq!(prompts(&s), ["typed", "typed too"]);
}

// The event log.

#[test]
fn a_native_log_counts_instead_of_the_transcript() {
    let s = read(&fixture("log/s.jsonl"));
    assert_eq!(prompts(&s), ["one", "two <&>", "three"]);
    assert_eq!(s.turns[2].key, "m6");
    assert_eq!(s.turns[0].span.file, FileNo(1));
    assert_eq!(s.files.len(), 2);
    let by_log = read(&fixture("log/s.events.jsonl"));
    assert_eq!(by_log, s, "the log's path stands for its session");
}

#[test]
fn a_later_schema_is_newer_and_a_foreign_log_is_nothing() {
    let graph = Reasonix.read(&fixture("graph/s.jsonl"), &env());
    assert!(matches!(graph, Err(Trouble::Newer { .. })));
    assert_eq!(prompts(&read(&fixture("foreign/s.jsonl"))), ["one"]);
}

#[test]
fn a_damaged_log_counts_up_to_its_damage_and_is_not_cut() {
    let dir = copy("log");
    let path = dir.path().join("s.events.jsonl");
    let mut log = std::fs::read(&path).unwrap();
    log.extend_from_slice(
        b"{\"schema_version\":1,\"type\":\"append\",\"message_index\":99,\"messages\":[]}\n",
    );
    std::fs::write(&path, log).unwrap();
    let s = read(&dir.path().join("s.jsonl"));
    assert_eq!(s.turns.len(), 3);
    assert_eq!(s.warnings.count(Oddity::BadLine), 1);
    assert!(is_refused(&cut(&s, 1)));
}

#[test]
fn a_session_that_is_only_a_log_is_read() {
    let dir = copy("log");
    std::fs::remove_file(dir.path().join("s.jsonl")).unwrap();
    let s = read(&dir.path().join("s.events.jsonl"));
    assert_eq!((s.turns.len(), s.len), (3, 0));
    apply(&cut(&s, 2).unwrap());
    assert_eq!(
        prompts(&read(&dir.path().join("s.jsonl"))),
        ["one", "two <&>"]
    );
}

// Cutting.

#[test]
fn a_cut_leaves_exactly_the_kept_bytes_and_updates_what_stands_beside() {
    let dir = copy("plain");
    let path = dir.path().join(PLAIN);
    let whole = std::fs::read(&path).unwrap();
    let s = read(&path);
    apply(&cut(&s, 1).unwrap());
    let kept = std::fs::read(&path).unwrap();
    assert_eq!(kept, whole[..usize::try_from(s.turns[1].line).unwrap()]);
    assert_eq!(prompts(&read(&path)), ["add a parser"]);
    let meta = std::fs::read_to_string(meta::path(&path)).unwrap();
    assert!(meta.contains("\"revision\": 8") && meta.contains(r#""future": {"kept": [1, 2.50]}"#));
    for gone in [
        "content_digest",
        "schema_version",
        "turns",
        "preview",
        "listing_",
        "\"revision\": 7",
    ] {
        assert!(!meta.contains(gone), "{gone}: {meta}");
    }
    assert!(log::is_json(meta.as_bytes()));
    assert!(!names::beside(&path, ".event-index.json").exists());
    let folder = names::beside(&path, ".ckpt");
    assert!(folder.join("turn-0.json").exists());
    assert!(!folder.join("turn-1.json").exists() && !folder.join("turn-2.json").exists());
}

#[test]
fn a_cut_of_a_log_appends_the_kept_messages_byte_for_byte() {
    let dir = copy("log");
    let path = dir.path().join("s.jsonl");
    let before = std::fs::read(dir.path().join("s.events.jsonl")).unwrap();
    let s = read(&path);
    apply(&cut(&s, 1).unwrap());
    let after = std::fs::read(dir.path().join("s.events.jsonl")).unwrap();
    let added = std::str::from_utf8(after.strip_prefix(&before[..]).unwrap()).unwrap();
    assert!(added.starts_with(r#"{"schema_version":1,"type":"replace","revision":10,"messages":[{"role":"system","content":"You are a coder."},{"role":"user","content":"one","createdAt":1},{"role":"assistant""#), "{added}");
    assert!(added.ends_with("}\n"));
    assert_eq!(prompts(&read(&path)), ["one"]);
    let transcript = std::fs::read_to_string(&path).unwrap();
    assert_eq!(transcript.lines().count(), 3);
}

#[test]
fn a_transcript_that_lags_behind_the_cut_stays() {
    let dir = copy("log");
    let s = read(&dir.path().join("s.jsonl"));
    let changes = cut(&s, 2).unwrap();
    assert!(
        !changes
            .iter()
            .any(|c| matches!(c, FileChange::Truncate { .. }))
    );
}

#[test]
fn a_transcript_that_differs_from_its_log_is_not_cut() {
    let dir = copy("log");
    let path = dir.path().join("s.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("coder", "cook")).unwrap();
    assert!(is_refused(&cut(&read(&path), 1)));
}

#[test]
fn a_session_that_changed_since_it_was_read_is_not_cut() {
    let dir = copy("plain");
    let path = dir.path().join(PLAIN);
    let s = read(&path);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("third", "other")).unwrap();
    assert!(is_refused(&cut(&s, 2)));
    assert!(is_refused(&cut(&s, 9)));
}

#[test]
fn a_meta_that_is_not_understood_stops_the_cut() {
    let dir = copy("plain");
    let path = dir.path().join(PLAIN);
    let s = read(&path);
    for bad in [
        "[1]",
        "{\"revision\":",
        "{\"revision\":\"x\"}",
        "\u{feff}nope",
    ] {
        std::fs::write(meta::path(&path), bad).unwrap();
        assert!(is_refused(&cut(&s, 1)), "{bad}");
    }
    std::fs::write(meta::path(&path), "\0\0 \n").unwrap();
    assert!(cut(&s, 1).is_ok(), "an empty one is none");
}

#[test]
fn checkpoints_of_turns_that_cannot_be_told_stop_the_cut() {
    let dir = copy("plain");
    let path = dir.path().join(PLAIN);
    let folder = names::beside(&path, ".ckpt");
    std::fs::write(folder.join("turn-1.json"), "{\"turn\":1").unwrap();
    let s = read(&path);
    assert!(cut(&s, 0).is_ok(), "everything goes, whatever it is");
    assert!(is_refused(&cut(&s, 1)), "1 may be of a turn that stays");
    assert!(cut(&s, 2).is_err(), "1 may be of a turn that goes");
}

#[test]
fn checkpoints_without_an_index_are_told_by_number_and_prompt() {
    let dir = copy("plain");
    let path = dir.path().join(PLAIN);
    let folder = names::beside(&path, ".ckpt");
    for (n, prompt) in [
        (0, "add a parser"),
        (1, "now rename <p> to q"),
        (2, "third"),
    ] {
        let record = serde_json::json!({"turn": n, "prompt": prompt, "files": null});
        std::fs::write(folder.join(format!("turn-{n}.json")), record.to_string()).unwrap();
    }
    let s = read(&path);
    apply(&cut(&s, 1).unwrap());
    assert!(folder.join("turn-0.json").exists() && !folder.join("turn-1.json").exists());
}

#[test]
fn both_records_of_the_newest_generation_go() {
    let dir = copy("plain");
    let path = dir.path().join(PLAIN);
    let folder = names::beside(&path, ".ckpt");
    let meta = write(
        &folder,
        "turns/2/meta.json",
        r#"{"schemaVersion":3,"turn":2,"prompt":"third","msgIndex":14,"files":[]}"#,
    );
    apply(&cut(&read(&path), 2).unwrap());
    assert!(!meta.exists() && !folder.join("turn-2.json").exists());
    assert!(folder.join("turn-1.json").exists());
}

/// Every prefix of a session: no panic, and a cut keeps a prefix of what is there.
#[test]
fn a_session_cut_short_at_any_byte_is_still_read() {
    for name in ["plain", "log"] {
        let dir = copy(name);
        let session = if name == "plain" { PLAIN } else { "s.jsonl" };
        let torn = if name == "plain" {
            PLAIN
        } else {
            "s.events.jsonl"
        };
        let path = dir.path().join(session);
        let whole = std::fs::read(dir.path().join(torn)).unwrap();
        for n in 0..whole.len() {
            std::fs::write(dir.path().join(torn), &whole[..n]).unwrap();
            let s = read(&path);
            assert!(Reasonix.calls(&s, 0, &env()).is_ok());
            // A cut reads everything beside the session too; not each byte is worth that.
            for turn in (0..s.turns.len()).filter(|_| n % 13 == 0) {
                let _ = cut(&s, u32::try_from(turn).unwrap());
            }
        }
    }
}

// Calls.

#[test]
fn calls_name_paths_and_never_claim_an_absence() {
    let s = read(&fixture("plain").join(PLAIN));
    let calls = Reasonix.calls(&s, 0, &env()).unwrap();
    let told: Vec<_> = calls
        .edits
        .iter()
        .map(|e| (e.turn, e.path.path.to_str().unwrap()))
        .collect();
    assert_eq!(
        told,
        [(0, "src/p.rs"), (1, "src/p.rs")],
        "failed and reading calls are none"
    );
    assert!(
        calls
            .edits
            .iter()
            .all(|e| matches!(e.before, State::Unknown(_)))
    );
    let State::Held(after) = &calls.edits[0].after else {
        panic!("the written content is known")
    };
    assert_eq!(after.payload, Payload::Bytes(b"fn p() {}\n".to_vec()));
    assert!(matches!(calls.edits[1].after, State::Unknown(_)));
    assert_eq!(calls.gaps.len(), 1);
    assert_eq!(
        (calls.gaps[0].turn, calls.gaps[0].kind),
        (0, GapKind::Shell)
    );
    assert_eq!(calls.gaps[0].detail, "cargo test");
}

#[test]
fn only_the_turns_that_are_asked_for_are_told() {
    let s = read(&fixture("plain").join(PLAIN));
    let calls = Reasonix.calls(&s, 1, &env()).unwrap();
    assert!(calls.edits.iter().all(|e| e.turn == 1) && calls.gaps.is_empty());
    assert!(Reasonix.calls(&s, 3, &env()).unwrap().edits.is_empty());
    let log = read(&fixture("log/s.jsonl"));
    assert_eq!(Reasonix.calls(&log, 1, &env()).unwrap().edits.len(), 1);
}

// Recognising, finding, locks.

fn is(path: &Path) -> bool {
    let head = Head::read(path).unwrap();
    detect(&head, &Env::bare()).is_some_and(|f| f.agent() == "reasonix")
}

#[test]
fn plain_roles_and_contents_are_of_nobody_unless_sidecars_say_so() {
    assert!(!is(&fixture("../generic/plain.jsonl")));
    for yes in [
        "stream/s.jsonl",
        "log/s.jsonl",
        "log/s.events.jsonl",
        "graph/s.events.jsonl",
        "graph/s.jsonl",
    ] {
        assert!(is(&fixture(yes)), "{yes}");
    }
    assert!(is(&fixture("plain").join(PLAIN)));
    assert!(!is(&fixture("foreign/s.events.jsonl")));
    let dir = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(fixture("../generic/plain.jsonl")).unwrap();
    let path = write(dir.path(), "g.jsonl", &text);
    assert!(!is(&path));
    std::fs::create_dir(dir.path().join("g.ckpt")).unwrap();
    assert!(is(&path));
    for foreign in [
        r#"{"role":"user","content":"x","type":"user","createdAt":1}"#,
        r#"{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
        r#"{"level":"info","createdAt":1}"#,
        "not json",
        "",
    ] {
        assert!(!is(&write(dir.path(), "f.jsonl", foreign)), "{foreign}");
    }
}

#[test]
fn a_card_tells_root_prompt_and_time() {
    let head = Head::read(&fixture("plain").join(PLAIN)).unwrap();
    let card = Reasonix.card(&head);
    assert_eq!(card.root.as_deref(), Some(Path::new("/home/dev/shop")));
    assert_eq!(card.prompt.as_deref(), Some("add a parser"));
    assert_eq!(card.at, crate::format::time("2026-06-10T06:03:22Z"));
}

#[test]
fn sessions_are_found_in_every_place_and_recovery_copies_come_last() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path();
    for name in [
        ".reasonix/sessions/20260101-a.jsonl",
        ".reasonix/sessions/20260301-a-recovery-0011223344556677.jsonl",
        ".reasonix/sessions/20260101-a.events.jsonl",
        ".reasonix/sessions/20260102-gone.jsonl",
        ".reasonix/sessions/20260102-gone.cleanup-pending.json",
        ".reasonix/projects/-home-a-x/sessions/20260201-b.jsonl",
        ".reasonix/projects/-home-a-y/sessions/20260202-c.jsonl",
        ".config/reasonix/sessions/20251201-d.jsonl",
    ] {
        write(home, name, "");
    }
    let mut env = env();
    env.home = Some(home.to_path_buf());
    let names = |list: Vec<PathBuf>| -> Vec<String> {
        list.iter()
            .map(|p| p.file_stem().unwrap().to_string_lossy().into_owned())
            .collect()
    };
    let here = Reasonix.places(&env, Some(Path::new("/home/a/x")));
    assert_eq!(
        names(here),
        [
            "20260201-b",
            "20260101-a",
            "20251201-d",
            "20260301-a-recovery-0011223344556677"
        ]
    );
    assert_eq!(Reasonix.places(&env, None).len(), 5);
    env.vars
        .insert("REASONIX_STATE_HOME".into(), home.join("elsewhere").into());
    assert_eq!(names(Reasonix.places(&env, None)), ["20251201-d"]);
}

#[test]
fn a_lock_that_is_held_is_life_and_a_file_that_is_left_is_not() {
    let dir = copy("plain");
    let s = read(&dir.path().join(PLAIN));
    assert_eq!(Reasonix.live(&s, &env()), None);
    let lease = names::with(s.path(), ".lease.lock");
    std::fs::write(&lease, r#" {"pid":4711,"hostname":"h"}"#).unwrap();
    assert_eq!(Reasonix.live(&s, &env()), None);
    let held = std::fs::File::open(&lease).unwrap();
    held.lock().unwrap();
    assert_eq!(Reasonix.live(&s, &env()).unwrap().pid, Some(4711));
    held.unlock().unwrap();
    assert_eq!(Reasonix.live(&s, &env()), None);
    std::fs::write(
        &lease,
        r#" {"pid":1,"handoff_until":"2026-11-01T12:00:20Z"}"#,
    )
    .unwrap();
    assert!(Reasonix.live(&s, &env()).is_some());
    std::fs::write(
        &lease,
        r#" {"pid":1,"handoff_until":"2026-11-01T11:59:00Z"}"#,
    )
    .unwrap();
    assert_eq!(Reasonix.live(&s, &env()), None);
    let save = names::with(s.path(), ".lock");
    let saving = std::fs::File::create(&save).unwrap();
    saving.lock().unwrap();
    assert!(Reasonix.live(&s, &env()).is_some());
}
