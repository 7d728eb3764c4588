//! `sw_interface_set_mpls_enable`: whether an interface takes labelled packets.

use crate::api_types::MPLS;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// Makes an interface take labelled packets, or drop them.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceSetMplsEnable {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// True to take them.
    #[api(default = "true")]
    pub enable: bool,
}

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
