//! `sw_interface_add_del_mac_address`: adds or removes a secondary MAC address.

use crate::api_types::INTERFACE;
use crate::{DeviceError, SwIfIndex, interface};
use thalweg_api::types::MacAddr;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Adds a secondary MAC address to an interface, or removes it; of a sub-interface, its parent's.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceAddDelMacAddress {
    /// The interface.
    pub sw_if_index: u32,
    /// MAC address.
    pub addr: MacAddr,
    /// Other than 0 to add, 0 to remove.
    pub is_add: u8,
}

/// The service.
pub static SERVICE: Call<Control, SwInterfaceAddDelMacAddress, SwInterfaceAddDelMacAddressReply> =
    Call::new(&INTERFACE, handle);

fn handle(
    c: &mut Control,
    rq: SwInterfaceAddDelMacAddress,
) -> Result<SwInterfaceAddDelMacAddressReply, Retval> {
    let sw_if = SwIfIndex(rq.sw_if_index);
    let done = match rq.is_add {
        0 => interface::remove_secondary_mac(c, sw_if, rq.addr),
        _ => interface::add_secondary_mac(c, sw_if, rq.addr),
    };
    match done {
        Ok(()) => Ok(SwInterfaceAddDelMacAddressReply),
        Err(e @ DeviceError::Unknown(_)) => Err(e.into()),
        Err(e) => Err(Retval::UNIMPLEMENTED.because(e)),
    }
}
