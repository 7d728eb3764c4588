//! The commands with IPv4, whose packets pass between test interfaces.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod commands;
mod pings;

use thalweg_device::testing::{Lab, Setup};

/// Interfaces without addresses.
fn bare() -> Setup {
    Lab::of(&thalweg_feat_ip4::FEATURE).with(&thalweg_feat_neighbor::BY_CLOCK)
}

/// Interfaces with addresses and three hosts each.
fn router() -> Lab {
    bare().ip4(2..=4).start()
}
