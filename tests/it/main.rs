//! The integration tests: one binary, one module a theme. What is asserted is what a user has afterwards: output, exit
//! code, bytes on disk.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed; clippy allows it only inside `#[test]` functions"
)]

mod agents;
mod bugs;
mod bugs_bytes;
mod bugs_durable;
mod bugs_escapes;
mod bugs_own_work;
mod bugs_point;
mod bugs_restore;
mod bugs_session_files;
mod completion;
mod conflicts;
mod contract;
mod corpus;
mod crash;
mod demo;
mod described;
mod detection;
mod doctor;
mod env;
mod events;
mod exit_codes;
mod fault;
mod fixtures;
mod fork;
mod generated;
mod git_mode;
mod hook;
mod hostile;
mod hostile_disk;
mod hostile_journal;
mod init;
mod json;
mod json_page;
mod killed;
mod layers;
mod list;
mod log;
mod native;
mod pick;
mod props;
mod prune;
mod readme;
mod restore;
mod screen;
mod sessions;
mod show;
mod side_by_side;
mod sidecar;
mod source;
mod story;
mod undo;
mod width;
mod wrap;

use std::collections::BTreeSet;
use std::path::Path;

/// A file that no `mod` line names is never compiled, so its tests never run.
#[test]
fn every_file_here_is_a_module() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let main = std::fs::read_to_string(folder.join("main.rs")).unwrap();
    let named: BTreeSet<String> = main
        .lines()
        .filter_map(|l| l.strip_prefix("mod ")?.strip_suffix(';').map(str::to_owned))
        .collect();
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        // Beside a failed snapshot stands a hidden file with what was seen.
        .filter(|path| path.extension().is_some_and(|e| e == "rs"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|name| name != "main")
        .collect();
    assert_eq!(named, files);
}
