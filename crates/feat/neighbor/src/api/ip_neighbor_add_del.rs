//! `ip_neighbor_add_del`: configures a neighbour.

use crate::api_types::find;
use crate::message_types::{IP_NEIGHBOR, IpNeighborAddDel, IpNeighborAddDelReply, IpNeighborFlags};
use crate::{NeighborFlags, neighbors};
use thalweg_api::{Call, Retval};
use thalweg_device::SwIfIndex;
use thalweg_fib::Dpo;
use thalweg_graph::Control;

impl Default for IpNeighborAddDelReply {
    fn default() -> Self {
        Self { stats_index: u32::MAX }
    }
}

/// The service.
pub static SERVICE: Call<Control, IpNeighborAddDel, IpNeighborAddDelReply> =
    Call::new(&IP_NEIGHBOR, handle);

fn handle(c: &mut Control, rq: IpNeighborAddDel) -> Result<IpNeighborAddDelReply, Retval> {
    let (ip, sw_if) = (rq.neighbor.ip_address.ip()?, rq.neighbor.sw_if_index.0);
    if !rq.is_add {
        neighbors::remove(c, SwIfIndex(sw_if), ip)?;
        return Ok(IpNeighborAddDelReply::default());
    }
    if rq.neighbor.flags.0 & !(IpNeighborFlags::STATIC.0 | IpNeighborFlags::NO_FIB_ENTRY.0) != 0 {
        return Err(Retval::INVALID_VALUE.because("flags are 1 (static) and 2 (no host route)"));
    }
    let flags = NeighborFlags {
        is_static: rq.neighbor.flags.has(IpNeighborFlags::STATIC),
        no_fib_entry: rq.neighbor.flags.has(IpNeighborFlags::NO_FIB_ENTRY),
    };
    neighbors::set(c, SwIfIndex(sw_if), ip, rq.neighbor.mac_address, flags)?;
    let stats_index = find(c, &rq.neighbor).and_then(|n| n.dpo).unwrap_or(Dpo::MAX);
    Ok(IpNeighborAddDelReply { stats_index: stats_index.get() })
}
