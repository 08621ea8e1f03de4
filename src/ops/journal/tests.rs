//! The log with cut and garbage lines, and the undo stack.
