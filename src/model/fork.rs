//! What a fork puts on disk: new files only, made of ranges of old ones with texts between them, so that the fork of a
//! gigabyte holds none of it in memory. Ids are changed by leaving out the old JSON value and putting the new one there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use uuid::{Builder, Uuid};

/// What the new session is to be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// Random; ids of every form are made of it.
    pub seed: Uuid,
    /// When the fork is made.
    pub at: DateTime<Utc>,
    /// The name that the user gave it.
    pub name: Option<String>,
}

impl NewSession {
    /// The id as a random UUID, in lower case.
    #[must_use]
    pub fn v4(&self) -> String {
        Builder::from_random_bytes(self.seed.into_bytes())
            .into_uuid()
            .to_string()
    }

    /// The id as a UUID that begins with the time, in lower case.
    #[must_use]
    pub fn v7(&self) -> String {
        let millis = u64::try_from(self.at.timestamp_millis()).unwrap_or_default();
        let mut random = [0; 10];
        for (to, from) in random.iter_mut().zip(self.seed.as_bytes()) {
            *to = *from;
        }
        Builder::from_unix_timestamp_millis(millis, &random)
            .into_uuid()
            .to_string()
    }
}

/// Bytes of a new file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// A range of a file that is there, decoded where its name ends in `.zst`.
    Copy {
        /// Which file.
        from: Arc<Path>,
        /// Offset of the first byte.
        start: u64,
        /// Offset behind the last byte.
        end: u64,
    },
    /// The whole of a file that is there, as it is on disk: a backup that belongs to a kept turn.
    Whole(Arc<Path>),
    /// These bytes.
    Text(Arc<[u8]>),
}

impl Piece {
    /// Bytes at hand.
    #[must_use]
    pub fn text(bytes: impl AsRef<[u8]>) -> Self {
        Self::Text(bytes.as_ref().into())
    }
}

/// A file that a fork makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFile {
    /// Where; nothing may be there yet. Folders that are missing above it are made.
    pub path: PathBuf,
    /// Its bytes, in order.
    pub body: Vec<Piece>,
}

/// A line that a list of the agent's gets at its end; a session that is not in the list works all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The list.
    pub path: PathBuf,
    /// The line, without its newline.
    pub line: Vec<u8>,
}

/// A new session that ends before a turn of another one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fork {
    /// Its id, as the agent's resume command takes it.
    pub id: String,
    /// The files, in the order in which they appear; the last one is the session's own, with which the agent sees it.
    pub files: Vec<NewFile>,
    /// Lines for the agent's lists, added last.
    pub rows: Vec<Row>,
    /// Whether the name that was asked for has a place in it.
    pub named: bool,
}

impl Fork {
    /// The new session's own file.
    #[must_use]
    pub fn session(&self) -> Option<&NewFile> {
        self.files.last()
    }
}
