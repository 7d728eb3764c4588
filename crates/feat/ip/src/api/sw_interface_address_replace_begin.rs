//! `sw_interface_address_replace_begin`: starts replacing all interface addresses.

use crate::address;
use crate::message_types::{
    INTERFACE, SwInterfaceAddressReplaceBegin, SwInterfaceAddressReplaceBeginReply,
};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<
    Control,
    SwInterfaceAddressReplaceBegin,
    SwInterfaceAddressReplaceBeginReply,
> = Call::new(&INTERFACE, handle);

fn handle(
    c: &mut Control,
    _: SwInterfaceAddressReplaceBegin,
) -> Result<SwInterfaceAddressReplaceBeginReply, Retval> {
    address::begin_replacing(c);
    Ok(SwInterfaceAddressReplaceBeginReply)
}
