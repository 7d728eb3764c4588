//! `hw_interface_set_mtu`: sets the MTU of a device.

use crate::api_types::INTERFACE;
use crate::{SwIfIndex, interface};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Sets a device's MTU.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct HwInterfaceSetMtu {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// MTU in bytes, without Ethernet header.
    pub mtu: u16,
}

/// The service.
pub static SERVICE: Call<Control, HwInterfaceSetMtu, HwInterfaceSetMtuReply> =
    Call::new(&INTERFACE, handle);

fn handle(c: &mut Control, rq: HwInterfaceSetMtu) -> Result<HwInterfaceSetMtuReply, Retval> {
    interface::set_link_mtu(c, SwIfIndex(rq.sw_if_index.0), rq.mtu.into())?;
    Ok(HwInterfaceSetMtuReply)
}
