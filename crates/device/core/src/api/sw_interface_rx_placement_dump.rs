//! `sw_interface_rx_placement_dump`: which worker polls which receive queue.

use crate::Interfaces;
use crate::api_types::{INTERFACE, RxMode, indices};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump, Message};
use thalweg_graph::Control;

/// Asks for receive queues.
#[derive(Debug, Message)]
#[api(request)]
pub struct SwInterfaceRxPlacementDump {
    /// Of which interface; none and 0 mean all.
    pub sw_if_index: InterfaceIndex,
}

/// A receive queue. By a whim of its inventors it begins as a request does.
#[derive(Debug, Message)]
#[api(request)]
pub struct SwInterfaceRxPlacementDetails {
    /// Its interface.
    pub sw_if_index: InterfaceIndex,
    /// Its number.
    pub queue_id: u32,
    /// The thread that polls it: main is 0, the first worker is 1.
    pub worker_id: u32,
    /// How it is waited for.
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
        for queue in device.map(|device| device.borrow().rx_queues()).unwrap_or_default() {
            out.send(&SwInterfaceRxPlacementDetails {
                sw_if_index: InterfaceIndex(sw_if),
                queue_id: queue.queue,
                worker_id: queue.worker as u32 + 1,
                mode: queue.mode.into(),
            });
        }
    }
}
