//! `sw_interface_rx_placement_dump`: lists receive queues and their workers.

use crate::Interfaces;
use crate::api_types::{INTERFACE, RxMode, indices};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump, Message};
use thalweg_graph::Control;

/// Requests receive queues.
#[derive(Debug, Message)]
#[api(request)]
pub struct SwInterfaceRxPlacementDump {
    /// Interface; all ones or 0 for all.
    pub sw_if_index: InterfaceIndex,
}

/// A receive queue. In VPP's definition it begins like a request.
#[derive(Debug, Message)]
#[api(request)]
pub struct SwInterfaceRxPlacementDetails {
    /// Interface.
    pub sw_if_index: InterfaceIndex,
    /// Queue number.
    pub queue_id: u32,
    /// Thread that polls it: main is 0, the first worker is 1.
    pub worker_id: u32,
    /// Receive mode.
    pub mode: RxMode,
}

/// The service.
pub static SERVICE: Dump<Control, SwInterfaceRxPlacementDump, SwInterfaceRxPlacementDetails> =
    Dump::new(&INTERFACE, handle);

fn handle(
    c: &mut Control,
    rq: SwInterfaceRxPlacementDump,
    out: &mut Details<SwInterfaceRxPlacementDetails>,
) {
    for sw_if in indices(c, rq.sw_if_index) {
        let device = c.state::<Interfaces>().borrow().device(sw_if);
        for queue in device.map(|device| device.rx_queues()).unwrap_or_default() {
            out.send(&SwInterfaceRxPlacementDetails {
                sw_if_index: InterfaceIndex(sw_if.get()),
                queue_id: queue.queue,
                worker_id: queue.worker as u32 + 1,
                mode: queue.mode.into(),
            });
        }
    }
}
