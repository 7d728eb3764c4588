//! `sw_interface_get_mac_address`: returns an interface's MAC address.

use crate::api_types::view;
use crate::message_types::{INTERFACE, SwInterfaceGetMacAddress, SwInterfaceGetMacAddressReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

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
