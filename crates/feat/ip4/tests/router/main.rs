//! IPv4 from end to end: the real features between test interfaces.

#![allow(clippy::expect_used, clippy::panic)]

mod arcs;
mod forwarding;
mod icmp;
mod kernels;
mod links;
mod local;
mod midchain;
mod multicast;
mod neighbors;
mod path_mtu;
mod paths;
mod punts;
mod random;
mod redirects;
mod routes;
mod unnumbered;

use thalweg_device::testing::{Lab, Setup};

/// Interfaces without addresses.
fn bare() -> Setup {
    Lab::of(&thalweg_feat_ip4::FEATURE)
        .with(&thalweg_feat_neighbor::BY_CLOCK)
        .with(&local::LISTENER)
        .with(&arcs::ON_ARCS)
        .with(&punts::TAKER)
        .with(&midchain::FEATURE)
}

/// Interfaces with addresses and three hosts each.
fn setup() -> Setup {
    bare().ip4(2..=4)
}

fn router() -> Lab {
    setup().start()
}
