//! `sw_interface_set_promisc`: switches promiscuous mode.

use crate::api_types::INTERFACE;
use crate::{SwIfIndex, interface};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Switches promiscuous mode.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceSetPromisc {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// True to enable.
    pub promisc_on: bool,
}

/// The service.
pub static SERVICE: Call<Control, SwInterfaceSetPromisc, SwInterfaceSetPromiscReply> =
    Call::new(&INTERFACE, handle);

fn handle(
    c: &mut Control,
    rq: SwInterfaceSetPromisc,
) -> Result<SwInterfaceSetPromiscReply, Retval> {
    interface::set_promiscuous(c, SwIfIndex(rq.sw_if_index.0), rq.promisc_on)?;
    Ok(SwInterfaceSetPromiscReply)
}
