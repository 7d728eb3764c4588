//! `l2_interface_feat_flags_get`: what a port of a bridge domain does with frames.

use crate::api_module::{L2, L2IntfFeatFlags};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// Asks for the flags of a port.
#[derive(Debug, Message)]
#[api(request)]
pub struct L2InterfaceFeatFlagsGet {
    /// The port.
    pub sw_if_index: InterfaceIndex,
}

/// Replies to [`L2InterfaceFeatFlagsGet`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct L2InterfaceFeatFlagsGetReply {
    /// What it does.
    pub flags: L2IntfFeatFlags,
}

/// The service.
pub static SERVICE: Call<Control, L2InterfaceFeatFlagsGet, L2InterfaceFeatFlagsGetReply> =
    Call::new(&L2, handle);

fn handle(
    c: &mut Control,
    rq: L2InterfaceFeatFlagsGet,
) -> Result<L2InterfaceFeatFlagsGetReply, Retval> {
    let bits = crate::port_flags(c, SwIfIndex(rq.sw_if_index.0))?;
    Ok(L2InterfaceFeatFlagsGetReply { flags: L2IntfFeatFlags::of_features(bits) })
}
