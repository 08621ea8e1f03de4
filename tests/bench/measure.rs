//! Timing of whole programs beside each other: rounds that take turns, so that what slows the machine down slows all of
//! them; medians; ratios to a yardstick; peak memory; the file system, since figures of files mean nothing without it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

/// A program with its arguments, to be timed.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) argv: Vec<OsString>,
    pub(crate) folder: PathBuf,
}

impl Tool {
    pub(crate) fn new<S: AsRef<OsStr>>(name: &'static str, folder: &Path, argv: &[S]) -> Self {
        Self {
            name,
            argv: argv.iter().map(|a| a.as_ref().to_owned()).collect(),
            folder: folder.to_path_buf(),
        }
    }

    /// The program with nothing of the caller's but `PATH`, its home below the folder that is given.
    fn command(&self, home: &Path, before: &[&str]) -> Command {
        let mut argv = before.iter().map(OsString::from).chain(self.argv.clone());
        let mut command = Command::new(argv.next().unwrap_or_default());
        command
            .args(argv)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home)
            .env("REWIND_STATE_DIR", home.join("state"))
            .env("LC_ALL", "C.UTF-8")
            .current_dir(&self.folder)
            .stdin(Stdio::null());
        command
    }

    /// Runs it and takes what it prints.
    pub(crate) fn output(&self, home: &Path) -> Output {
        let output = self.command(home, &[]).output().unwrap();
        assert!(
            output.status.success(),
            "{}: {}: {}",
            self.name,
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        output
    }

    /// Runs it once with its output thrown away; returns milliseconds.
    pub(crate) fn time(&self, home: &Path) -> f64 {
        let mut command = self.command(home, &[]);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let start = Instant::now();
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        let ms = start.elapsed().as_secs_f64() * 1e3;
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{}: {}: {said}",
            self.name,
            output.status
        );
        ms
    }

    /// Its peak memory in KB, as GNU time tells it; `None` where that is not installed.
    pub(crate) fn peak(&self, home: &Path) -> Option<u64> {
        let mut command = self.command(home, &["/usr/bin/time", "-v"]);
        let output = command.stdout(Stdio::null()).output().ok()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = text
            .lines()
            .find(|l| l.contains("Maximum resident set size"))?;
        line.rsplit(' ').next()?.parse().ok()
    }
}

/// The times of a tool, in milliseconds.
pub(crate) struct Times {
    pub(crate) name: &'static str,
    pub(crate) ms: Vec<f64>,
}

impl Times {
    pub(crate) fn median(&self) -> f64 {
        let mut ms = self.ms.clone();
        ms.sort_by(f64::total_cmp);
        ms.get(ms.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// Runs the tools by turns; `run` prepares and times one of them. The first round is thrown away.
pub(crate) fn race(tools: &[Tool], mut run: impl FnMut(&Tool) -> f64) -> Vec<Times> {
    let rounds = number("REWIND_BENCH_ROUNDS").unwrap_or(6).max(2);
    let mut all: Vec<Times> = tools
        .iter()
        .map(|t| Times {
            name: t.name,
            ms: Vec::new(),
        })
        .collect();
    for round in 0..rounds {
        for (tool, times) in tools.iter().zip(&mut all) {
            let ms = run(tool);
            if round > 0 {
                times.ms.push(ms);
            }
        }
    }
    all
}

/// Prints one JSON line for each tool and a table of ratios; the yardsticks are those tools that are named.
pub(crate) fn report(bench: &str, place: &Path, times: &[Times], yardsticks: &[&str]) {
    let file_system = file_system(place);
    for t in times {
        let line = serde_json::json!({
            "bench": bench, "tool": t.name, "file_system": file_system,
            "median_ms": round(t.median()), "ms": t.ms.iter().map(|m| round(*m)).collect::<Vec<_>>(),
        });
        println!("{line}");
    }
    let sticks: Vec<&Times> = times
        .iter()
        .filter(|t| yardsticks.contains(&t.name))
        .collect();
    print!("\n{bench} on {file_system}\n{:<28}{:>10}", "", "ms");
    for stick in &sticks {
        print!("{:>18}", format!("× {}", stick.name));
    }
    println!();
    for t in times {
        print!("{:<28}{:>10.1}", t.name, t.median());
        for stick in &sticks {
            print!("{:>18.2}", t.median() / stick.median());
        }
        println!();
    }
    println!();
}

fn round(ms: f64) -> f64 {
    (ms * 100.0).round() / 100.0
}

/// The binary to time.
pub(crate) fn binary() -> OsString {
    std::env::var_os("REWIND_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_rewind").into())
}

/// A number in the environment.
pub(crate) fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

/// Whether cargo runs the benches; `cargo test` may start them too, and gets no figures.
pub(crate) fn wanted() -> bool {
    std::env::args().any(|a| a == "--bench")
}

/// Whether a program is installed.
pub(crate) fn installed(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

/// Type and options of the file system that a folder is on, as the kernel tells them.
pub(crate) fn file_system(folder: &Path) -> String {
    let folder = folder
        .canonicalize()
        .unwrap_or_else(|_| folder.to_path_buf());
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let mount = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let (at, kind, options) = (words.next()?, words.next()?, words.next()?);
        let on = folder.starts_with(at);
        on.then(|| (at.len(), format!("{kind} ({options})")))
    };
    mounts
        .lines()
        .filter_map(mount)
        .max_by_key(|(len, _)| *len)
        .map_or_else(|| "unknown file system".to_owned(), |(_, name)| name)
}
