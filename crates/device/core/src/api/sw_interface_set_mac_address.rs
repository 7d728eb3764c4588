//! `sw_interface_set_mac_address`: sets an interface's MAC address.

use crate::message_types::{INTERFACE, SwInterfaceSetMacAddress, SwInterfaceSetMacAddressReply};
use crate::{SwIfIndex, interface};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

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
