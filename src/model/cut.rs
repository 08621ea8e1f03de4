//! What a conversation cut changes on disk: the session's own file first, then whatever the agent keeps in step with it.

use std::path::PathBuf;

/// One file of an agent that changes when its conversation is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileChange {
    /// The file ends after its first `keep` bytes; it was `len` bytes long when it was read.
    Truncate {
        /// Which file.
        path: PathBuf,
        /// How many bytes stay, unchanged to the last bit.
        keep: u64,
        /// Its length when the turns were read.
        len: u64,
    },
    /// The file gets these bytes at its end (an agent's own marker).
    Append {
        /// Which file.
        path: PathBuf,
        /// What is added.
        bytes: Vec<u8>,
        /// Its length when the turns were read.
        len: u64,
    },
    /// The file is replaced as a whole: small side files that the agent keeps in step.
    Replace {
        /// Which file.
        path: PathBuf,
        /// Its new bytes.
        bytes: Vec<u8>,
    },
    /// The file goes away: an index that the agent derives again.
    Remove {
        /// Which file.
        path: PathBuf,
    },
}
