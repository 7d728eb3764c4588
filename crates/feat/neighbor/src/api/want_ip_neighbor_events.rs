//! `want_ip_neighbor_events`: subscribes to events of new neighbours.

use crate::api_types::want;
use crate::message_types::{
    IP_NEIGHBOR, IpNeighborEvent, WantIpNeighborEvents, WantIpNeighborEventsReply,
};
use thalweg_api::{Call, Caller, Message, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, WantIpNeighborEvents, WantIpNeighborEventsReply> =
    Call::known(&IP_NEIGHBOR, handle).with_events(&[IpNeighborEvent::DEF]);

fn handle(
    c: &mut Control,
    caller: &Caller,
    rq: WantIpNeighborEvents,
) -> Result<WantIpNeighborEventsReply, Retval> {
    let filter = (rq.ip, rq.sw_if_index);
    want(c, caller, (rq.enable, rq.pid), filter, |watchers| &mut watchers.first)?;
    Ok(WantIpNeighborEventsReply)
}
