//! `sw_interface_ip6_set_link_local_address`: chooses an interface's link-local address.

use crate::link_local;
use crate::message_types::{
    IP, SwInterfaceIp6SetLinkLocalAddress, SwInterfaceIp6SetLinkLocalAddressReply,
};
use std::net::Ipv6Addr;
use thalweg_api::{Call, Retval};
use thalweg_device::api_types::view;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<
    Control,
    SwInterfaceIp6SetLinkLocalAddress,
    SwInterfaceIp6SetLinkLocalAddressReply,
> = Call::new(&IP, handle);

fn handle(
    c: &mut Control,
    rq: SwInterfaceIp6SetLinkLocalAddress,
) -> Result<SwInterfaceIp6SetLinkLocalAddressReply, Retval> {
    let sw_if = view(c, rq.sw_if_index)?.sw_if;
    link_local::change(c, sw_if, Ipv6Addr::from(rq.ip.0), true)?;
    Ok(SwInterfaceIp6SetLinkLocalAddressReply)
}
