//! `rewind`: the undo button for coding agents.
//!
//! Data flows one way: `ops::discover` finds sessions, `format` detects and reads them, `ops::timeline` joins what the
//! transcript and the checkpoints (`ckpt`) know, `ops::plan` decides, `ui` previews, `ops::apply` does it through
//! `fsx`, `ui` reports. `cmd` holds one file a subcommand and only wires these together. `model` is the words that all
//! of them share. Imports run the same way and a test holds them to it.

pub mod ckpt;
pub mod cli;
pub mod env;
pub mod error;
pub mod format;
pub mod fsx;
pub mod model;
pub mod ops;
pub mod ui;
