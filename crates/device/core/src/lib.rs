//! Interfaces, and what drivers share.
//!
//! * [`interface`]: the registry of interfaces on the main thread, their events, and the table that
//!   workers read.
//! * [`entry`]: the way into interfaces without a device.
//! * [`nodes`]: the nodes that interfaces send by.
//! * [`link_header`]: what packets begin with.
//! * [`offload`]: checksums and segmentation in software, for devices that cannot.
//! * [`queues`]: receive queues of devices.
//! * [`loopback`]: loopbacks and sinks, devices without hardware.
//! * [`cli`]: the commands; [`command_line`]: CLI arguments for commands of features.
#![forbid(unsafe_code)]

pub mod api;
pub mod api_types;
pub mod cli;
pub mod command_line;
pub mod entry;
pub mod interface;
pub mod link_header;
pub mod loopback;
pub mod message_types;
pub mod nodes;
pub mod offload;
pub mod queues;
mod report;
pub mod setting;
mod settings;
#[cfg(feature = "testing")]
pub mod testing;

pub use command_line::{interface_arg, interface_names};
pub use interface::{
    Caps, Device, DeviceCame, DeviceError, IfRow, IfTable, InterfaceEvent, InterfaceSpec,
    InterfaceView, Interfaces, MacAddr, Mode, Mtu, MtuOf, NoInterface, RxQueue, Subs, SwIfIndex,
    SystemDevice, TagEdit, TagKind, TagMatch, TagRewrite, Tags, Transmit, VlanTag,
};
pub use settings::each_interface;

use thalweg_engine::Feature;
use thalweg_graph::Control;

/// The feature: interfaces, loopbacks and sinks.
pub static FEATURE: Feature = Feature {
    name: "interface",
    about: "interfaces, loopbacks and sinks",
    commands: cli::COMMANDS,
    api: api::SERVICES,
    nodes: nodes::NODES,
    init: |c| {
        c.set_node_namer(interface::node_of_name);
        Interfaces::init(c);
        queues::init(c);
        api_types::init(c);
    },
    ready: queues::ready,
    settings: &[&settings::SETTINGS],
    ..Feature::DEFAULT
};

/// Name of an interface in traces, which are of a time in ticks, and counters.
pub(crate) fn namer(c: &Control, sw_if: SwIfIndex, at: Option<u64>) -> String {
    let all = c.state::<Interfaces>();
    let all = all.borrow();
    if let Some(at) = at {
        return all.name_at(sw_if, at);
    }
    all.get(sw_if).map_or_else(|| format!("deleted-{sw_if}"), |i| i.name.clone())
}
