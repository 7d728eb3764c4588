//! `ip_neighbor_flush`: flushes dynamic neighbours.

use crate::api_types::config;
use crate::message_types::{IP_NEIGHBOR, IpNeighborFlush, IpNeighborFlushReply};
use crate::{Version, neighbors};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Later, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, IpNeighborFlush, IpNeighborFlushReply> =
    Call::later(&IP_NEIGHBOR, handle);

fn handle(c: &mut Control, rq: IpNeighborFlush, later: Later<IpNeighborFlushReply>) {
    match which(c, &rq) {
        Ok((one, family)) => {
            let done = move |_| later.answer(0, &IpNeighborFlushReply);
            neighbors::flush_then(c, one, Some(family), done);
        }
        Err(retval) => later.answer(retval.0, &IpNeighborFlushReply),
    }
}

/// The interface (`None`: all) and the family to flush.
fn which(c: &Control, rq: &IpNeighborFlush) -> Result<(Option<SwIfIndex>, Version), Retval> {
    let (family, _) = config(c, rq.af)?;
    let one = match rq.sw_if_index {
        InterfaceIndex::NONE => None,
        index => Some(thalweg_device::api_types::view(c, index)?.sw_if),
    };
    Ok((one, family))
}
