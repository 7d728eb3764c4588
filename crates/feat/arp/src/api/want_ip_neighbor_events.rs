//! `want_ip_neighbor_events`: tells a client of neighbours that come to be known.

use crate::api_types::{IP_NEIGHBOR, IpNeighborEvent, want};
use thalweg_api::types::{Address, InterfaceIndex};
use thalweg_api::{Call, Caller, Message, Retval};
use thalweg_graph::Control;

/// Asks to be told of neighbours, or no longer.
#[derive(Debug, Message)]
#[api(request, autoreply, deprecated)]
pub struct WantIpNeighborEvents {
    /// Whether to be told.
    pub enable: bool,
    /// The client's process; events repeat it.
    pub pid: u32,
    /// Of this address; zero means any.
    pub ip: Address,
    /// On this interface; none means any.
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
