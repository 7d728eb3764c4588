//! `af_packet_dump`: lists host interfaces.

use crate::message_types::{AF_PACKET, AfPacketDetails, AfPacketDump};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump};
use thalweg_device::Interfaces;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, AfPacketDump, AfPacketDetails> = Dump::new(&AF_PACKET, handle);

fn handle(c: &mut Control, _: AfPacketDump, out: &mut Details<AfPacketDetails>) {
    for view in c.state::<Interfaces>().borrow().iter() {
        let device = view.name.strip_prefix("host-").filter(|_| view.dev_type == "af-packet");
        if let Some(device) = device {
            let sw_if_index = InterfaceIndex(view.sw_if.get());
            out.send(&AfPacketDetails { sw_if_index, host_if_name: device.into() });
        }
    }
}
