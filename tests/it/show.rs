//! `rewind show` as a user sees it. It writes nothing, whatever it shows.

use insta::assert_snapshot;

use crate::env::{Run, TestEnv, Tree};
use crate::screen::Screen;
use crate::story::{Story, shop};

/// Runs `show`; holds that nothing was touched.
fn show(env: &TestEnv, args: &[&str]) -> Run {
    let before = Tree::of(&env.workspace());
    let home = Tree::of(&env.home());
    let run = env.run(&[&["show"], args].concat());
    assert_eq!(before.changes(&Tree::of(&env.workspace())), [""; 0]);
    assert_eq!(home.changes(&Tree::of(&env.home())), [""; 0]);
    run
}

#[test]
fn show_tells_what_going_back_would_change() {
    let mut env = TestEnv::new();
    shop(&mut env);
    assert_snapshot!(show(&env, &["1"]).text(), @"
    exit: 0
    --- stdout
    turn 1  00000005-0000-4000-8000-000000000000  1 h ago
    a new file

    going back to before it:
      write   a.txt  (from the agent's copy)
      remove  new/b.txt  (did not exist before turn 1)
      remove  new/  (if that leaves it empty)

    --- a.txt
    +++ a.txt
    @@ -1 +1 @@
    -three
    +two

    --- new/b.txt
    +++ /dev/null
    @@ -1 +0,0 @@
    -b

    not covered, so left as it is:
      turn 1: shell command: make test
    --- stderr
    hint: `rewind restore 1 --scope code` goes there; `--scope both` takes the conversation along
    ");
    assert_eq!(show(&env, &["-2"]), show(&env, &["1"]));
}

#[test]
fn show_names_what_changed_since() {
    let mut env = TestEnv::new();
    shop(&mut env);
    env.write("a.txt", "three\nmine\n");
    std::fs::remove_file(env.workspace().join("new/b.txt")).unwrap();
    assert_snapshot!(show(&env, &["0"]).text(), @"
    exit: 0
    --- stdout
    turn 0  00000001-0000-4000-8000-000000000000  1 h ago
    two instead of one

    going back to before it:
      write   a.txt  (from the agent's copy)
      differs a.txt: changed since the agent wrote it

    --- a.txt
    +++ a.txt
    @@ -1,2 +1 @@
    -three
    -mine
    +one

    not covered, so left as it is:
      turn 1: shell command: make test
    --- stderr
    warning: 1 file changed since: a restore refuses, unless `--on-conflict` says what becomes of such files
    hint: `rewind restore 0 --scope code` goes there; `--scope both` takes the conversation along
    ");
}

#[test]
fn show_of_a_turn_that_changed_nothing_says_so() {
    let mut env = TestEnv::new();
    env.at(crate::story::NOW);
    let mut s = Story::new(&env);
    s.prompt("talk");
    s.answer();
    s.save();
    assert_snapshot!(show(&env, &["0"]).text(), @"
    exit: 0
    --- stdout
    turn 0  00000001-0000-4000-8000-000000000000  1 h ago
    talk

    going back to before it changes no file
    --- stderr
    ");
}

#[test]
fn show_names_what_cannot_be_known_and_never_shows_it_as_empty() {
    let mut env = TestEnv::new();
    env.at(crate::story::NOW);
    env.write("a.bin", [0, 1, 2, 255]);
    let mut s = Story::new(&env);
    s.prompt("one that is lost, and one with a change of mine");
    s.unknown_write("lost.txt", "new\n");
    s.write("b.txt", "b\n");
    env.write("b.txt", "b\nby hand\n");
    s.prompt("go on");
    s.edit("b.txt", "b\nby", "b\nnot by");
    s.save();
    assert_snapshot!(show(&env, &["0"]).text(), @"
    exit: 0
    --- stdout
    turn 0  00000001-0000-4000-8000-000000000000  1 h ago
    one that is lost, and one with a change of mine

    going back to before it:
      remove  b.txt  (did not exist before turn 0)
      note    b.txt: also takes back a change made outside between turns 0 and 1
      left    lost.txt: what was there before is not recorded

    --- b.txt
    +++ /dev/null
    @@ -1,2 +0,0 @@
    -b
    -not by hand
    --- stderr
    hint: `rewind restore 0 --scope code` goes there; `--scope both` takes the conversation along
    ");
}

#[test]
fn show_of_a_turn_that_is_not_there_names_those_that_are() {
    let mut env = TestEnv::new();
    shop(&mut env);
    assert_snapshot!(show(&env, &["7"]).text(), @"
    exit: 5
    --- stdout
    --- stderr
    error: there is no turn 7: the session has the turns 0 to 2
    nothing was changed
    hint: `rewind list` shows them
    ");
    assert_snapshot!(show(&env, &["-4"]).text(), @"
    exit: 5
    --- stdout
    --- stderr
    error: there is no turn -4: the session has the turns 0 to 2
    nothing was changed
    hint: `rewind list` shows them
    ");
    assert_snapshot!(show(&env, &["nosuch"]).text(), @"
    exit: 5
    --- stdout
    --- stderr
    error: no turn has an id that begins with `nosuch`: the session has the turns 0 to 2
    nothing was changed
    hint: `rewind list` shows them
    ");
}

#[test]
fn the_counts_alone_the_diffs_alone_and_some_files_alone() {
    let mut env = TestEnv::new();
    shop(&mut env);
    assert_snapshot!(show(&env, &["1", "--stat", "--width", "40"]).text(), @"
    exit: 0
    --- stdout
    turn 1  00000005-0000-4000-8000-000000000000  1 h ago
    a new file

     a.txt     | +1 -1 +-
     new/b.txt | +0 -1 -
     2 files, 1 line added, 2 removed

    not covered, so left as it is:
      turn 1: shell command: make test
    --- stderr
    hint: `rewind restore 1 --scope code` goes there; `--scope both` takes the conversation along
    ");
    assert_snapshot!(show(&env, &["1", "--patch"]).text(), @"
    exit: 0
    --- stdout
    --- a.txt
    +++ a.txt
    @@ -1 +1 @@
    -three
    +two
    --- new/b.txt
    +++ /dev/null
    @@ -1 +0,0 @@
    -b
    --- stderr
    ");
    assert_snapshot!(show(&env, &["1", "--patch", "--path", "new/**"]).text(), @"
    exit: 0
    --- stdout
    --- new/b.txt
    +++ /dev/null
    @@ -1 +0,0 @@
    -b
    --- stderr
    ");
    let none = show(&env, &["1", "--path", "nothing"]);
    assert_eq!(none.code, Some(5), "{}", none.text());
    let both = show(&env, &["1", "--stat", "--patch"]);
    assert_eq!(both.code, Some(2), "{}", both.text());
}

#[test]
fn a_file_that_only_changed_its_name_is_renamed_and_one_that_changed_its_mode_is_said_to() {
    use std::os::unix::fs::PermissionsExt;
    let env = TestEnv::new();
    env.write("old.txt", "the same\n");
    env.write("run", "x\n");
    let mut s = Story::new(&env);
    s.prompt("rename");
    s.write("new.txt", "the same\n");
    s.edit("old.txt", "same", "other");
    s.edit("run", "x", "y");
    s.edit("run", "y", "x");
    s.save();
    std::fs::remove_file(env.workspace().join("old.txt")).unwrap();
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(env.workspace().join("run"), mode).unwrap();
    let run = show(&env, &["0", "--patch"]);
    assert!(
        run.stdout
            .contains("rename from new.txt\nrename to old.txt\n"),
        "{}",
        run.text()
    );
}

#[test]
fn on_a_terminal_a_long_text_goes_through_the_pager() {
    use std::os::unix::fs::PermissionsExt;
    let mut env = TestEnv::new();
    shop(&mut env);
    let pager = env.write("pager", "#!/bin/sh\necho paged; cat\n");
    std::fs::set_permissions(&pager, std::fs::Permissions::from_mode(0o755)).unwrap();
    env.set("TERM", "xterm");
    env.set("NO_COLOR", "1");
    env.set("PAGER", pager.to_str().unwrap());
    for (args, paged) in [
        (&["show", "1"][..], true),
        (&["show", "1", "--no-pager"], false),
    ] {
        let Some(mut screen) = Screen::start(&env, args, (60, 100)) else {
            return;
        };
        let (code, text) = screen.ends();
        assert_eq!(code, Some(0), "{text}");
        assert_eq!(text.contains("paged"), paged, "{text}");
        assert!(text.contains("-three\n+two\n"), "{text}");
        // What is told to the person comes behind what they read.
        assert!(
            text.trim_end().ends_with("takes the conversation along"),
            "{text}"
        );
    }
    // One that is left at once is no failure.
    env.write("pager", "#!/bin/sh\nexit 0\n");
    let Some(mut screen) = Screen::start(&env, &["show", "1"], (60, 100)) else {
        return;
    };
    assert_eq!(screen.ends().0, Some(0));
}
