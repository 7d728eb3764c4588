//! `sw_interface_add_del_mac_address`: adds or removes a secondary MAC address.

use crate::message_types::{
    INTERFACE, SwInterfaceAddDelMacAddress, SwInterfaceAddDelMacAddressReply,
};
use crate::{DeviceError, SwIfIndex, interface};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

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
