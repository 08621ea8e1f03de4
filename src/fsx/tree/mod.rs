//! The workspace folder and the paths below it that may be written: opened once, walked without following a link,
//! `..` refused (`bugs.md` 57).
//!
//! `safe` says what a path may be made of, `root` turns a recorded path into one, `look` says what stands there, `take`
//! copies it.

mod look;
mod root;
mod safe;
mod take;

#[cfg(test)]
mod tests;

pub use look::{FileKind, Fingerprint, Look, look_at};
pub(crate) use root::owner_of;
pub use root::{Folders, Root};
pub use safe::{SafePath, bytes_of, path_serde};
pub use take::Taken;

use std::io;

use crate::model::edit::Reason;

/// Why a path cannot be looked at, as the user is told.
#[must_use]
pub fn reason_of(e: &io::Error) -> Reason {
    use rustix::io::Errno;
    let is = |errno: Errno| e.raw_os_error() == Some(errno.raw_os_error());
    // A link or a file where a folder should be; `BENEATH` answers EXDEV to whatever leads out.
    if is(Errno::LOOP) || is(Errno::NOTDIR) {
        return Reason::NotAFile;
    }
    if is(Errno::XDEV) {
        return Reason::OutsideRoot;
    }
    if is(Errno::NAMETOOLONG) || is(Errno::ILSEQ) {
        return Reason::BadName;
    }
    Reason::Unreadable(e.to_string())
}
