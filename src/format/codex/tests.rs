//! The rules on composed lines, and the recorded rollouts of the shared corpus.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;

use chrono::Utc;
use tempfile::TempDir;

use super::*;
use crate::format::patch::undo_hunks;
use crate::format::{detect, json, lines};
use crate::model::edit::{Change, Content, Edit, GapKind, Payload, Reason, State};
use crate::model::session::{FileNo, Oddity, Span};

fn env(home: &Path) -> Env {
    Env {
        home: Some(home.to_path_buf()),
        cwd: home.to_path_buf(),
        vars: BTreeMap::from([(
            OsString::from("CODEX_HOME"),
            home.as_os_str().to_os_string(),
        )]),
        now: Utc::now(),
        ..Env::bare()
    }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/codex")
        .join(name)
}

fn nowhere() -> Env {
    env(Path::new("/nonexistent/codex"))
}

fn read(path: &Path) -> Session {
    Codex.read(path, &nowhere()).unwrap()
}

fn prompts(session: &Session) -> Vec<&str> {
    session.turns.iter().map(|t| t.prompt.as_str()).collect()
}

fn keys(session: &Session) -> Vec<&str> {
    session.turns.iter().map(|t| t.key.as_str()).collect()
}

fn first_record(session: &Session, turn: usize) -> String {
    let turn = &session.turns[turn];
    let path = &session.files[usize::from(turn.span.file.0)];
    let bytes = lines::read_span(path, turn.span.start, turn.span.end).unwrap();
    let line = bytes.split(|b| *b == b'\n').next().unwrap();
    String::from_utf8_lossy(line).into_owned()
}

fn calls(session: &Session, from: u32) -> Calls {
    Codex.calls(session, from, &nowhere()).unwrap()
}

fn bytes_of(content: &Content, session: &Session) -> Vec<u8> {
    match &content.payload {
        Payload::Token(span) => {
            let path = &session.files[usize::from(span.file.0)];
            let token = lines::read_span(path, span.start, span.end).unwrap();
            json::string(&token, json::Broken::Refuse)
                .unwrap()
                .into_owned()
        }
        Payload::Bytes(bytes) => bytes.clone(),
        other => panic!("{other:?}"),
    }
}

fn held(state: &State, session: &Session) -> Vec<u8> {
    match state {
        State::Held(content) => bytes_of(content, session),
        other => panic!("{other:?}"),
    }
}

/// Writes records, one a line, and returns the path.
fn written(dir: &Path, name: &str, records: &[String]) -> PathBuf {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, records.concat()).unwrap();
    path
}

fn line(kind: &str, payload: &str) -> String {
    format!(
        "{{\"timestamp\":\"2026-05-01T10:00:01.000Z\",\"type\":\"{kind}\",\"payload\":{payload}}}\n"
    )
}

fn meta(more: &str) -> String {
    line(
        "session_meta",
        &format!("{{\"id\":\"thread-1\",\"cwd\":\"/w\"{more}}}"),
    )
}

fn event(body: &str) -> String {
    line("event_msg", &format!("{{{body}}}"))
}

fn user(text: &str) -> String {
    line(
        "response_item",
        &format!(
            "{{\"type\":\"message\",\"role\":\"user\",\"content\":[{{\"type\":\"input_text\",\"text\":{text:?}}}]}}"
        ),
    )
}

fn session_of(records: &[String]) -> (TempDir, Session) {
    let dir = TempDir::new().unwrap();
    let path = written(dir.path(), "rollout.jsonl", records);
    let session = read(&path);
    (dir, session)
}

fn refused(session: &Session, turn: u32) -> String {
    match Codex.cut(session, turn, &nowhere()) {
        Err(Trouble::Refused { why } | Trouble::ForkInstead { why }) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn only_rollouts_are_recognised() {
    for name in [
        "legacy.jsonl",
        "paginated.jsonl",
        "rolled-back.jsonl",
        "bare-2025.jsonl",
    ] {
        let head = Head::read(&fixture(name)).unwrap();
        assert_eq!(
            detect(&head, &Env::bare()).map(Format::agent),
            Some("codex"),
            "{name}"
        );
    }
    for other in [
        "{\"type\":\"session.start\",\"data\":{\"producer\":\"copilot-agent\"},\"id\":\"1\"}",
        "{\"type\":\"session\",\"version\":3,\"id\":\"a\",\"timestamp\":\"t\",\"cwd\":\"/w\"}",
        "{\"session_id\":\"a\",\"ts\":1,\"text\":\"history\"}",
        "{\"type\":\"event_msg\",\"payload\":\"text\"}",
        "{\"id\":\"a\",\"timestamp\":\"t\",\"type\":\"user\",\"instructions\":null}",
        "{\"sessionId\":\"a\",\"projectHash\":\"b\"}",
        "{\"payload\":{},\"type\":\"span\"}",
        "",
    ] {
        let head = Head::of(Path::new("x.jsonl"), other.as_bytes().to_vec());
        assert!(!Codex.is(&head), "{other}");
    }
}

#[test]
fn a_header_that_is_longer_than_the_head_is_still_recognised() {
    let long = meta(&format!(
        ",\"base_instructions\":\"{}\"",
        "x".repeat(300_000)
    ));
    let head = Head::of(Path::new("x.jsonl"), long.as_bytes()[..200_000].to_vec());
    assert!(Codex.is(&head));
    let card = Codex.card(&head);
    assert_eq!(card.id, "thread-1");
    assert_eq!(card.root.as_deref(), Some(Path::new("/w")));
}

#[test]
fn a_card_holds_the_first_prompt_that_a_person_wrote() {
    for (name, prompt) in [
        ("legacy.jsonl", "rename foo to bar"),
        ("paginated.jsonl", "größe ändern"),
        ("bare-2025.jsonl", "old times"),
    ] {
        let card = Codex.card(&Head::read(&fixture(name)).unwrap());
        assert_eq!(card.prompt.as_deref(), Some(prompt), "{name}");
        assert_eq!(card.root.as_deref(), Some(Path::new("/w/app")), "{name}");
        assert!(card.at.is_some() && card.id.starts_with("0196f000"));
    }
}

#[test]
fn a_thread_that_another_thread_started_is_offered_for_no_workspace() {
    let inner = meta(",\"source\":{\"subagent\":{\"thread_spawn\":{}}}");
    let head = Head::of(Path::new("x.jsonl"), inner.into_bytes());
    assert_eq!(Codex.card(&head).root, None);
    assert_eq!(Codex.card(&head).id, "thread-1");
}

#[test]
fn legacy_turns_are_tasks_and_a_steering_message_joins_its_turn() {
    let session = read(&fixture("legacy.jsonl"));
    assert_eq!(
        prompts(&session),
        [
            "rename foo to bar",
            "add, delete and move\n\nand hurry",
            "no events here"
        ]
    );
    assert_eq!(keys(&session), ["t1", "t2", "t3"]);
    for n in 0..3 {
        assert!(first_record(&session, n).contains("task_started"), "{n}");
    }
    let interrupted: Vec<_> = session.turns.iter().map(|t| t.interrupted).collect();
    assert_eq!(interrupted, [false, true, false]);
    assert_eq!(session.turns[2].span.end, session.len);
    assert_eq!(session.turns[0].span.end, session.turns[1].span.start);
    assert!(session.warnings.all().is_empty());
}

#[test]
fn paginated_turns_are_completed_items_and_a_compaction_marks_those_before_it() {
    let session = read(&fixture("paginated.jsonl"));
    assert_eq!(prompts(&session), ["größe ändern", "declined", "only talk"]);
    assert_eq!(keys(&session), ["p1", "p2", "p3"]);
    let compacted: Vec<_> = session.turns.iter().map(|t| t.compacted).collect();
    assert_eq!(compacted, [true, true, false]);
    let record = lines::read_span(
        session.path(),
        session.turns[0].line,
        session.turns[0].span.end,
    );
    let record = String::from_utf8(record.unwrap()).unwrap();
    assert!(record.lines().next().unwrap().contains("UserMessage"));
}

#[test]
fn rolled_back_turns_are_abandoned_and_the_numbers_go_on() {
    let session = read(&fixture("rolled-back.jsonl"));
    assert_eq!(prompts(&session), ["first", "second again"]);
    assert_eq!(session.abandoned, 2);
    let numbers: Vec<_> = session.turns.iter().map(|t| t.no).collect();
    assert_eq!(numbers, [0, 1]);
    assert!(session.turns[0].span.end < session.turns[1].span.start);
}

#[test]
fn calls_of_rolled_back_turns_are_not_used_and_what_they_touched_is_unknown_before() {
    let session = read(&fixture("rolled-back.jsonl"));
    let all = calls(&session, 0);
    let touched: Vec<_> = all
        .edits
        .iter()
        .map(|e| {
            (
                e.turn,
                e.path.path.to_str().unwrap(),
                e.change == Change::Opaque,
            )
        })
        .collect();
    assert_eq!(
        touched,
        [
            (0, "/w/app/a", false),
            (0, "/w/app/a", true),
            (1, "/w/app/c", false)
        ]
    );
    assert_eq!(all.edits[1].before, State::Unknown(Reason::NotReversible));
    assert_eq!(all.gaps.len(), 1);
    assert!(all.gaps[0].detail.contains("/w/app/a, /w/app/b"));
    assert!(calls(&session, 1).gaps.is_empty());
}

#[test]
fn a_rollback_of_a_steering_message_takes_only_its_words() {
    let (_dir, session) = session_of(&[
        meta(""),
        event("\"type\":\"task_started\",\"turn_id\":\"t1\""),
        user("go"),
        user("faster"),
        event("\"type\":\"task_complete\",\"turn_id\":\"t1\""),
        event("\"type\":\"thread_rolled_back\",\"num_turns\":1"),
    ]);
    assert_eq!(prompts(&session), ["go"]);
    assert_eq!(session.abandoned, 0);
}

#[test]
fn a_rollback_of_more_turns_than_there_are_takes_them_all() {
    let (_dir, session) = session_of(&[
        meta(""),
        user("one"),
        user("two"),
        event("\"type\":\"thread_rolled_back\",\"num_turns\":18446744073709551615"),
        user("three"),
    ]);
    assert_eq!(prompts(&session), ["three"]);
    assert_eq!(session.abandoned, 2);
}

#[test]
fn turns_of_2025_have_a_key_from_their_message_or_place() {
    let session = read(&fixture("bare-2025.jsonl"));
    assert_eq!(prompts(&session), ["old times", "thank you"]);
    let at = session.turns[0].line;
    assert_eq!(keys(&session), [format!("line-{at}").as_str(), "m2"]);
    assert_eq!(session.root.as_deref(), Some(Path::new("/w/app")));
    let calls = calls(&session, 0);
    assert_eq!(calls.edits.len(), 1);
    assert_eq!(held(&calls.edits[0].after, &session), b"text\n");
    assert!(calls.gaps.is_empty());
}

#[test]
fn two_prompts_without_an_answer_between_them_are_two_turns() {
    let told = |t: &str| event(&format!("\"type\":\"user_message\",\"message\":{t:?}"));
    let (_dir, session) = session_of(&[
        meta(""),
        user("same"),
        told("same"),
        user("same"),
        told("same"),
        line("turn_context", "{\"cwd\":\"/w\"}"),
        user("<environment_context>changed</environment_context>"),
        user("third"),
    ]);
    assert_eq!(prompts(&session), ["same", "same", "third"]);
}

#[test]
fn a_turn_without_a_task_begins_at_the_lines_that_announce_it() {
    let (_dir, session) = session_of(&[
        meta(""),
        user("# AGENTS.md instructions for /w"),
        user("one"),
        line("response_item", "{\"type\":\"reasoning\",\"summary\":[]}"),
        line("turn_context", "{\"turn_id\":\"t2\",\"cwd\":\"/w\"}"),
        user("<environment_context>x</environment_context>"),
        user("two"),
    ]);
    assert!(first_record(&session, 0).contains("\"one\""));
    assert!(first_record(&session, 1).contains("turn_context"));
    assert_eq!(session.turns[1].key, "t2");
}

#[test]
fn the_copied_history_of_a_fork_does_not_change_whose_file_it_is() {
    let (_dir, session) = session_of(&[
        meta(""),
        line("session_meta", "{\"id\":\"parent\",\"cwd\":\"/other\"}"),
        user("copied"),
        user("own"),
    ]);
    assert_eq!(session.id, "thread-1");
    assert_eq!(session.root.as_deref(), Some(Path::new("/w")));
    assert_eq!(prompts(&session), ["copied", "own"]);
}

#[test]
fn a_compaction_in_a_running_turn_leaves_that_turn_in_sight() {
    let task = |n: u8| event(&format!("\"type\":\"task_started\",\"turn_id\":\"t{n}\""));
    let (_dir, session) = session_of(&[
        meta(""),
        task(1),
        user("one"),
        event("\"type\":\"task_complete\",\"turn_id\":\"t1\""),
        task(2),
        user("two"),
        line("compacted", "{\"message\":\"sum\"}"),
    ]);
    let compacted: Vec<_> = session.turns.iter().map(|t| t.compacted).collect();
    assert_eq!(compacted, [true, false]);
}

#[test]
fn a_turn_context_behind_its_message_gives_the_turn_its_key() {
    let context = |n: u8| line("turn_context", &format!("{{\"turn_id\":\"t{n}\"}}"));
    let (_dir, session) = session_of(&[
        meta(""),
        user("one"),
        context(1),
        line("response_item", "{\"type\":\"reasoning\"}"),
        user("two"),
        context(2),
    ]);
    assert_eq!(keys(&session), ["t1", "t2"]);
    assert!(first_record(&session, 1).contains("two"));
}

#[test]
fn a_picture_alone_is_a_prompt_and_its_frame_is_no_text() {
    let content = "{\"type\":\"input_text\",\"text\":\"<image name=[Image #1]>\"},{\"type\":\"input_image\",\"image_url\":\"data:\"},{\"type\":\"input_text\",\"text\":\"</image>\"}";
    let (_dir, session) = session_of(&[
        meta(""),
        line(
            "response_item",
            &format!("{{\"type\":\"message\",\"role\":\"user\",\"content\":[{content}]}}"),
        ),
    ]);
    assert_eq!(prompts(&session), [""]);
}

#[test]
fn a_command_of_megabytes_is_shown_up_to_a_length() {
    let long = format!("echo {}", "ö".repeat(1 << 20));
    let (_dir, session) = session_of(&[
        meta(""),
        user("go"),
        tool(
            "function_call",
            "s",
            &format!("\"name\":\"exec_command\",\"arguments\":\"{{\\\"cmd\\\":\\\"{long}\\\"}}\""),
        ),
    ]);
    let gaps = calls(&session, 0).gaps;
    assert!(gaps[0].detail.len() <= 2000 && gaps[0].detail.starts_with("echo ö"));
}

#[test]
fn damaged_lines_are_counted_and_the_rest_is_read() {
    let mut records = vec![meta(""), user("one"), "{\"timestamp\":\"2026\n".to_owned()];
    records.push("\0\0\0\n".to_owned());
    records.push(user("two"));
    records.push(user("torn").trim_end().trim_end_matches('}').to_owned());
    let (_dir, session) = session_of(&records);
    assert_eq!(prompts(&session), ["one", "two"]);
    assert_eq!(session.warnings.count(Oddity::BadLine), 1);
    assert_eq!(session.warnings.count(Oddity::TornTail), 1);
}

/// Cuts a session at these offsets, from the end to the front, and reads it each time.
fn cut_at(name: &str, offsets: impl Fn(&[u8], usize) -> bool) {
    let whole = fs::read(fixture(name)).unwrap();
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("rollout.jsonl");
    fs::write(&path, &whole).unwrap();
    let mut seen = usize::MAX;
    for n in (0..whole.len()).rev().filter(|n| offsets(&whole, *n)) {
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(n as u64).unwrap();
        let cut = read(&path);
        let turns = cut.turns.len() + cut.abandoned as usize;
        assert!(turns <= seen, "{name} at {n}");
        seen = turns;
        for turn in &cut.turns {
            assert!(turn.span.start <= turn.line && turn.line < turn.span.end);
            assert!(turn.span.end <= n as u64, "{name} at {n}");
        }
        calls(&cut, 0);
    }
}

#[test]
fn a_session_cut_at_any_byte_only_loses_turns() {
    cut_at("bare-2025.jsonl", |_, _| true);
}

#[test]
fn a_session_cut_near_any_line_end_only_loses_turns() {
    for name in ["legacy.jsonl", "paginated.jsonl", "rolled-back.jsonl"] {
        cut_at(name, |bytes, n| {
            n % 97 == 0 || bytes[n.saturating_sub(2)..n].contains(&b'\n')
        });
    }
}

#[test]
fn legacy_edits_come_from_the_events_and_a_failed_patch_is_none() {
    let session = read(&fixture("legacy.jsonl"));
    let all = calls(&session, 0);
    let told: Vec<_> = all
        .edits
        .iter()
        .map(|e| {
            (
                e.turn,
                e.call.as_deref().unwrap(),
                e.path.path.to_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (0, "c1", "/w/app/a.py"),
            (1, "c3", "/w/app/new.txt"),
            (1, "c3", "/w/app/old.txt"),
            (1, "c3", "/w/app/c.py"),
            (1, "c3", "/w/app/b.py"),
            (2, "c4", "h.txt"),
        ]
    );
    let gaps: Vec<_> = all
        .gaps
        .iter()
        .map(|g| (g.turn, g.kind, g.detail.as_str()))
        .collect();
    assert_eq!(
        gaps,
        [
            (
                0,
                GapKind::Tool,
                "apply_patch: it failed and may have changed some of its files"
            ),
            (1, GapKind::Shell, "make test")
        ]
    );
    // Only the spans that are asked for are read.
    assert_eq!(calls(&session, 2).edits, all.edits[5..]);
}

#[test]
fn each_kind_of_change_says_what_it_knows() {
    let session = read(&fixture("legacy.jsonl"));
    let all = calls(&session, 0);
    let [update, add, delete, arrives, leaves, heredoc] = &all.edits[..] else {
        panic!("{:?}", all.edits);
    };
    assert!(matches!(&update.change, Change::Hunks(c)
        if undo_hunks(&bytes_of(c, &session), b"bar()\n").as_deref() == Some(b"foo()\n")));
    assert_eq!(add.before, State::Unknown(Reason::MaybeOverwritten));
    assert_eq!(held(&add.after, &session), b"one\n");
    assert!(add.during.is_some());
    assert_eq!(held(&delete.before, &session), b"gone\r\nfor good");
    assert_eq!(delete.after, State::Absent);
    assert!(matches!(&arrives.change, Change::MovedFrom(p, _) if *p == leaves.path));
    assert!(matches!(&leaves.change, Change::MovedTo(p, _) if *p == arrives.path));
    assert_eq!(leaves.after, State::Absent);
    assert_eq!(held(&heredoc.after, &session), b"heredoc\n");
    assert_eq!(heredoc.path.base.as_deref(), Some(Path::new("/w/app/sub")));
}

#[test]
fn a_declined_change_is_no_edit_and_the_times_of_an_item_cover_it() {
    let session = read(&fixture("paginated.jsonl"));
    let all = calls(&session, 0);
    assert_eq!(all.edits.len(), 1);
    assert!(all.gaps.is_empty());
    let (start, end) = all.edits[0].during.unwrap();
    assert_eq!(start.timestamp_millis(), 1_777_629_600_100);
    assert_eq!(end.timestamp_millis(), 1_777_629_600_105);
    assert_eq!(all.edits[0].path.path, Path::new("/w/app/größe.md"));
}

fn change(call: &str, changes: &str) -> String {
    event(&format!(
        "\"type\":\"item_completed\",\"turn_id\":\"t\",\"item\":{{\"type\":\"FileChange\",\"id\":\"{call}\",\"changes\":{{{changes}}},\"status\":\"completed\"}}"
    ))
}

fn tool(kind: &str, call: &str, members: &str) -> String {
    line(
        "response_item",
        &format!("{{\"type\":\"{kind}\",\"call_id\":\"{call}\",{members}}}"),
    )
}

fn add(path: &str) -> String {
    format!("\"{path}\":{{\"type\":\"add\",\"content\":\"x\\n\"}}")
}

fn delete(path: &str) -> String {
    format!("\"{path}\":{{\"type\":\"delete\",\"content\":\"old\\n\"}}")
}

#[test]
fn a_file_that_the_turn_itself_deleted_was_absent_unless_a_command_ran() {
    let ls = tool(
        "function_call",
        "s",
        "\"name\":\"exec_command\",\"arguments\":\"{\\\"cmd\\\":\\\"make\\\"}\"",
    );
    let run = |between: &[String]| {
        let mut records = vec![meta(""), user("go"), change("c1", &delete("/w/a"))];
        records.extend_from_slice(between);
        records.push(change("c2", &add("/w/a")));
        let (_dir, session) = session_of(&records);
        calls(&session, 0).edits[1].before.clone()
    };
    let unknown = State::Unknown(Reason::MaybeOverwritten);
    assert_eq!(run(&[]), State::Absent);
    assert_eq!(run(std::slice::from_ref(&ls)), unknown);
    assert_eq!(run(&[user("next")]), unknown);
}

#[test]
fn a_patch_that_names_a_path_twice_is_not_undone() {
    let patch = "*** Begin Patch\\n*** Update File: a\\n@@\\n-1\\n+2\\n*** Update File: ./a\\n@@\\n-3\\n+4\\n*** End Patch";
    let (_dir, session) = session_of(&[
        meta(""),
        user("go"),
        tool(
            "custom_tool_call",
            "c",
            &format!("\"name\":\"apply_patch\",\"input\":\"{patch}\""),
        ),
        change(
            "c",
            "\"/w/a\":{\"type\":\"update\",\"unified_diff\":\"@@ -3 +3 @@\\n-3\\n+4\\n\"}",
        ),
    ]);
    let all = calls(&session, 0);
    assert_eq!(all.edits.len(), 1);
    assert_eq!(all.edits[0].change, Change::Opaque);
    assert_eq!(all.edits[0].before, State::Unknown(Reason::NotReversible));
}

#[test]
fn a_deleted_file_that_was_no_text_is_not_brought_back_as_text() {
    let (_dir, session) = session_of(&[
        meta(""),
        user("go"),
        change(
            "c",
            "\"/w/a\":{\"type\":\"delete\",\"content\":\"caf\u{fffd}\"}",
        ),
    ]);
    assert_eq!(
        calls(&session, 0).edits[0].before,
        State::Unknown(Reason::TextOnly)
    );
}

const PATCH: &str = "*** Begin Patch\\n*** Add File: n\\n+x\\n*** End Patch";

fn patched_by_text(output: &str) -> Calls {
    let (_dir, session) = session_of(&[
        meta(""),
        user("go"),
        tool(
            "custom_tool_call",
            "c",
            &format!("\"name\":\"apply_patch\",\"input\":\"{PATCH}\""),
        ),
        tool(
            "custom_tool_call_output",
            "c",
            &format!("\"output\":{output}"),
        ),
    ]);
    calls(&session, 0)
}

#[test]
fn an_attempted_patch_is_an_edit_only_if_its_result_says_so() {
    for (output, edits, gaps) in [
        ("\"Exit code: 0\\nOutput:\\nSuccess.\"", 1, 0),
        ("\"Exit code: 1\\nOutput:\\nno\"", 0, 0),
        ("\"Success. Updated the following files:\\nA n\"", 1, 0),
        (
            "\"{\\\"output\\\":\\\"\\\",\\\"metadata\\\":{\\\"exit_code\\\":0}}\"",
            1,
            0,
        ),
        (
            "\"{\\\"output\\\":\\\"\\\",\\\"metadata\\\":{\\\"exit_code\\\":-1}}\"",
            0,
            0,
        ),
        ("\"apply_patch verification failed: x\"", 0, 0),
        ("{\"content\":\"x\",\"success\":true}", 1, 0),
        ("{\"content\":\"x\",\"success\":false}", 0, 0),
        ("\"something new\"", 0, 1),
        ("null", 0, 1),
    ] {
        let all = patched_by_text(output);
        assert_eq!((all.edits.len(), all.gaps.len()), (edits, gaps), "{output}");
    }
}

#[test]
fn a_patch_without_a_result_is_a_gap() {
    let (_dir, session) = session_of(&[
        meta(""),
        user("go"),
        tool(
            "custom_tool_call",
            "c",
            &format!("\"name\":\"apply_patch\",\"input\":\"{PATCH}\""),
        ),
    ]);
    let all = calls(&session, 0);
    assert!(all.edits.is_empty());
    assert_eq!(all.gaps.len(), 1);
}

fn script(js: &str, between: &[String]) -> Calls {
    let mut records = vec![
        meta(""),
        user("go"),
        tool(
            "custom_tool_call",
            "c",
            &format!("\"name\":\"exec\",\"input\":{js:?}"),
        ),
    ];
    records.extend_from_slice(between);
    records.push(tool(
        "custom_tool_call_output",
        "c",
        "\"output\":[{\"type\":\"input_text\",\"text\":\"Script completed\\nOutput:\\n\"}]",
    ));
    let (_dir, session) = session_of(&records);
    calls(&session, 0)
}

#[test]
fn code_mode_patches_count_once_and_its_commands_are_gaps() {
    let patch =
        "await tools.apply_patch(\"*** Begin Patch\\n*** Add File: n\\n+x\\n*** End Patch\");";
    let all = script(patch, &[]);
    assert_eq!((all.edits.len(), all.gaps.len()), (1, 0));
    let all = script(patch, &[change("exec-1", &add("/w/n"))]);
    assert_eq!((all.edits.len(), all.gaps.len()), (1, 0));
    assert_eq!(all.edits[0].path.path, Path::new("/w/n"));
    let both = format!("{patch} await tools.exec_command({{cmd: \"make\\nx\"}});");
    let all = script(&both, &[]);
    assert_eq!(all.edits.len(), 1);
    assert_eq!(all.gaps[0].detail, "make");
    let caught = format!("try {{ {patch} }} catch (e) {{}}");
    let all = script(&caught, &[]);
    assert_eq!((all.edits.len(), all.gaps.len()), (0, 1));
    let all = script("const {apply_patch: p} = tools; p(x)", &[]);
    assert_eq!((all.edits.len(), all.gaps.len()), (0, 1));
}

#[test]
fn commands_that_never_ran_and_tools_that_only_look_are_no_gaps() {
    let exec = "\"name\":\"exec_command\",\"arguments\":\"{\\\"cmd\\\":\\\"rm -f x\\\"}\"";
    let (_dir, session) = session_of(&[
        meta(""),
        user("go"),
        tool("function_call", "s1", exec),
        tool(
            "function_call_output",
            "s1",
            "\"output\":\"exec_command failed: CreateProcess { message: \\\"Rejected(no)\\\" }\"",
        ),
        tool("function_call", "s2", exec),
        tool("function_call_output", "s2", "\"output\":\"\""),
        tool(
            "function_call",
            "s3",
            "\"name\":\"update_plan\",\"arguments\":\"{}\"",
        ),
        tool(
            "function_call",
            "s4",
            "\"name\":\"mcp__files__write\",\"arguments\":\"{}\"",
        ),
        tool(
            "local_shell_call",
            "s5",
            "\"action\":{\"type\":\"exec\",\"command\":[\"touch\",\"y\"]}",
        ),
        user("<user_shell_command>\n<command>\nls -l\n</command>\n</user_shell_command>"),
    ]);
    let gaps = calls(&session, 0).gaps;
    let said: Vec<_> = gaps.iter().map(|g| (g.kind, g.detail.as_str())).collect();
    assert_eq!(
        said,
        [
            (GapKind::Shell, "rm -f x"),
            (GapKind::Tool, "mcp__files__write"),
            (GapKind::Shell, "touch y"),
            (GapKind::Shell, "ls -l")
        ]
    );
}

#[test]
fn a_cut_keeps_the_bytes_before_the_turn() {
    for (name, turn, left) in [
        ("legacy.jsonl", 1, &["rename foo to bar"][..]),
        ("legacy.jsonl", 0, &[]),
        ("paginated.jsonl", 2, &["größe ändern", "declined"]),
        ("rolled-back.jsonl", 1, &["first"]),
        ("bare-2025.jsonl", 1, &["old times"]),
    ] {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join(name);
        fs::copy(fixture(name), &path).unwrap();
        let session = read(&path);
        let changes = Codex.cut(&session, turn, &nowhere()).unwrap();
        let [FileChange::Truncate { path, keep, len }] = &changes[..] else {
            panic!("{changes:?}");
        };
        let bytes = fs::read(path).unwrap();
        assert_eq!(*len, bytes.len() as u64);
        let keep = usize::try_from(*keep).unwrap();
        assert_eq!(bytes[keep - 1], b'\n');
        fs::write(path, &bytes[..keep]).unwrap();
        assert_eq!(prompts(&read(path)), left, "{name} {turn}");
    }
}

#[test]
fn a_cut_is_refused_where_nothing_could_be_resumed() {
    let (_dir, session) = session_of(&[user("no header")]);
    assert!(refused(&session, 0).contains("no header"));
    assert!(refused(&session, 7).contains("no turn 7"));
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("rollout.jsonl.zst");
    let plain = fs::read(fixture("legacy.jsonl")).unwrap();
    fs::write(&path, zstd::encode_all(&plain[..], 1).unwrap()).unwrap();
    let session = read(&path);
    assert_eq!(session.turns.len(), 3);
    assert_eq!(calls(&session, 0).edits.len(), 6);
    assert!(refused(&session, 1).contains("compressed"));
}

fn revert(name: &str) -> PathBuf {
    fixture("revert").join(name)
}

const PARENT: &str =
    "sessions/2026/05/01/rollout-2026-05-01T10-00-00-0196f000-0000-7000-8000-000000000004.jsonl";
const REVERTED: &str = "sessions/2026/05/01/rollout-2026-05-01T11-00-00-0196f000-0000-7000-8000-000000000004_0196f0aa-0000-7000-8000-000000000005.jsonl";
const FORK: &str =
    "archived_sessions/rollout-2026-05-01T11-00-00-0196f0bb-0000-7000-8000-000000000006.jsonl";

#[test]
fn the_current_rollout_of_each_thread_is_offered_newest_first() {
    let places = Codex.places(&env(&fixture("revert")), None);
    assert_eq!(places, [revert(FORK), revert(REVERTED)]);
    let dir = TempDir::new().unwrap();
    let day = dir.path().join("sessions/2026/01/02");
    fs::create_dir_all(&day).unwrap();
    let id = "0196f000-0000-4000-8000-000000000001";
    let plain = day.join(format!("rollout-2026-01-02T00-00-00-{id}.jsonl"));
    for name in [
        format!("rollout-2026-01-02T00-00-00-{id}.jsonl.zst"),
        format!("rollout-2026-01-02T00-00-00-{id}.jsonl"),
        "notes.jsonl".to_owned(),
        "rollout-short.jsonl".to_owned(),
    ] {
        fs::write(day.join(name), "").unwrap();
    }
    assert_eq!(Codex.places(&env(dir.path()), None), [plain]);
    assert!(Codex.places(&nowhere(), None).is_empty());
}

#[test]
fn a_reverted_thread_is_read_through_its_base() {
    let session = read(&revert(REVERTED));
    assert_eq!(prompts(&session), ["one", "two, otherwise"]);
    assert_eq!(session.files, [revert(REVERTED), revert(PARENT)]);
    assert_eq!(session.turns[0].span.file, FileNo(1));
    assert_eq!(session.abandoned, 1);
    let all = calls(&session, 0);
    let touched: Vec<_> = all
        .edits
        .iter()
        .map(|e| {
            (
                e.turn,
                e.path.path.to_str().unwrap(),
                e.change == Change::Opaque,
            )
        })
        .collect();
    assert_eq!(
        touched,
        [
            (0, "/w/app/a", false),
            (0, "/w/app/a", true),
            (1, "/w/app/c", true)
        ]
    );
    assert!(all.gaps[0].detail.ends_with("/w/app/a, /w/app/b"));
}

#[test]
fn a_fork_has_the_turns_of_its_parent_and_none_are_abandoned() {
    let session = read(&revert(FORK));
    assert_eq!(prompts(&session), ["one", "two", "three, in the fork"]);
    assert_eq!(session.abandoned, 0);
    assert!(calls(&session, 0).gaps.is_empty());
}

#[test]
fn a_rollout_that_others_build_on_is_not_cut() {
    let parent = read(&revert(PARENT));
    for turn in 0..2 {
        refused(&parent, turn);
    }
    let in_base = Codex.cut(&read(&revert(REVERTED)), 0, &nowhere());
    assert!(matches!(in_base, Err(Trouble::ForkInstead { .. })));
    assert!(Codex.cut(&read(&revert(REVERTED)), 1, &nowhere()).is_ok());
    assert!(Codex.cut(&read(&revert(FORK)), 2, &nowhere()).is_ok());
}

/// A thread of two turns with a fork that needs its first `kept` turns.
fn forked(base: impl Fn(&Session) -> String) -> (TempDir, Session) {
    let dir = TempDir::new().unwrap();
    let day = dir.path().join("sessions/2026/05/01");
    let task = |n: u8| event(&format!("\"type\":\"task_started\",\"turn_id\":\"t{n}\""));
    let parent = written(
        &day,
        "rollout-2026-05-01T10-00-00-thread-1.jsonl",
        &[
            meta(""),
            task(1),
            user("one"),
            task(2),
            user("two"),
            change("c", &delete("/w/a")),
        ],
    );
    let session = read(&parent);
    let fork = meta(&base(&session)).replace("thread-1", "thread-2");
    let fork = fork.replace("BASE", "thread-1");
    written(&day, "rollout-2026-05-01T11-00-00-thread-2.jsonl", &[fork]);
    (dir, session)
}

#[test]
fn a_cut_behind_all_that_a_fork_needs_is_safe_and_one_byte_less_is_not() {
    let base = |end: u64| {
        format!(",\"history_base\":{{\"thread_id\":\"BASE\",\"end_byte_offset\":{end}}}")
    };
    let (_dir, session) = forked(|s| base(s.turns[1].span.start));
    assert!(Codex.cut(&session, 1, &nowhere()).is_ok());
    assert!(refused(&session, 0).contains("history_base"));
    let (_dir, session) = forked(|s| base(s.turns[1].span.start + 1));
    assert!(refused(&session, 1).contains("history_base"));
    // Ordinals that the parent does not have prove nothing.
    let (_dir, session) = forked(|_| {
        ",\"history_base\":{\"thread_id\":\"BASE\",\"end_ordinal_exclusive\":1}".to_owned()
    });
    assert!(refused(&session, 1).contains("history_base"));
}

#[test]
fn what_the_parent_of_a_fork_did_later_is_another_conversation() {
    let (dir, _) = forked(|s| {
        let end = s.turns[1].span.start;
        format!(",\"history_base\":{{\"thread_id\":\"BASE\",\"end_byte_offset\":{end}}}")
    });
    let day = dir.path().join("sessions/2026/05/01");
    let fork = read(&day.join("rollout-2026-05-01T11-00-00-thread-2.jsonl"));
    assert_eq!(prompts(&fork), ["one"]);
    assert_eq!(fork.abandoned, 0);
    assert_eq!(calls(&fork, 0), Calls::default());
}

#[test]
fn a_base_that_is_missing_is_counted_and_the_turns_that_are_there_are_read() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join(revert(REVERTED).file_name().unwrap());
    fs::copy(revert(REVERTED), &path).unwrap();
    let session = read(&path);
    assert_eq!(prompts(&session), ["two, otherwise"]);
    assert_eq!(session.warnings.count(Oddity::LostParent), 1);
    assert!(refused(&session, 0).contains("missing"));
}

#[test]
fn rollouts_that_build_on_each_other_in_a_ring_end() {
    let dir = TempDir::new().unwrap();
    let base = |id: &str, on: &str| {
        meta(&format!(",\"history_mode\":\"paginated\",\"history_base\":{{\"thread_id\":\"{on}\",\"end_byte_offset\":99}}"))
            .replace("thread-1", id)
    };
    let name = |id: &str| format!("rollout-2026-05-01T10-00-00-{id}.jsonl");
    let a = written(dir.path(), &name("a"), &[base("a", "b"), user("x")]);
    written(dir.path(), &name("b"), &[base("b", "a"), user("y")]);
    let session = read(&a);
    assert_eq!(session.files.len(), 2);
    assert_eq!(session.warnings.count(Oddity::LostParent), 1);
}

#[test]
fn a_base_by_ordinal_and_a_compressed_base_are_read() {
    let dir = TempDir::new().unwrap();
    let parent = fs::read(revert(PARENT)).unwrap();
    let name = Path::new(PARENT).file_name().unwrap().to_str().unwrap();
    fs::write(
        dir.path().join(format!("{name}.zst")),
        zstd::encode_all(&parent[..], 1).unwrap(),
    )
    .unwrap();
    let own = fs::read_to_string(revert(REVERTED)).unwrap();
    let start = own.find(",\"end_byte_offset\"").unwrap();
    let end = start + own[start..].find('}').unwrap();
    let by_ordinal = format!("{}{}", &own[..start], &own[end..]);
    let path = dir.path().join(Path::new(REVERTED).file_name().unwrap());
    fs::write(&path, by_ordinal).unwrap();
    let session = read(&path);
    assert_eq!(prompts(&session), ["one", "two, otherwise"]);
    assert_eq!(calls(&session, 0).edits[0].path.path, Path::new("/w/app/a"));
}

#[test]
fn a_history_mode_that_is_not_known_is_newer() {
    let dir = TempDir::new().unwrap();
    let path = written(
        dir.path(),
        "r.jsonl",
        &[meta(",\"history_mode\":\"woven\"")],
    );
    let got = Codex.read(&path, &nowhere());
    assert!(matches!(got, Err(Trouble::Newer { .. })));
    let gone = Codex.read(&dir.path().join("none.jsonl"), &nowhere());
    assert!(matches!(gone, Err(Trouble::Io { .. })));
}

#[test]
fn a_session_is_live_while_its_lock_is_held_and_not_because_the_file_is_there() {
    let (dir, session) = session_of(&[meta(""), user("go")]);
    let env = env(dir.path());
    assert_eq!(Codex.live(&session, &env), None);
    let path = written(dir.path(), "thread-writer-locks/thread-1.lock", &[]);
    assert_eq!(Codex.live(&session, &env), None);
    let held = File::options().write(true).open(&path).unwrap();
    held.lock().unwrap();
    let alive = Codex.live(&session, &env).unwrap();
    assert!(alive.sign.contains("thread-1.lock"));
    drop(held);
    assert_eq!(Codex.live(&session, &env), None);
}

#[test]
fn a_hostile_id_is_neither_a_path_nor_a_command() {
    let (dir, mut session) = session_of(&[meta(""), user("go")]);
    assert_eq!(
        Codex.resume(&session).as_deref(),
        Some("codex resume thread-1")
    );
    for id in ["../../x", "a;rm -rf b", "", "-rf", "a b"] {
        session.id = id.to_owned();
        assert_eq!(Codex.resume(&session), None, "{id}");
        assert_eq!(Codex.live(&session, &env(dir.path())), None);
    }
}

/// The recorded sessions, where they are at hand.
fn corpus(case: &str) -> Option<(PathBuf, serde_json::Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus/codex");
    let folder = folder.join(case);
    if !folder.is_dir() {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "skipped: no recorded session `{case}`");
        return None;
    }
    let truth = fs::read_to_string(folder.join("truth.json")).unwrap();
    Some((folder, serde_json::from_str(&truth).unwrap()))
}

fn given(truth: &serde_json::Value) -> Vec<&str> {
    let all = truth["prompts"].as_array().unwrap();
    all.iter().map(|p| p.as_str().unwrap()).collect()
}

fn home_of(folder: &Path) -> Env {
    env(&folder.join("home/.codex"))
}

#[test]
fn recorded_sessions_have_the_prompts_that_were_given() {
    for case in ["shop", "library"] {
        let Some((folder, truth)) = corpus(case) else {
            return;
        };
        let env = home_of(&folder);
        let places = Codex.places(&env, None);
        assert_eq!(places.len(), 1);
        let head = Head::read(&places[0]).unwrap();
        assert!(Codex.is(&head));
        assert_eq!(Codex.card(&head).prompt.as_deref(), Some(given(&truth)[0]));
        let session = Codex.read(&places[0], &env).unwrap();
        assert_eq!(prompts(&session), given(&truth));
        assert!(session.warnings.all().is_empty());
        for n in 0..session.turns.len() {
            assert!(first_record(&session, n).contains("task_started"), "{n}");
        }
    }
}

/// Undoes edits from the last to the first on the files as the last turn left them, and gives for each turn and path
/// what it held before, where that is certain.
fn undone(
    folder: &Path,
    session: &Session,
    edits: &[Edit],
) -> Vec<(u32, PathBuf, Option<Vec<u8>>)> {
    let mut files: BTreeMap<PathBuf, Option<Vec<u8>>> = BTreeMap::new();
    let mut out = Vec::new();
    for edit in edits.iter().rev() {
        let path = edit.path.path.strip_prefix("/home/dev/shop").unwrap();
        // What stood when the turn of the edit ended: people edit between turns.
        let ended = folder.join(format!("ended/{}", edit.turn)).join(path);
        let later = out.iter().any(|(t, p, _)| *t == edit.turn && p == path);
        if !later {
            files.insert(path.to_path_buf(), fs::read(ended).ok());
        }
        let now = files.get(path).cloned().flatten();
        let before = match (&edit.before, &edit.change) {
            (State::Held(c), _) => Some(bytes_of(c, session)),
            (_, Change::Hunks(c)) => now.and_then(|now| undo_hunks(&bytes_of(c, session), &now)),
            _ => None,
        };
        files.insert(path.to_path_buf(), before.clone());
        out.push((edit.turn, path.to_path_buf(), before));
    }
    out
}

#[test]
fn undoing_recorded_edits_gives_the_recorded_bytes() {
    for case in ["shop", "library"] {
        let Some((folder, _)) = corpus(case) else {
            return;
        };
        let env = home_of(&folder);
        let session = Codex.read(&Codex.places(&env, None)[0], &env).unwrap();
        let edits = Codex.calls(&session, 0, &env).unwrap().edits;
        let out = undone(&folder, &session, &edits);
        assert_eq!(out.len(), edits.len());
        let mut known = 0;
        for (n, (turn, path, before)) in out.iter().enumerate() {
            let first = !out[n + 1..].iter().any(|(t, p, _)| t == turn && p == path);
            let Some(before) = before.as_ref().filter(|_| first) else {
                continue;
            };
            let truth = fs::read(folder.join(format!("before/{turn}")).join(path)).unwrap();
            assert_eq!(*before, truth, "{case}: {} before {turn}", path.display());
            known += 1;
        }
        let updates = edits
            .iter()
            .filter(|e| matches!(e.change, Change::Hunks(_)));
        assert!(
            known >= 4 && updates.count() >= known - 1,
            "{case}: {known}"
        );
        for edit in &edits {
            if let State::Held(after) = &edit.after {
                let path = edit.path.path.strip_prefix("/home/dev/shop").unwrap();
                let ended = folder.join(format!("ended/{}", edit.turn)).join(path);
                assert_eq!(bytes_of(after, &session), fs::read(ended).unwrap());
            }
        }
    }
}

#[test]
fn recorded_gaps_are_the_commands_that_ran() {
    for (case, gaps) in [("shop", 1), ("library", 0)] {
        let Some((folder, _)) = corpus(case) else {
            return;
        };
        let env = home_of(&folder);
        let session = Codex.read(&Codex.places(&env, None)[0], &env).unwrap();
        let all = Codex.calls(&session, 0, &env).unwrap();
        assert_eq!(all.gaps.len(), gaps, "{:?}", all.gaps);
    }
}

#[test]
fn a_recorded_revert_and_fork_are_told_apart() {
    let Some((folder, truth)) = corpus("reverted") else {
        return;
    };
    let env = home_of(&folder);
    let id = |name: &str| truth[name].as_str().unwrap().to_owned();
    let places = Codex.places(&env, None);
    let sessions: Vec<Session> = places
        .iter()
        .map(|p| Codex.read(p, &env).unwrap())
        .collect();
    let by_id = |id: &str| sessions.iter().find(|s| s.id == id).unwrap();
    let (thread, fork) = (by_id(&id("thread")), by_id(&id("fork")));
    assert_eq!(sessions.len(), 2);
    assert_eq!(thread.turns.len(), 3);
    assert!(thread.turns[2].prompt.starts_with("After the revert"));
    assert_eq!(thread.abandoned, 3);
    assert_eq!(fork.turns.len(), 6);
    assert!(fork.turns[5].prompt.starts_with("In the fork"));
    assert_eq!(fork.abandoned, 0);
    let parent = Codex.read(&thread.files[1], &env).unwrap();
    assert_eq!(parent.turns.len(), 5);
    for turn in 0..5 {
        let got = Codex.cut(&parent, turn, &env);
        assert!(
            matches!(
                got,
                Err(Trouble::Refused { .. } | Trouble::ForkInstead { .. })
            ),
            "{got:?}"
        );
    }
    assert!(Codex.cut(thread, 2, &env).is_ok());
    assert!(Codex.cut(fork, 5, &env).is_ok());
}

#[test]
fn spans_of_a_session_never_overlap() {
    for name in ["legacy.jsonl", "paginated.jsonl", "rolled-back.jsonl"] {
        let session = read(&fixture(name));
        let spans: Vec<Span> = session.turns.iter().map(|t| t.span).collect();
        assert!(spans.windows(2).all(|p| p[0].end <= p[1].start), "{name}");
    }
}
