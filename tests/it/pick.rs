//! `rewind` alone, on a terminal of its own: what a person sees, types, and has afterwards.

use std::fs;

use crate::env::{TestEnv, Tree};
use crate::screen::Screen;
use crate::story::{History, Story};

const UP: &str = "\x1b[A";
const ESC: &str = "\x1b";
const CTRL_C: &str = "\x03";
const SIZE: (u16, u16) = (16, 80);

fn world() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("TERM", "xterm-256color");
    env.set("NO_COLOR", "1");
    env.at("2026-03-02T12:00:00Z");
    env
}

/// A session of three turns, each with an edit; the tree before each turn, and at last.
fn told(env: &TestEnv, id: &str) -> Vec<Tree> {
    env.write("count.txt", "0\n");
    let mut s = Story::with(env, id, History::Kept);
    let mut trees = Vec::new();
    for n in 0..3 {
        trees.push(Tree::of(&env.workspace()).contents());
        s.prompt(&format!("count on from {n}"));
        s.edit("count.txt", &n.to_string(), &(n + 1).to_string());
        s.answer();
    }
    s.save();
    trees.push(Tree::of(&env.workspace()).contents());
    trees
}

fn transcripts(env: &TestEnv) -> Tree {
    Tree::of(&env.home().join(".claude/projects"))
}

fn session(env: &TestEnv) -> Vec<u8> {
    let tree = transcripts(env).contents();
    let mut files = tree.0.into_iter().filter(|(p, _)| p.extension().is_some());
    files.next().unwrap().1.bytes
}

const ID: &str = crate::story::ID;

fn to_the_preview_of_turn_1(screen: &mut Screen) {
    insta::assert_snapshot!(screen.shows("3 of 3"), @r"
    Claude Code session 5e550000-0000-4000-8000-000000000001, 3 turns: go back to b…
    type to filter
      turn  age           files  covered    prompt
         0  1 h ago           1  all        count on from 0
         1  1 h ago           1  all        count on from 1
    >    2  1 h ago           1  all        count on from 2
    enter: choose   esc: back   3 of 3
    ");
    screen.keys(UP);
    screen.shows("2 of 3");
    screen.keys("\r");
    insta::assert_snapshot!(screen.shows("Back"), @r"
    before turn 1, 1 h ago
    count on from 1
    it changed 1 file

    > Code and conversation
      Conversation
      Code
      Fork from here: a new session that ends before this turn
      Show the diff
      Back
    ");
    screen.keys("\r");
}

#[test]
fn session_turn_preview_both_and_undo() {
    let env = world();
    let trees = told(&env, ID);
    let before = session(&env);
    let Some(mut screen) = Screen::start(&env, &[], SIZE) else {
        return;
    };
    to_the_preview_of_turn_1(&mut screen);
    let preview = screen.shows("Do it?");
    assert!(
        preview.contains("write   count.txt  (from the agent's copy)"),
        "{preview}"
    );
    assert!(
        preview.contains("y: yes   c: yes, and copy the prompt   d: diff   esc: back"),
        "{preview}"
    );
    screen.keys("d");
    let diff = screen.shows("@@");
    assert!(diff.contains("-3\n+1\n"), "{diff}");
    screen.keys(ESC);
    screen.shows("Do it?");
    screen.keys("y");
    let (code, report) = screen.ends();
    assert_eq!(code, Some(0), "{report}");
    assert!(
        report.contains("took 1 file and the conversation back to before turn 1"),
        "{report}"
    );
    assert!(
        report.contains("the prompt of turn 1:\ncount on from 1\n"),
        "{report}"
    );
    assert!(report.contains("claude --resume"), "{report}");
    assert!(report.contains("`rewind undo` takes this back"), "{report}");
    assert!(screen.is_as_before());
    assert_eq!(
        trees[1].changes(&Tree::of(&env.workspace()).contents()),
        [""; 0]
    );
    assert!(session(&env).len() < before.len());
    assert_eq!(env.run(&["undo", "--yes"]).code, Some(0));
    assert_eq!(
        trees[3].changes(&Tree::of(&env.workspace()).contents()),
        [""; 0]
    );
    assert_eq!(session(&env), before);
}

#[test]
fn enter_again_and_again_changes_nothing() {
    let env = world();
    told(&env, ID);
    let before = (Tree::of(&env.workspace()), transcripts(&env));
    let Some(mut screen) = Screen::start(&env, &[], SIZE) else {
        return;
    };
    screen.shows("3 of 3");
    for _ in 0..3 {
        screen.keys("\r");
        screen.shows("Show the diff");
        screen.keys("\r");
        screen.shows("Do it?");
    }
    screen.keys(CTRL_C);
    let (code, text) = screen.ends();
    assert_eq!((code, text.trim()), (Some(130), "nothing was changed"));
    assert!(screen.is_as_before());
    let after = (Tree::of(&env.workspace()), transcripts(&env));
    assert_eq!(before.0.changes(&after.0), [""; 0]);
    assert_eq!(before.1.changes(&after.1), [""; 0]);
}

#[test]
fn esc_goes_back_one_step_at_a_time_and_then_out() {
    let env = world();
    told(&env, ID);
    told(&env, "5e550000-0000-4000-8000-000000000002");
    let Some(mut screen) = Screen::start(&env, &[], SIZE) else {
        return;
    };
    let sessions = screen.shows("2 of 2".replace("2 of", "1 of").as_str());
    assert!(sessions.starts_with("sessions of "), "{sessions}");
    assert!(sessions.contains("claude"), "{sessions}");
    screen.keys("\r");
    screen.shows("3 of 3");
    screen.keys("\r");
    screen.shows("Back");
    screen.keys("\r");
    screen.shows("Do it?");
    screen.keys(ESC);
    screen.shows("Show the diff");
    screen.keys(ESC);
    screen.shows("3 of 3");
    screen.keys(ESC);
    screen.shows("sessions of ");
    screen.keys(ESC);
    let (code, text) = screen.ends();
    assert_eq!((code, text.trim()), (Some(130), "nothing was changed"));
    assert!(screen.is_as_before());
}

#[test]
fn ctrl_c_leaves_the_screen_as_it_was_wherever_it_is_pressed() {
    let env = world();
    told(&env, ID);
    for (enters, at) in [(0, "3 of 3"), (1, "Show the diff"), (2, "Do it?")] {
        let Some(mut screen) = Screen::start(&env, &[], SIZE) else {
            return;
        };
        screen.shows("3 of 3");
        if enters > 0 {
            screen.keys("\r");
            screen.shows("Show the diff");
        }
        if enters > 1 {
            screen.keys("\r");
        }
        screen.shows(at);
        screen.keys(CTRL_C);
        let (code, text) = screen.ends();
        assert_eq!(
            (code, text.trim()),
            (Some(130), "nothing was changed"),
            "{at}"
        );
        assert!(screen.is_as_before(), "{at}");
    }
}

#[test]
fn ctrl_c_at_the_question_of_a_restore_gives_the_cursor_back() {
    let env = world();
    let trees = told(&env, ID);
    let args = ["restore", "1", "--scope", "code"];
    let Some(mut screen) = Screen::start(&env, &args, SIZE) else {
        return;
    };
    screen.shows("Do it?");
    screen.keys(CTRL_C);
    let (code, text) = screen.ends();
    assert_eq!(code, Some(130), "{text}");
    assert!(text.contains("nothing was changed"), "{text}");
    assert!(screen.is_as_before());
    assert_eq!(
        trees[3].changes(&Tree::of(&env.workspace()).contents()),
        [""; 0]
    );
}

#[test]
fn a_file_that_was_changed_since_is_asked_about_before_anything_is_done() {
    let env = world();
    told(&env, ID);
    env.write("count.txt", "mine\n");
    let Some(mut screen) = Screen::start(&env, &[], (20, 100)) else {
        return;
    };
    screen.shows("3 of 3");
    screen.keys("\r");
    screen.shows("Show the diff");
    screen.keys("\r");
    let asked = screen.shows("what becomes of the changes?");
    assert!(asked.contains("k: keep them"), "{asked}");
    assert!(!asked.contains("y: yes"), "{asked}");
    screen.keys("d");
    let diff = screen.shows("+2");
    assert!(diff.contains("-mine\n+2\n"), "{diff}");
    screen.keys(ESC);
    screen.shows("k: keep them");
    // A yes answers no such question.
    screen.keys("y");
    screen.keys("o");
    let preview = screen.shows("Do it?");
    assert!(preview.contains("write   count.txt"), "{preview}");
    screen.keys("y");
    let (code, report) = screen.ends();
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(fs::read(env.workspace().join("count.txt")).unwrap(), b"2\n");
    assert_eq!(env.run(&["undo", "--yes"]).code, Some(0));
    assert_eq!(
        fs::read(env.workspace().join("count.txt")).unwrap(),
        b"mine\n"
    );
}

#[test]
fn a_prompt_is_copied_only_when_that_is_asked_for() {
    let env = world();
    told(&env, ID);
    for (key, copies) in [("y", false), ("c", true)] {
        let Some(mut screen) = Screen::start(&env, &[], SIZE) else {
            return;
        };
        screen.shows("3 of 3");
        screen.keys("\r");
        screen.shows("Show the diff");
        screen.keys("\r");
        screen.shows("Do it?");
        screen.keys(key);
        assert_eq!(screen.ends().0, Some(0));
        // `count on from 2`, in base64.
        let sequence = "\x1b]52;c;Y291bnQgb24gZnJvbSAy\x07";
        assert_eq!(screen.raw().contains(sequence), copies, "{key}");
        assert_eq!(env.run(&["undo", "--yes"]).code, Some(0));
    }
}

#[test]
fn a_fork_from_the_picker_leaves_the_old_session_alone() {
    let env = world();
    told(&env, ID);
    let before = transcripts(&env);
    let Some(mut screen) = Screen::start(&env, &[], SIZE) else {
        return;
    };
    screen.shows("3 of 3");
    screen.keys("\r");
    screen.shows("Fork from here");
    screen.keys("\x1b[B\x1b[B\x1b[B");
    screen.shows("> Fork from here");
    screen.keys("\r");
    screen.shows("Make it?");
    screen.keys("y");
    let (code, report) = screen.ends();
    assert_eq!(code, Some(0), "{report}");
    assert!(report.contains("with turns 0 to 1"), "{report}");
    let changes = before.changes(&transcripts(&env));
    assert!(
        changes.len() == 1 && changes[0].ends_with(": new"),
        "{changes:?}"
    );
}

#[test]
fn only_what_can_be_done_is_offered() {
    let env = world();
    env.write("a", "0\n");
    let mut s = Story::new(&env);
    s.prompt("only talk");
    s.answer();
    s.prompt("and again");
    s.answer();
    s.save();
    let Some(mut screen) = Screen::start(&env, &[], SIZE) else {
        return;
    };
    screen.shows("2 of 2");
    screen.keys("\r");
    insta::assert_snapshot!(screen.shows("Back"), @r"
    before turn 1, 1 h ago
    and again
    no edit of a file is recorded in it

    > Conversation
      Fork from here: a new session that ends before this turn
      Back
    ");
    screen.keys(CTRL_C);
    assert_eq!(screen.ends().0, Some(130));
}

#[test]
fn a_resize_while_picking_is_drawn_anew() {
    let env = world();
    told(&env, ID);
    let Some(mut screen) = Screen::start(&env, &[], (24, 120)) else {
        return;
    };
    screen.shows("3 of 3");
    screen.resize(6, 20);
    screen.keys(UP);
    insta::assert_snapshot!(screen.shows("esc…"), @r"
    Claude Code session…
    type to filter
      turn  prompt
         0  count on fr…
    >    1  count on fr…
    enter: choose   esc…
    ");
    screen.resize(10, 400);
    screen.keys(UP);
    let wide = screen.shows("1 of 3");
    assert!(wide.contains("go back to before which one?"), "{wide}");
    screen.keys(CTRL_C);
    assert_eq!(screen.ends().0, Some(130));
}

#[test]
fn hostile_prompts_cannot_touch_the_screen() {
    let env = world();
    let mut s = Story::new(&env);
    s.prompt("\x1b[2J\x1b]0;owned\x07clear");
    s.answer();
    s.prompt("\u{202e}txet desrever");
    s.answer();
    s.prompt(&"x".repeat(1 << 20));
    s.answer();
    s.prompt("検査を直す 👩‍👩‍👧‍👦 and on");
    s.answer();
    s.save();
    let Some(mut screen) = Screen::start(&env, &[], (12, 60)) else {
        return;
    };
    let text = screen.shows("4 of 4");
    assert!(text.contains(r"\u{1b}[2J\u{1b}]0;o"), "{text}");
    assert!(text.contains(r"\u{202e}txet"), "{text}");
    assert!(text.contains("検査を直す"), "{text}");
    assert!(!screen.raw().contains("\x1b]0;"));
    // No row took a second line.
    assert_eq!(text.lines().count(), 8, "{text}");
    screen.keys(CTRL_C);
    assert_eq!(screen.ends().0, Some(130));
}

#[test]
fn without_a_terminal_it_says_so_and_ends_with_2() {
    let env = world();
    told(&env, ID);
    let run = env.run::<&str>(&[]);
    insta::assert_snapshot!(run.text(), @r"
    exit: 2
    --- stdout
    --- stderr
    error: `rewind` alone asks on a terminal, and there is none
    nothing was changed
    hint: `rewind list` shows the turns, `rewind restore TURN --scope both` goes back
    hint: `rewind --help` tells what there is
    ");
    let json = env.run(&["--json"]);
    assert_eq!(json.code, Some(2));
    assert!(
        json.stderr.contains("\"kind\":\"usage\""),
        "{}",
        json.text()
    );
}

#[test]
fn a_dumb_terminal_is_told_what_to_type_instead() {
    let mut env = world();
    told(&env, ID);
    env.set("TERM", "dumb");
    let Some(mut screen) = Screen::start(&env, &[], SIZE) else {
        return;
    };
    let (code, text) = screen.ends();
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("this one is `dumb`"), "{text}");
    assert!(!screen.raw().contains('\x1b'), "{:?}", screen.raw());
}

#[test]
fn where_there_is_no_session_it_says_what_it_looked_for() {
    let env = world();
    let Some(mut screen) = Screen::start(&env, &[], (24, 100)) else {
        return;
    };
    let (code, text) = screen.ends();
    assert_eq!(code, Some(5), "{text}");
    assert!(text.contains("no agent has left a session"), "{text}");
    assert!(text.contains("Claude Code"), "{text}");
    told(&env, ID);
    let elsewhere = env.workspace().join("..").join("tmp");
    let args = ["-w", elsewhere.to_str().unwrap()];
    let Some(mut screen) = Screen::start(&env, &args, (24, 100)) else {
        return;
    };
    let (code, text) = screen.ends();
    assert_eq!(code, Some(5), "{text}");
    assert!(text.contains("rewind sessions --all"), "{text}");
}
