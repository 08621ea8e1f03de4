//! Taking back, again and again, and what was changed in between.
