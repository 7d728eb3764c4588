//! `want_ip_neighbor_events_v2`: subscribes to events of added and removed neighbours.

use crate::api_types::want;
use crate::message_types::{
    IP_NEIGHBOR, IpNeighborEventV2, WantIpNeighborEventsV2, WantIpNeighborEventsV2Reply,
};
use thalweg_api::{Call, Caller, Message, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, WantIpNeighborEventsV2, WantIpNeighborEventsV2Reply> =
    Call::known(&IP_NEIGHBOR, handle).with_events(&[IpNeighborEventV2::DEF]);

fn handle(
    c: &mut Control,
    caller: &Caller,
    rq: WantIpNeighborEventsV2,
) -> Result<WantIpNeighborEventsV2Reply, Retval> {
    let filter = (rq.ip, rq.sw_if_index);
    want(c, caller, (rq.enable, rq.pid), filter, |watchers| &mut watchers.second)?;
    Ok(WantIpNeighborEventsV2Reply)
}
