//! `sw_interface_ip4_enable_disable`: makes an interface speak IPv4 without an address.

use crate::address::set_enabled;
use crate::message_types::{IP, SwInterfaceIp4EnableDisable, SwInterfaceIp4EnableDisableReply};
use thalweg_api::{Call, Retval};
use thalweg_device::api_types::view;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, SwInterfaceIp4EnableDisable, SwInterfaceIp4EnableDisableReply> =
    Call::new(&IP, handle);

fn handle(
    c: &mut Control,
    rq: SwInterfaceIp4EnableDisable,
) -> Result<SwInterfaceIp4EnableDisableReply, Retval> {
    let sw_if = view(c, rq.sw_if_index)?.sw_if;
    set_enabled::<u32>(c, sw_if, rq.enable)?;
    Ok(SwInterfaceIp4EnableDisableReply)
}
