//! `sw_interface_address_replace_begin`: begins to set the addresses of all interfaces anew.

use crate::address;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::api_types::INTERFACE;
use thalweg_graph::Control;

/// From now on, addresses that interfaces have go with `sw_interface_address_replace_end`, unless they are
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
