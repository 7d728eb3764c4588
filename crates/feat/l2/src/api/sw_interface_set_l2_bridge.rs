//! `sw_interface_set_l2_bridge`: adds an interface to a bridge domain or removes it.

use crate::Role;
use crate::api_module::{L2, L2PortType};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// Adds an interface to a bridge domain, or removes it.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceSetL2Bridge {
    /// The interface.
    pub rx_sw_if_index: InterfaceIndex,
    /// Bridge domain id.
    pub bd_id: u32,
    /// Port type.
    pub port_type: L2PortType,
    /// Split horizon group; ports of the same nonzero group do not exchange frames.
    pub shg: u8,
    /// True to add, false to remove.
    #[api(default = "true")]
    pub enable: bool,
}

/// The service.
pub static SERVICE: Call<Control, SwInterfaceSetL2Bridge, SwInterfaceSetL2BridgeReply> =
    Call::new(&L2, handle);

fn handle(
    c: &mut Control,
    rq: SwInterfaceSetL2Bridge,
) -> Result<SwInterfaceSetL2BridgeReply, Retval> {
    let sw_if = rq.rx_sw_if_index.0;
    if !rq.enable {
        crate::set_l3(c, SwIfIndex(sw_if))?;
        return Ok(SwInterfaceSetL2BridgeReply);
    }
    let role = match rq.port_type {
        L2PortType::NORMAL => Role::Member,
        L2PortType::BVI => Role::Bvi,
        L2PortType::UU_FWD => Role::UnknownForward,
        _ => return Err(Retval::INVALID_VALUE),
    };
    crate::join_bridge(c, SwIfIndex(sw_if), rq.bd_id, role, rq.shg)?;
    Ok(SwInterfaceSetL2BridgeReply)
}
