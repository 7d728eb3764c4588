//! Common parts of the scenarios: the router under test, and the odd clients that talk to it.
//!
//! - [`Router`] is a `thalweg run` in a namespace. The router shows what it knows when a test
//!   fails, and [`Router::stop`] holds it to a clean end: every packet accounted for, every buffer
//!   home.
//! - [`vppctl`] speaks to the CLI socket as VPP's own client does, byte for byte.
//! - [`RawLink`] puts any bytes on a link and reads what comes back.
//! - [`Collector`] receives sFlow datagrams.
//! - [`Flow`] is a ping that goes on while other things happen, and knows what it missed.
//! - [`Ovs`] is an Open vSwitch in a namespace, [`Peer`] finds such programs of others.
//! - [`Keeper`] keeps a router's descriptors over restarts, as systemd does, and [`Systemd`] is
//!   one.
//! - [`wait_for_same_routes`] compares the router's routes with the kernel's.
//! - [`CpuClock`] measures the processor time of a process, [`ActivityClock`] to the nanosecond and
//!   with its wake-ups.

#![forbid(unsafe_code)]

mod binary;
pub mod chaos;
mod collector;
mod cpu;
mod flow;
mod kernel_routes;
mod raw;
mod router;
mod soak;
mod systemd;
mod text;
pub mod vppctl;

pub use binary::thalweg;
pub use collector::Collector;
pub use cpu::{Activity, ActivityClock, CpuClock, Times};
pub use flow::{Flow, FlowResult};
pub use kernel_routes::{same_routes, wait_for_same_routes};
pub use raw::RawLink;
pub use router::{Config, Router, counter, host_pair, host_pair_with};
pub use soak::{SoakOptions, soak};
pub use systemd::Systemd;
pub use text::{Delay, hex};
pub use thalweg_peers::{Bird, Frr, Keepalived, Ovs, OvsOptions, Peer};
pub use thalweg_testkit::Keeper;
