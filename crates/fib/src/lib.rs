//! Forwarding objects (VPP: DPOs): adjacencies (the Ethernet header to write, and the interface),
//! load balance over several of them, and special routes (local, drop, unreachable …).
//!
//! * [`dpo`]: the table that workers read, one cache line per entry, changed in place by
//!   single-word stores.
//! * [`routes`]: lookups in the protocols' route tables, for descriptions of packets.
//! * [`forwarding`]: the main thread's side: references to entries, neighbours, interfaces.
#![forbid(unsafe_code)]

pub mod dpo;
pub mod forwarding;
pub mod routes;

pub use dpo::{
    Dpo, DpoTable, ETHERNET_HEADER, Entry, EntryState, EthernetRewrite, Kind, REWRITE_BYTES,
};
pub use forwarding::{Adjacency, FibError, Forwarding};
pub use routes::{RouteBook, Routes};

use thalweg_graph::Feature;

/// The feature: adjacencies and load balance.
pub static FEATURE: Feature = Feature {
    name: "fib",
    about: "adjacencies and load balance",
    init: Forwarding::init,
    ..Feature::DEFAULT
};
