//! `sw_interface_set_mpls_enable`: whether an interface takes labelled packets.

use crate::message_types::{MPLS, SwInterfaceSetMplsEnable, SwInterfaceSetMplsEnableReply};
use thalweg_api::{Call, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, SwInterfaceSetMplsEnable, SwInterfaceSetMplsEnableReply> =
    Call::new(&MPLS, handle);

fn handle(
    c: &mut Control,
    rq: SwInterfaceSetMplsEnable,
) -> Result<SwInterfaceSetMplsEnableReply, Retval> {
    crate::set_enabled(c, SwIfIndex(rq.sw_if_index.0), rq.enable)?;
    Ok(SwInterfaceSetMplsEnableReply)
}
