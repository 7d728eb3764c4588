//! Forwarders to compare: this router, the kernel, Open vSwitch, DPDK's testpmd.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![forbid(unsafe_code)]

mod lone;
mod side;
mod testpmd;

pub use lone::{Latencies, Lone};
pub use side::{Flooded, Forwarder, Path, Side};
pub use testpmd::Testpmd;
