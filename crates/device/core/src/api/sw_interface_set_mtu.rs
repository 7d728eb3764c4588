//! `sw_interface_set_mtu`: sets an interface's packet MTUs.

use crate::message_types::{INTERFACE, SwInterfaceSetMtu, SwInterfaceSetMtuReply};
use crate::{SwIfIndex, interface};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, SwInterfaceSetMtu, SwInterfaceSetMtuReply> =
    Call::new(&INTERFACE, handle);

fn handle(c: &mut Control, rq: SwInterfaceSetMtu) -> Result<SwInterfaceSetMtuReply, Retval> {
    interface::set_mtus(c, SwIfIndex(rq.sw_if_index.0), rq.mtu.into())?;
    Ok(SwInterfaceSetMtuReply)
}
