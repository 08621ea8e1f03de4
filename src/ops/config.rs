//! What the user sets: `config.toml` in the config folder. Without the file everything has its default.
//!
//! ```toml
//! [capture]
//! largest = "32MiB"            # a larger file is a gap
//! exclude = ["secrets/**"]     # never captured
//! durability = "fsync"         # or "kill", the default: a power cut may cost the newest captures
//! git = true                   # the whole work tree at each prompt, as a commit
//! git_limit_ms = 2000          # longer, and it is a gap
//! ```

use std::path::PathBuf;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::Deserialize;

use crate::env::Env;
use crate::format::lines;

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
            fault: None,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Page {
    capture: Capture,
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
        let text = match self {
            Self::Bytes(n) => return Some(*n),
            Self::Text(text) => text.trim(),
        };
        let end = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let (digits, unit) = text.split_at(end);
        let factor = match unit.trim() {
            "" | "B" => 1,
            "kB" | "KB" => 1000,
            "KiB" => 1 << 10,
            "MB" => 1_000_000,
            "MiB" => 1 << 20,
            "GB" => 1_000_000_000,
            "GiB" => 1 << 30,
            _ => return None,
        };
        digits.parse::<u64>().ok()?.checked_mul(factor)
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
