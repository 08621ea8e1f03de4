//! Writes files that the program can make again at any time, such as its manual pages, into a folder of the user's. A
//! file of the same name is replaced only where its first line says that it was made so; any other is somebody's own.
//! Does not cover the folder itself, which must be there: whose it is to be and who may read it, the user knows.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::path::Path;

use crate::error::{Error, Kind, Result};
use crate::format::lines;
use crate::fsx::{Disk, Name, durable};

/// A file that can be made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Its name, one plain component.
    pub name: String,
    /// Its text; the first line is the mark by which it is known again.
    pub text: String,
}

impl Page {
    fn mark(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }
}

/// Every user of the machine may read such a file.
const MODE: u32 = 0o644;
/// No page is longer; a longer file is none.
const LONGEST: usize = 1 << 20;

/// What stands in a page's place.
#[derive(PartialEq, Eq)]
enum There {
    Nothing,
    Same,
    Older,
    Foreign,
}

/// Writes the pages that are not there yet, or not as they are now. Nothing is written before all of the places have
/// been looked at.
///
/// # Errors
/// [`Kind::NotFound`] without the folder, [`Kind::Conflict`] where a file stands in the way that is no page; the disk
/// refuses.
pub fn write(folder: &Path, pages: &[Page], disk: &dyn Disk) -> Result<()> {
    if !folder.is_dir() {
        let words = format!("there is no folder `{}`", folder.display());
        return Err(Error::new(Kind::NotFound, words).hint("make it with `mkdir -p`"));
    }
    let mut wanted = Vec::new();
    let mut foreign = Vec::new();
    for page in pages {
        match there(&folder.join(&page.name), page)? {
            There::Same => {}
            There::Nothing | There::Older => wanted.push(page),
            There::Foreign => foreign.push(page),
        }
    }
    if !foreign.is_empty() {
        let words = "files are in the way that this program did not write";
        let mut error = Error::new(Kind::Conflict, words).hint("name another folder");
        for page in foreign {
            error = error.path(folder.join(&page.name), "left alone");
        }
        return Err(error);
    }
    for page in wanted {
        put(folder, page, disk).map_err(|e| {
            Error::io("a page cannot be written", folder.join(&page.name), e)
                .changed("the pages before it were written; running it again writes the rest")
        })?;
    }
    Ok(())
}

fn there(path: &Path, page: &Page) -> Result<There> {
    match std::fs::symlink_metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(There::Nothing),
        Err(e) => return Err(Error::io("a page cannot be looked at", path, e)),
        Ok(meta) if !meta.is_file() || meta.len() > LONGEST as u64 => return Ok(There::Foreign),
        Ok(_) => {}
    }
    let bytes = lines::read_whole(path, LONGEST)
        .map_err(|e| Error::io("a page cannot be looked at", path, e))?;
    let first = bytes.split(|b| *b == b'\n').next();
    Ok(if bytes == page.text.as_bytes() {
        There::Same
    } else if first == Some(page.mark().as_bytes()) {
        There::Older
    } else {
        There::Foreign
    })
}

fn put(folder: &Path, page: &Page, disk: &dyn Disk) -> std::io::Result<()> {
    let dir = durable::folder(disk, folder)?;
    let (name, temp) = (OsStr::new(&page.name), format!(".{}.new", page.name));
    let temp = Name::new(&dir, &temp);
    // Left by a run that was killed.
    durable::remove(disk, temp)?;
    let file = disk.create(dir.as_fd(), temp.name)?;
    let done = disk
        .write(&file, page.text.as_bytes())
        .and_then(|()| disk.chmod(file.as_fd(), MODE))
        .and_then(|()| disk.rename(temp, Name::new(&dir, name)));
    if done.is_err() {
        // Best effort: the error that counts is the first one, and the next run removes what is left.
        drop(durable::remove(disk, temp));
    }
    done
}
