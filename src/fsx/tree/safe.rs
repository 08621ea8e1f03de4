//! Paths that may be written: relative to the root, of plain names only. On disk, in the journal, such a path is its
//! text, or `{"text":"a\ufffd","hex":"61ff"}` when its bytes are no UTF-8 (`bugs.md` 53).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::fsx::hash;
use crate::model::edit::Reason;

/// A path below the root, made of plain names only. Nothing else may be a step's path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SafePath(PathBuf);

impl SafePath {
    /// Takes a relative path of plain names. No `.`, no `..`, no empty name, no NUL; no `.git` anywhere, so that
    /// nothing of a repository, also of a nested one, is ever written (`bugs.md` 78); no name that the system
    /// reserves (`bugs.md` 56).
    ///
    /// # Errors
    /// [`Reason::OutsideRoot`] or [`Reason::BadName`].
    pub fn new(path: &Path) -> Result<Self, Reason> {
        let bytes = path.as_os_str().as_bytes();
        if bytes.first() == Some(&b'/') {
            return Err(Reason::OutsideRoot);
        }
        for name in bytes.split(|b| *b == b'/') {
            plain(name)?;
        }
        Ok(Self(path.to_path_buf()))
    }

    /// The path, relative to the root.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// The last name.
    #[must_use]
    pub fn name(&self) -> &OsStr {
        self.0.file_name().unwrap_or_default()
    }

    /// The folder that it stands in; empty for the root.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.0.parent().unwrap_or(Path::new(""))
    }

    /// The folders between the root and the path, deepest first.
    #[must_use]
    pub fn folders(&self) -> Vec<SafePath> {
        let above = self.0.ancestors().skip(1);
        above
            .take_while(|p| !p.as_os_str().is_empty())
            .map(|p| Self(p.to_path_buf()))
            .collect()
    }

    /// A path in the same folder.
    ///
    /// # Errors
    /// [`Reason::BadName`] when the name may not be used.
    pub fn beside(&self, name: &OsStr) -> Result<Self, Reason> {
        Self::new(&self.folder().join(name))
    }
}

/// Whether a name may be part of a path that is written.
fn plain(name: &[u8]) -> Result<(), Reason> {
    if name == b".." {
        return Err(Reason::OutsideRoot);
    }
    let odd = name.is_empty() || name == b"." || name.contains(&0) || name.len() > 255;
    // A folder that folds case would open `.GIT` as `.git`.
    let git = name.eq_ignore_ascii_case(b".git");
    if odd || git || (cfg!(windows) && reserved(name)) {
        return Err(Reason::BadName);
    }
    Ok(())
}

/// Whether Windows keeps a name for itself, with or without an extension.
fn reserved(name: &[u8]) -> bool {
    let bad_char = name.iter().any(|b| *b < 32 || b"<>:\"\\|?*".contains(b));
    if bad_char || matches!(name.last(), Some(b'.' | b' ')) {
        return true;
    }
    let stem = name.split(|b| *b == b'.').next().unwrap_or_default();
    let stem = stem.trim_ascii_end().to_ascii_lowercase();
    match stem.as_slice() {
        b"con" | b"prn" | b"aux" | b"nul" | b"conin$" | b"conout$" => true,
        [a, b, c, n] => {
            matches!([*a, *b, *c], [b'c', b'o', b'm'] | [b'l', b'p', b't']) && n.is_ascii_digit()
        }
        _ => false,
    }
}

impl Serialize for SafePath {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        path_serde::serialize(&self.0, s)
    }
}

impl<'de> Deserialize<'de> for SafePath {
    // A journal that somebody wrote into must not lead out of the root.
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let path = path_serde::deserialize(d)?;
        Self::new(&path).map_err(|_| serde::de::Error::custom("not a path below the root"))
    }
}

/// The bytes of a path or name.
#[must_use]
pub fn bytes_of(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// Any path as JSON: its text, or text and hex when its bytes are no UTF-8. For `#[serde(with = …)]`.
pub mod path_serde {
    use super::{Deserialize, Deserializer, OsStr, OsStrExt, Path, PathBuf, Serialize, Serializer};
    use super::{bytes_of, hash};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Spelled {
        Text(String),
        Bytes { text: String, hex: String },
    }

    /// Writes a path.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(path: &Path, s: S) -> Result<S::Ok, S::Error> {
        let spelled = match path.to_str() {
            Some(text) => Spelled::Text(text.to_owned()),
            None => Spelled::Bytes {
                text: path.to_string_lossy().into_owned(),
                hex: hash::hex(bytes_of(path)),
            },
        };
        spelled.serialize(s)
    }

    /// Reads a path.
    ///
    /// # Errors
    /// Those of the deserializer; hex that spells no bytes.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<PathBuf, D::Error> {
        match Spelled::deserialize(d)? {
            Spelled::Text(text) => Ok(text.into()),
            Spelled::Bytes { hex, .. } => {
                let bytes = hash::unhex(&hex).ok_or(serde::de::Error::custom("bad hex"))?;
                Ok(OsStr::from_bytes(&bytes).into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn safe(text: &[u8]) -> Result<SafePath, Reason> {
        SafePath::new(Path::new(OsStr::from_bytes(text)))
    }

    #[test]
    fn only_plain_names_are_safe() {
        for good in [
            &b"a"[..],
            b"src/a.rs",
            b"-rf",
            b"a b",
            b"\"q\"",
            b"new\nline",
            b"\xff\xfe",
            b"...",
            b".gitignore",
            b"nul",
        ] {
            assert!(safe(good).is_ok(), "{good:?}");
        }
        for bad in [
            &b""[..],
            b".",
            b"..",
            b"/a",
            b"a/",
            b"a//b",
            b"./a",
            b"a/./b",
            b"a/../b",
            b"a\0b",
            b".git",
            b".git/config",
            b"sub/.git/HEAD",
            b".GIT/config",
            &[b'x'; 256],
        ] {
            assert!(safe(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn reserved_names_are_known() {
        for bad in ["nul", "NUL.txt", "com1", "Lpt9.log", "aux ", "a:b", "a."] {
            assert!(reserved(bad.as_bytes()), "{bad}");
        }
        for good in ["null", "com", "com10", "console", "a.nul"] {
            assert!(!reserved(good.as_bytes()), "{good}");
        }
    }

    #[test]
    fn odd_bytes_survive_json() {
        for name in [&b"src/a.rs"[..], b"a\xff/b\n", "公共.cpp".as_bytes()] {
            let path = safe(name).unwrap();
            let json = serde_json::to_string(&path).unwrap();
            assert_eq!(serde_json::from_str::<SafePath>(&json).unwrap(), path);
        }
    }

    #[test]
    fn json_does_not_lead_out_of_the_root() {
        for bad in [
            r#""../a""#,
            r#""/etc/passwd""#,
            r#"{"text":"a","hex":"2e2e2f61"}"#,
            r#"{"text":"a","hex":"zz"}"#,
        ] {
            assert!(serde_json::from_str::<SafePath>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn folders_come_deepest_first() {
        let all: Vec<_> = safe(b"a/b/c").unwrap().folders();
        let all: Vec<_> = all.iter().map(SafePath::as_path).collect();
        assert_eq!(all, [Path::new("a/b"), Path::new("a")]);
    }
}
