//! `want_ip_neighbor_events`: subscribes to events of new neighbours.

use crate::api_types::{IP_NEIGHBOR, IpNeighborEvent, want};
use thalweg_api::types::{Address, InterfaceIndex};
use thalweg_api::{Call, Caller, Message, Retval};
use thalweg_graph::Control;

/// Subscribes to neighbour events, or unsubscribes.
#[derive(Debug, Message)]
#[api(request, autoreply, deprecated)]
pub struct WantIpNeighborEvents {
    /// True to subscribe, false to unsubscribe.
    pub enable: bool,
    /// Client's process id, repeated in events.
    pub pid: u32,
    /// Address; zero for any.
    pub ip: Address,
    /// Interface; all ones for any.
    #[api(default = 0xffff_ffff)]
    pub sw_if_index: InterfaceIndex,
}

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
