//! `sw_interface_add_del_address`: adds or deletes an interface address.

use crate::address;
use crate::api_types::ip4;
use thalweg_api::types::{AddressWithPrefix, InterfaceIndex};
use thalweg_api::{Call, Message, Retval};
use thalweg_device::api_types::{INTERFACE, view};
use thalweg_graph::Control;

/// Adds or deletes an address.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceAddDelAddress {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// True to add, false to delete.
    pub is_add: bool,
    /// Delete all addresses.
    pub del_all: bool,
    /// The address.
    pub prefix: AddressWithPrefix,
}

/// The service.
pub static SERVICE: Call<Control, SwInterfaceAddDelAddress, SwInterfaceAddDelAddressReply> =
    Call::new(&INTERFACE, handle);

fn handle(
    c: &mut Control,
    rq: SwInterfaceAddDelAddress,
) -> Result<SwInterfaceAddDelAddressReply, Retval> {
    let sw_if = view(c, rq.sw_if_index)?.sw_if;
    if rq.del_all {
        address::remove_all(c, sw_if)?;
        return Ok(SwInterfaceAddDelAddressReply);
    }
    let (ip, len) = ip4(rq.prefix.0)?;
    match rq.is_add {
        true => address::add(c, sw_if, ip, len)?,
        false => address::remove(c, sw_if, ip, len)?,
    }
    Ok(SwInterfaceAddDelAddressReply)
}
