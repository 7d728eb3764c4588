//! What a route ends in: adjacencies (the Ethernet header to write, and where to), load balance
//! over several of them, and the special ends (local, drop, unreachable …).
//!
//! * [`dpo`]: the table that workers read, one cache line per entry, changed in place by
//!   single-word stores.
//! * [`routes`]: what route tables say of an address, for those who describe packets.
//! * [`forwarding`]: the main thread's side: who uses which entry, neighbours, interfaces.
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
