//! `sw_interface_set_mtu`: sets an interface's packet MTUs.

use crate::api_types::INTERFACE;
use crate::{SwIfIndex, interface};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Sets an interface's packet MTUs.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceSetMtu {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Bytes: L3, IPv4, IPv6, MPLS; 0 in the last three means "as L3".
    pub mtu: [u32; 4],
}

/// The service.
pub static SERVICE: Call<Control, SwInterfaceSetMtu, SwInterfaceSetMtuReply> =
    Call::new(&INTERFACE, handle);

fn handle(c: &mut Control, rq: SwInterfaceSetMtu) -> Result<SwInterfaceSetMtuReply, Retval> {
    interface::set_mtus(c, SwIfIndex(rq.sw_if_index.0), rq.mtu.into())?;
    Ok(SwInterfaceSetMtuReply)
}
