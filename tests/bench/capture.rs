//! What a capture costs the agent that waits for it: the whole process, a real payload on standard input, one file of 10 KB,
//! in trees, sessions and stores of any size; beside an empty start of the same program, a copy, and what git and Node need
//! for the same. And what 200 turns of five edits leave on the disk. `cargo bench --bench capture`.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "its figures are what a bench is for")]

#[expect(dead_code, reason = "each bench uses a part of it")]
mod measure;

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use measure::{binary, file_system, installed, number, wanted};

/// Bytes of the file that is captured.
const LEN: usize = 10 << 10;

fn main() {
    if !wanted() {
        return;
    }
    let temp = tempfile::tempdir().unwrap();
    let chosen = std::env::var_os("REWIND_BENCH_DIR").map(PathBuf::from);
    let base = chosen.unwrap_or_else(|| temp.path().to_path_buf());
    println!("on {}", file_system(&base));
    latency(&base);
    disk(&base);
}

/// One place where a hook is called.
struct World {
    name: String,
    home: PathBuf,
    ws: PathBuf,
    next: usize,
}

impl World {
    fn new(base: &Path, name: &str, files: usize, session: u64, checkpoints: usize) -> Self {
        let home = base.join(name.replace(' ', "-"));
        let ws = home.join("ws");
        fs::create_dir_all(&ws).unwrap();
        for n in 0..files {
            if n % 1000 == 0 {
                fs::create_dir_all(ws.join(format!("d{}", n / 1000))).unwrap();
            }
            fs::write(ws.join(format!("d{}/f{n}", n / 1000)), "x").unwrap();
        }
        let world = Self {
            name: name.to_owned(),
            home,
            ws,
            next: 0,
        };
        fs::create_dir_all(world.session().parent().unwrap()).unwrap();
        fs::File::create(world.session())
            .unwrap()
            .set_len(session)
            .unwrap();
        world.hook(&world.payload("UserPromptSubmit", "\"prompt\":\"start\""));
        let sidecar = world.session().with_extension("ckpt");
        let record = fs::read_to_string(sidecar.join("turn-0.json")).unwrap();
        for n in 1..checkpoints {
            let text = record.replace("\"turn\":0", &format!("\"turn\":{n}"));
            fs::write(sidecar.join(format!("turn-{n}.json")), text).unwrap();
        }
        if checkpoints > 1 {
            let current = sidecar.join("current.json");
            let text = fs::read_to_string(&current).unwrap();
            let last = format!("\"turn\":{}", checkpoints - 1);
            fs::write(current, text.replace("\"turn\":0", &last)).unwrap();
        }
        world
    }

    fn session(&self) -> PathBuf {
        self.home
            .join(".claude/projects/-ws/5e550000-0000-4000-8000-000000000001.jsonl")
    }

    fn payload(&self, event: &str, more: &str) -> String {
        let (session, ws) = (self.session(), &self.ws);
        format!(
            "{{\"session_id\":\"5e550000-0000-4000-8000-000000000001\",\"transcript_path\":\"{}\",\"cwd\":\"{}\",\"hook_event_name\":\"{event}\",{more}}}",
            session.display(),
            ws.display()
        )
    }

    fn command(&self, argv: &[&str]) -> Command {
        let mut command = Command::new(argv.first().unwrap());
        command
            .args(argv.get(1..).unwrap())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.home)
            .env("REWIND_STATE_DIR", self.home.join("state"))
            .current_dir(&self.ws)
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        command
    }

    /// Runs a program with this on its standard input; milliseconds.
    fn time(&self, argv: &[&str], input: &str) -> f64 {
        let start = Instant::now();
        let mut child = self.command(argv).spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        assert!(child.wait().unwrap().success(), "{argv:?}");
        start.elapsed().as_secs_f64() * 1e3
    }

    fn hook(&self, payload: &str) -> f64 {
        let program = PathBuf::from(binary());
        self.time(&[program.to_str().unwrap(), "hook", "claude"], payload)
    }

    /// A file that no turn has touched yet.
    fn fresh(&mut self) -> PathBuf {
        let path = self.ws.join(format!("fresh-{}", self.next));
        self.next += 1;
        let line = format!(
            "{} a line of a file that is captured, of {}\n",
            self.next, self.name
        );
        let text = line.repeat(LEN / line.len() + 1);
        fs::write(&path, text.get(..LEN).unwrap()).unwrap();
        path
    }

    fn capture(&mut self) -> f64 {
        // A turn of a few files each, as turns are.
        if self.next.is_multiple_of(5) {
            self.hook(&self.payload("UserPromptSubmit", &format!("\"prompt\":\"{}\"", self.next)));
        }
        let path = self.fresh();
        let call = format!(
            "\"tool_name\":\"Write\",\"tool_input\":{{\"file_path\":\"{}\"}}",
            path.display()
        );
        self.hook(&self.payload("PreToolUse", &call))
    }
}

type Run = Box<dyn FnMut() -> f64>;

fn latency(base: &Path) {
    let many = number("REWIND_BENCH_FILES").unwrap_or(10_000);
    let rounds = number("REWIND_BENCH_ROUNDS").unwrap_or(200);
    let program = PathBuf::from(binary()).to_str().unwrap().to_owned();
    let mut tools: Vec<(String, Run)> = Vec::new();
    let start = World::new(base, "start", 10, 1 << 10, 1);
    let empty = program.clone();
    tools.push((
        "the program, nothing to do".to_owned(),
        Box::new(move || start.time(&[&empty, "hook"], "{}")),
    ));
    let mut copied = World::new(base, "copied", 10, 1 << 10, 1);
    tools.push((
        "cp of the file".to_owned(),
        Box::new(move || {
            let (from, to) = (copied.fresh(), copied.home.join("copy"));
            copied.time(&["cp", from.to_str().unwrap(), to.to_str().unwrap()], "")
        }),
    ));
    for (name, files, session, checkpoints) in [
        ("hook", 10, 1 << 10, 1),
        ("hook, many files", many, 1 << 10, 1),
        ("hook, session of 1 GB", 10, 1 << 30, 1),
        ("hook, 10000 checkpoints", 10, 1 << 10, 10_000),
    ] {
        let mut world = World::new(base, name, files, session, checkpoints);
        tools.push((name.to_owned(), Box::new(move || world.capture())));
    }
    others(base, &mut tools);
    let mut all: Vec<Vec<f64>> = tools.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for ((name, run), times) in tools.iter_mut().zip(&mut all) {
            // The slow ones need not be run as often.
            if !name.starts_with("hook") && round >= 60 {
                continue;
            }
            times.push(run());
        }
    }
    println!(
        "\n{:<28}{:>9}{:>9}{:>9}{:>16}",
        "", "p50 ms", "p95", "p99", "× start + copy"
    );
    let p = |times: &[f64], part: usize| {
        let mut sorted = times.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted
            .get((sorted.len() * part / 100).min(sorted.len() - 1))
            .copied()
            .unwrap_or(f64::NAN)
    };
    let median = |n: usize| p(all.get(n).unwrap(), 50);
    let base = median(0) + median(1);
    for ((name, _), times) in tools.iter().zip(&all) {
        let half = p(times, 50);
        println!(
            "{name:<28}{half:>9.2}{:>9.2}{:>9.2}{:>16.2}",
            p(times, 95),
            p(times, 99),
            half / base
        );
    }
}

/// What git and Node need for the same.
fn others(base: &Path, tools: &mut Vec<(String, Run)>) {
    if installed("git") {
        for (name, argv) in [
            ("git hash-object -w", &["git", "hash-object", "-w"][..]),
            ("git stash create", &["git", "stash", "create"]),
        ] {
            let mut world = World::new(base, name, 1000, 1 << 10, 1);
            let git = |args: &str| {
                let script = format!("git -c user.name=x -c user.email=x@x {args} >/dev/null 2>&1");
                world.time(&["sh", "-c", &script], "");
            };
            git("init");
            git("add -A");
            git("commit -m all");
            let names = argv.len() == 3 && argv.contains(&"hash-object");
            tools.push((
                name.to_owned(),
                Box::new(move || {
                    let fresh = world.fresh();
                    fs::write(world.ws.join("d0/f1"), fresh.to_str().unwrap()).unwrap();
                    let mut argv = argv.to_vec();
                    if names {
                        argv.push(fresh.to_str().unwrap());
                    }
                    world.time(&argv, "")
                }),
            ));
        }
    }
    if installed("node") {
        let mut world = World::new(base, "node", 10, 1 << 10, 1);
        let script = "const fs=require('fs'),c=require('crypto');const p=JSON.parse(fs.readFileSync(0));const b=fs.readFileSync(p.tool_input.file_path);const h=c.createHash('sha256').update(b).digest('hex');fs.writeFileSync('blob-'+h,b)";
        tools.push((
            "node, the same".to_owned(),
            Box::new(move || {
                let path = world.fresh();
                world.time(
                    &["node", "-e", script],
                    &format!(
                        "{{\"tool_input\":{{\"file_path\":\"{}\"}}}}",
                        path.display()
                    ),
                )
            }),
        ));
    }
}

/// 200 turns of five small edits in 500 files.
fn disk(base: &Path) {
    let world = World::new(base, "disk", 0, 1 << 10, 1);
    let text = |file: usize, turn: usize| {
        let lines = 30 + file * 7 % 200;
        let line = |n: usize| {
            let now = if n == 3 { turn } else { 0 };
            format!("    let value_{n} = compute({file}, {n}, {now}); // of file {file}\n")
        };
        (0..lines).map(line).collect::<Vec<_>>().concat()
    };
    for file in 0..500 {
        fs::write(world.ws.join(format!("f{file}.rs")), text(file, 0)).unwrap();
    }
    let (mut captured, mut copies) = (0, 0);
    for turn in 1..=200 {
        world.hook(&world.payload("UserPromptSubmit", &format!("\"prompt\":\"turn {turn}\"")));
        for edit in 0..5 {
            let file = (turn * 37 + edit * 101) % 500;
            let path = world.ws.join(format!("f{file}.rs"));
            let call = format!(
                "\"tool_name\":\"Write\",\"tool_input\":{{\"file_path\":\"{}\"}}",
                path.display()
            );
            world.hook(&world.payload("PreToolUse", &call));
            let meta = fs::metadata(&path).unwrap();
            captured += meta.len();
            copies += meta.blocks() * 512;
            fs::write(&path, text(file, turn)).unwrap();
            world.hook(&world.payload("PostToolUse", &call));
        }
    }
    let sidecar = world.session().with_extension("ckpt");
    let (mut bytes, mut used, mut files) = (0, 0, 0);
    let mut folders = vec![sidecar];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let meta = entry.metadata().unwrap();
            used += meta.blocks() * 512;
            if meta.is_dir() {
                folders.push(entry.path());
            } else {
                files += 1;
                bytes += meta.len();
            }
        }
    }
    println!("\n200 turns of 5 edits over 500 files: {captured} bytes captured");
    println!("full copies       {copies:>12} bytes on disk");
    println!(
        "the sidecar       {used:>12} bytes on disk ({} %), {bytes} in {files} files",
        used * 100 / copies
    );
}
