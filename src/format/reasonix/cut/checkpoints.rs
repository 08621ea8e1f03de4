//! Which checkpoints go with the turns that a cut takes away.
//!
//! Reasonix numbers the next turn one above the highest checkpoint that it finds, so the checkpoints of turns that are gone
//! would be taken for those of other turns. They can come back: a removed file is kept with the operation.

use std::io;
use std::path::{Path, PathBuf};

use super::super::message::{Message, clean_prompt};
use super::super::{log::is_json, names};
use super::refused;
use crate::format::Trouble;
use crate::format::json::Value;
use crate::model::cut::FileChange;

/// A longer record is not looked into.
const LARGEST: u64 = 512 << 20;

/// What a checkpoint says about which turn it is of.
struct Known {
    turn: u32,
    index: Option<usize>,
    prompt: String,
    /// The record could be read.
    sound: bool,
}

/// Whether a checkpoint is of a turn that stays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Stays,
    Goes,
    Open,
}

/// The removals for a conversation that is cut before the message with this index.
///
/// # Errors
/// The checkpoints cannot be read, or it is not certain which of them are of the turns that go.
pub(super) fn removed(
    session: &Path,
    messages: &[&Message],
    index: usize,
) -> Result<Vec<FileChange>, Trouble> {
    let folder = names::beside(session, ".ckpt");
    // A sidecar with this file is kept by `rewind`, which matches its checkpoints with the turns each time.
    if names::there(&folder.join("index.json")) {
        return Ok(Vec::new());
    }
    let mut known = Vec::new();
    for turn in numbers(&folder)? {
        known.push(look(&folder, turn)?);
    }
    let fates: Vec<Fate> = known.iter().map(|k| matched(k, messages, index)).collect();
    let last_staying = fates.iter().rposition(|f| *f == Fate::Stays);
    let first_going = fates.iter().position(|f| *f == Fate::Goes);
    if let (Some(stay), Some(go)) = (last_staying, first_going)
        && stay > go
    {
        return Err(refused("the checkpoints are not in the order of the turns"));
    }
    let mut out = Vec::new();
    for (i, k) in known.iter().enumerate() {
        let fate = if last_staying.is_some_and(|s| i <= s) {
            Fate::Stays
        } else if first_going.is_some_and(|g| i >= g) || !some_turn_stays(messages, index) {
            Fate::Goes
        } else {
            by_index(k, index)
        };
        match fate {
            Fate::Stays => {}
            Fate::Goes => out.extend(files(&folder, k.turn)),
            Fate::Open => {
                let why = format!("it is not known of which turn checkpoint {} is", k.turn);
                return Err(refused(&why));
            }
        }
    }
    Ok(out)
}

/// Whether a turn remains at all: if not, no checkpoint does.
fn some_turn_stays(messages: &[&Message], index: usize) -> bool {
    let kept = messages.get(..index).unwrap_or_default();
    kept.iter().any(|m| m.prompt.is_some())
}

/// A checkpoint whose index and prompt are those of a turn in the transcript. One that names no index is taken by its
/// number, if the prompt is the same. A summary may have left an index that points at other words.
fn matched(known: &Known, messages: &[&Message], cut: usize) -> Fate {
    let by_number = || {
        let turns = messages.iter().enumerate();
        let mut turns = turns.filter(|(_, m)| m.prompt.is_some());
        turns.nth(known.turn as usize).map(|(index, _)| index)
    };
    let Some(at) = known.index.or_else(by_number) else {
        return Fate::Open;
    };
    let prompt = messages.get(at).and_then(|m| m.prompt.as_deref());
    if !known.sound || prompt != Some(&*known.prompt) {
        return Fate::Open;
    }
    if at < cut { Fate::Stays } else { Fate::Goes }
}

/// A checkpoint between the last that stays and the first that goes, by the index alone.
fn by_index(known: &Known, cut: usize) -> Fate {
    match known.index {
        Some(index) if known.sound && index < cut => Fate::Stays,
        Some(_) if known.sound => Fate::Goes,
        _ => Fate::Open,
    }
}

/// The turns that have a record, in the sidecar's own folder or among the expired.
fn numbers(folder: &Path) -> Result<Vec<u32>, Trouble> {
    let mut out = Vec::new();
    for folder in [folder.to_path_buf(), folder.join("expired")] {
        let entries = match std::fs::read_dir(&folder) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            other => other.map_err(Trouble::io(&folder))?,
        };
        for entry in entries {
            let name = entry.map_err(Trouble::io(&folder))?.file_name();
            let digits = name.to_str().and_then(|n| n.strip_prefix("turn-"));
            let digits = digits.and_then(|n| n.strip_suffix(".json"));
            out.extend(digits.and_then(|d| d.parse::<u32>().ok()));
        }
    }
    out.sort_unstable();
    out.dedup();
    Ok(out)
}

/// Reads what a record says of its turn. Of several records of a turn the one of the newest form is asked.
fn look(folder: &Path, turn: u32) -> Result<Known, Trouble> {
    let mut known = Known {
        turn,
        index: None,
        prompt: String::new(),
        sound: false,
    };
    for file in records(folder, turn) {
        let meta = match std::fs::symlink_metadata(&file) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            other => other.map_err(Trouble::io(&file))?,
        };
        if !meta.is_file() || meta.len() > LARGEST {
            return Ok(known);
        }
        let bytes = std::fs::read(&file).map_err(Trouble::io(&file))?;
        let body = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes);
        let Some(record) = Value::of(body).filter(|_| is_json(body)) else {
            return Ok(known);
        };
        known.sound = true;
        known.index = record
            .get("msgIndex")
            .and_then(|v| usize::try_from(v.u64()?).ok());
        let prompt = record.get("prompt").and_then(|p| p.text());
        known.prompt = clean_prompt(prompt.as_deref().unwrap_or_default());
        return Ok(known);
    }
    Ok(known)
}

fn records(folder: &Path, turn: u32) -> [PathBuf; 3] {
    let name = format!("turn-{turn}.json");
    [
        folder
            .join("turns")
            .join(turn.to_string())
            .join("meta.json"),
        folder.join(&name),
        folder.join("expired").join(&name),
    ]
}

/// All records of a turn. The payloads of the newest form stay where they are: without a record nothing reads them.
fn files(folder: &Path, turn: u32) -> Vec<FileChange> {
    let there = records(folder, turn)
        .into_iter()
        .filter(|f| names::there(f));
    there.map(|path| FileChange::Remove { path }).collect()
}
