//! New bytes beside their target, under a name that no tool takes for the file itself, until they take its place.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use sha2::{Digest, Sha256};

use super::{Disk, Owner, hash};

/// The longest name that common file systems take, in bytes.
const NAME_MAX: usize = 255;

/// The name beside a target: `.<name>.rewind-<operation>-<number>`, the target's part shortened where it would be too
/// long.
#[must_use]
pub fn name(target: &OsStr, operation: &str, number: usize) -> OsString {
    let tail = format!(".rewind-{operation}-{number}");
    let room = NAME_MAX.saturating_sub(tail.len() + 1);
    let mut bytes = vec![b'.'];
    bytes.extend_from_slice(shortened(target, room));
    bytes.extend_from_slice(tail.as_bytes());
    OsString::from_vec(bytes)
}

/// The first bytes of a name; not through the middle of a character, which some file systems refuse.
fn shortened(name: &OsStr, room: usize) -> &[u8] {
    let mut end = room.min(name.len());
    if let Some(text) = name.to_str() {
        while !text.is_char_boundary(end) {
            end -= 1;
        }
    }
    name.as_bytes().get(..end).unwrap_or_default()
}

/// What went wrong while bytes were copied to a new file: on which side.
#[derive(Debug)]
pub enum Trouble {
    /// The bytes cannot be read.
    Source(io::Error),
    /// The file cannot be written.
    Target(io::Error),
}

/// Copies a stream into a file; gives length and hash of what was written.
///
/// # Errors
/// [`Trouble`] with its side.
pub fn fill(disk: &dyn Disk, file: &File, mut from: impl Read) -> Result<(u64, [u8; 32]), Trouble> {
    let mut hasher = Sha256::new();
    let mut len = 0;
    let mut chunk = vec![0; hash::CHUNK];
    loop {
        let n = match from.read(&mut chunk) {
            Ok(0) => return Ok((len, hasher.finalize().into())),
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(Trouble::Source(e)),
        };
        let bytes = chunk.get(..n).unwrap_or_default();
        disk.write(file, bytes).map_err(Trouble::Target)?;
        hasher.update(bytes);
        len += n as u64;
    }
}

/// Gives a new file its owner, where this user may, and then its permission bits, whatever the umask (`bugs.md` 52).
///
/// # Errors
/// The permission bits cannot be set.
pub fn dress(disk: &dyn Disk, file: &impl AsFd, mode: u32, owner: Owner) -> io::Result<()> {
    let meta = File::from(file.as_fd().try_clone_to_owned()?).metadata()?;
    let now = {
        use std::os::unix::fs::MetadataExt;
        Owner {
            uid: meta.uid(),
            gid: meta.gid(),
        }
    };
    if now != owner {
        match disk.chown(file.as_fd(), owner) {
            // Only root may give files away; the file is ours then, as with any editor that saves by renaming.
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {}
            other => other?,
        }
    }
    disk.chmod(file.as_fd(), mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beside_a_target_fit() {
        let long = "é".repeat(127);
        let name = name(OsStr::new(&long), "20260101T000000.000Z-1-0", 9999);
        assert!(name.len() <= NAME_MAX);
        assert!(name.to_str().is_some());
        let odd = OsStr::from_bytes(&[0xFF; 255]);
        assert!(super::name(odd, "x", 0).len() <= NAME_MAX);
    }
}
