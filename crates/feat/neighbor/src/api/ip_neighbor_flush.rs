//! `ip_neighbor_flush`: flushes dynamic neighbours.

use crate::api_types::{IP_NEIGHBOR, config};
use crate::neighbors;
use thalweg_api::types::{AddressFamily, InterfaceIndex};
use thalweg_api::{Call, Message, Retval};
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
    Call::new(&IP_NEIGHBOR, handle);

fn handle(c: &mut Control, rq: IpNeighborFlush) -> Result<IpNeighborFlushReply, Retval> {
    let (family, _) = config(c, rq.af)?;
    let one = match rq.sw_if_index {
        InterfaceIndex::NONE => None,
        index => Some(thalweg_device::api_types::view(c, index)?.sw_if),
    };
    neighbors::flush(c, one, Some(family));
    Ok(IpNeighborFlushReply)
}
