//! What a shell is told at Tab, through the protocol of the scripts in `completions/`: the program is run as they run it.
//! The shells themselves are not needed.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use insta::assert_snapshot;

use crate::env::{Run, TestEnv, Tree};
use crate::story::{History, ID, NOW, Story, shop, touch};

/// The program as the script of a shell runs it, Tab pressed in the last word.
fn command<S: AsRef<OsStr>>(env: &TestEnv, shell: &str, words: &[S]) -> Command {
    let mut args: Vec<&OsStr> = vec![OsStr::new("--"), OsStr::new("rewind")];
    args.extend(words.iter().map(AsRef::as_ref));
    let mut command = env.command(&args);
    command
        .env("COMPLETE", shell)
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
        .env("_CLAP_IFS", if shell == "bash" { "\u{b}" } else { "\n" });
    command
}

fn end(env: &TestEnv, command: &mut Command) -> Run {
    let output = command.output().unwrap();
    Run {
        stdout: env.clean(&output.stdout),
        stderr: env.clean(&output.stderr),
        code: output.status.code(),
    }
}

/// What the shell is told; never a word of talk, never a failure.
#[track_caller]
fn told<S: AsRef<OsStr>>(env: &TestEnv, shell: &str, words: &[S]) -> String {
    let run = end(env, &mut command(env, shell, words));
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    run.stdout
}

/// The values alone.
#[track_caller]
fn values(env: &TestEnv, words: &[&str]) -> Vec<String> {
    let text = told(env, "fish", words);
    text.lines()
        .map(|l| l.split('\t').next().unwrap().to_owned())
        .collect()
}

/// A second session, older than that of [`shop`].
const OTHER: &str = "0ccc0000-0000-4000-8000-000000000002";

fn two_sessions() -> TestEnv {
    let mut env = TestEnv::new();
    shop(&mut env);
    let mut s = Story::with(&env, OTHER, History::Off);
    for n in 0..12 {
        s.prompt(&format!("number {n}"));
    }
    touch(&s.save(), 7200);
    env
}

#[test]
fn a_turn_is_completed_newest_first_with_its_prompt() {
    let env = two_sessions();
    assert_snapshot!(told(&env, "fish", &["show", ""]), @r"
    2	1 h ago: three instead of two
    1	1 h ago: a new file
    0	1 h ago: two instead of one
    ");
    assert_snapshot!(told(&env, "zsh", &["restore", ""]), @r"
    2:1 h ago: three instead of two
    1:1 h ago: a new file
    0:1 h ago: two instead of one
    ");
    assert_eq!(told(&env, "bash", &["fork", ""]), "2\u{b}1\u{b}0");
    assert_eq!(told(&env, "elvish", &["show", ""]), "2\n1\n0");
    assert_eq!(told(&env, "bash", &["show", "1"]), "1");
    assert_eq!(
        told(&env, "powershell", &["show", "1"]),
        "1\t1 h ago: a new file\n"
    );
}

#[test]
fn a_turn_is_completed_by_its_id_where_no_number_fits() {
    let env = two_sessions();
    let found = values(&env, &["show", "0000000b"]);
    assert_eq!(found, ["0000000b-0000-4000-8000-000000000000"]);
    assert_eq!(values(&env, &["show", "x"]), [""; 0]);
}

#[test]
fn a_turn_is_that_of_the_session_that_was_typed() {
    let env = two_sessions();
    for words in [
        ["show", "-s", "0ccc", "1"].as_slice(),
        &["-s", "0ccc", "show", "1"],
        &["show", "--session=0ccc", "1"],
        &["restore", "--scope", "both", "-s0ccc", "1"],
    ] {
        assert_eq!(values(&env, words), ["11", "10", "1"], "{words:?}");
    }
    // Behind the cursor counts too: the whole line is handed over.
    let mut command = command(&env, "zsh", &["show", "1", "-s", "0ccc"]);
    let run = end(&env, command.env("_CLAP_COMPLETE_INDEX", "2"));
    assert!(run.stdout.starts_with("11:"), "{}", run.text());
}

#[test]
fn a_turn_is_that_of_the_workspace_that_was_typed() {
    let env = two_sessions();
    let away = env.home();
    let mut with = command(&env, "fish", &["show", "-w", "../ws", "1"]);
    let run = end(&env, with.current_dir(&away));
    assert_eq!(run.stdout, "1\t1 h ago: a new file\n", "{}", run.text());
    let mut without = command(&env, "fish", &["show", "1"]);
    assert_eq!(end(&env, without.current_dir(&away)).stdout, "");
}

#[test]
fn bash_cuts_a_word_at_the_equals_sign_and_is_understood() {
    let env = two_sessions();
    let cut = ["show", "--session", "=", "0ccc", "11"];
    assert_eq!(told(&env, "bash", &cut), "11");
    let cut = ["restore", "1", "--scope", "=", "co"];
    assert_eq!(told(&env, "bash", &cut), "code\u{b}conversation");
}

#[test]
fn a_session_is_completed_with_agent_age_and_first_prompt() {
    let env = two_sessions();
    assert_snapshot!(told(&env, "fish", &["show", "-s", ""]), @r"
    5e550000-0000-4000-8000-000000000001	claude, 1 h ago: two instead of one
    0ccc0000-0000-4000-8000-000000000002	claude, 2 h ago: number 0
    ");
    assert_eq!(values(&env, &["list", ""]), [ID, OTHER]);
    assert_eq!(
        values(&env, &["show", "--session=0"]),
        [format!("--session={OTHER}")]
    );
    assert_eq!(told(&env, "bash", &["list", "5e"]), ID);
}

#[test]
fn a_session_is_completed_as_a_file_where_no_id_fits() {
    let env = two_sessions();
    assert_eq!(values(&env, &["show", "-s", "keep/"]), ["keep/notes.txt"]);
    assert_eq!(values(&env, &["show", "-s", "ke"]), ["keep/"]);
}

#[test]
fn operations_are_completed_for_the_command_that_can_take_them_back() {
    let env = two_sessions();
    assert_eq!(values(&env, &["redo", "2"]), [""; 0]);
    for args in [["restore", "2"], ["restore", "1"]] {
        let run = env.run(&[&args[..], &["--scope", "code", "--yes"]].concat());
        assert_eq!(run.code, Some(0), "{}", run.text());
    }
    assert_eq!(env.run(&["undo", "--yes"]).code, Some(0));
    assert_eq!(
        told(&env, "fish", &["undo", "2026"]),
        "[OP1]\trestore, just now: before turn 2, three instead of two\n"
    );
    assert_eq!(
        told(&env, "fish", &["redo", "2026"]),
        "[OP1]\tundo, just now: before turn 1, a new file\n"
    );
}

#[test]
fn agents_are_those_that_the_command_takes() {
    let env = TestEnv::new();
    let hooked = values(&env, &["init", ""]);
    assert!(hooked.iter().any(|a| a == "opencode"), "{hooked:?}");
    assert_eq!(values(&env, &["deinit", "clau"]), ["claude"]);
    let read = values(&env, &["sessions", "--agent", ""]);
    assert!(read.iter().any(|a| a == "vibe"), "{read:?}");
    assert!(!read.iter().any(|a| a == "opencode"), "{read:?}");
    assert_eq!(
        told(&env, "fish", &["sessions", "--agent", "copilot"]),
        "copilot\tCopilot CLI\n"
    );
}

#[test]
fn options_are_for_who_types_a_dash_or_where_nothing_else_can_stand() {
    let env = two_sessions();
    assert_eq!(values(&env, &["show", ""]), ["2", "1", "0"]);
    assert_eq!(values(&env, &["show", "--se"]), ["--session"]);
    let flags = values(&env, &["show", "-"]);
    assert!(flags.iter().any(|f| f == "-s"), "{flags:?}");
    let flags = values(&env, &["restore", "-1", ""]);
    assert!(flags.iter().any(|f| f == "--scope"), "{flags:?}");
    assert!(flags.iter().all(|f| f.starts_with('-')), "{flags:?}");
    let commands = values(&env, &[""]);
    assert!(commands.iter().any(|c| c == "restore"), "{commands:?}");
    assert!(commands.iter().all(|c| !c.starts_with('-')), "{commands:?}");
}

#[test]
fn files_are_completed_behind_two_dashes_only() {
    let env = two_sessions();
    let files = values(&env, &["restore", "1", "--scope", "code", "--", ""]);
    assert!(files.iter().any(|f| f == "keep/"), "{files:?}");
    let without = values(&env, &["restore", "1", "--scope", "code", "k"]);
    assert_eq!(without, [""; 0]);
}

#[test]
fn a_name_that_the_shell_would_act_upon_is_quoted() {
    let env = TestEnv::new();
    env.write("$(touch x) *", "");
    let words = ["restore", "1", "--", "$"];
    assert_eq!(told(&env, "bash", &words), "\\$\\(touch\\ x\\)\\ \\*");
    assert_eq!(told(&env, "powershell", &words), "'$(touch x) *'\n");
    // These quote by themselves.
    assert_eq!(told(&env, "fish", &words), "$(touch x) *\n");
    assert_eq!(told(&env, "zsh", &words), "$(touch x) *");
    // What is quoted already is understood.
    assert_eq!(
        told(&env, "bash", &["restore", "1", "--", "\\$\\(to"]),
        "\\$\\(touch\\ x\\)\\ \\*"
    );
}

#[test]
fn a_hostile_prompt_reaches_no_terminal() {
    let mut env = TestEnv::new();
    env.at(NOW);
    let mut s = Story::new(&env);
    s.prompt("\u{1b}]0;x\u{7}\u{1b}[2J\u{202e}gnp\ta\rb\u{9b}31m");
    s.prompt(&"word ".repeat(200_000));
    s.prompt("");
    s.prompt("\n\n  second line: said first\nnot this");
    s.save();
    fs::write(env.workspace().join("a\nb\u{1b}[2J"), "").unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        for words in [
            ["show", ""].as_slice(),
            &["show", "-s", ""],
            &["restore", "1", "--", ""],
        ] {
            let text = told(&env, shell, words);
            let control = |c: char| c.is_control() && !"\n\t\u{b}".contains(c);
            assert!(!text.contains(control), "{shell}: {text:?}");
            assert!(!text.contains('\u{202e}'), "{shell}: {text:?}");
            assert!(text.len() < 2_000, "{shell}: {} bytes", text.len());
        }
    }
    let turns = told(&env, "fish", &["show", ""]);
    assert_eq!(turns.lines().count(), 4, "{turns}");
    assert!(
        turns.lines().all(|l| l.matches('\t').count() == 1),
        "{turns}"
    );
    assert!(turns.contains("second line: said first\n"), "{turns}");
}

#[test]
fn completion_changes_nothing_also_where_a_run_was_killed() {
    let env = two_sessions();
    let args = ["restore", "1", "--scope", "code", "--yes"];
    assert_eq!(env.run_killed_at("placed-one", &args).code, None);
    let trees = || [env.workspace(), env.state(), env.home()].map(|f| Tree::of(&f));
    let before = trees();
    for words in [
        ["show", ""].as_slice(),
        &["show", "-s", ""],
        &["undo", ""],
        &["redo", ""],
        &["restore", "1", "--", ""],
        &["init", ""],
    ] {
        told(&env, "fish", words);
    }
    for (before, after) in before.iter().zip(trees()) {
        assert_eq!(before.changes(&after), [""; 0]);
    }
    // The next command finds it open still, and settles it.
    let run = env.run(&["list"]);
    assert!(
        run.stderr.contains("had been interrupted"),
        "{}",
        run.text()
    );
}

#[test]
fn what_goes_wrong_is_no_candidate_and_no_word() {
    let mut env = TestEnv::new();
    let none = values(&env, &["show", ""]);
    assert!(none.iter().all(|v| v.starts_with('-')), "{none:?}");
    assert_eq!(told(&env, "bash", &["undo", "2"]), "");
    let path = shop(&mut env);
    fs::write(&path, b"{\"type\":\"user\",\0\xff\n{{{{").unwrap();
    assert_eq!(told(&env, "fish", &["show", "1"]), "");
    env.set("REWIND_STATE_DIR", "not/absolute");
    assert_eq!(told(&env, "fish", &["undo", "2"]), "");
    told(&env, "fish", &["nothing", "of", "ours", ""]);
    let none: [&str; 0] = [];
    let odd = OsStr::from_bytes(b"\xff\xfe");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        told(&env, shell, &[OsStr::new("show"), odd]);
        told(
            &env,
            shell,
            &[OsStr::new("-s"), odd, OsStr::new("show"), OsStr::new("")],
        );
        told(&env, shell, &none);
    }
}

#[test]
fn a_word_that_is_not_there_is_no_candidate() {
    let env = two_sessions();
    for shell in ["bash", "zsh", "elvish"] {
        for at in ["", "-1", "9", "x", "18446744073709551615"] {
            let mut command = command(&env, shell, &["show", ""]);
            let run = end(&env, command.env("_CLAP_COMPLETE_INDEX", at));
            assert_eq!(
                (run.code, run.text()),
                (Some(0), "exit: 0\n--- stdout\n--- stderr\n".into())
            );
        }
    }
}

#[test]
fn a_variable_of_that_name_that_means_something_else_is_not_a_question() {
    let mut env = two_sessions();
    for value in ["1", "yes", "tcsh", "", "bash"] {
        env.set("COMPLETE", value);
        let run = env.run(&["list", "-n", "1"]);
        assert!(
            run.stdout.contains("three instead of two"),
            "{value}: {}",
            run.text()
        );
    }
}

#[test]
fn asked_without_a_line_it_gives_the_script() {
    let mut env = TestEnv::new();
    let script = env.run(&["completions", "zsh"]);
    env.set("COMPLETE", "/usr/bin/zsh");
    let none: [&str; 0] = [];
    assert_eq!(env.run(&none), script);
}

#[test]
fn completion_works_where_the_folder_is_gone() {
    let env = two_sessions();
    let gone = env.workspace().join("gone");
    fs::create_dir(&gone).unwrap();
    let inner = command(&env, "fish", &["show", ""]);
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", "rmdir ../gone; exec \"$0\" \"$@\""])
        .arg(inner.get_program())
        .args(inner.get_args())
        .env_clear()
        .current_dir(&gone);
    for (name, value) in inner.get_envs() {
        shell.env(name, value.unwrap());
    }
    let run = end(&env, &mut shell);
    assert_eq!(run.text(), "exit: 0\n--- stdout\n--- stderr\n");
}
