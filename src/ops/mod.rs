//! Plans and their execution.

pub mod apply;
pub mod journal;
pub mod plan;
pub mod recover;
pub mod undo;

#[cfg(test)]
pub(crate) mod world;
