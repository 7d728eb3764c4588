//! ARP (RFC 826) and the IPv4 neighbour table.
//!
//! Workers answer requests, report senders, and hold packets for unresolved neighbours; only the
//! main thread owns the table. It completes adjacencies in place, so that packets after the first
//! never see this crate.
//!
//! * [`nodes`]: `arp-input`, `ip4-arp` and `ip4-glean`.
//! * [`neighbors`]: the table on the main thread. The IPv4 feature passes addresses with
//!   [`set_addresses`] and learns by [`NeighborChange`] which /32 routes to add.
//!
//! Life of a neighbour:
//!
//! ```text
//!             packet for it           three requests, no reply
//! (unknown) ───────────────► incomplete ───────────────► failed ─► (deleted)
//!     │                          │ reply, request            │ packet for it, after a silence
//!     │ request, reply           ▼                           ▼ of 2, 4, 8, 16, 30 seconds
//!     └───────────────────► reachable ◄────────┐         incomplete
//!                                │ age limit   │ reply
//!                                ▼             │
//!                         stale ─► probe ──────┴─► three probes, no reply: (deleted)
//! ```
#![forbid(unsafe_code)]

pub mod addrs;
pub mod api;
mod api_types;
mod args;
pub mod cli;
mod hold;
mod limit;
pub mod neighbors;
pub mod nodes;
pub mod packet;
mod settings;
mod table;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod walk;

pub use addrs::{IfAddr, IfAddrs};
pub use neighbors::{
    ArpError, Neighbor, NeighborChange, NeighborFlags, Neighbors, announce, answer_for, flush,
    remove, resolve, set, set_addresses, set_config,
};
pub use packet::Origin;
pub use table::{Config, State, TableStats};

use thalweg_engine::Feature;

/// The feature.
pub static FEATURE: Feature = Feature {
    name: "arp",
    about: "ARP and IPv4 neighbours",
    needs: &["interface", "fib"],
    nodes: nodes::NODES,
    commands: cli::COMMANDS,
    api: api::SERVICES,
    init: |c| {
        neighbors::init(c);
        api_types::init(c);
    },
    settings: &[&settings::SETTINGS],
    ..Feature::DEFAULT
};
