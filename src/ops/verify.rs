//! Whether everything that is kept is whole: each checkpoint is read, each content compared with the hash that it is named
//! by, each journal read, each replaced file looked for. What a damage costs is said: the checkpoints, operations and files
//! that need it. Nothing is changed but, when asked for, what is only derived.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use super::apply::each;
use super::journal::{Journal, Status};
use super::prune::find::Store;
use crate::ckpt::kept::{self, Digest};
use crate::ckpt::{self, Store as _};
use crate::error::Result;
use crate::fsx::{Disk, durable, hash, sys};
use crate::model::checkpoint::Checkpoint;
use crate::model::edit::{Content, Fidelity, Payload, Reason, State};

/// No content of ours is larger; one that is, is no content of ours.
const LARGEST: u64 = 4 << 30;

/// Something that is not whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Which file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
    /// The checkpoints or operations that need it.
    pub needed_by: Vec<String>,
    /// The files that cannot be taken back there.
    pub files: Vec<PathBuf>,
}

/// What was looked at, and what was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verified {
    /// How many sidecars.
    pub stores: usize,
    /// How many checkpoints.
    pub checkpoints: usize,
    /// How many contents.
    pub contents: usize,
    /// How many operations.
    pub operations: usize,
    /// Contents that nothing names.
    pub unused: usize,
    /// What was written anew.
    pub repaired: Vec<PathBuf>,
    /// What is damaged.
    pub damages: Vec<Damage>,
}

impl Verified {
    fn add(&mut self, other: Self) {
        self.stores += other.stores;
        self.checkpoints += other.checkpoints;
        self.contents += other.contents;
        self.operations += other.operations;
        self.unused += other.unused;
        self.repaired.extend(other.repaired);
        self.damages.extend(other.damages);
    }
}

/// Looks at sidecars and journals.
///
/// # Errors
/// What is derived cannot be written anew.
pub fn look(stores: &[Store], journals: &[Journal], repair: Option<&dyn Disk>) -> Result<Verified> {
    let mut all = Verified::default();
    for found in each::map(stores, |_, s| Ok(sidecar(s)))? {
        all.add(found);
    }
    for journal in journals {
        all.add(operations(journal));
    }
    if let Some(disk) = repair {
        for store in stores {
            all.repaired.extend(sign(&store.folder, disk)?);
        }
    }
    Ok(all)
}

fn sidecar(store: &Store) -> Verified {
    let mut out = Verified {
        stores: 1,
        ..Verified::default()
    };
    let folder = &store.folder;
    let damage = |path: &Path, reason: String| Damage {
        path: path.to_path_buf(),
        reason,
        needed_by: Vec::new(),
        files: Vec::new(),
    };
    let checkpoints = match ckpt::at(folder.clone()).map(|s| s.checkpoints(0)) {
        Some(Ok(checkpoints)) => checkpoints,
        Some(Err(e)) => {
            out.damages.push(damage(folder, e.to_string()));
            return out;
        }
        None => Vec::new(),
    };
    let records = kept::list(folder).map(|l| l.turns.len());
    out.checkpoints = records.unwrap_or(checkpoints.len());
    for c in checkpoints.iter().filter(|c| c.damaged.is_some()) {
        let path = folder.join(format!("turn-{}.json", c.turn));
        let mut bad = damage(&path, "the checkpoint cannot be read".to_owned());
        bad.needed_by.push(format!("checkpoint {}", c.turn));
        out.damages.push(bad);
    }
    let blobs = match kept::blobs(folder) {
        Ok(blobs) => blobs,
        Err(e) => {
            out.damages
                .push(damage(&folder.join("blobs"), e.to_string()));
            return out;
        }
    };
    out.contents = blobs.len();
    let needs = needs(folder, &checkpoints);
    out.unused = blobs
        .iter()
        .filter(|b| !needs.contains_key(&b.digest))
        .count();
    for blob in &blobs {
        let path = folder.join(blob.path());
        if let Err(reason) = read(&path, blob.digest) {
            let mut bad = damage(&path, reason);
            name(&mut bad, needs.get(&blob.digest), &checkpoints);
            out.damages.push(bad);
        }
    }
    let there: std::collections::BTreeSet<Digest> = blobs.iter().map(|b| b.digest).collect();
    for (digest, who) in needs.iter().filter(|(d, _)| !there.contains(*d)) {
        let mut bad = damage(&ckpt::blobs::place(folder, digest), "it is gone".to_owned());
        name(&mut bad, Some(who), &checkpoints);
        out.damages.push(bad);
    }
    out
}

/// Checkpoint and file, by the content that they need.
type Needs = BTreeMap<Digest, Vec<(usize, usize)>>;

fn needs(folder: &Path, checkpoints: &[Checkpoint]) -> Needs {
    let mut needs = Needs::new();
    for (c, checkpoint) in checkpoints.iter().enumerate() {
        for (f, file) in checkpoint.files.iter().enumerate() {
            let digest = match &file.before {
                State::Held(Content {
                    payload: Payload::File(path) | Payload::Zst(path),
                    sha256: Some(digest),
                    ..
                }) if path.starts_with(folder) => *digest,
                _ => continue,
            };
            needs.entry(digest).or_default().push((c, f));
        }
        // A content that is gone is no payload any more, so what the record itself names is asked.
        let record = folder.join(format!("turn-{}.json", checkpoint.turn));
        for (f, file) in checkpoint.files.iter().enumerate() {
            if file.before == State::Unknown(Reason::CopyGone)
                && let Some(digest) = named(&record, &file.path.path)
            {
                needs.entry(digest).or_default().push((c, f));
            }
        }
    }
    needs
}

/// The content that a record names for a path.
fn named(record: &Path, path: &Path) -> Option<Digest> {
    let bytes = std::fs::read(record).ok()?;
    let value: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
    let files = value.get("files")?.as_array()?;
    let of = |f: &&serde_json::Value| {
        f.get("path")
            .and_then(|p| p.as_str())
            .is_some_and(|p| Path::new(p) == path)
    };
    let file = files.iter().find(of)?;
    ckpt::blobs::digest(file.get("blobRef")?.as_str()?.as_bytes())
}

fn name(bad: &mut Damage, who: Option<&Vec<(usize, usize)>>, checkpoints: &[Checkpoint]) {
    for (c, f) in who.into_iter().flatten() {
        let Some(checkpoint) = checkpoints.get(*c) else {
            continue;
        };
        bad.needed_by
            .push(format!("checkpoint {}", checkpoint.turn));
        bad.files
            .extend(checkpoint.files.get(*f).map(|s| s.path.path.clone()));
    }
    bad.needed_by.dedup();
}

/// Reads a content as a restore would.
fn read(path: &Path, digest: Digest) -> std::result::Result<(), String> {
    let zst = path.extension() == Some(OsStr::new("zst"));
    let content = Content {
        payload: if zst {
            Payload::Zst(path.to_path_buf())
        } else {
            Payload::File(path.to_path_buf())
        },
        fidelity: Fidelity::Exact,
        sha256: Some(digest),
    };
    match ckpt::blobs::read(&content, LARGEST) {
        Ok(_) => Ok(()),
        Err(Reason::CopyDamaged) => Err("it is not what was saved".to_owned()),
        Err(Reason::CopyGone) => Err("it is gone".to_owned()),
        Err(Reason::Unreadable(why)) => Err(format!("it cannot be read: {why}")),
        Err(_) => Err("it cannot be read".to_owned()),
    }
}

fn operations(journal: &Journal) -> Verified {
    let mut out = Verified::default();
    let damage = |path: PathBuf, reason: &str, id: Option<&str>| Damage {
        path,
        reason: reason.to_owned(),
        needed_by: id.map(|id| format!("operation {id}")).into_iter().collect(),
        files: Vec::new(),
    };
    let log = match journal.log() {
        Ok(log) => log,
        Err(e) => {
            out.damages
                .push(damage(journal.folder(), &e.to_string(), None));
            return out;
        }
    };
    if !log.spoiled.is_empty() {
        let words = format!("{} lines of it cannot be read", log.spoiled.len());
        out.damages.push(damage(
            journal.folder().join("operations.jsonl"),
            &words,
            None,
        ));
    }
    out.operations = log.operations.len();
    for operation in log
        .operations
        .iter()
        .filter(|o| o.status == Status::Committed)
    {
        let Ok(record) = journal.record(operation) else {
            let path = journal.folder().join("operations.jsonl");
            out.damages
                .push(damage(path, "its line cannot be read", Some(&operation.id)));
            continue;
        };
        for step in &record.steps {
            let Some(name) = &step.saved else { continue };
            let path = journal.saved(&operation.id, name);
            if let Err(reason) = is_whole(&path, step.before.len, &step.before.sha256) {
                let mut bad = damage(path, reason, Some(&operation.id));
                bad.files.push(step.path.as_path().to_path_buf());
                out.damages.push(bad);
            }
        }
        for saved in record.session.iter().filter_map(|s| s.saved.as_ref()) {
            let path = journal.saved(&operation.id, &saved.name);
            if let Err(reason) = is_whole(&path, saved.len, &saved.sha256) {
                out.damages.push(damage(path, reason, Some(&operation.id)));
            }
        }
    }
    out
}

fn is_whole(path: &Path, len: u64, sha256: &str) -> std::result::Result<(), &'static str> {
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err("it is gone"),
        Err(_) => return Err("it cannot be read"),
    };
    match hash::of_reader(file) {
        Ok((n, digest)) if n == len && hash::hex(&digest) == sha256 => Ok(()),
        Ok(_) => Err("it is not what was saved"),
        Err(_) => Err("it cannot be read"),
    }
}

/// Writes the mark that tells our sidecars from others anew, where it is not there.
fn sign(folder: &Path, disk: &dyn Disk) -> Result<Option<PathBuf>> {
    let path = folder.join("index.json");
    if std::fs::symlink_metadata(&path).is_ok() {
        return Ok(None);
    }
    let fail = |e| crate::error::Error::io("what is derived cannot be written anew", &path, e);
    let dir = sys::open_folder(folder).map_err(fail)?;
    durable::replace(disk, dir.as_fd(), OsStr::new("index.json"), b"{}\n").map_err(fail)?;
    Ok(Some(path.clone()))
}
