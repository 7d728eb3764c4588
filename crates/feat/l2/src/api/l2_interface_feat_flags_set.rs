//! `l2_interface_feat_flags_set`: switches what a port of a bridge domain does with frames.

use crate::PortFlags;
use crate::message_types::{
    L2, L2InterfaceFeatFlagsSet, L2InterfaceFeatFlagsSetReply, L2IntfFeatFlags as F,
};
use thalweg_api::{Call, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

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
