//! What null means, for every generation; and that damage never turns a content into an absence.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::record::{Form, Place, parse};
use super::*;
use crate::model::checkpoint::{AfterMark, Snapshot};
use crate::model::edit::{Fidelity, GapKind, Payload, State};

fn fixture(name: &str) -> PathBuf {
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/ckpt");
    base.join(name).join("s.jsonl")
}

fn all(name: &str) -> BTreeMap<u32, Checkpoint> {
    let store = open(&fixture(name)).unwrap().unwrap();
    let list = store.checkpoints(0).unwrap();
    list.into_iter().map(|c| (c.turn, c)).collect()
}

fn before(c: &Checkpoint, path: &str) -> State {
    snapshot(c, path).before.clone()
}

fn snapshot<'a>(c: &'a Checkpoint, path: &str) -> &'a Snapshot {
    let found = c.files.iter().find(|f| f.path.path == Path::new(path));
    found.unwrap_or_else(|| panic!("no snapshot of {path}"))
}

fn held(state: &State) -> Vec<u8> {
    match state {
        State::Held(content) => blobs::read(content, 1 << 30).unwrap(),
        other => panic!("not held: {other:?}"),
    }
}

/// The state of one file in a record that stands in an empty folder.
fn one(file: &str) -> State {
    let record = format!(r#"{{"turn":0,"files":[{file}]}}"#);
    of(record.as_bytes(), Form::Root).unwrap().files[0]
        .before
        .clone()
}

fn of(record: &[u8], form: Form) -> Option<Checkpoint> {
    let folder = Path::new("/nonexistent/s.ckpt");
    let place = Place {
        folder,
        file: &folder.join("turn-0.json"),
        turn: 0,
        form,
    };
    parse(record, &place).ok().map(|r| r.checkpoint)
}

const H: &str = "3b640db6ac6a8a8ba1bc2a4f36bfbc8db0ad0ddd0c1ddca2c0d2a1a3bd8be4c1";

// What null means.

#[test]
fn null_alone_is_absent() {
    assert_eq!(one(r#"{"path":"a","content":null}"#), State::Absent);
    assert_eq!(
        one(
            r#"{"path":"a","content":null,"sha256":"","blobRef":null,"payloadExpired":false,"mode":0}"#
        ),
        State::Absent
    );
}

#[test]
fn null_with_anything_that_speaks_of_bytes_is_never_absent() {
    for more in [
        format!(r#""sha256":"{H}""#),
        format!(r#""blobRef":"{H}""#),
        format!(r#""SHA256":"{H}""#),
        format!(r#""\u0073ha256":"{H}""#),
        format!("\"\u{17f}ha256\":\"{H}\""),
        format!(r#""someLaterRef":"{H}""#),
        r#""payloadExpired":true"#.to_owned(),
        r#""dest_path":"b""#.to_owned(),
        r#""sha256":"xyz""#.to_owned(),
        r#""sha256":5"#.to_owned(),
        r#""blobRef":{}"#.to_owned(),
        r#""blobRef":"../../../../etc/passwd""#.to_owned(),
    ] {
        let state = one(&format!(r#"{{"path":"a","content":null,{more}}}"#));
        assert!(matches!(state, State::Unknown(_)), "{more}: {state:?}");
    }
}

#[test]
fn an_entry_without_the_key_is_not_absent() {
    assert_eq!(one(r#"{"path":"a"}"#), State::Unknown(Reason::NotRecorded));
}

#[test]
fn a_content_of_another_type_is_damage() {
    for content in ["5", "[]", "{}", "true"] {
        assert_eq!(
            one(&format!(r#"{{"path":"a","content":{content}}}"#)),
            State::Unknown(Reason::RecordDamaged)
        );
    }
}

#[test]
fn keys_that_are_there_twice_damage_the_record() {
    for record in [
        r#"{"turn":0,"files":[{"path":"a","content":"x","content":null}]}"#,
        r#"{"turn":0,"files":[{"path":"a","content":null,"Content":"x"}]}"#,
        r#"{"turn":0,"files":[],"files":[{"path":"a","content":null}]}"#,
    ] {
        assert!(of(record.as_bytes(), Form::Root).is_none(), "{record}");
    }
}

#[test]
fn an_entry_without_a_usable_path_damages_the_record() {
    for file in [
        r#"{"content":"x"}"#,
        r#"{"path":5}"#,
        r#"{"path":""}"#,
        r#"{"path":"\ud800"}"#,
        "7",
    ] {
        let record = format!(r#"{{"turn":0,"files":[{file}]}}"#);
        assert!(of(record.as_bytes(), Form::Root).is_none(), "{record}");
    }
}

#[test]
fn a_schema_that_is_not_known_is_damage_not_absence() {
    let record = br#"{"schemaVersion":4,"turn":0,"files":[{"path":"a","content":null}]}"#;
    assert!(of(record, Form::Root).is_none());
}

#[test]
fn nothing_in_an_expired_record_is_absent() {
    let record = br#"{"turn":0,"files":[{"path":"a","content":null}]}"#;
    let c = of(record, Form::Expired).unwrap();
    assert_eq!(before(&c, "a"), State::Unknown(Reason::Expired));
    let marked = br#"{"turn":0,"files":[{"path":"a","content":null}],"expiredFilePayload":true}"#;
    let c = of(marked, Form::Root).unwrap();
    assert_eq!(before(&c, "a"), State::Unknown(Reason::Expired));
}

#[test]
fn a_gap_that_names_a_path_puts_its_absence_in_doubt() {
    for reason in [
        "oversized",
        "hardlink",
        "unreadable",
        "symlink",
        "capture_failed",
        "a_new_word",
    ] {
        let record = format!(
            r#"{{"turn":0,"files":[{{"path":"d/a","content":null}}],"coverageGaps":[{{"reason":"{reason}","path":"/ws/d/a"}}]}}"#
        );
        let c = of(record.as_bytes(), Form::Root).unwrap();
        assert!(matches!(before(&c, "d/a"), State::Unknown(_)), "{reason}");
    }
    let shell = br#"{"turn":0,"files":[{"path":"a","content":null}],"coverageGaps":[{"reason":"bash_side_effect","path":"a"}]}"#;
    assert_eq!(before(&of(shell, Form::Root).unwrap(), "a"), State::Absent);
}

#[test]
fn the_first_touch_of_a_path_counts() {
    let record = br#"{"turn":0,"files":[{"path":"a","content":"1"},{"path":"a","content":null}]}"#;
    let c = of(record, Form::Root).unwrap();
    assert_eq!(c.files.len(), 1);
    assert_eq!(held(&before(&c, "a")), b"1");
}

// The generations.

#[test]
fn the_first_generation_is_read() {
    let c = all("g0");
    assert!(c[&0].files.is_empty() && c[&0].damaged.is_none());
    assert_eq!(c[&0].msg_index, None);
    assert_eq!(
        c[&0].time.unwrap().to_rfc3339(),
        "2026-06-10T06:03:22.500+00:00"
    );
    assert_eq!(held(&before(&c[&1], "src/a.rs")), b"fn a() {}\n");
    assert_eq!(held(&before(&c[&1], "empty.txt")), b"");
    assert_eq!(before(&c[&1], "/elsewhere/new.rs"), State::Absent);
}

#[test]
fn a_corrupt_record_loses_only_itself() {
    let c = all("g0");
    assert_eq!(c[&2].damaged, Some(Reason::RecordDamaged));
    assert!(c[&2].files.is_empty());
    assert_eq!(held(&before(&c[&3], "src/a.rs")), b"fn b() {}\n");
}

#[test]
fn encodings_are_encoded_again_or_unknown() {
    let c = &all("g1")[&0];
    assert_eq!(c.msg_index, Some(1));
    assert_eq!(held(&before(c, "utf8.txt")), "é\r\n".as_bytes());
    assert_eq!(held(&before(c, "bom.txt")), b"\xEF\xBB\xBFa\r\nb");
    assert_eq!(held(&before(c, "u16le.txt")), b"\xFF\xFEh\0\xE9\0");
    assert_eq!(held(&before(c, "u16be.txt")), b"\xFE\xFF\0h\0\xE9");
    assert_eq!(held(&before(c, "u16le-bare.txt")), b"h\0");
    assert_eq!(held(&before(c, "u16be-bare.txt")), b"\0h");
    assert_eq!(held(&before(c, "gb-ascii.txt")), b"abc\r\n");
    for path in ["gb.txt", "lossy.txt", "future.txt"] {
        assert_eq!(before(c, path), State::Unknown(Reason::TextOnly), "{path}");
    }
}

#[test]
fn a_rename_that_was_not_captured_leaves_both_ends_unknown() {
    let c = &all("g1")[&0];
    for path in ["moved.txt", "moved-to.txt"] {
        assert_eq!(before(c, path), State::Unknown(Reason::NotRecorded));
    }
}

#[test]
fn blobs_are_preferred_to_text_and_byte_exact() {
    let c = &all("g2")[&1];
    assert_eq!(held(&before(c, "logo.png")), b"\x89PNG\r\n\xff\0");
    assert_eq!(held(&before(c, "gb.txt")), b"\xC4\xE3\r\n");
    assert_eq!(held(&before(c, "zip.txt")), b"zipped ".repeat(40));
    assert_eq!(held(&before(c, "inline-only.txt")), b"kept");
    let State::Held(content) = before(c, "src/a.rs") else {
        panic!("not held")
    };
    assert!(matches!(content.payload, Payload::File(_)));
    assert_eq!(content.fidelity, Fidelity::Exact);
    assert!(content.sha256.is_some());
}

#[test]
fn what_the_second_generation_cannot_give_is_unknown() {
    let c = &all("g2")[&1];
    for (path, reason) in [
        ("pruned.rs", Reason::CopyGone),
        ("lies.txt", Reason::CopyDamaged),
        ("big.bin", Reason::TooLarge),
        ("linked.txt", Reason::HardLink),
        ("never.bin", Reason::TooLarge),
    ] {
        assert_eq!(before(c, path), State::Unknown(reason), "{path}");
    }
    assert!(matches!(
        before(c, "unseen.txt"),
        State::Unknown(Reason::Unreadable(_))
    ));
    assert_eq!(before(c, "born.rs"), State::Absent);
    assert_eq!(held(&before(c, "truly-empty.txt")), b"");
}

#[test]
fn after_marks_modes_and_gaps_are_kept() {
    let c = &all("g2")[&1];
    let a = snapshot(c, "src/a.rs");
    assert_eq!(a.mode, Some(0o644));
    assert_eq!(
        a.after,
        Some(AfterMark::File(blobs::sha256(b"y\n"), Some(0o644)))
    );
    assert_eq!(snapshot(c, "logo.png").mode, Some(0o644));
    assert_eq!(snapshot(c, "linked.txt").mode, None);
    let kinds: Vec<GapKind> = c.gaps.iter().map(|(k, _)| *k).collect();
    assert_eq!(
        kinds,
        [
            GapKind::Capture,
            GapKind::Capture,
            GapKind::Capture,
            GapKind::Capture,
            GapKind::Shell
        ]
    );
    assert_eq!(c.gaps[4].1, "bash_side_effect: bash: make");
}

#[test]
fn expired_files_are_unknown() {
    let c = &all("g2")[&0];
    for path in ["src/a.rs", "born.rs"] {
        assert_eq!(before(c, path), State::Unknown(Reason::Expired), "{path}");
    }
}

#[test]
fn payload_files_of_the_third_generation_are_raw() {
    let c = &all("g3")[&1];
    assert_eq!(held(&before(c, "src/a.rs")), b"\xff\xfea\0");
    assert_eq!(snapshot(c, "src/a.rs").mode, Some(0o755));
    assert_eq!(before(c, "src/new.rs"), State::Absent);
    assert_eq!(before(c, "lost.rs"), State::Unknown(Reason::CopyGone));
    assert_eq!(held(&before(c, "unhashed.rs")), b"not absent");
}

#[test]
fn a_record_counts_only_with_its_marker() {
    let c = all("g3");
    assert!(!c.contains_key(&2), "turn 2 has no marker");
    assert_eq!(c[&3].damaged, Some(Reason::Expired));
    assert_eq!(c[&3].msg_index, Some(13), "the marker still tells the turn");
    assert_eq!(c[&6].damaged, Some(Reason::RecordDamaged));
    assert!(
        c[&3]
            .gaps
            .iter()
            .any(|(k, w)| *k == GapKind::Checkpoint && w.contains("checkpoint 2"))
    );
}

#[test]
fn of_two_records_of_a_turn_the_newer_counts_and_then_the_newer_form() {
    let c = all("g3");
    assert_eq!(held(&before(&c[&4], "v2.rs")), b"2");
    assert_eq!(c[&4].files.len(), 1);
    assert_eq!(before(&c[&5], "v3.rs"), State::Absent);
    assert_eq!(c[&5].files.len(), 1);
}

#[test]
fn our_own_sidecar_is_known_as_ours() {
    let store = open(&fixture("ours")).unwrap().unwrap();
    assert_eq!(store.owner(), Owner::Ours);
    let c = &store.checkpoints(0).unwrap()[0];
    assert_eq!(held(&before(c, "src/a.rs")), b"bbbbbbbbbb");
    assert_eq!(c.gaps, [(GapKind::Shell, "make".to_owned())]);
    assert_eq!(c.session.as_deref(), Some("abc"));
    assert_eq!(
        open(&fixture("g2")).unwrap().unwrap().owner(),
        Owner::Reasonix
    );
}

#[test]
fn only_the_turns_that_are_asked_for_are_read() {
    let store = open(&fixture("g0")).unwrap().unwrap();
    let turns: Vec<u32> = store
        .checkpoints(2)
        .unwrap()
        .iter()
        .map(|c| c.turn)
        .collect();
    assert_eq!(turns, [2, 3]);
}

// Hostile and damaged input.

#[test]
fn a_missing_sidecar_is_none_and_another_thing_in_its_place_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let session = dir.path().join("s.jsonl");
    assert!(open(&session).unwrap().is_none());
    std::fs::write(dir.path().join("s.ckpt"), "x").unwrap();
    assert!(matches!(open(&session), Err(Trouble::NotAFolder { .. })));
    let linked = dir.path().join("t.jsonl");
    std::os::unix::fs::symlink("gone", dir.path().join("t.ckpt")).unwrap();
    assert!(matches!(open(&linked), Err(Trouble::Io { .. })));
}

#[test]
fn a_record_that_is_no_plain_file_is_damaged_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("s.ckpt");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(
        dir.path().join("elsewhere.json"),
        r#"{"turn":0,"files":[]}"#,
    )
    .unwrap();
    std::os::unix::fs::symlink("../elsewhere.json", folder.join("turn-0.json")).unwrap();
    std::fs::create_dir(folder.join("turn-1.json")).unwrap();
    let store = open(&dir.path().join("s.jsonl")).unwrap().unwrap();
    let list = store.checkpoints(0).unwrap();
    assert_eq!(list.len(), 2);
    assert!(
        list.iter()
            .all(|c| matches!(c.damaged, Some(Reason::Unreadable(_))))
    );
}

#[test]
fn a_damaged_blob_is_seen_when_it_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let digest = blobs::sha256(b"good");
    let place = blobs::place(dir.path(), &digest);
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    std::fs::write(&place, "evil").unwrap();
    let content = crate::model::edit::Content {
        payload: blobs::find(dir.path(), &digest).unwrap(),
        fidelity: Fidelity::Exact,
        sha256: Some(digest),
    };
    assert_eq!(blobs::read(&content, 100), Err(Reason::CopyDamaged));
    assert_eq!(blobs::read(&content, 3), Err(Reason::TooLarge));
}

#[test]
fn only_64_hex_digits_are_a_digest() {
    assert!(blobs::digest(H.as_bytes()).is_some());
    assert!(blobs::digest(H.to_uppercase().as_bytes()).is_some());
    for bad in [
        "",
        "..",
        &H[1..],
        &format!("{H}0"),
        &H.replace('3', "/"),
        &H.replace('3', "g"),
    ] {
        assert!(blobs::digest(bad.as_bytes()).is_none(), "{bad}");
    }
}

#[test]
fn hostile_times_modes_and_numbers_are_only_unknown() {
    let record = br#"{"turn":0,"time":"9999999-99-99","msgIndex":-1,"files":[{"path":"../../x","content":"y","mode":99999999999999999999,"afterSha256":7}]}"#;
    let c = of(record, Form::Root).unwrap();
    assert_eq!((c.time, c.msg_index), (None, None));
    assert_eq!(c.files[0].path.path, Path::new("../../x"));
    assert_eq!((c.files[0].mode, c.files[0].after.clone()), (None, None));
    for turn in ["1", "-0.5", "99999999999", "\"0\""] {
        let record = format!(r#"{{"turn":{turn},"files":[{{"path":"a","content":null}}]}}"#);
        assert!(of(record.as_bytes(), Form::Root).is_none(), "{turn}");
    }
}

#[test]
fn deep_nesting_is_no_panic() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let record = format!(r#"{{"turn":0,"x":{deep},"files":[{{"path":"a","content":{deep}}}]}}"#);
    let c = of(record.as_bytes(), Form::Root);
    assert!(c.is_none_or(|c| !matches!(c.files[0].before, State::Absent)));
}

#[test]
fn a_long_text_is_named_by_its_place_behind_a_byte_order_mark_too() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("s.ckpt");
    std::fs::create_dir(&folder).unwrap();
    let text = "\"quoted\"\n".repeat(2000);
    let record =
        serde_json::json!({"turn": 0, "files": [{"path": "a", "content": text, "encoding": 0}]});
    std::fs::write(folder.join("turn-0.json"), format!("\u{feff}{record}")).unwrap();
    let store = open(&dir.path().join("s.jsonl")).unwrap().unwrap();
    let c = &store.checkpoints(0).unwrap()[0];
    let State::Held(content) = before(c, "a") else {
        panic!("not held")
    };
    assert!(matches!(content.payload, Payload::TokenIn(..)));
    assert_eq!(blobs::read(&content, 1 << 20).unwrap(), text.as_bytes());
}

/// Every record of the fixtures, cut at every byte: no panic, and a path whose whole record does not say "absent" never
/// becomes absent; nor does any path, since half a record is no record.
#[test]
fn a_cut_record_never_says_absent() {
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/ckpt");
    let mut stack = vec![base];
    let mut seen = 0;
    while let Some(path) = stack.pop() {
        if path.is_dir() {
            stack.extend(std::fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
        } else if path.extension().is_some_and(|e| e == "json") {
            seen += 1;
            cut_everywhere(&std::fs::read(&path).unwrap());
        }
    }
    assert!(seen > 10);
}

fn cut_everywhere(record: &[u8]) {
    for n in 0..record.len() {
        for form in [Form::Root, Form::Expired, Form::Turns] {
            assert!(of(&record[..n], form).is_none(), "cut at {n}");
        }
    }
}

/// One byte changed, at every place: whatever is still a record says nothing is absent that held bytes before.
#[test]
fn a_flipped_byte_never_turns_a_content_into_an_absence() {
    let record = format!(
        r#"{{"schemaVersion":2,"turn":0,"files":[{{"path":"abc","content":"x","sha256":"{H}"}},{{"path":"def","content":null,"blobRef":"{H}"}}]}}"#
    );
    for n in 0..record.len() {
        for byte in [
            b'"', b'{', b'}', b',', b':', b'0', b'x', b'\\', b'\n', 0, 0xFF,
        ] {
            let mut bytes = record.clone().into_bytes();
            bytes[n] = byte;
            let files = of(&bytes, Form::Root).map(|c| c.files).unwrap_or_default();
            assert!(
                files.iter().all(|f| f.before != State::Absent),
                "byte {n} as {byte:?}: {}",
                String::from_utf8_lossy(&bytes)
            );
        }
    }
}
