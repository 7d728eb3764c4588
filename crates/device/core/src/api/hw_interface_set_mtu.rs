//! `hw_interface_set_mtu`: sets the MTU of a device.

use crate::message_types::{HwInterfaceSetMtu, HwInterfaceSetMtuReply, INTERFACE};
use crate::{SwIfIndex, interface};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, HwInterfaceSetMtu, HwInterfaceSetMtuReply> =
    Call::new(&INTERFACE, handle);

fn handle(c: &mut Control, rq: HwInterfaceSetMtu) -> Result<HwInterfaceSetMtuReply, Retval> {
    interface::set_link_mtu(c, SwIfIndex(rq.sw_if_index.0), rq.mtu.into())?;
    Ok(HwInterfaceSetMtuReply)
}
