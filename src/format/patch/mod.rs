//! Patch text, in the two shapes that agents record: [`envelope`] (`*** Begin Patch`, no line numbers) and unified
//! diffs ([`undo_hunks`], [`redo_hunks`]; line numbers, so an edit can be undone for certain).
//! Does not cover applying an envelope: without line numbers that would be a guess.

mod envelope;
mod hunks;

pub use envelope::{Section, SectionKind, envelope};
pub use hunks::{redo_hunks, undo_hunks};
