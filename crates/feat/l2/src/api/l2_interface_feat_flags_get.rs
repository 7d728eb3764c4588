//! `l2_interface_feat_flags_get`: what a port of a bridge domain does with frames.

use crate::message_types::{
    L2, L2InterfaceFeatFlagsGet, L2InterfaceFeatFlagsGetReply, L2IntfFeatFlags,
};
use thalweg_api::{Call, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

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
