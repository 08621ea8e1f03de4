//! What a description says, below the level of a command: places, names, tests.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::json::Value;
use super::*;

fn page(more: &str) -> Result<Page, String> {
    page::read(&format!(
        "sessions = [\"~/s\"]\n{more}\n[recognise]\n\"/a\" = 1\n[prompt]\nwhen = {{ \"/b\" = 1 }}\ntext = \"/t\"\n"
    ))
}

#[test]
fn a_pattern_names_the_files_that_are_there() {
    let dir = tempfile::tempdir().unwrap();
    for file in ["a/x.jsonl", "a/b/c/y.jsonl", "a/b/notes.txt", "z.jsonl"] {
        let path = dir.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    // A circle is not walked.
    std::os::unix::fs::symlink(dir.path(), dir.path().join("a/loop")).unwrap();
    let mut env = Env::bare();
    env.home = Some(dir.path().to_path_buf());
    env.vars.insert("PLACE".into(), dir.path().join("a").into());
    let found = |pattern: &str| -> Vec<String> {
        let mut all = load::matching(pattern, &env);
        all.sort();
        let below = |p: &PathBuf| p.strip_prefix(dir.path()).unwrap().display().to_string();
        all.iter().map(below).collect()
    };
    assert_eq!(found("~/*.jsonl"), ["z.jsonl"]);
    assert_eq!(found("~/a/**/*.jsonl"), ["a/b/c/y.jsonl", "a/x.jsonl"]);
    assert_eq!(found("$PLACE/?.jsonl"), ["a/x.jsonl"]);
    assert_eq!(found("~/a/[!x]/*"), ["a/b/notes.txt"]);
    assert_eq!(found("$NOWHERE/*.jsonl"), [""; 0]);
    assert_eq!(found("~/a"), [""; 0], "a folder is no session");
    assert_eq!(found("~/[/x"), [""; 0]);
}

#[test]
fn a_fork_is_named_by_its_id_where_the_old_one_was() {
    let to = |path: &str, old: &str| renamed(Path::new(path), old, "NEW");
    assert_eq!(to("/x/s1.jsonl", "s1"), Path::new("/x/NEW.jsonl"));
    assert_eq!(to("/x/2026-s1.jsonl", "s1"), Path::new("/x/2026-NEW.jsonl"));
    assert_eq!(to("/s1/s1/log.jsonl", "s1"), Path::new("/s1/NEW/log.jsonl"));
    // Inside a word it is no id.
    assert_eq!(
        to("/sessions/s.jsonl", "s"),
        Path::new("/sessions/NEW.jsonl")
    );
    assert_eq!(to("/x/log.jsonl", "l"), Path::new("/x/NEW.jsonl"));
    assert_eq!(to("/x/log.jsonl", ""), Path::new("/x/NEW.jsonl"));
}

#[test]
fn a_test_holds_where_all_its_lines_do() {
    let record = |text: &'static str| Value::of(text.as_bytes()).unwrap();
    let text = "processes = []\n[session]\n[result]\nwhen = { \"/k\" = [\"a\", 2], \"/ok\" = true, \"/no\" = { exists = false } }\nid = \"/i\"";
    let read = page(text).unwrap();
    let when = &read.result.as_ref().unwrap().when;
    assert!(when.holds(&record(r#"{"k":"a","ok":true}"#)));
    assert!(when.holds(&record(r#"{"k":2,"ok":true,"no":null}"#)));
    for odd in [
        r#"{"k":"b","ok":true}"#,
        r#"{"k":"2","ok":true}"#,
        r#"{"k":"a","ok":"true"}"#,
        r#"{"k":"a","ok":false}"#,
        r#"{"k":"a","ok":true,"no":0}"#,
        r#"{"ok":true}"#,
    ] {
        assert!(!when.holds(&record(odd)), "{odd}");
    }
}

#[test]
fn a_description_that_says_too_little_or_too_much_is_refused() {
    assert!(page("").is_ok());
    assert!(page("rewind = \"maybe\"").is_err());
    assert!(page("resume = \"acme\"").is_err());
    assert!(page("time = \"at\"").is_err());
    assert!(page("title = \"x\"\ntitle = \"y\"").is_err());
    assert!(page::read("").is_err());
    let deep = format!("x = {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(page::read(&deep).is_err(), "nested input is no recursion");
}
