//! Forwarders to compare: this router, the kernel, Open vSwitch, DPDK's testpmd.

#![forbid(unsafe_code)]

mod lone;
mod side;
mod testpmd;

pub use lone::{Latencies, Lone};
pub use side::{Flooded, Forwarder, Path, Side};
pub use testpmd::Testpmd;
