//! The only place that changes files: stage, replace, link, remove, sync, lock. Paths below the workspace are
//! `tree::SafePath`.

pub mod tree;
