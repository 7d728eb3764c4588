//! `sw_interface_address_replace_begin`: starts replacing all interface addresses.

use crate::address;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::api_types::INTERFACE;
use thalweg_graph::Control;

/// Marks all interface addresses. `sw_interface_address_replace_end` deletes those that were not
/// added again.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceAddressReplaceBegin;

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
