//! NAT44 end to end: the real features between test interfaces.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod chaos;
mod growth;
mod kernels;
mod limits;
mod mappings;
mod matrix;
mod nat;
mod output;
mod own_errors;
mod owners;
mod protocols;
mod requirements;
mod rfc;
mod sessions;
mod store;
mod tables;
mod users;
mod vrfs;

use thalweg_device::testing::{Lab, Setup};

/// Interfaces with addresses and three hosts each.
fn setup() -> Setup {
    let setup = Lab::of(&thalweg_feat_nat44::FEATURE).with(&thalweg_feat_neighbor::BY_CLOCK);
    setup.buffers(4096).ip4(2..=4)
}
