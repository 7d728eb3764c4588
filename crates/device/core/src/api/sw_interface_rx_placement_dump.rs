//! `sw_interface_rx_placement_dump`: lists receive queues and their workers.

use crate::Interfaces;
use crate::api_types::indices;
use crate::message_types::{INTERFACE, SwInterfaceRxPlacementDetails, SwInterfaceRxPlacementDump};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump};
use thalweg_graph::Control;

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
