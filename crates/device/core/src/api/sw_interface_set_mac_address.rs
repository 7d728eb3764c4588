//! `sw_interface_set_mac_address`: sets an interface's MAC address.

use crate::api_types::INTERFACE;
use crate::{SwIfIndex, interface};
use thalweg_api::types::{InterfaceIndex, MacAddr};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Sets an interface's MAC address.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceSetMacAddress {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// MAC address.
    pub mac_address: MacAddr,
}

/// The service.
pub static SERVICE: Call<Control, SwInterfaceSetMacAddress, SwInterfaceSetMacAddressReply> =
    Call::new(&INTERFACE, handle);

fn handle(
    c: &mut Control,
    rq: SwInterfaceSetMacAddress,
) -> Result<SwInterfaceSetMacAddressReply, Retval> {
    interface::set_mac(c, SwIfIndex(rq.sw_if_index.0), rq.mac_address)?;
    Ok(SwInterfaceSetMacAddressReply)
}
