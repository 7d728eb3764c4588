//! Forwarding in one process, from the packet generator to the packet generator.
//!
//! - [`Router`] is a router in this process, [`Window`] what it did in a window of time.
//! - [`paths`] has the ways that packets go, their routes and their streams.
//! - [`turns`] measures settings in turn, [`pairs`] two of them in short turns, [`scaling`] one
//!   worker and two.
//! - [`accepted`] keeps counts of instructions, [`sharing`] tells which cache lines threads share;
//!   both are of [`valgrind`].

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![forbid(unsafe_code)]

pub mod accepted;
pub mod collector;
pub mod pairs;
pub mod paths;
mod router;
pub mod scaling;
pub mod sharing;
pub mod turns;
pub mod valgrind;

pub use router::{NodeRow, Router, Samples, Window, cores};
