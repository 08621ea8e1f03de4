//! The shapes of what is said about stores: prune, verify, pins.

use serde::Serialize;

use super::json::{PathOut, SessionOut};

/// `rewind prune`.
#[derive(Debug, Clone, Serialize)]
pub struct Prune {
    /// `rewind.prune/1`.
    pub schema: &'static str,
    /// `planned`, `done`, `partial` or `unchanged`.
    pub status: &'static str,
    /// What was written before this may go.
    pub before: String,
    /// Bytes on the disk that are freed, or would be.
    pub freed: u64,
    /// The sidecars.
    pub stores: Vec<StoreOut>,
    /// The journals.
    pub journals: Vec<JournalOut>,
    /// Places of which not all that was planned is removed.
    pub left: Vec<LeftOut>,
}

/// One sidecar.
#[derive(Debug, Clone, Serialize)]
pub struct StoreOut {
    /// Its folder.
    #[serde(flatten)]
    pub path: PathOut,
    /// The agent; null where the session is gone.
    pub agent: Option<String>,
    /// The session's id; null where it is gone.
    pub session: Option<String>,
    /// The folder itself goes.
    pub whole: bool,
    /// Bytes on the disk that it frees.
    pub freed: u64,
    /// Why it could not be looked at.
    pub fault: Option<String>,
    /// Its checkpoints.
    pub checkpoints: Vec<ItemOut>,
}

/// One checkpoint.
#[derive(Debug, Clone, Serialize)]
pub struct ItemOut {
    /// Its number in the sidecar.
    pub checkpoint: u32,
    /// When it was last written.
    pub modified: Option<String>,
    /// `keep`, `remove` or `quarantine`.
    pub verdict: &'static str,
    /// Why.
    pub reason: String,
}

/// One journal.
#[derive(Debug, Clone, Serialize)]
pub struct JournalOut {
    /// The workspace whose journal it is.
    pub root: PathOut,
    /// Bytes on the disk that it frees.
    pub freed: u64,
    /// Why it could not be read.
    pub fault: Option<String>,
    /// Its operations.
    pub operations: Vec<OperationOut>,
}

/// One operation.
#[derive(Debug, Clone, Serialize)]
pub struct OperationOut {
    /// Its id.
    pub operation: String,
    /// When it was done.
    pub at: String,
    /// `keep` or `remove`.
    pub verdict: &'static str,
    /// Why.
    pub reason: String,
}

/// A place of which not all is removed.
#[derive(Debug, Clone, Serialize)]
pub struct LeftOut {
    /// Which.
    #[serde(flatten)]
    pub path: PathOut,
    /// Why.
    pub why: String,
}

/// `rewind log --prune`.
#[derive(Debug, Clone, Serialize)]
pub struct Prunes {
    /// `rewind.prunes/1`.
    pub schema: &'static str,
    /// Oldest first.
    pub removals: Vec<RemovalOut>,
}

/// What one prune removed from one place.
#[derive(Debug, Clone, Serialize)]
pub struct RemovalOut {
    /// When.
    pub at: String,
    /// The sidecar or the journal's folder.
    pub path: String,
    /// The agent, where it was known.
    pub agent: Option<String>,
    /// The session, where it was known.
    pub session: Option<String>,
    /// Bytes that the disk got back.
    pub freed: u64,
    /// What.
    pub removed: Vec<RemovedOut>,
}

/// One thing that was removed.
#[derive(Debug, Clone, Serialize)]
pub struct RemovedOut {
    /// Number of the checkpoint.
    pub checkpoint: Option<u32>,
    /// Id of the operation.
    pub operation: Option<String>,
    /// Why.
    pub reason: String,
}

/// `rewind pin` and `rewind unpin`.
#[derive(Debug, Clone, Serialize)]
pub struct Pinned {
    /// `rewind.pin/1`.
    pub schema: &'static str,
    /// Whether it is pinned now.
    pub pinned: bool,
    /// Its name.
    pub pin: Option<String>,
    /// The session.
    pub session: SessionOut,
    /// The turn.
    pub turn: u32,
    /// Its id.
    pub turn_id: String,
}

/// `rewind verify`.
#[derive(Debug, Clone, Serialize)]
pub struct Verified {
    /// `rewind.verify/1`.
    pub schema: &'static str,
    /// `whole` or `damaged`.
    pub status: &'static str,
    /// How many sidecars were looked at.
    pub stores: usize,
    /// How many checkpoints.
    pub checkpoints: usize,
    /// How many contents were read and compared with their hash.
    pub contents: usize,
    /// How many operations were looked at.
    pub operations: usize,
    /// Contents that nothing names.
    pub unused: usize,
    /// What was written anew.
    pub repaired: Vec<PathOut>,
    /// What is damaged.
    pub damages: Vec<DamageOut>,
}

/// One damage.
#[derive(Debug, Clone, Serialize)]
pub struct DamageOut {
    /// Which file.
    #[serde(flatten)]
    pub path: PathOut,
    /// What is wrong with it.
    pub reason: String,
    /// What it costs: the checkpoints or operations that need it.
    pub needed_by: Vec<String>,
    /// The files that cannot be taken back there.
    pub files: Vec<String>,
}
