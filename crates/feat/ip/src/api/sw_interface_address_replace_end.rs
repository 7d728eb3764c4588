//! `sw_interface_address_replace_end`: ends replacing all interface addresses.

use crate::address;
use crate::message_types::{
    INTERFACE, SwInterfaceAddressReplaceEnd, SwInterfaceAddressReplaceEndReply,
};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, SwInterfaceAddressReplaceEnd, SwInterfaceAddressReplaceEndReply> =
    Call::new(&INTERFACE, handle);

fn handle(
    c: &mut Control,
    _: SwInterfaceAddressReplaceEnd,
) -> Result<SwInterfaceAddressReplaceEndReply, Retval> {
    address::finish_replacing(c)?;
    Ok(SwInterfaceAddressReplaceEndReply)
}
