//! Patch text: `apply_patch` envelopes and unified diffs.
