//! Checkpoint sidecars.
