//! The statistics segment: counters in memory that clients of VPP map and read.
//!
//! [`Segment`] is the memory, laid out as VPP's clients expect it (version 2); [`Server`] passes it
//! to clients over a local socket. This crate knows no feature: what is counted, and when values
//! are updated, is up to its owner. [`metrics`] formats the same as text, and [`http`] serves it.
#![forbid(unsafe_code)]

pub mod http;
mod layout;
mod memory;
pub mod metrics;
mod segment;
mod server;
#[cfg(test)]
mod tests;

pub use segment::{Change, Segment, SegmentError, Slot};
pub use server::{Server, ServerError};
