//! Integration tests.

mod crash;
mod fault;
