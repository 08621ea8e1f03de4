//! The real command killed at each of its crash points: whatever the next command is, files and session are then all old
//! or all new, and nothing is left behind.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;

use rewind::fsx::crash::POINTS;

use crate::env::{TestEnv, Tree};
use crate::story::Story;

fn told(env: &TestEnv) -> std::path::PathBuf {
    for n in 0..4 {
        env.write(&format!("old/{n}.txt"), format!("before {n}\n"));
    }
    let mut s = Story::new(env);
    s.prompt("first");
    s.edit("old/0.txt", "before", "between");
    s.prompt("second");
    for n in 0..4 {
        s.edit(&format!("old/{n}.txt"), &n.to_string(), "after");
    }
    s.write("made/deep/new.txt", "new\n");
    s.bash("true");
    s.save()
}

/// Every file below a folder whose name shows that it is ours.
fn leftovers(folder: &Path) -> Vec<String> {
    let mut out = Vec::new();
    let mut stack = vec![folder.to_path_buf()];
    while let Some(at) = stack.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name.contains(".rewind") || name.contains(".tmp") {
                out.push(path.display().to_string());
            }
            if path.is_dir() {
                stack.push(path);
            }
        }
    }
    out
}

/// Contents of workspace and session, and whether the session is a whole one.
fn world(env: &TestEnv, session: &Path) -> (Tree, Vec<u8>) {
    (
        Tree::of(&env.workspace()).contents(),
        fs::read(session).unwrap(),
    )
}

fn kill_at_each_point(args: &[&str], first: &[&[&str]]) {
    let mut killed = 0;
    for point in POINTS {
        let mut env = TestEnv::new();
        let session = told(&env);
        for before in first {
            assert_eq!(env.run(before).code, Some(0));
        }
        let old = world(&env, &session);
        env.set("REWIND_CRASH_AT", point);
        let mut run = env.command(args);
        let status = run
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        env.set("REWIND_CRASH_AT", "");
        killed += usize::from(status.signal().is_some());
        let settled = env.run(&["log"]);
        assert_eq!(settled.code, Some(0), "{point}: {}", settled.text());
        let new = world(&env, &session);
        let done = env.run(args);
        // Done already: an undo has nothing left to do, a restore finds all as it should be.
        assert!(matches!(done.code, Some(0 | 5)), "{point}: {}", done.text());
        let end = world(&env, &session);
        assert!(
            new == old || new == end,
            "{point}: neither all old nor all new"
        );
        assert_eq!(leftovers(&env.workspace()), Vec::<String>::new(), "{point}");
        assert_eq!(leftovers(&env.state()), Vec::<String>::new(), "{point}");
        assert_eq!(
            leftovers(session.parent().unwrap()),
            Vec::<String>::new(),
            "{point}"
        );
    }
    assert!(killed > 10, "only {killed} points were reached");
}

#[test]
fn a_restore_killed_at_any_point_is_all_or_nothing() {
    kill_at_each_point(
        &[
            "restore",
            "1",
            "--scope",
            "both",
            "--yes",
            "-s",
            crate::story::ID,
        ],
        &[],
    );
}

#[test]
fn an_undo_killed_at_any_point_is_all_or_nothing() {
    let restore: &[&str] = &[
        "restore",
        "0",
        "--scope",
        "both",
        "--yes",
        "-s",
        crate::story::ID,
    ];
    kill_at_each_point(&["undo", "--yes"], &[restore]);
}
