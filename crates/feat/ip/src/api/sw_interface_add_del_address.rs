//! `sw_interface_add_del_address`: adds or deletes an interface address.

use crate::address;
use crate::api_types::{parts, version};
use crate::family::for_version;
use thalweg_api::types::{AddressWithPrefix, InterfaceIndex, Prefix};
use thalweg_api::{Call, Message, Retval};
use thalweg_device::SwIfIndex;
use thalweg_device::api_types::{INTERFACE, view};
use thalweg_graph::Control;
use thalweg_tables::Address;

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
    for_version!(version(rq.prefix.0)?, change(c, rq.is_add, sw_if, rq.prefix.0))?;
    Ok(SwInterfaceAddDelAddressReply)
}

fn change<A: Address>(
    c: &mut Control,
    add: bool,
    sw_if: SwIfIndex,
    prefix: Prefix,
) -> Result<(), Retval> {
    let (addr, len) = parts::<A>(prefix)?;
    match add {
        true => address::add(c, sw_if, addr, len)?,
        false => address::remove(c, sw_if, addr, len)?,
    }
    Ok(())
}
