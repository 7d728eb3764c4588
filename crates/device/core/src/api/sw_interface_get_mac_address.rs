//! `sw_interface_get_mac_address`: returns an interface's MAC address.

use crate::api_types::{INTERFACE, view};
use thalweg_api::types::{InterfaceIndex, MacAddr};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Requests an interface's MAC address.
#[derive(Debug, Message)]
#[api(request)]
pub struct SwInterfaceGetMacAddress {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

/// Reply to [`SwInterfaceGetMacAddress`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct SwInterfaceGetMacAddressReply {
    /// MAC address.
    pub mac_address: MacAddr,
}

/// The service.
pub static SERVICE: Call<Control, SwInterfaceGetMacAddress, SwInterfaceGetMacAddressReply> =
    Call::new(&INTERFACE, handle);

fn handle(
    c: &mut Control,
    rq: SwInterfaceGetMacAddress,
) -> Result<SwInterfaceGetMacAddressReply, Retval> {
    let mac_address = view(c, rq.sw_if_index)?.mac;
    Ok(SwInterfaceGetMacAddressReply { mac_address })
}
