//! A router that advertises itself, and hears others, between test interfaces.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod advertise;
mod autoconfig;
mod lab;
