//! From sessions to plans and back: discover → gather → timeline → decide → apply. Nothing here prints or asks.

pub mod change;
pub mod contents;
pub mod decide;
pub mod discover;
pub mod gather;
pub mod matching;
pub mod plan;
pub mod states;
pub mod timeline;
