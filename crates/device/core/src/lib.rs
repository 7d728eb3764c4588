//! Interfaces and what drivers have in common.
//!
//! * [`interface`]: the registry of interfaces on the main thread, their events, and the table that
//!   workers read.
//! * [`output`]: the node in front of each interface's device.
//! * [`offload`]: checksums and segmentation that the far side cannot do for us.
//! * [`loopback`]: `loop0` and the benchmarks' sink, two devices without hardware.
#![forbid(unsafe_code)]

pub mod interface;
pub mod loopback;
pub mod offload;
pub mod output;

pub use interface::{
    Caps, Device, DeviceError, IfRow, IfTable, InterfaceEvent, InterfaceSpec, InterfaceView,
    Interfaces, Mac, RxQueue, SwIfIndex,
};

use thalweg_graph::{Control, Feature};

/// The feature: interfaces, loopbacks and sinks.
pub static FEATURE: Feature = Feature {
    name: "interface",
    about: "interfaces, loopbacks and sinks",
    init: Interfaces::init,
    ..Feature::DEFAULT
};

/// How interfaces are called in traces and counters.
pub(crate) fn namer(c: &Control, sw_if: u32) -> String {
    let all = c.state::<Interfaces>();
    let all = all.borrow();
    all.get(sw_if).map_or_else(|| format!("deleted-{sw_if}"), |i| i.name.clone())
}
