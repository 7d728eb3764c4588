//! `l2_flags_get`: what an interface does with frames, as VPP's bits of features.

use crate::message_types::{L2, L2FlagsGet, L2FlagsGetReply};
use thalweg_api::{Call, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, L2FlagsGet, L2FlagsGetReply> = Call::new(&L2, handle);

fn handle(c: &mut Control, rq: L2FlagsGet) -> Result<L2FlagsGetReply, Retval> {
    let sw_if = SwIfIndex(rq.sw_if_index.0);
    Ok(L2FlagsGetReply {
        input_feature_bitmap: crate::port_flags(c, sw_if)?,
        output_feature_bitmap: crate::output_flags(c, sw_if)?,
    })
}
