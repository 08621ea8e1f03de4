//! A checkpoint while it is written: `turn-<N>.json` of the sidecar, schema 2, replaced as a whole under the lock.
//!
//! ```text
//! {"schemaVersion":2,"turn":0,"time":"…","prompt":"…","sessionId":"…","root":"/w",
//!  "files":[{"path":"a.rs","content":null,"sha256":"…","blobRef":"…","mode":420,"captureSource":"hook","call":"c1",
//!            "afterSha256":"…","afterExisted":true,"afterMode":420},
//!           {"path":"new.rs","content":null,"captureSource":"hook","afterExisted":false}],
//!  "coverage":"partial","coverageGaps":[{"kind":"shell","detail":"make"}]}
//! ```

use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::fsx::{Disk, durable};

/// The newest schema whose meaning readers of the original design know.
const SCHEMA: u32 = 2;

/// A checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    schema_version: u32,
    pub(super) turn: u32,
    pub(super) time: String,
    pub(super) prompt: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session_id: Option<String>,
    /// The folder that the paths are relative to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) root: Option<String>,
    /// The whole work tree, in git mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) git: Option<GitRecord>,
    pub(super) files: Vec<FileRecord>,
    coverage: Coverage,
    pub(super) coverage_gaps: Vec<GapRecord>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Coverage {
    Complete,
    Partial,
}

/// The commits of the work tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GitRecord {
    pub(super) top: String,
    pub(super) begin: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) end: Option<String>,
}

/// A file as it was before the turn touched it, and as the turn left it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileRecord {
    pub(super) path: String,
    /// Always null: bytes are stored outside. Without a hash it says that the file did not exist.
    content: (),
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob_ref: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<u32>,
    #[serde(default)]
    capture_source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) call: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after_sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after_existed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after_mode: Option<u32>,
}

/// A file at one moment: its hash and permission bits, or that it is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mark {
    Absent,
    File(String, u32),
}

impl FileRecord {
    pub(super) fn new(path: String, before: &Mark, call: Option<String>) -> Self {
        let (sha256, mode) = match before {
            Mark::Absent => (None, None),
            Mark::File(sha, mode) => (Some(sha.clone()), Some(*mode)),
        };
        Self {
            path,
            blob_ref: sha256.clone(),
            sha256,
            mode,
            capture_source: "hook".to_owned(),
            call,
            ..Self::default()
        }
    }

    pub(super) fn is_marked(&self) -> bool {
        self.after_existed.is_some()
    }

    /// What the file was before the turn.
    pub(super) fn before(&self) -> Mark {
        match &self.sha256 {
            None => Mark::Absent,
            Some(sha) => Mark::File(sha.clone(), self.mode.unwrap_or_default()),
        }
    }

    pub(super) fn mark(&mut self, after: &Mark) {
        let (sha, mode) = match after {
            Mark::Absent => (None, None),
            Mark::File(sha, mode) => (Some(sha.clone()), Some(*mode)),
        };
        self.after_existed = Some(sha.is_some());
        self.after_sha256 = sha;
        self.after_mode = mode;
    }
}

/// Something that was not captured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GapRecord {
    pub(super) kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) detail: Option<String>,
}

impl Record {
    pub(super) fn new(turn: u32, time: String, prompt: String) -> Self {
        Self {
            schema_version: SCHEMA,
            turn,
            time,
            prompt,
            message_id: None,
            session_id: None,
            root: None,
            git: None,
            files: Vec::new(),
            coverage: Coverage::Complete,
            coverage_gaps: Vec::new(),
        }
    }

    /// Adds a gap, once.
    pub(super) fn gap(&mut self, gap: GapRecord) {
        if !self.coverage_gaps.contains(&gap) {
            self.coverage_gaps.push(gap);
        }
        self.coverage = Coverage::Partial;
    }

    /// Reads the record of a turn; `None` when there is none, or no whole one.
    pub(super) fn load(sidecar: &Path, turn: u32) -> Option<Self> {
        let path = sidecar.join(format!("turn-{turn}.json"));
        let bytes = crate::format::lines::read_whole(&path, crate::format::lines::LONGEST).ok()?;
        let record: Self = serde_json::from_slice(&bytes).ok()?;
        (record.turn == turn && record.schema_version == SCHEMA).then_some(record)
    }

    /// Writes the record in the place of the old one.
    ///
    /// # Errors
    /// The disk refuses; the old one is still there then.
    pub(super) fn save(&self, disk: &dyn Disk, sidecar: BorrowedFd<'_>) -> std::io::Result<()> {
        let bytes = serde_json::to_vec(self)?;
        let name = OsString::from(format!("turn-{}.json", self.turn));
        durable::replace(disk, sidecar, &name, &bytes)
    }
}
