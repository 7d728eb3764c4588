//! A router of the real features, whose packets pass between test interfaces.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod attacks;
mod dad;
mod forwarding;
mod icmp;
mod kernels;
mod neighbors;
mod path_mtu;
mod random;
mod redirects;

use std::net::Ipv6Addr;
use thalweg_device::testing::{Lab, Setup};

/// Interfaces without addresses.
fn bare() -> Setup {
    Lab::of(&thalweg_feat_ip6::FEATURE).with(&thalweg_feat_neighbor::BY_CLOCK)
}

/// Interfaces with addresses and three hosts each.
fn setup() -> Setup {
    bare().ip6(2..=4)
}

fn router() -> Lab {
    setup().start()
}

/// The link-local address of `testN`.
fn link_local(lab: &Lab, n: u8) -> Ipv6Addr {
    thalweg_feat_ip6::link_local::of(&lab.c, lab.sw_if(n)).expect("IPv6")
}
