//! `sw_interface_set_l2_bridge`: adds an interface to a bridge domain or removes it.

use crate::Role;
use crate::message_types::{L2, L2PortType, SwInterfaceSetL2Bridge, SwInterfaceSetL2BridgeReply};
use thalweg_api::{Call, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

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
