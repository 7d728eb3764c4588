//! `l2_interface_vlan_tag_rewrite`: what is done to the tags of an interface's frames, which is nothing.

use crate::api_module::L2;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// The last operation that there is: both tags become others.
const LAST: u32 = 8;

/// Says what is done.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct L2InterfaceVlanTagRewrite {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// What: 0 for nothing.
    pub vtr_op: u32,
    /// Whether a tag that is added is 802.1Q's.
    pub push_dot1q: u32,
    /// First tag that is added.
    pub tag1: u32,
    /// Second tag that is added.
    pub tag2: u32,
}

/// The service.
pub static SERVICE: Call<Control, L2InterfaceVlanTagRewrite, L2InterfaceVlanTagRewriteReply> =
    Call::new(&L2, handle);

fn handle(
    c: &mut Control,
    rq: L2InterfaceVlanTagRewrite,
) -> Result<L2InterfaceVlanTagRewriteReply, Retval> {
    thalweg_device::api_types::view(c, rq.sw_if_index)?;
    match rq.vtr_op {
        0 => Ok(L2InterfaceVlanTagRewriteReply),
        1..=LAST => Err(Retval::UNSUPPORTED.because("frames keep their tags")),
        _ => Err(Retval::INVALID_VALUE),
    }
}
