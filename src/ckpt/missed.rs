//! What a hook could not write into the record of its turn, because the disk or the lock was not to be had: gaps in a file
//! of their own, `turn-<N>.missed-<pid>.json`.
//!
//! ```text
//! [{"kind":"not_stored","path":"a.rs","detail":"No space left on device"}]
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Trouble;
use super::gaps::Gaps;
use crate::format::json::Value;
use crate::format::lines;
use crate::model::checkpoint::{Checkpoint, Snapshot};
use crate::model::edit::{GapKind, Reason, RecordedPath, State};

/// The gaps of one turn.
#[derive(Debug, Default)]
pub(super) struct Missed {
    told: Vec<(GapKind, String)>,
    uncaptured: Vec<(PathBuf, Reason)>,
}

/// No such file is longer.
const LONGEST: usize = 1 << 20;

/// All of a sidecar, by turn. One that cannot be read tells that something is missing, not what.
pub(super) fn read(folder: &Path) -> Result<BTreeMap<u32, Missed>, Trouble> {
    let mut out: BTreeMap<u32, Missed> = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(Trouble::io(folder))? {
        let name = entry.map_err(Trouble::io(folder))?.file_name();
        let Some(turn) = name.to_str().and_then(turn) else {
            continue;
        };
        let missed = out.entry(turn).or_default();
        let bytes = lines::read_whole(&folder.join(&name), LONGEST).ok();
        let gaps = bytes
            .as_deref()
            .and_then(Value::of)
            .and_then(|v| Gaps::of(Some(v)).ok());
        match gaps {
            Some(gaps) => {
                missed.told.extend(gaps.told);
                missed.uncaptured.extend(gaps.uncaptured);
            }
            None => missed.told.push((
                GapKind::Capture,
                "a hook could not capture a file".to_owned(),
            )),
        }
    }
    Ok(out)
}

fn turn(name: &str) -> Option<u32> {
    let rest = name.strip_prefix("turn-")?.strip_suffix(".json")?;
    let (turn, pid) = rest.split_once(".missed-")?;
    pid.bytes().all(|b| b.is_ascii_digit()).then_some(())?;
    turn.parse().ok()
}

impl Missed {
    /// Adds the gaps to a checkpoint; a path that it holds all the same stays.
    pub(super) fn add_to(self, checkpoint: &mut Checkpoint) {
        checkpoint.gaps.extend(self.told);
        for (path, reason) in self.uncaptured {
            if checkpoint.files.iter().any(|f| f.path.path == path) {
                continue;
            }
            checkpoint.files.push(Snapshot {
                path: RecordedPath::new(path),
                before: State::Unknown(reason),
                mode: None,
                after: None,
            });
        }
    }
}
