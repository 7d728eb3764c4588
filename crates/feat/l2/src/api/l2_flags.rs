//! `l2_flags`: switches what a port does with frames that it receives.

use crate::PortFlags;
use crate::message_types::{L2, L2Flags, L2FlagsReply};
use thalweg_api::{Call, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, L2Flags, L2FlagsReply> = Call::new(&L2, handle);

fn handle(c: &mut Control, rq: L2Flags) -> Result<L2FlagsReply, Retval> {
    let sw_if = SwIfIndex(rq.sw_if_index.0);
    crate::set_port_flags(c, sw_if, PortFlags::of_bits(rq.feature_bitmap), rq.is_set)?;
    Ok(L2FlagsReply { resulting_feature_bitmap: crate::port_flags(c, sw_if)? })
}
