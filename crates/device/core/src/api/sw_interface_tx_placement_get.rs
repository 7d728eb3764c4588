//! `sw_interface_tx_placement_get`: lists transmit queues and their workers.

use crate::api_types::view;
use crate::message_types::{
    INTERFACE, SwInterfaceTxPlacementDetails, SwInterfaceTxPlacementGet,
    SwInterfaceTxPlacementGetReply,
};
use crate::{Interfaces, SwIfIndex};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Retval, Stream};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Stream<
    Control,
    SwInterfaceTxPlacementGet,
    SwInterfaceTxPlacementDetails,
    SwInterfaceTxPlacementGetReply,
> = Stream::new(&INTERFACE, handle);

fn handle(
    c: &mut Control,
    rq: SwInterfaceTxPlacementGet,
    out: &mut Details<SwInterfaceTxPlacementDetails>,
) -> (i32, SwInterfaceTxPlacementGetReply) {
    let end = |retval: Retval, cursor: u32| (retval.0, SwInterfaceTxPlacementGetReply { cursor });
    let ports: Vec<SwIfIndex> = match rq.sw_if_index {
        InterfaceIndex::NONE => c.state::<Interfaces>().borrow().iter().map(|v| v.sw_if).collect(),
        one => match view(c, one) {
            Ok(view) => vec![view.sw_if],
            Err(retval) => return end(retval, u32::MAX),
        },
    };
    for sw_if in ports.into_iter().filter(|port| *port >= SwIfIndex(rq.cursor)) {
        if out.is_full() {
            return end(Retval::EAGAIN, sw_if.get());
        }
        let device = c.state::<Interfaces>().borrow().device(sw_if);
        let queues = device.map_or(0, |device| device.tx_queues());
        for queue_id in 0..queues {
            // A queue without a worker of its number is not used.
            let threads = (1 + queue_id..=c.workers() as u32).take(1).collect();
            let sw_if_index = InterfaceIndex(sw_if.get());
            out.send(&SwInterfaceTxPlacementDetails { sw_if_index, queue_id, shared: 0, threads });
        }
    }
    end(Retval(0), u32::MAX)
}
