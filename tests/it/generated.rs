//! What the program gives out to be installed beside it: `man/*.1` and `completions/*` are exactly what it prints, and
//! what it prints is well formed. The pages of section 5 are written by hand and only held to their form.
//!
//! `REWIND_GENERATE=1 cargo test --test it generated` writes them anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::env::{TestEnv, Tree};

/// Each shell and the name under which its script is installed.
const SCRIPTS: [(&str, &str); 5] = [
    ("bash", "rewind.bash"),
    ("elvish", "rewind.elv"),
    ("fish", "rewind.fish"),
    ("powershell", "rewind.ps1"),
    ("zsh", "_rewind"),
];

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The files of a folder that a test is about, by name.
fn files(folder: &Path, is_one: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
    let name = |p: &Path| p.file_name().unwrap().to_str().unwrap().to_owned();
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| is_one(&name(path)))
        .map(|path| (name(&path), fs::read_to_string(&path).unwrap()))
        .collect()
}

fn is_made(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|e| e == "1")
}

/// The pages, as `rewind man --out` writes them.
fn pages(env: &TestEnv) -> BTreeMap<String, String> {
    let folder = env.workspace().join("pages");
    fs::create_dir_all(&folder).unwrap();
    let run = env.run(&["man", "--out", "pages"]);
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert_eq!(run.stdout, "");
    files(&folder, |_| true)
}

fn scripts(env: &TestEnv) -> BTreeMap<String, String> {
    let script = |(shell, file): (&str, &str)| {
        let run = env.run(&["completions", shell]);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{shell}");
        (file.to_owned(), run.stdout)
    };
    SCRIPTS.map(script).into()
}

/// Holds a folder to what the program gives, or writes it there if that is asked for.
fn hold(folder: &str, is_one: impl Fn(&str) -> bool, given: &BTreeMap<String, String>) {
    let folder = project(folder);
    if std::env::var_os("REWIND_GENERATE").is_some() {
        fs::create_dir_all(&folder).unwrap();
        let mut old = files(&folder, &is_one);
        old.retain(|name, _| !given.contains_key(name));
        for name in old.into_keys() {
            fs::remove_file(folder.join(name)).unwrap();
        }
        for (name, text) in given {
            fs::write(folder.join(name), text).unwrap();
        }
    }
    let there = files(&folder, is_one);
    let names = |of: &BTreeMap<String, String>| of.keys().cloned().collect::<BTreeSet<_>>();
    let how = "`REWIND_GENERATE=1 cargo test --test it generated` writes them anew";
    assert_eq!(names(&there), names(given), "{how}");
    for (name, text) in given {
        assert_eq!(there[name], *text, "{name}: {how}");
    }
}

#[test]
fn the_manual_pages_are_those_of_the_program() {
    hold("man", is_made, &pages(&TestEnv::new()));
}

#[test]
fn the_scripts_of_the_shells_are_those_of_the_program() {
    hold("completions", |_| true, &scripts(&TestEnv::new()));
}

#[test]
fn every_command_has_a_page_that_tells_of_its_options() {
    let env = TestEnv::new();
    let help = env.run(&["--help"]).stdout;
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let (list, _) = list.split_once("\n\nOptions").unwrap();
    let commands: Vec<&str> = list
        .lines()
        .filter(|l| l.starts_with("  ") && !l.starts_with("   "))
        .filter_map(|l| l.split_whitespace().next())
        .filter(|c| *c != "help")
        .collect();
    assert!(commands.len() >= 14, "{commands:?}");
    let pages = pages(&env);
    assert_eq!(pages.len(), commands.len() + 1);
    let root = &pages["rewind.1"];
    for command in commands {
        let name = format!("rewind-{command}.1");
        let page = pages.get(&name).unwrap_or_else(|| panic!("no {name}"));
        let dashes = command.replace('-', "\\-");
        assert!(
            root.contains(&format!("rewind\\-{dashes}\\fR(1)")),
            "{name}"
        );
        let help = env.run(&[command, "--help"]).stdout;
        for option in help.split_whitespace().filter(|w| w.starts_with("--")) {
            let end = option.find(|c: char| c != '-' && !c.is_ascii_lowercase());
            let option = option[..end.unwrap_or(option.len())].replace('-', "\\-");
            assert!(page.contains(&option), "{name}: {option}");
        }
    }
}

#[test]
fn every_page_has_its_sections_in_their_order() {
    for (name, page) in pages(&TestEnv::new()) {
        let found: Vec<&str> = page
            .lines()
            .filter_map(|l| l.strip_prefix(".SH "))
            .map(|l| l.trim_matches('"'))
            .collect();
        let root = ["COMMANDS", "ENVIRONMENT", "FILES"];
        let wanted = [
            "NAME",
            "SYNOPSIS",
            "DESCRIPTION",
            "COMMANDS",
            "OPTIONS",
            "EXIT STATUS",
            "ENVIRONMENT",
            "FILES",
            "EXAMPLES",
            "SEE ALSO",
        ];
        let wanted: Vec<&str> = wanted
            .into_iter()
            .filter(|s| name == "rewind.1" || !root.contains(s))
            .collect();
        assert_eq!(found, wanted, "{name}");
        let (_, examples) = page.split_once(".SH EXAMPLES\n.RS 4\n.nf\n").unwrap();
        assert!(examples.starts_with("\\fB"), "{name}: {examples}");
        let codes = page.split_once(".SH \"EXIT STATUS\"\n").unwrap().1;
        assert!(codes.starts_with(".TP\n\\fB0\\fR\ndone"), "{name}: {codes}");
    }
}

/// What `mandoc -T lint` would say, where it is not installed.
#[test]
fn no_line_of_a_page_is_long_or_empty_or_ends_in_a_blank() {
    let pages = files(&project("man"), |_| true);
    assert!(pages.len() > 14);
    for (name, page) in pages {
        for (at, line) in page.lines().enumerate() {
            let at = at + 1;
            assert!(line.len() <= 80, "{name}:{at}: {} bytes", line.len());
            // In an example, an empty line is one.
            assert!(!line.is_empty() || !is_made(&name), "{name}:{at}: empty");
            assert!(!line.ends_with([' ', '\t']), "{name}:{at}: {line:?}");
        }
    }
}

/// Runs a program of the machine's that reads a page; `None`, said aloud, where there is none.
fn output(program: &str, args: &[&str], page: &Path) -> Option<(String, String)> {
    let mut command = Command::new(program);
    command.args(args).arg(page);
    command.env("LC_ALL", "C.UTF-8").env("MANROFFSEQ", "");
    let Ok(output) = command.env("MANWIDTH", "80").output() else {
        // Nothing depends on the line being seen.
        let _ = writeln!(std::io::stderr(), "skipped: no `{program}` here");
        return None;
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Some((text(output.stdout), text(output.stderr)))
}

#[test]
fn the_readers_of_pages_find_nothing_wrong_with_them() {
    for name in files(&project("man"), |_| true).into_keys() {
        let page = project("man").join(&name);
        if let Some(said) = output("mandoc", &["-T", "lint"], &page) {
            assert_eq!(said, (String::new(), String::new()), "{name}");
        }
        // Systems that have another `man` know no `--warnings`.
        let Some((shown, said)) = output("man", &["--warnings", "-l"], &page) else {
            continue;
        };
        if said.contains("option") || shown.is_empty() {
            continue;
        }
        assert_eq!(said, "", "{name}");
        let wide = shown.lines().find(|l| l.chars().count() > 80);
        assert_eq!(wide, None, "{name}");
    }
}

#[test]
fn no_script_knows_the_machine_that_it_was_made_on() {
    let env = TestEnv::new();
    for (name, script) in scripts(&env) {
        for line in script.lines().filter(|l| l.contains("rewind")) {
            let line = line.replace("2>/dev/null", "");
            assert!(!line.contains('/'), "{name}: {line}");
        }
        assert!(!script.contains("target"), "{name}: {script}");
        assert!(script.contains("rewind"), "{name}: {script}");
    }
    // Called by a path, as tests and packagers do, it still writes its name.
    assert!(scripts(&env)["rewind.bash"].contains("\"rewind\" -- "));
}

#[test]
fn the_script_of_bash_takes_no_candidate_for_a_pattern() {
    let script = scripts(&TestEnv::new())["rewind.bash"].clone();
    let off = script.find("set -o noglob").unwrap();
    assert!(off < script.find("COMPREPLY=(").unwrap(), "{script}");
    assert!(script[..off].contains("local -\n"), "{script}");
}

#[test]
fn man_prints_its_own_page() {
    let env = TestEnv::new();
    let run = env.run(&["man"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert_eq!(run.stdout, pages(&env)["rewind.1"]);
}

#[test]
fn man_replaces_its_own_pages_and_no_other_file() {
    let env = TestEnv::new();
    let new = pages(&env);
    let folder = env.workspace().join("pages");
    let before = Tree::of(&folder);
    pages(&env);
    assert_eq!(before.changes(&Tree::of(&folder)), [""; 0], "written again");
    let (mark, _) = new["rewind-log.1"].split_once('\n').unwrap();
    fs::write(folder.join("rewind-log.1"), format!("{mark}\n.TH OLD 1\n")).unwrap();
    assert_eq!(pages(&env), new);

    fs::write(folder.join("rewind-log.1"), "my own\n").unwrap();
    fs::remove_file(folder.join("rewind.1")).unwrap();
    std::os::unix::fs::symlink("rewind-undo.1", folder.join("rewind-redo2.1")).unwrap();
    fs::remove_file(folder.join("rewind-redo.1")).unwrap();
    fs::rename(folder.join("rewind-redo2.1"), folder.join("rewind-redo.1")).unwrap();
    let before = Tree::of(&folder);
    let run = env.run(&["man", "--out", "pages"]);
    assert_eq!(run.code, Some(4), "{}", run.text());
    for name in ["rewind-log.1", "rewind-redo.1", "nothing was changed"] {
        assert!(run.stderr.contains(name), "{}", run.text());
    }
    assert_eq!(before.changes(&Tree::of(&folder)), [""; 0]);
}

#[test]
fn man_makes_no_folder_and_leaves_its_pages_readable() {
    use std::os::unix::fs::PermissionsExt;
    let env = TestEnv::new();
    let run = env.run(&["man", "--out", "nowhere/man1"]);
    assert_eq!(run.code, Some(5), "{}", run.text());
    assert!(!env.workspace().join("nowhere").exists());
    pages(&env);
    for entry in fs::read_dir(env.workspace().join("pages")).unwrap() {
        let meta = entry.unwrap().metadata().unwrap();
        assert_eq!(meta.permissions().mode() & 0o777, 0o644);
    }
}

#[test]
fn a_shell_that_is_not_known_is_a_usage_error_that_names_those_that_are() {
    let run = TestEnv::new().run(&["completions", "tcsh"]);
    assert_eq!(run.code, Some(2), "{}", run.text());
    for (shell, _) in SCRIPTS {
        assert!(run.stderr.contains(shell), "{}", run.text());
    }
}
