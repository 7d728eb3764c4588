//! `l2_flags`: switches what a port does with frames that it receives.

use crate::PortFlags;
use crate::api_module::L2;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// Sets or clears flags of a port of a bridge domain.
#[derive(Debug, Message)]
#[api(request)]
pub struct L2Flags {
    /// The port.
    pub sw_if_index: InterfaceIndex,
    /// True to set the flags, false to clear them.
    pub is_set: bool,
    /// Flags to change: 1 learns, 2 forwards, 4 floods, 8 floods unknown unicast frames, 16 answers
    /// for hosts.
    pub feature_bitmap: u32,
}

/// Flags after the change.
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct L2FlagsReply {
    /// VPP's bits of the features that frames pass.
    pub resulting_feature_bitmap: u32,
}

/// The service.
pub static SERVICE: Call<Control, L2Flags, L2FlagsReply> = Call::new(&L2, handle);

fn handle(c: &mut Control, rq: L2Flags) -> Result<L2FlagsReply, Retval> {
    let sw_if = SwIfIndex(rq.sw_if_index.0);
    crate::set_port_flags(c, sw_if, PortFlags::of_bits(rq.feature_bitmap), rq.is_set)?;
    Ok(L2FlagsReply { resulting_feature_bitmap: crate::port_flags(c, sw_if)? })
}
