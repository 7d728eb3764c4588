//! A router that listens to groups, and hears queries, between test interfaces.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod lab;
mod listening;
mod queries;
