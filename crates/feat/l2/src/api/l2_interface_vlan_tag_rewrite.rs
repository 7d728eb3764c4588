//! `l2_interface_vlan_tag_rewrite`: VLAN tag rewriting of an interface; only "disabled" is
//! supported.

use crate::api_module::L2;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Largest operation of the API (translate 2-2).
const LAST: u32 = 8;

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
    thalweg_device::api_types::view(c, rq.sw_if_index)?;
    match rq.vtr_op {
        0 => Ok(L2InterfaceVlanTagRewriteReply),
        1..=LAST => Err(Retval::UNSUPPORTED.because("VLAN tag rewrite is not supported yet")),
        _ => Err(Retval::INVALID_VALUE),
    }
}
