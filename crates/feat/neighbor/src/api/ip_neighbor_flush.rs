//! `ip_neighbor_flush`: flushes dynamic neighbours.

use crate::api_types::{IP_NEIGHBOR, config};
use crate::{Version, neighbors};
use thalweg_api::types::{AddressFamily, InterfaceIndex};
use thalweg_api::{Call, Later, Message, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// Flushes dynamic neighbours.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct IpNeighborFlush {
    /// Address family.
    pub af: AddressFamily,
    /// Interface; all ones for all.
    #[api(default = 0xffff_ffff)]
    pub sw_if_index: InterfaceIndex,
}

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
