//! `l2_interface_feat_flags_set`: switches what a port of a bridge domain does with frames.

use crate::PortFlags;
use crate::api_module::{L2, L2IntfFeatFlags as F};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// Sets or clears flags of a port.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct L2InterfaceFeatFlagsSet {
    /// The port.
    pub sw_if_index: InterfaceIndex,
    /// True to set the flags, false to clear them.
    pub is_set: bool,
    /// Flags to change.
    pub flags: F,
}

/// The service.
pub static SERVICE: Call<Control, L2InterfaceFeatFlagsSet, L2InterfaceFeatFlagsSetReply> =
    Call::new(&L2, handle);

fn handle(
    c: &mut Control,
    rq: L2InterfaceFeatFlagsSet,
) -> Result<L2InterfaceFeatFlagsSetReply, Retval> {
    if rq.flags.has(F::ARP_UFWD) && !rq.is_set {
        let text =
            "where requests go that nobody answers is a setting of bridge domains: `bridge_flags'";
        return Err(Retval::UNSUPPORTED.because(text));
    }
    if rq.flags.is_beyond(&[F::LEARN, F::FWD, F::FLOOD, F::UU_FLOOD, F::ARP_TERM, F::ARP_UFWD]) {
        return Err(Retval::INVALID_VALUE.because("unknown flags"));
    }
    // The same bits.
    let flags = PortFlags::of_bits(rq.flags.0);
    crate::set_port_flags(c, SwIfIndex(rq.sw_if_index.0), flags, rq.is_set)?;
    Ok(L2InterfaceFeatFlagsSetReply)
}
