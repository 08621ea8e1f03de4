//! How long `rewind list` takes on a session of a gigabyte, beside `cat`, `wc -l` and `jq`; and whether it found the turns
//! that are there. `cargo bench --bench list`; the variables stand in `CONTRIBUTING.md`.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "its figures are what a bench is for")]

mod measure;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use measure::{Tool, binary, installed, number, race, report, wanted};

fn main() {
    if !wanted() {
        return;
    }
    let temp = tempfile::tempdir().unwrap();
    let chosen = std::env::var_os("REWIND_BENCH_DIR").map(PathBuf::from);
    let folder = chosen.unwrap_or_else(|| temp.path().to_path_buf());
    for kind in ["claude", "codex"] {
        let Some((session, turns)) = session(kind, &folder) else {
            println!("{kind}: skipped, it needs ../shared/gen_sessions.py");
            continue;
        };
        bench(kind, &session, turns, &folder);
        std::fs::remove_file(session).unwrap();
    }
}

/// Makes a session; returns its file and how many turns it has.
fn session(kind: &str, folder: &Path) -> Option<(PathBuf, u64)> {
    let generator = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/gen_sessions.py");
    let file = folder.join(format!("{kind}.jsonl"));
    if generator.is_file() {
        let bytes = number("REWIND_BENCH_MB").unwrap_or(1000) * 1_000_000;
        let mut python = Command::new("/usr/bin/python3");
        python
            .arg(generator)
            .arg(kind)
            .arg(bytes.to_string())
            .arg(&file);
        let output = python.output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        return Some((file, told.get("turns")?.as_u64()?));
    }
    (kind == "claude").then(|| {
        let bytes = number("REWIND_BENCH_MB").unwrap_or(200) * 1_000_000;
        let turns = compose(&file, bytes);
        (file, turns)
    })
}

/// Writes a plain session of a given size: turns of a prompt, an answer, a call and a long result.
fn compose(file: &Path, bytes: usize) -> u64 {
    let mut out = BufWriter::new(File::create(file).unwrap());
    let code = "    let value = self.store.get(\\\"key\\\\n\\\")?; // größer → naïve\\n".repeat(40);
    let (mut done, mut turns, mut parent) = (0, 0, "null".to_owned());
    while done < bytes {
        let mut line = |letter: &str, body: &str| {
            let id = format!("{}-0000-4000-8000-{turns:012x}", letter.repeat(8));
            let text = format!(
                "{{\"parentUuid\":{parent},\"isSidechain\":false,\"cwd\":\"/home/dev/shop\",\"sessionId\":\"s\",\
                 \"version\":\"2.1.197\",{body},\"uuid\":\"{id}\",\"timestamp\":\"2026-03-02T10:00:00.000Z\"}}\n"
            );
            out.write_all(text.as_bytes()).unwrap();
            parent = format!("\"{id}\"");
            done += text.len();
        };
        let call = format!("toolu_{turns}");
        line(
            "a",
            &format!(
                "\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"please look at part {turns}\"}}"
            ),
        );
        line(
            "b",
            &format!(
                "\"message\":{{\"role\":\"assistant\",\"content\":[{{\"type\":\"tool_use\",\"id\":\"{call}\",\
             \"name\":\"Read\",\"input\":{{\"file_path\":\"/home/dev/shop/a.rs\"}}}}]}},\"type\":\"assistant\""
            ),
        );
        line(
            "c",
            &format!(
                "\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":[{{\"tool_use_id\":\"{call}\",\
             \"type\":\"tool_result\",\"content\":\"{}\"}}]}}",
                code.repeat(1 + turns % 40)
            ),
        );
        line(
            "d",
            &format!(
                "\"message\":{{\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":\"{code}\"}}]}},\
             \"type\":\"assistant\""
            ),
        );
        turns += 1;
    }
    out.flush().unwrap();
    turns as u64
}

fn bench(kind: &str, session: &Path, turns: u64, folder: &Path) {
    let rewind = PathBuf::from(binary());
    let (rewind, session) = (rewind.to_str().unwrap(), session.to_str().unwrap());
    let json = Tool::new("rewind", folder, &[rewind, "list", "-s", session, "--json"]);
    let listed: serde_json::Value = serde_json::from_slice(&json.output(folder).stdout).unwrap();
    let found = listed
        .get("turns")
        .and_then(serde_json::Value::as_array)
        .unwrap()
        .len();
    assert_eq!(found as u64, turns, "{kind}: the wrong number of turns");

    let mut tools = vec![
        Tool::new("cat", folder, &["cat", session]),
        Tool::new("wc -l", folder, &["wc", "-l", session]),
        Tool::new("rewind list", folder, &[rewind, "list", "-s", session]),
    ];
    let times = race(&tools, |tool| tool.time(folder));
    report(&format!("list {kind}"), folder, &times, &["cat", "wc -l"]);
    if installed("jq") {
        // Once is enough to see two orders of magnitude.
        let jq = Tool::new(
            "jq",
            folder,
            &["jq", "-c", "select(.type==\"user\")|.uuid", session],
        );
        println!("jq, once: {:.0} ms", jq.time(folder));
    }
    let peak = tools.pop().and_then(|rewind| rewind.peak(folder));
    let peak = peak.map_or("unknown (no GNU time)".to_owned(), |kb| format!("{kb} KB"));
    println!("{kind}: {turns} turns, as expected; peak memory of `rewind list`: {peak}\n");
}
