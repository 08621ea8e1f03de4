//! One real case for each exit code, and that the documents agree on what there is. A kind without a case fails.

use std::fs;
use std::path::Path;
use std::process::Command;

use rewind::error::{Kind, storage_kind};

use crate::env::{Run, TestEnv, Tree};
use crate::story::{Story, shop};

/// A case of this kind; `None` where no run of the program in a test can end so, and the library shows it.
fn case(kind: Kind) -> Option<Run> {
    Some(match kind {
        Kind::Failed => inside_the_journal(),
        Kind::Usage => {
            let mut env = TestEnv::new();
            shop(&mut env);
            unchanged(&env, &["restore", "1", "--scope", "code"])
        }
        Kind::Partial => unknown_content(),
        Kind::Conflict => {
            let mut env = TestEnv::new();
            shop(&mut env);
            env.write("a.txt", "by hand\n");
            unchanged(&env, &["restore", "1", "--scope", "code", "--yes"])
        }
        Kind::NotFound => {
            let mut env = TestEnv::new();
            shop(&mut env);
            unchanged(&env, &["restore", "9", "--scope", "code", "--yes"])
        }
        Kind::Unsupported => {
            let env = TestEnv::new();
            env.write("notes.txt", "not a session\n");
            unchanged(&env, &["list", "-s", "notes.txt"])
        }
        Kind::Busy => running_agent(),
        Kind::Damaged => lost_saved_bytes(),
        Kind::Storage => no_space(),
        Kind::Internal | Kind::Interrupted => return None,
    })
}

/// A run that must change nothing.
fn unchanged(env: &TestEnv, args: &[&str]) -> Run {
    let before = (Tree::of(&env.workspace()), Tree::of(&env.home()));
    let run = env.run(args);
    assert_eq!(before.0.changes(&Tree::of(&env.workspace())), [""; 0]);
    assert_eq!(before.1.changes(&Tree::of(&env.home())), [""; 0]);
    run
}

/// The agent edited a file of the journal itself.
fn inside_the_journal() -> Run {
    let mut env = TestEnv::new();
    let state = env.workspace().join("state");
    env.set("REWIND_STATE_DIR", state.to_str().unwrap());
    env.write("state/x", "one\n");
    let mut s = Story::new(&env);
    s.prompt("meddle");
    s.edit("state/x", "one", "two");
    s.save();
    let run = env.run(&["restore", "0", "--scope", "code", "--yes"]);
    assert_eq!(fs::read(state.join("x")).unwrap(), b"two\n");
    run
}

fn unknown_content() -> Run {
    let env = TestEnv::new();
    env.write("lost.txt", "precious\n");
    let mut s = Story::new(&env);
    s.prompt("write over it");
    s.unknown_write("lost.txt", "new\n");
    s.write("b.txt", "b\n");
    s.save();
    let run = env.run(&["restore", "0", "--scope", "code", "--yes"]);
    assert!(run.stdout.contains("lost.txt"), "{}", run.text());
    assert!(!env.workspace().join("b.txt").exists());
    run
}

fn running_agent() -> Run {
    let mut env = TestEnv::new();
    shop(&mut env);
    let folder = env.home().join(".claude/sessions");
    fs::create_dir_all(&folder).unwrap();
    let record = serde_json::json!({"pid": std::process::id(), "sessionId": crate::story::ID});
    fs::write(folder.join("1.json"), record.to_string()).unwrap();
    unchanged(&env, &["restore", "1", "--scope", "conversation", "--yes"])
}

/// Somebody emptied the folder of what a restore replaced.
fn lost_saved_bytes() -> Run {
    let mut env = TestEnv::new();
    shop(&mut env);
    let run = env.run(&["restore", "1", "--scope", "code", "--yes"]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    let saved: Vec<_> = Tree::of(&env.state())
        .0
        .into_iter()
        .filter(|(path, entry)| path.iter().any(|p| p == "saved") && !entry.bytes.is_empty())
        .map(|(path, _)| env.state().join(path))
        .collect();
    assert!(!saved.is_empty());
    for path in saved {
        fs::remove_file(path).unwrap();
    }
    unchanged(&env, &["undo", "--yes"])
}

/// No file may become longer than a few blocks: what a full disk or a quota says to one that is being written.
fn no_space() -> Run {
    let env = TestEnv::new();
    let old = "a line of it\n".repeat(20_000);
    env.write("big.txt", &old);
    env.write("a.txt", "one\n");
    let mut s = Story::new(&env);
    s.prompt("shorten it");
    s.write("big.txt", "short\n");
    s.edit("a.txt", "one", "two");
    s.save();
    let before = (Tree::of(&env.workspace()), Tree::of(&env.home()));
    let inner = env.command(&["restore", "0", "--scope", "code", "--yes"]);
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$0\" \"$@\""])
        .arg(inner.get_program())
        .args(inner.get_args())
        .env_clear()
        .current_dir(env.workspace());
    for (name, value) in inner.get_envs() {
        shell.env(name, value.unwrap());
    }
    let output = shell.output().unwrap();
    let run = Run {
        stdout: env.clean(&output.stdout),
        stderr: env.clean(&output.stderr),
        code: output.status.code(),
    };
    assert_eq!(
        before.0.changes(&Tree::of(&env.workspace())),
        [""; 0],
        "{}",
        run.text()
    );
    assert_eq!(before.1.changes(&Tree::of(&env.home())), [""; 0]);
    let again = env.run(&["restore", "0", "--scope", "code", "--yes"]);
    assert_eq!(again.code, Some(0), "{}", again.text());
    assert_eq!(
        fs::read_to_string(env.workspace().join("big.txt")).unwrap(),
        old
    );
    run
}

#[test]
fn every_kind_of_failure_has_its_exit_code() {
    for kind in Kind::ALL {
        let Some(run) = case(kind) else { continue };
        assert_eq!(
            run.code,
            Some(i32::from(kind.code())),
            "{kind:?}: {}",
            run.text()
        );
        if kind == Kind::Partial {
            assert!(
                run.stderr.contains("warning: 1 file is left"),
                "{}",
                run.text()
            );
        } else {
            assert!(
                run.stderr.starts_with("error: "),
                "{kind:?}: {}",
                run.text()
            );
            assert!(
                run.stderr.contains("nothing was changed"),
                "{kind:?}: {}",
                run.text()
            );
        }
    }
}

#[test]
fn success_is_zero_also_where_nothing_is_to_be_done() {
    let mut env = TestEnv::new();
    shop(&mut env);
    for _ in 0..2 {
        let run = env.run(&["restore", "1", "--scope", "code", "--yes"]);
        assert_eq!(run.code, Some(0), "{}", run.text());
    }
}

/// A panic and an interruption cannot be had from outside without a signal or a bug.
#[test]
fn a_bug_and_an_interruption_have_their_codes_in_the_library() {
    assert_eq!(rewind::bug(), Kind::Internal.code());
    assert_eq!(Kind::Internal.code(), 70);
    let interrupted = std::io::Error::from(std::io::ErrorKind::Interrupted);
    assert_eq!(storage_kind(&interrupted).code(), 130);
}

#[test]
fn a_full_disk_under_standard_output_is_told_and_undone_by_nothing() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        return;
    }
    let mut env = TestEnv::new();
    shop(&mut env);
    let full = fs::File::options().write(true).open(full).unwrap();
    let output = env
        .command(&["restore", "1", "--scope", "code", "--yes"])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(i32::from(Kind::Storage.code())));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("the command did its work"), "{told}");
    assert_eq!(fs::read(env.workspace().join("a.txt")).unwrap(), b"two\n");
}

#[test]
fn the_readme_names_every_code() {
    let readme =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    for kind in Kind::ALL {
        let row = format!("| {} | {} |", kind.code(), kind.name());
        assert!(readme.contains(&row), "{row}");
    }
}
