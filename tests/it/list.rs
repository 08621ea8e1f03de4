//! `rewind list` as a user sees it.

use insta::assert_snapshot;
use unicode_width::UnicodeWidthStr;

use crate::env::{TestEnv, Tree};
use crate::story::{History, Story, shop, touch};

#[test]
fn list_shows_the_turns_newest_last() {
    let mut env = TestEnv::new();
    shop(&mut env);
    let before = Tree::of(&env.workspace());
    assert_snapshot!(env.run(&["list"]).text(), @"
    exit: 0
    --- stdout
    turn  id        age      files  covered    prompt
       0  00000001  1 h ago      1  all        two instead of one
       1  00000005  1 h ago      1  not shell  a new file
       2  0000000b  1 h ago      1  all        three instead of two
    --- stderr
    Claude Code session 5e550000-0000-4000-8000-000000000001, 3 turns
    not shell: what the shell commands of that turn did to files is not recorded
    hint: `rewind doctor` tells why, and what to do about it
    hint: `rewind show 2` shows what going back to before turn 2 would change
    ");
    assert_snapshot!(env.run(&["list", "-n", "1"]).text(), @"
    exit: 0
    --- stdout
    turn  id        age      files  covered  prompt
       2  0000000b  1 h ago      1  all      three instead of two
    --- stderr
    Claude Code session 5e550000-0000-4000-8000-000000000001, 3 turns
    hint: `rewind show 2` shows what going back to before turn 2 would change
    ");
    assert_eq!(before.changes(&Tree::of(&env.workspace())), [""; 0]);
}

#[test]
fn list_fits_the_terminal() {
    let mut env = TestEnv::new();
    env.at("2026-03-02T12:00:00Z");
    let mut s = Story::new(&env);
    for n in 0..12 {
        s.prompt(&format!(
            "検査 {n} of a prompt {}",
            "that goes on ".repeat(20)
        ));
        s.bash("make");
    }
    s.save();
    for width in [60_usize, 80, 120, 200] {
        env.set("COLUMNS", &width.to_string());
        let run = env.run(&["list"]);
        for line in run.stdout.lines() {
            assert!(line.width() <= width, "{width}: {line}");
        }
        let longest = run.stdout.lines().map(UnicodeWidthStr::width).max();
        assert!(
            longest >= Some(width - 2),
            "{width}: room is left unused\n{}",
            run.stdout
        );
        assert!(
            run.stdout.contains("not shell  検査 11 of"),
            "{}",
            run.stdout
        );
    }
    env.set("COLUMNS", "60");
    assert_snapshot!(env.run(&["list", "-n", "2"]).text(), @"
    exit: 0
    --- stdout
    turn  id        age      files  covered    prompt
      10  0000001f  1 h ago         not shell  検査 10 of a pro…
      11  00000022  1 h ago         not shell  検査 11 of a pro…
    --- stderr
    Claude Code session 5e550000-0000-4000-8000-000000000001, 12 turns
    not shell: what the shell commands of that turn did to files is not recorded
    hint: `rewind doctor` tells why, and what to do about it
    hint: `rewind show 11` shows what going back to before turn 11 would change
    ");
}

#[test]
fn list_says_how_much_of_each_turn_can_be_taken_back() {
    let mut env = TestEnv::new();
    env.at("2026-03-02T12:00:00Z");
    env.write("a", "one\n");
    env.write("b", "one\n");
    let mut s = Story::with(&env, crate::story::ID, History::Off);
    s.prompt("only talk");
    s.read("a");
    s.answer();
    s.prompt("all");
    s.edit("a", "one", "two");
    s.prompt("and a command");
    s.edit("b", "one", "two");
    s.bash("sed -i s/x/y/ *");
    s.prompt("a command alone");
    s.bash("make");
    s.prompt("old content unknown");
    s.unknown_write("c", "c\n");
    s.prompt("of one file");
    s.unknown_write("d", "d\n");
    s.edit("a", "two", "three");
    s.prompt("a failed edit");
    s.failed_edit("a");
    s.save();
    assert_snapshot!(env.run(&["list"]).text(), @"
    exit: 0
    --- stdout
    turn  id        age      files  covered    prompt
       0  00000001  1 h ago                    only talk
       1  00000005  1 h ago      1  all        all
       2  00000008  1 h ago      1  not shell  and a command
       3  0000000d  1 h ago         not shell  a command alone
       4  00000010  1 h ago      1  no         old content unknown
       5  00000013  1 h ago      2  in part    of one file
       6  00000018  1 h ago                    a failed edit
    --- stderr
    Claude Code session 5e550000-0000-4000-8000-000000000001, 7 turns
    not shell: what the shell commands of that turn did to files is not recorded
    in part, no: what some or all of the files were before is not known for certain
    hint: `rewind doctor` tells why, and what to do about it
    hint: `rewind show 6` shows what going back to before turn 6 would change
    ");
}

#[test]
fn list_tells_of_odd_bytes_and_of_abandoned_turns() {
    let mut env = TestEnv::new();
    env.at("2026-03-02T12:00:00Z");
    let mut s = Story::new(&env);
    s.prompt("first");
    s.answer();
    let tip = s.tip();
    s.prompt("a way that was left");
    s.answer();
    s.rewind_to(&tip);
    s.prompt("second");
    s.answer();
    let path = s.save();
    let mut bytes = s.text().as_bytes().to_vec();
    bytes.extend_from_slice(b"\0\0\0\n{\"type\":\"user\",\"mess");
    std::fs::write(&path, bytes).unwrap();
    // Where the odd bytes stand depends on the length of the paths before them.
    let at = s.text().len();
    let text = env.run(&["list"]).text();
    let text = text
        .replace(&format!("byte {at}\n"), "byte [AT]\n")
        .replace(&format!("byte {}\n", at + 4), "byte [AT + 4]\n");
    assert_snapshot!(text, @"
    exit: 0
    --- stdout
    turn  id        age      files  covered  prompt
       0  00000001  1 h ago                  first
       1  00000005  1 h ago                  second
    --- stderr
    Claude Code session 5e550000-0000-4000-8000-000000000001, 2 turns
    not listed: 1 turn that the conversation has left
    warning: 1 × a run of NUL bytes where a record should be, first at byte [AT]
    warning: the last line has no end, first at byte [AT + 4]
    hint: `rewind show 1` shows what going back to before turn 1 would change
    ");
}

#[test]
fn list_of_a_session_without_turns_says_so() {
    let mut env = TestEnv::new();
    env.at("2026-03-02T12:00:00Z");
    let mut s = Story::new(&env);
    s.answer();
    s.save();
    assert_snapshot!(env.run(&["list"]).text(), @"
    exit: 0
    --- stdout
    --- stderr
    Claude Code session 5e550000-0000-4000-8000-000000000001 has no turns
    ");
}

#[test]
fn list_without_a_session_says_where_to_look() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["list"]).text(), @"
    exit: 5
    --- stdout
    --- stderr
    error: no agent has left a session here or anywhere
    nothing was changed
    hint: looked for those of Codex, Copilot CLI, Copilot in VS Code, DeepSeek Harness, pi, Factory Droid, Gemini CLI, Kimi Code, Kimi CLI, Kiro CLI, Antigravity CLI, Qwen Code, iFlow, Qoder, OpenClaude, Claude Code, Cursor, Mistral Vibe, Grok Build, Reasonix, gptme
    hint: `rewind demo` makes a session to play with
    ");
    assert_snapshot!(env.run(&["list", "-w", "../home"]).text(), @"
    exit: 5
    --- stdout
    --- stderr
    error: no agent has left a session here or anywhere
    nothing was changed
    hint: looked for those of Codex, Copilot CLI, Copilot in VS Code, DeepSeek Harness, pi, Factory Droid, Gemini CLI, Kimi Code, Kimi CLI, Kiro CLI, Antigravity CLI, Qwen Code, iFlow, Qoder, OpenClaude, Claude Code, Cursor, Mistral Vibe, Grok Build, Reasonix, gptme
    hint: `rewind demo` makes a session to play with
    ");
    assert_snapshot!(env.run(&["list", "nosuch"]).text(), @"
    exit: 5
    --- stdout
    --- stderr
    error: no session has an id that begins with `nosuch`
    nothing was changed
    hint: `rewind sessions --all` lists them
    ");
}

#[test]
fn list_names_the_candidates_of_an_ambiguous_id() {
    let mut env = TestEnv::new();
    env.at("2026-03-02T12:00:00Z");
    for (id, age) in [("abc-one", 60), ("abc-two", 120)] {
        let mut s = Story::with(&env, id, History::Kept);
        s.prompt("hello");
        touch(&s.save(), age);
    }
    assert_snapshot!(env.run(&["list", "abc"]).text(), @"
    exit: 5
    --- stdout
    --- stderr
    error: several sessions have an id that begins with `abc`
      [HOME]/.claude/projects/[TMP-]-ws/abc-one.jsonl: claude abc-one
      [HOME]/.claude/projects/[TMP-]-ws/abc-two.jsonl: claude abc-two
    nothing was changed
    hint: give more of the id, or the file's path
    ");
    let run = env.run(&["list", "abc-t"]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert!(run.stderr.contains("abc-two"), "{}", run.text());
}

#[test]
fn a_hint_repeats_the_names_that_were_given() {
    let mut env = TestEnv::new();
    shop(&mut env);
    let run = env.run_in(&env.home(), &["list", "5e55", "-w", "../ws"]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert!(
        run.stderr.contains("`rewind show 2 -s 5e55 -w ../ws`"),
        "{}",
        run.text()
    );
    let quiet = env.run(&["list", "-q"]);
    assert_eq!(quiet.stderr, "");
}
