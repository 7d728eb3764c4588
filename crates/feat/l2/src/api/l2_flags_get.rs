//! `l2_flags_get`: what an interface does with frames, as VPP's bits of features.

use crate::api_module::L2;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// Asks for the bits of an interface.
#[derive(Debug, Message)]
#[api(request)]
pub struct L2FlagsGet {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

/// Replies to [`L2FlagsGet`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct L2FlagsGetReply {
    /// VPP's bits of the features that frames pass on the way in.
    pub input_feature_bitmap: u32,
    /// And on the way out.
    pub output_feature_bitmap: u32,
}

/// The service.
pub static SERVICE: Call<Control, L2FlagsGet, L2FlagsGetReply> = Call::new(&L2, handle);

fn handle(c: &mut Control, rq: L2FlagsGet) -> Result<L2FlagsGetReply, Retval> {
    let sw_if = SwIfIndex(rq.sw_if_index.0);
    Ok(L2FlagsGetReply {
        input_feature_bitmap: crate::port_flags(c, sw_if)?,
        output_feature_bitmap: crate::output_flags(c, sw_if)?,
    })
}
