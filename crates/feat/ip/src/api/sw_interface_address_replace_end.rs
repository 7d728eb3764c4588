//! `sw_interface_address_replace_end`: ends replacing all interface addresses.

use crate::address;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::api_types::INTERFACE;
use thalweg_graph::Control;

/// Deletes the addresses that were not added since `sw_interface_address_replace_begin`.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceAddressReplaceEnd;

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
