//! The commands with IPv4, whose packets pass between test interfaces.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code)]
#[path = "../../../ip4/tests/router/lab.rs"]
mod lab;

mod commands;
mod pings;

/// Features of the lab in addition to IPv4.
const MORE: &[&thalweg_engine::Feature] = &[];
