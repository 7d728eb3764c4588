//! `l2_interface_vlan_tag_rewrite`: VLAN tag rewriting of an interface.

use crate::message_types::{L2, L2InterfaceVlanTagRewrite, L2InterfaceVlanTagRewriteReply};
use thalweg_api::{Call, Retval};
use thalweg_device::{DeviceError, TagRewrite};
use thalweg_graph::Control;

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
