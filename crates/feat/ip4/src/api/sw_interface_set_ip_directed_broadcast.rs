//! `sw_interface_set_ip_directed_broadcast`: sends packets to a subnet's broadcast address, or not.

use crate::directed;
use crate::message_types::{
    INTERFACE, SwInterfaceSetIpDirectedBroadcast, SwInterfaceSetIpDirectedBroadcastReply,
};
use thalweg_api::{Call, Retval};
use thalweg_device::api_types::view;
use thalweg_graph::Control;

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
