//! The words of the field as types. No I/O, no clock, no printing: every layer may import these, and these import
//! nothing of ours.

pub mod checkpoint;
pub mod cut;
pub mod edit;
pub mod fork;
pub mod point;
pub mod session;
pub mod size;
pub mod when;
