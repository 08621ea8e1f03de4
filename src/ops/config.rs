//! What the user sets: `config.toml` in the config folder. Without the file everything has its default.
//!
//! ```toml
//! [capture]
//! largest = "32MiB"            # a larger file is a gap
//! exclude = ["secrets/**"]     # never captured
//! durability = "fsync"         # or "kill", the default: a power cut may cost the newest captures
//! git = true                   # the whole work tree at each prompt, as a commit
//! git_limit_ms = 2000          # longer, and it is a gap
//!
//! [retention]
//! older_than = "30d"           # younger checkpoints stay
//! keep_last = 1                # of a session that is there, so many stay whatever their age
//! max_size = "5GB"             # more than this in all, and the oldest go
//! ```

use std::path::PathBuf;

use chrono::TimeDelta;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::Deserialize;

use crate::env::Env;
use crate::format::lines;
use crate::model::size;
use crate::model::when::When;

/// The settings in force.
#[derive(Debug, Clone)]
pub struct Config {
    /// The largest file that is captured, in bytes.
    pub largest: u64,
    /// Files that are never captured.
    pub left_out: GlobSet,
    /// A capture is on the disk, and not only with the system, when the hook returns.
    pub durable: bool,
    /// The whole work tree is stored at each prompt.
    pub git: bool,
    /// How long that may take, in milliseconds.
    pub git_limit: u32,
    /// Checkpoints that are younger are not pruned.
    pub older_than: When,
    /// So many of the newest of a session are not, whatever their age.
    pub keep_last: usize,
    /// What checkpoints may take in all, in bytes on the disk.
    pub max_size: Option<u64>,
    /// What is wrong with the file; the defaults are in force then.
    pub fault: Option<Fault>,
}

/// A config file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

/// The recorders' own limit (`design.md` §6).
const LARGEST: u64 = 32 << 20;

/// Snapshots live about as long as agents keep sessions (`design.md` §2).
const OLDER_THAN: TimeDelta = TimeDelta::days(30);
const KEEP_LAST: usize = 1;

/// An agent waits for no more than this.
const GIT_LIMIT: u32 = 2000;

impl Default for Config {
    fn default() -> Self {
        Self {
            largest: LARGEST,
            left_out: GlobSet::empty(),
            durable: false,
            git: false,
            git_limit: GIT_LIMIT,
            older_than: When::Ago(OLDER_THAN),
            keep_last: KEEP_LAST,
            max_size: None,
            fault: None,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Page {
    capture: Capture,
    retention: Retention,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Retention {
    older_than: Option<String>,
    keep_last: Option<usize>,
    max_size: Option<Size>,
}

impl Retention {
    fn older_than(&self) -> Result<When, String> {
        let Some(text) = &self.older_than else {
            return Ok(When::Ago(OLDER_THAN));
        };
        // A date would be passed some day, and then everything would go.
        let span = When::parse(text).filter(|w| matches!(w, When::Ago(_)));
        span.ok_or_else(|| "`retention.older_than` is no span such as \"30d\"".to_owned())
    }

    fn max_size(&self) -> Result<Option<u64>, String> {
        let Some(size) = &self.max_size else {
            return Ok(None);
        };
        let bytes = size
            .bytes()
            .ok_or("`retention.max_size` is no size such as \"5GB\"")?;
        Ok(Some(bytes))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Capture {
    largest: Option<Size>,
    exclude: Vec<String>,
    durability: Durability,
    git: bool,
    git_limit_ms: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Durability {
    #[default]
    Kill,
    Fsync,
}

/// A number of bytes, or one with a unit.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Size {
    Bytes(u64),
    Text(String),
}

impl Size {
    fn bytes(&self) -> Option<u64> {
        match self {
            Self::Bytes(n) => Some(*n),
            Self::Text(text) => size::parse(text),
        }
    }
}

impl Config {
    /// Reads the config of this user.
    #[must_use]
    pub fn read(env: &Env) -> Self {
        let Some(path) = env.config.as_ref().map(|c| c.join("config.toml")) else {
            return Self::default();
        };
        let bytes = match lines::read_whole(&path, 1 << 20) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Self::default(),
            other => other.map_err(|e| e.to_string()),
        };
        let text =
            bytes.and_then(|b| String::from_utf8(b).map_err(|_| "it is no UTF-8".to_owned()));
        text.and_then(|t| Self::of(&t)).unwrap_or_else(|why| Self {
            fault: Some(Fault { path, why }),
            ..Self::default()
        })
    }

    /// Reads a config file's text.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of(text: &str) -> Result<Self, String> {
        let page: Page =
            toml_edit::de::from_str(text).map_err(|e| e.message().trim().to_owned())?;
        let largest = match &page.capture.largest {
            None => LARGEST,
            Some(size) => size
                .bytes()
                .ok_or("`capture.largest` is no size such as \"32MiB\"")?,
        };
        let mut left_out = GlobSetBuilder::new();
        for glob in &page.capture.exclude {
            let built = GlobBuilder::new(glob).literal_separator(true).build();
            left_out.add(built.map_err(|e| format!("`capture.exclude`: {e}"))?);
        }
        Ok(Self {
            largest,
            left_out: left_out.build().map_err(|e| e.to_string())?,
            durable: page.capture.durability == Durability::Fsync,
            git: page.capture.git,
            git_limit: page.capture.git_limit_ms.unwrap_or(GIT_LIMIT),
            older_than: page.retention.older_than()?,
            keep_last: page.retention.keep_last.unwrap_or(KEEP_LAST),
            max_size: page.retention.max_size()?,
            fault: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_in_force_and_the_rest_has_its_default() {
        let config = Config::of("[capture]\nlargest = \"2 MiB\"\nexclude = [\"s/**\", \"*.key\"]\ndurability = \"fsync\"\n").unwrap();
        assert_eq!((config.largest, config.durable), (2 << 20, true));
        assert!(config.left_out.is_match("s/a/b") && config.left_out.is_match("x.key"));
        assert!(!config.left_out.is_match("d/x.key"));
        let empty = Config::of("").unwrap();
        assert_eq!((empty.largest, empty.durable), (32 << 20, false));
        assert_eq!(Config::of("[capture]\nlargest = 7\n").unwrap().largest, 7);
    }

    #[test]
    fn a_mistake_is_told_and_the_defaults_are_in_force() {
        for odd in [
            "capture = 1",
            "[capture]\nlargest = \"much\"",
            "[capture]\nlargest = \"99999999999999999999\"",
            "[capture]\nexclude = [\"[\"]",
            "[capture]\ncolour = 1",
            "[other]\n",
            "[",
        ] {
            assert!(Config::of(odd).is_err(), "{odd}");
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("config.toml"), "[").unwrap();
        let env = Env {
            config: Some(dir.path().to_path_buf()),
            ..Env::bare()
        };
        let config = Config::read(&env);
        assert!(config.fault.is_some());
        assert_eq!(config.largest, LARGEST);
    }
}
