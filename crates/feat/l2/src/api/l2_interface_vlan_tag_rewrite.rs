//! `l2_interface_vlan_tag_rewrite`: VLAN tag rewriting of an interface.

use crate::api_module::L2;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::{DeviceError, TagRewrite};
use thalweg_graph::Control;

/// Sets the tag rewrite of an interface.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct L2InterfaceVlanTagRewrite {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Operation; 0 disables rewriting.
    pub vtr_op: u32,
    /// Whether a pushed tag is 802.1Q.
    pub push_dot1q: u32,
    /// First pushed tag.
    pub tag1: u32,
    /// Second pushed tag.
    pub tag2: u32,
}

/// The service.
pub static SERVICE: Call<Control, L2InterfaceVlanTagRewrite, L2InterfaceVlanTagRewriteReply> =
    Call::new(&L2, handle);

fn handle(
    c: &mut Control,
    rq: L2InterfaceVlanTagRewrite,
) -> Result<L2InterfaceVlanTagRewriteReply, Retval> {
    let sw_if = thalweg_device::api_types::view(c, rq.sw_if_index)?.sw_if;
    let rewrite = TagRewrite::from_api(rq.vtr_op, rq.push_dot1q, [rq.tag1, rq.tag2]);
    let rewrite = rewrite.ok_or(Retval::INVALID_VALUE)?;
    match crate::set_tag_rewrite(c, sw_if, rewrite) {
        Err(e @ DeviceError::Unsupported { .. }) => Err(Retval::INVALID_INTERFACE.because(e)),
        other => other.map(|()| L2InterfaceVlanTagRewriteReply).map_err(Into::into),
    }
}
