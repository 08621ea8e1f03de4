//! From sessions to plans and back: discover → gather → timeline → decide → apply. Nothing here prints or asks.

pub mod apply;
pub mod capture;
pub mod change;
pub mod config;
pub mod contents;
pub mod coverage;
pub mod cut;
pub mod decide;
pub mod demo;
pub mod discover;
pub mod doctor;
pub mod fork;
pub mod gather;
pub mod init;
pub mod journal;
pub mod matching;
pub mod ours;
pub mod overview;
pub mod pages;
pub mod pins;
pub mod plan;
pub mod prune;
pub mod recover;
mod snapshots;
pub mod states;
pub mod timeline;
pub mod undo;
pub mod verify;
pub mod worktree;

pub use crate::fsx::hash::hex;
pub use crate::fsx::new_file;
pub use crate::fsx::tree::{FileKind, Root, SafePath};
pub use crate::fsx::{Disk, Real};

#[cfg(test)]
pub(crate) mod tests;
