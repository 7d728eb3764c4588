//! IPv4 from end to end: the real features between test interfaces.

#![allow(clippy::expect_used, clippy::panic)]

mod arcs;
mod forwarding;
mod icmp;
mod kernels;
mod lab;
mod links;
mod local;
mod midchain;
mod multicast;
mod path_mtu;
mod paths;
mod punts;
mod random;
mod redirects;
mod routes;
mod unnumbered;

/// Further features of the lab.
const MORE: &[&thalweg_engine::Feature] =
    &[&local::LISTENER, &arcs::ON_ARCS, &punts::TAKER, &midchain::FEATURE];
