//! The house rules that a compiler does not hold: which layer may import which, who may change files, print, read the
//! environment and the clock, how long a file may be, what a type may not be called, and that each agent has its
//! fixtures. The checker itself is tried on bad code below.

use std::path::{Path, PathBuf};

use crate::source::{Named, Source};

/// What each layer may import of ours; itself always, `lib` and `main` everything. Who is not here is in no layer.
const IMPORTS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("error", &["model"]),
    ("env", &["error"]),
    ("fsx", &["model", "error"]),
    // These three know no agent: they read JSON, lines and times, and say nothing of what a session is.
    (
        "ckpt",
        &[
            "format::json",
            "format::lines",
            "format::time",
            "fsx",
            "model",
            "error",
        ],
    ),
    ("format", &["model", "error", "env"]),
    ("git", &["model", "error"]),
    (
        "ops",
        &["format", "ckpt", "fsx", "git", "model", "error", "env"],
    ),
    // `ui` takes the surroundings as a value, for the terminal and its variables.
    ("ui", &["model", "error", "env"]),
    ("cli", &["ui", "model", "error"]),
    (
        "cmd",
        &["cli", "ui", "ops", "format", "model", "error", "env"],
    ),
    ("lib", &["*"]),
    ("main", &["*"]),
];

/// Names that only some may use.
struct Ban {
    /// Whom it binds: `None` is everybody.
    layer: Option<&'static str>,
    /// Who may all the same.
    except: &'static [&'static str],
    /// The names, as they stand in a path.
    names: &'static [&'static str],
    why: &'static str,
}

const BANS: &[Ban] = &[
    Ban {
        layer: Some("model"),
        except: &[],
        names: &[
            "std::fs",
            "std::io",
            "std::net",
            "std::process",
            "rustix",
            "console",
            "zstd",
        ],
        why: "`model` does no I/O",
    },
    Ban {
        layer: None,
        except: &["fsx"],
        names: &[
            "fs::write",
            "fs::rename",
            "fs::copy",
            "fs::remove_file",
            "fs::remove_dir",
            "fs::remove_dir_all",
            "fs::create_dir",
            "fs::create_dir_all",
            "fs::hard_link",
            "fs::soft_link",
            "fs::set_permissions",
            "fs::*",
            "unix::fs::symlink",
            "unix::fs::chown",
            "OpenOptions",
            "DirBuilder",
            "File::create",
            "File::create_new",
            "File::options",
            ".set_len",
            ".set_permissions",
            ".set_times",
            ".set_modified",
            "fs::unlink",
            "fs::mkdir",
            "fs::link",
            "fs::symlink",
            "fs::rmdir",
            "fs::chmod",
            "fs::chown",
            "fs::truncate",
            "renameat",
            "renameat_with",
            "unlinkat",
            "mkdirat",
            "mknodat",
            "linkat",
            "symlinkat",
            "fchmod",
            "fchown",
            "chmodat",
            "chownat",
            "ftruncate",
            "fallocate",
            "utimensat",
            "futimens",
            "copy_file_range",
            "sendfile",
            "tempfile",
        ],
        why: "only `fsx` changes files",
    },
    Ban {
        layer: None,
        // `env` asks the terminal for its width.
        except: &["ui", "env"],
        names: &[
            "io::stdout",
            "io::stderr",
            "Term::stdout",
            "Term::stderr",
            "Term::buffered_stdout",
            "Term::buffered_stderr",
        ],
        why: "only `ui` prints",
    },
    Ban {
        layer: None,
        except: &[],
        names: &["print!", "println!", "eprint!", "eprintln!", "dbg!"],
        why: "print through the streams of `ui`, which report what failed",
    },
    Ban {
        layer: None,
        except: &["env"],
        names: &[
            "std::env",
            "env::var",
            "env::var_os",
            "env::vars",
            "env::vars_os",
            "env::args",
            "env::args_os",
            "env::current_dir",
            "env::temp_dir",
            "env::home_dir",
            "Utc::now",
            "Local::now",
            "SystemTime::now",
            "Instant::now",
            "ProjectDirs",
            "BaseDirs",
            "UserDirs",
        ],
        why: "only `env` reads the environment and the clock",
    },
];

/// Words that say nothing of what a type is.
const EMPTY_WORDS: &[&str] = &[
    "Manager", "Helper", "Util", "Utils", "Service", "Handler", "Data", "Info",
];

const LONGEST_FILE: usize = 500;

/// Names all that is wrong with a file of `src`, one line each.
fn faults(file: &Path, text: &str) -> Vec<String> {
    let parts: Vec<&str> = file.iter().filter_map(|p| p.to_str()).collect();
    let layer = parts[0].trim_end_matches(".rs");
    let mut faults = Vec::new();
    if !text.starts_with("//!") {
        faults.push("1: no `//!` header that says why the file is there".to_owned());
    }
    if is_test(file) {
        return faults;
    }
    let source = Source::of(text);
    if source.lines > LONGEST_FILE {
        faults.push(format!(
            "{} lines without tests, over {LONGEST_FILE}",
            source.lines
        ));
    }
    for named in source.paths() {
        faults.extend(wrong_import(layer, &parts, &named));
        faults.extend(BANS.iter().filter_map(|ban| banned(ban, layer, &named)));
    }
    for name in source.types() {
        let empty = EMPTY_WORDS
            .iter()
            .find(|w| camel_words(&name.text).contains(*w));
        faults.extend(empty.map(|w| {
            format!(
                "{}: `{}` is named with the empty word `{w}`",
                name.line, name.text
            )
        }));
    }
    faults
}

/// Whether a file holds tests only.
fn is_test(file: &Path) -> bool {
    file.file_name().is_some_and(|n| n == "tests.rs")
}

/// The path below `src` that a path in the code leads to, where it leaves its own layer.
fn target<'a>(file: &[&str], named: &'a Named) -> Option<&'a [String]> {
    let first = named.parts.first()?;
    let ups = named.parts.iter().take_while(|p| *p == "super").count();
    let depth = file.len() - usize::from(file.last() == Some(&"mod.rs"));
    match first.as_str() {
        "crate" => named.parts.get(1..),
        "super" if ups >= depth => named.parts.get(ups..),
        _ => None,
    }
}

fn wrong_import(layer: &str, file: &[&str], named: &Named) -> Option<String> {
    let Some((_, may)) = IMPORTS.iter().find(|(name, _)| *name == layer) else {
        return Some(format!(
            "{}: `{layer}` is no layer that layers.rs knows",
            named.line
        ));
    };
    let path = target(file, named)?;
    let to = path.first()?;
    let begins = |allowed: &str| {
        let mut path = path.iter();
        allowed
            .split("::")
            .all(|part| path.next().is_some_and(|p| p == part))
    };
    let ok = to == layer || may.iter().any(|m| *m == "*" || begins(m));
    (!ok).then(|| format!("{}: `{layer}` imports `{to}`", named.line))
}

fn banned(ban: &Ban, layer: &str, named: &Named) -> Option<String> {
    if ban.layer.is_some_and(|l| l != layer) || ban.except.contains(&layer) {
        return None;
    }
    let is = |name: &&&str| {
        let name: Vec<&str> = name.split("::").collect();
        named
            .parts
            .windows(name.len())
            .any(|w| w == name.as_slice())
    };
    let name = ban.names.iter().find(is)?;
    Some(format!("{}: `{name}`: {}", named.line, ban.why))
}

fn camel_words(name: &str) -> Vec<&str> {
    let starts = name
        .char_indices()
        .filter(|(_, c)| c.is_uppercase())
        .map(|(at, _)| at);
    let starts: Vec<usize> = starts.chain([name.len()]).collect();
    starts
        .windows(2)
        .filter_map(|w| name.get(w[0]..w[1]))
        .collect()
}

fn source_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

#[test]
fn the_source_keeps_the_rules_of_the_house() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = source_files();
    assert!(files.len() > 20, "only {} files found", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let below = file.strip_prefix(&src).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        let named = faults(below, &text);
        wrong.extend(
            named
                .into_iter()
                .map(|f| format!("src/{}:{f}", below.display())),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_agent_has_its_fixtures_and_says_what_they_show() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for format in rewind::format::ALL {
        let readme = fixtures.join(format.agent()).join("README.md");
        assert!(readme.is_file(), "{} is missing", readme.display());
    }
}

fn faults_of(file: &str, code: &str) -> Vec<String> {
    faults(Path::new(file), &format!("//! A test.\n{code}"))
}

#[track_caller]
fn assert_fault(file: &str, code: &str, words: &str) {
    let found = faults_of(file, code);
    assert!(
        found.iter().any(|f| f.contains(words)),
        "{file}: {code}: {found:?}"
    );
}

#[test]
fn an_import_against_the_flow_is_found_however_it_is_written() {
    assert_fault(
        "model/a.rs",
        "use crate::format::Head;",
        "2: `model` imports `format`",
    );
    assert_fault(
        "format/a.rs",
        "use crate::{\n  env::Env,\n  ckpt::Store};",
        "4: `format` imports `ckpt`",
    );
    assert_fault(
        "ckpt/a.rs",
        "fn f() { crate::format::detect(); }",
        "`ckpt` imports `format`",
    );
    assert_fault("ops/a.rs", "use crate::cmd;", "`ops` imports `cmd`");
    assert_fault("fsx/a.rs", "use crate::ui::Ui;", "`fsx` imports `ui`");
    assert_fault(
        "format/claude/a.rs",
        "use super::super::super::ckpt::x;",
        "`format` imports `ckpt`",
    );
    assert_fault(
        "format/mod.rs",
        "use super::ckpt::x;",
        "`format` imports `ckpt`",
    );
    assert_fault("stray.rs", "fn f() {}", "`stray` is no layer");
}

#[test]
fn an_import_with_the_flow_is_no_fault() {
    for (file, code) in [
        (
            "ops/a.rs",
            "use crate::{ckpt, format::Head, fsx::tree, model::edit::Edit};",
        ),
        ("format/claude/a.rs", "use super::super::{Head, json};"),
        (
            "format/claude/mod.rs",
            "use super::json; use crate::env::Env;",
        ),
        ("cmd/list.rs", "use crate::{ui::Ui, ops, cli::List};"),
        (
            "ckpt/a.rs",
            "use crate::format::{json::{self, Value}, lines}; fn f() { crate::format::time(x); }",
        ),
        ("main.rs", "fn main() { rewind::run(); }"),
    ] {
        assert_eq!(faults_of(file, code), [""; 0], "{file}");
    }
}

#[test]
fn input_and_output_in_the_model_is_found() {
    assert_fault(
        "model/a.rs",
        "use std::{fs, path::Path};",
        "`model` does no I/O",
    );
    assert_fault(
        "model/a.rs",
        "fn f() -> std::io::Result<()> { Ok(()) }",
        "`model` does no I/O",
    );
    assert_fault("model/a.rs", "fn f() { chrono::Utc::now(); }", "clock");
}

#[test]
fn a_change_of_files_outside_fsx_is_found() {
    for code in [
        "fn f() { std::fs::write(p, b); }",
        "use std::fs::{self, rename};",
        "use std::fs::*;",
        "fn f() { fs::remove_dir_all(p); }",
        "fn f() { File::create(p); }",
        "fn f() { std::fs::OpenOptions::new(); }",
        "fn f() { file.set_len(0); }",
        "use rustix::fs::{openat, unlinkat};",
        "fn f() { rustix::fs::renameat(a, b, c, d); }",
    ] {
        assert_fault("ops/a.rs", code, "only `fsx` changes files");
        assert_eq!(faults_of("fsx/a.rs", code), [""; 0], "{code}");
    }
    assert_eq!(
        faults_of(
            "ops/a.rs",
            "fn f() { std::fs::File::open(p); out.write(b); }"
        ),
        [""; 0]
    );
}

#[test]
fn printing_outside_ui_is_found() {
    assert_fault(
        "cmd/a.rs",
        "fn f() { println!(\"x\"); }",
        "print through the streams",
    );
    assert_fault(
        "ui/a.rs",
        "fn f() { eprintln!(); }",
        "print through the streams",
    );
    assert_fault(
        "cmd/a.rs",
        "use std::io::{Write, stdout};",
        "only `ui` prints",
    );
    assert_eq!(
        faults_of("ui/a.rs", "fn f() { std::io::stdout(); }"),
        [""; 0]
    );
    assert_eq!(
        faults_of("cmd/a.rs", "fn f() { writeln!(text, \"x\"); }"),
        [""; 0]
    );
}

#[test]
fn a_look_at_environment_or_clock_outside_env_is_found() {
    for code in [
        "fn f() { std::env::var(\"HOME\"); }",
        "use std::env;",
        "fn f() { Instant::now(); }",
        "fn f() { std::time::SystemTime::now(); }",
    ] {
        assert_fault("ops/a.rs", code, "only `env` reads");
        assert_eq!(faults_of("env.rs", code), [""; 0], "{code}");
    }
    assert_eq!(
        faults_of(
            "ops/a.rs",
            "use crate::env::Env; fn f(e: &Env) { e.var(\"X\"); }"
        ),
        [""; 0]
    );
}

#[test]
fn a_file_too_long_or_without_a_header_is_found() {
    let long = "fn f() {}\n".repeat(LONGEST_FILE);
    assert_fault("ops/a.rs", &long, "501 lines without tests");
    let tests = format!("#[cfg(test)]\nmod tests {{\n{long}}}\n");
    assert_eq!(faults_of("ops/a.rs", &tests), [""; 0]);
    let bare = faults(Path::new("ops/a.rs"), "// A comment.\nfn f() {}\n");
    assert!(bare[0].contains("header"), "{bare:?}");
}

#[test]
fn an_empty_word_in_the_name_of_a_type_is_found() {
    assert_fault("ops/a.rs", "struct SessionManager;", "`Manager`");
    assert_fault("ops/a.rs", "enum Info {}", "`Info`");
    assert_eq!(
        faults_of(
            "ops/a.rs",
            "struct Database; struct Metadata; struct Datum;"
        ),
        [""; 0]
    );
}

#[test]
fn tests_may_do_what_the_program_may_not() {
    let code = "#[cfg(test)]\nmod tests { fn f() { std::fs::write(p, b); println!(); } }";
    assert_eq!(faults_of("ops/a.rs", code), [""; 0]);
    assert_eq!(
        faults_of("ops/tests.rs", "fn f() { std::fs::write(p, b); }"),
        [""; 0]
    );
}
