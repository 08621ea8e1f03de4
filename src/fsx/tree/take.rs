//! Takes the bytes of one file as they are at this moment, for keeping them: whole, of one version, within a limit; and
//! nothing that is no plain file is even opened.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};

use super::look::{FileKind, kind_of};
use super::{Root, SafePath};
use crate::fsx::sys;

/// What was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// Nothing stands there.
    Absent,
    /// A file.
    File {
        /// Its bytes.
        bytes: Vec<u8>,
        /// Its permission bits.
        mode: u32,
    },
    /// A file of more bytes than the limit.
    TooLarge(u64),
    /// Something that is no plain file.
    NotAFile(FileKind),
    /// A file that was written at each of three tries.
    Changing,
}

/// So often a file that changes is read again.
const TRIES: usize = 3;

impl Root {
    /// Takes a file of at most `limit` bytes.
    ///
    /// # Errors
    /// It cannot be read; only "not found" is absence.
    pub fn take(&self, path: &SafePath, limit: u64) -> io::Result<Taken> {
        let dir = match sys::open_below(self.fd(), path.folder()) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Taken::Absent),
            other => other?,
        };
        for _ in 0..TRIES {
            let there = match sys::stat(dir.as_fd(), path.name()) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Taken::Absent),
                other => other?,
            };
            match kind_of(&there) {
                FileKind::File => {}
                kind => return Ok(Taken::NotAFile(kind)),
            }
            if there.len() > limit {
                return Ok(Taken::TooLarge(there.len()));
            }
            let file = match sys::open_file(dir.as_fd(), path.name()) {
                // It went between the two looks.
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            let before = file.metadata()?;
            if !before.is_file() {
                continue;
            }
            let mut bytes = Vec::with_capacity(usize::try_from(before.len()).unwrap_or_default());
            (&file).take(limit + 1).read_to_end(&mut bytes)?;
            let after = file.metadata()?;
            let times = |m: &std::fs::Metadata| {
                (
                    m.len(),
                    m.mtime(),
                    m.mtime_nsec(),
                    m.ctime(),
                    m.ctime_nsec(),
                )
            };
            let still = times(&before) == times(&after) && bytes.len() as u64 == after.len();
            if still && reads_the_same(&file, &bytes)? {
                let mode = after.mode() & 0o7777;
                return Ok(Taken::File { bytes, mode });
            }
        }
        Ok(Taken::Changing)
    }
}

/// Times may be the same for several milliseconds, so a small file is read a second time.
fn reads_the_same(file: &std::fs::File, bytes: &[u8]) -> io::Result<bool> {
    if bytes.len() > TWICE {
        return Ok(true);
    }
    let mut again = vec![0; bytes.len()];
    match file.read_exact_at(&mut again, 0) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        other => other.map(|()| again == bytes),
    }
}

/// Of a larger file the times must do.
const TWICE: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn take(root: &Root, path: &str) -> Taken {
        root.take(&SafePath::new(Path::new(path)).unwrap(), 10)
            .unwrap()
    }

    #[test]
    fn a_plain_file_within_the_limit_is_taken_and_nothing_else_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("a"), "0123456789").unwrap();
        std::fs::write(at("b"), "01234567890").unwrap();
        std::fs::create_dir(at("d")).unwrap();
        std::os::unix::fs::symlink(at("a"), at("link")).unwrap();
        std::os::unix::fs::symlink("/etc", at("out")).unwrap();
        // Opening it would wait for a writer.
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("fifo"),
            rustix::fs::FileType::Fifo,
            0o600.into(),
            0,
        )
        .unwrap();
        let root = Root::open(dir.path()).unwrap();
        assert!(matches!(take(&root, "a"), Taken::File { bytes, .. } if bytes == b"0123456789"));
        assert_eq!(take(&root, "b"), Taken::TooLarge(11));
        assert_eq!(take(&root, "none"), Taken::Absent);
        assert_eq!(take(&root, "none/x"), Taken::Absent);
        assert_eq!(take(&root, "d"), Taken::NotAFile(FileKind::Dir));
        assert_eq!(take(&root, "link"), Taken::NotAFile(FileKind::Link));
        assert_eq!(take(&root, "fifo"), Taken::NotAFile(FileKind::Other));
        let out = SafePath::new(Path::new("out/passwd")).unwrap();
        assert!(
            root.take(&out, 10_000).is_err(),
            "a link on the way is not followed"
        );
    }

    #[test]
    fn a_file_that_is_written_meanwhile_is_taken_whole_or_not_at_all() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "a".repeat(100_000)).unwrap();
        let root = Root::open(dir.path()).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0.. {
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    let letter = ["b", "c"][n % 2];
                    std::fs::write(&path, letter.repeat(100_000)).unwrap();
                }
            });
            let safe = SafePath::new(Path::new("a")).unwrap();
            for _ in 0..200 {
                match root.take(&safe, 1 << 20).unwrap() {
                    // A write that only cut the file off leaves it empty for a moment, which is a version too.
                    Taken::File { bytes, .. } => {
                        let first = bytes.first().copied();
                        assert!(
                            bytes.iter().all(|b| Some(*b) == first),
                            "two versions in one"
                        );
                    }
                    Taken::Changing => {}
                    other => panic!("{other:?}"),
                }
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}
