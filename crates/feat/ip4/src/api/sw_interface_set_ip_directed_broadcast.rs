//! `sw_interface_set_ip_directed_broadcast`: sends packets to a subnet's broadcast address, or not.

use crate::directed;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::api_types::{INTERFACE, view};
use thalweg_graph::Control;

/// Sends packets from elsewhere to the broadcast addresses of an interface's subnets, or not.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceSetIpDirectedBroadcast {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// True to send them.
    pub enable: bool,
}

/// The service.
pub static SERVICE: Call<
    Control,
    SwInterfaceSetIpDirectedBroadcast,
    SwInterfaceSetIpDirectedBroadcastReply,
> = Call::new(&INTERFACE, handle);

fn handle(
    c: &mut Control,
    rq: SwInterfaceSetIpDirectedBroadcast,
) -> Result<SwInterfaceSetIpDirectedBroadcastReply, Retval> {
    let sw_if = view(c, rq.sw_if_index)?.sw_if;
    directed::set(c, sw_if, rq.enable)?;
    Ok(SwInterfaceSetIpDirectedBroadcastReply)
}
