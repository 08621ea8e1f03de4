//! A shop and a session of four turns to play with, in a new folder of its own: the bundled example, with the folder that
//! it was recorded in replaced by the new one.
//!
//! ```text
//! <folder>/shop/…              the workspace, as it is after the last turn
//! <folder>/claude/projects/…   the session
//! <folder>/claude/file-history the agent's copies
//! <folder>/state/              where the journal will be
//! ```

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use super::Disk;
use super::discover::canonical;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::fsx::durable;

/// Where the example was recorded.
const RECORDED: &str = "/home/dev/shop";
/// The id of its session.
const ID: &str = "5d0c1b7e-30a1-4c52-9f6e-2b8a4d1e7f10";

macro_rules! shop {
    ($($path:literal),*) => { &[$(($path, include_bytes!(concat!("../../tests/fixtures/demo/shop/", $path)))),*] };
}
macro_rules! copies {
    ($($name:literal),*) => {
        &[$(($name, include_bytes!(concat!(
            "../../tests/fixtures/demo/home/.claude/file-history/5d0c1b7e-30a1-4c52-9f6e-2b8a4d1e7f10/", $name
        )))),*]
    };
}

/// The workspace.
const SHOP: &[(&str, &[u8])] = shop!(
    "README.md",
    "src/basket.py",
    "src/cart.py",
    "src/prices.csv",
    "tests/test_cart.py"
);

/// The agent's copies.
const COPIES: &[(&str, &[u8])] = copies!(
    "61ce76343fbacd33@v2",
    "67661cb1c781d01c@v1",
    "67661cb1c781d01c@v2",
    "67661cb1c781d01c@v3",
    "c50857eddb999bd7@v2",
    "c50857eddb999bd7@v3"
);

/// The session.
const SESSION: &str = include_str!(
    "../../tests/fixtures/demo/home/.claude/projects/-home-dev-shop/5d0c1b7e-30a1-4c52-9f6e-2b8a4d1e7f10.jsonl"
);

/// What was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demo {
    /// All of it; it can be thrown away.
    pub folder: PathBuf,
    /// The workspace.
    pub shop: PathBuf,
    /// What `CLAUDE_CONFIG_DIR` must name for the session to be found.
    pub claude: PathBuf,
    /// What `REWIND_STATE_DIR` should name, so that nothing of it is left elsewhere.
    pub state: PathBuf,
}

/// Makes it.
///
/// # Errors
/// The temporary folder cannot be written; what was written of the example stays there.
pub fn make(env: &Env, disk: &dyn Disk) -> Result<Demo> {
    let name = format!("rewind-demo-{}", uuid::Uuid::new_v4().simple());
    // The agent's record names real paths.
    let folder = canonical(&env.temp).join(name);
    let demo = Demo {
        shop: folder.join("shop"),
        claude: folder.join("claude"),
        state: folder.join("state"),
        folder,
    };
    write(&demo, disk).map_err(|e| {
        Error::io("the example cannot be written", &demo.folder, e)
            .changed("nothing but that folder was touched; it can be deleted")
            .hint("`TMPDIR` says where temporary folders go")
    })?;
    Ok(demo)
}

fn write(demo: &Demo, disk: &dyn Disk) -> std::io::Result<()> {
    let Some(root) = demo.shop.to_str() else {
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    for (path, bytes) in SHOP {
        put(disk, &demo.shop.join(path), bytes)?;
    }
    let copies = demo.claude.join("file-history").join(ID);
    for (name, bytes) in COPIES {
        put(disk, &copies.join(name), bytes)?;
    }
    // As it stands between quotes.
    let quoted = serde_json::to_string(root)?;
    let inner = quoted.trim_matches('"');
    let session = SESSION.replace(RECORDED, inner);
    let project: String = root
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let project = demo.claude.join("projects").join(project);
    put(
        disk,
        &project.join(format!("{ID}.jsonl")),
        session.as_bytes(),
    )?;
    durable::folder(disk, &demo.state).map(drop)
}

fn put(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let parts = path.parent().zip(path.file_name());
    let (folder, name): (&Path, &OsStr) = parts.ok_or(std::io::ErrorKind::InvalidInput)?;
    let dir = durable::folder(disk, folder)?;
    let file = disk.create(dir.as_fd(), name)?;
    disk.write(&file, bytes)
}
