//! `sw_interface_ip6_get_link_local_address`: an interface's link-local address.

use crate::link_local;
use crate::message_types::{
    IP, SwInterfaceIp6GetLinkLocalAddress, SwInterfaceIp6GetLinkLocalAddressReply,
};
use thalweg_api::types::Ip6Address;
use thalweg_api::{Call, Retval};
use thalweg_device::api_types::view;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<
    Control,
    SwInterfaceIp6GetLinkLocalAddress,
    SwInterfaceIp6GetLinkLocalAddressReply,
> = Call::new(&IP, handle);

/// The interface does not speak IPv6.
const IP6_NOT_ENABLED: Retval = Retval(-62);

fn handle(
    c: &mut Control,
    rq: SwInterfaceIp6GetLinkLocalAddress,
) -> Result<SwInterfaceIp6GetLinkLocalAddressReply, Retval> {
    let sw_if = view(c, rq.sw_if_index)?.sw_if;
    let own = link_local::of(c, sw_if).ok_or(IP6_NOT_ENABLED)?;
    Ok(SwInterfaceIp6GetLinkLocalAddressReply { ip: Ip6Address(own.octets()) })
}
