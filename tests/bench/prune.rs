//! How long `rewind prune` takes over 100,000 checkpoints in 1,000 sidecars of which 90 % are old, beside `find -delete` with
//! the same selection and `rm` of the same files; and whether it removed them. `cargo bench --bench prune`; the variables
//! stand in `CONTRIBUTING.md`. What a tool removes is made anew for each round.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "its figures are what a bench is for")]

#[expect(dead_code, reason = "each bench uses a part of it")]
mod measure;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use measure::{Tool, binary, number, race, report, wanted};

/// Checkpoints of a sidecar; nine of ten are old.
const EACH: usize = 100;
const DAY: Duration = Duration::from_secs(86_400);

fn main() {
    if !wanted() {
        return;
    }
    let temp = tempfile::tempdir().unwrap();
    let chosen = std::env::var_os("REWIND_BENCH_DIR").map(PathBuf::from);
    let folder = chosen.unwrap_or_else(|| temp.path().to_path_buf());
    let sidecars = number("REWIND_BENCH_SIDECARS").unwrap_or(1_000);
    let home = folder.join("home");
    let rewind = PathBuf::from(binary());
    let rewind = rewind.to_str().unwrap();
    let prune = |name, more| {
        let args = [rewind, "prune", "--all", "--yes", "--quiet", more];
        Tool::new(name, &folder, &args)
    };
    let selected =
        "find home -path '*.ckpt/*' -type f -mtime +30 \\( -name 'turn-*' -o -path '*/blobs/*' \\)";
    let shell = |name, script: String| Tool::new(name, &folder, &["sh", "-c", &script]);
    let tools = [
        shell("find -delete", format!("{selected} -delete")),
        shell("rm", "xargs -0 rm -f < old".to_owned()),
        prune("rewind prune", "--older-than=30d"),
        prune("rewind prune --dry-run", "--dry-run"),
    ];
    let times = race(&tools, |tool| {
        make(&home, sidecars);
        let listed = shell("list", format!("{selected} -print0 > old"));
        listed.time(&home);
        let ms = tool.time(&home);
        let left = records(&home);
        let dry = tool.name.ends_with("--dry-run");
        let want = if dry {
            sidecars * EACH
        } else {
            sidecars * EACH / 10
        };
        assert_eq!(left, want, "{}", tool.name);
        ms
    });
    let title = format!("{} checkpoints in {sidecars} sidecars", sidecars * EACH);
    report(&title, &folder, &times, &["find -delete", "rm"]);
    for tool in &tools {
        make(&home, sidecars);
        shell("list", format!("{selected} -print0 > old")).time(&home);
        if let Some(peak) = tool.peak(&home) {
            println!("{}: peak memory {peak} KB", tool.name);
        }
    }
}

fn records(home: &Path) -> usize {
    let projects = fs::read_dir(home.join(".claude/projects")).unwrap();
    let sidecars = projects.flat_map(|p| fs::read_dir(p.unwrap().path()).unwrap());
    let sidecars = sidecars.map(|e| e.unwrap().path()).filter(|p| p.is_dir());
    let names = sidecars.flat_map(|s| fs::read_dir(s).unwrap());
    let names = names.map(|e| e.unwrap().file_name().into_string().unwrap());
    names
        .filter(|n| n.starts_with("turn-") && Path::new(n).extension().is_some_and(|e| e == "json"))
        .count()
}

fn make(home: &Path, sidecars: usize) {
    drop(fs::remove_dir_all(home));
    for no in 0..sidecars {
        sidecar(home, no);
    }
}

fn sidecar(home: &Path, no: usize) {
    let id = format!("{no:08x}-0000-4000-8000-{no:012x}");
    let project = home.join(format!(".claude/projects/-home-dev-app{}", no % 50));
    let folder = project.join(format!("{id}.ckpt"));
    fs::create_dir_all(&folder).unwrap();
    let session = format!(
        "{{\"parentUuid\":null,\"isSidechain\":false,\"cwd\":\"/home/dev/app{}\",\"sessionId\":\"{id}\",\"timestamp\":\"2026-01-01T00:00:00Z\",\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"go\"}},\"uuid\":\"a0\"}}\n",
        no % 50
    );
    put(&project.join(format!("{id}.jsonl")), &session, 1);
    put(&folder.join("index.json"), "{}\n", 1);
    for turn in 0..EACH {
        let age = if turn < EACH * 9 / 10 { 60 } else { 2 };
        let name = format!(
            "{:064x}",
            (no * EACH + turn).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        );
        let name = format!("{}{}", &name[48..], &name[..48]);
        let blobs = folder.join("blobs").join(&name[..2]).join(&name[2..4]);
        fs::create_dir_all(&blobs).unwrap();
        put(&blobs.join(&name), &format!("content {no} {turn}\n"), age);
        let record = format!(
            "{{\"schemaVersion\":2,\"turn\":{turn},\"time\":\"2026-01-01T00:00:00Z\",\"prompt\":\"p {turn}\",\"sessionId\":\"{id}\",\"root\":\"/home/dev/app\",\"files\":[{{\"path\":\"src/a.rs\",\"content\":null,\"sha256\":\"{name}\",\"blobRef\":\"{name}\",\"mode\":420,\"captureSource\":\"hook\"}}],\"coverage\":\"complete\",\"coverageGaps\":[]}}"
        );
        put(&folder.join(format!("turn-{turn}.json")), &record, age);
    }
}

fn put(path: &Path, text: &str, age: u32) {
    fs::write(path, text).unwrap();
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - DAY * age).unwrap();
}
