//! `want_ip_neighbor_events_v2`: subscribes to events of added and removed neighbours.

use crate::api_types::{IP_NEIGHBOR, IpNeighborEventV2, want};
use thalweg_api::types::{Address, InterfaceIndex};
use thalweg_api::{Call, Caller, Message, Retval};
use thalweg_graph::Control;

/// Subscribes to neighbour events, or unsubscribes.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct WantIpNeighborEventsV2 {
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
