//! The one error type of the boundary: what kind, what failed, on which paths, what was and was not changed, what to
//! do next. The kind alone picks the exit code.

use std::fmt;
use std::path::PathBuf;

/// How a run ended; each has one exit code (`design.md` §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Nothing changed; the message says why.
    Failed,
    /// Bad arguments, or no terminal and no `--yes`.
    Usage,
    /// Done, except the named paths.
    Partial,
    /// Refused, nothing written: files changed since the agent wrote them, or the plan is stale.
    Conflict,
    /// No such session, turn or file; or ambiguous.
    NotFound,
    /// The format is read-only for this act, or newer than we know.
    Unsupported,
    /// A live agent or another `rewind` holds the session or the root.
    Busy,
    /// Needed snapshot bytes are missing or do not match their hash.
    Damaged,
    /// No space, read-only, no permission; rolled back.
    Storage,
    /// A bug of ours.
    Internal,
    /// Stopped by Ctrl-C; the journal is left recoverable.
    Interrupted,
}

impl Kind {
    /// Every kind, for the tests that hold the table of exit codes.
    pub const ALL: [Kind; 11] = [
        Kind::Failed,
        Kind::Usage,
        Kind::Partial,
        Kind::Conflict,
        Kind::NotFound,
        Kind::Unsupported,
        Kind::Busy,
        Kind::Damaged,
        Kind::Storage,
        Kind::Internal,
        Kind::Interrupted,
    ];

    /// The exit code.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Kind::Failed => 1,
            Kind::Usage => 2,
            Kind::Partial => 3,
            Kind::Conflict => 4,
            Kind::NotFound => 5,
            Kind::Unsupported => 6,
            Kind::Busy => 7,
            Kind::Damaged => 8,
            Kind::Storage => 9,
            Kind::Internal => 70,
            Kind::Interrupted => 130,
        }
    }

    /// The name in `--json`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Failed => "failed",
            Kind::Usage => "usage",
            Kind::Partial => "partial",
            Kind::Conflict => "conflict",
            Kind::NotFound => "not-found",
            Kind::Unsupported => "unsupported",
            Kind::Busy => "busy",
            Kind::Damaged => "damaged",
            Kind::Storage => "storage",
            Kind::Internal => "internal",
            Kind::Interrupted => "interrupted",
        }
    }
}

/// An error as the user meets it.
#[derive(Debug)]
pub struct Error {
    /// How it ended.
    pub kind: Kind,
    /// One sentence: what failed.
    pub message: String,
    /// The paths it is about, each with a few words.
    pub paths: Vec<(PathBuf, String)>,
    /// What was and was not changed.
    pub changed: String,
    /// What to do next.
    pub hints: Vec<String>,
    /// What lies beneath.
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error that changed nothing.
    #[must_use]
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            paths: Vec::new(),
            changed: "nothing was changed".to_owned(),
            hints: Vec::new(),
            source: None,
        }
    }

    /// An I/O error on a path. No space, a read-only place and a missing permission are told apart from the rest.
    #[must_use]
    pub fn io(what: impl Into<String>, path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        let kind = storage_kind(&source);
        Self::new(kind, what)
            .path(path, source.to_string())
            .because(source)
    }

    /// Adds a path.
    #[must_use]
    pub fn path(mut self, path: impl Into<PathBuf>, words: impl Into<String>) -> Self {
        self.paths.push((path.into(), words.into()));
        self
    }

    /// Adds a next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Says what was and was not changed.
    #[must_use]
    pub fn changed(mut self, words: impl Into<String>) -> Self {
        self.changed = words.into();
        self
    }

    /// Keeps what lies beneath.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

/// The kind for an I/O error while something was to be written or read.
#[must_use]
pub fn storage_kind(source: &std::io::Error) -> Kind {
    use std::io::ErrorKind as E;
    match source.kind() {
        E::StorageFull
        | E::QuotaExceeded
        | E::ReadOnlyFilesystem
        | E::PermissionDenied
        | E::FileTooLarge => Kind::Storage,
        E::Interrupted => Kind::Interrupted,
        _ => Kind::Failed,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|e| e as _)
    }
}

/// The result of everything above the layers.
pub type Result<T> = std::result::Result<T, Error>;
