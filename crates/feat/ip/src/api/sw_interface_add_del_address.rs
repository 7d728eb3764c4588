//! `sw_interface_add_del_address`: adds or deletes an interface address.

use crate::address;
use crate::api_types::{parts, version};
use crate::family::for_version;
use crate::message_types::{INTERFACE, SwInterfaceAddDelAddress, SwInterfaceAddDelAddressReply};
use thalweg_api::types::Prefix;
use thalweg_api::{Call, Retval};
use thalweg_device::SwIfIndex;
use thalweg_device::api_types::view;
use thalweg_graph::Control;
use thalweg_tables::Address;

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
