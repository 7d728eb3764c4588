//! ARP (RFC 826): resolves IPv4 neighbours.
//!
//! Workers answer requests and report senders; the table of neighbours, and what happens to packets
//! meanwhile, is [`thalweg_feat_neighbor`]'s.
//!
//! * [`nodes`]: `arp-input`, `arp-reply`, `ip4-arp` and `ip4-glean`.
//! * [`addrs`]: the interfaces' addresses, which the IPv4 feature passes with [`set_addresses`].
#![forbid(unsafe_code)]

pub mod addrs;
pub mod api;
pub mod api_types;
#[cfg(test)]
mod arping;
mod asker;
mod cli;
pub mod counters;
pub mod message_types;
pub mod nodes;
pub mod packet;
mod resolver;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use addrs::{IfAddr, IfAddrs, ProxyRange};
pub use counters::ArpCounters;
pub use resolver::{
    addresses, answer_at, answer_for_none, answer_for_ranges, answer_for_these, set_addresses,
    set_labels, set_proxy, set_routed_peers,
};

use thalweg_engine::Feature;
use thalweg_graph::{ArcDecl, ArcKey};

/// The feature.
pub static FEATURE: Feature = Feature {
    name: "arp",
    about: "ARP, which resolves IPv4 neighbours",
    needs: &[&thalweg_device::FEATURE, &thalweg_fib::FEATURE, &thalweg_feat_neighbor::FEATURE],
    nodes: nodes::NODES,
    arcs: &[&ArcDecl { name: "arp", key: ArcKey::Rx, end: "arp-reply" }],
    commands: cli::COMMANDS,
    api: api::SERVICES,
    init: resolver::init,
    ..Feature::DEFAULT
};
