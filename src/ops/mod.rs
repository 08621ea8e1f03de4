//! Plans and their execution.

pub mod plan;
