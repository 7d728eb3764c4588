//! `l2_flags_set`: switches what an interface does with frames, by VPP's bits of features.

use crate::feature_bit;
use crate::message_types::{L2, L2FlagsSet, L2FlagsSetReply};
use thalweg_api::{Call, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, L2FlagsSet, L2FlagsSetReply> = Call::new(&L2, handle);

fn handle(c: &mut Control, rq: L2FlagsSet) -> Result<L2FlagsSetReply, Retval> {
    let sw_if = SwIfIndex(rq.sw_if_index.0);
    let (flags, others) = feature_bit::port_flags(rq.input_feature_bitmap);
    if others != 0 || rq.output_feature_bitmap & !feature_bit::EFP_FILTER != 0 {
        let text = "only learning, forwarding, flooding, ARP termination and the EFP filter can be \
                    changed by their bits";
        return Err(Retval::UNSUPPORTED.because(text));
    }
    // An interface that does not exist fails, whatever is asked.
    crate::port_flags(c, sw_if)?;
    if rq.input_feature_bitmap != 0 {
        crate::set_port_flags(c, sw_if, flags, rq.is_set)?;
    }
    if rq.output_feature_bitmap != 0 {
        crate::set_efp_filter(c, sw_if, rq.is_set)?;
    }
    Ok(L2FlagsSetReply)
}
