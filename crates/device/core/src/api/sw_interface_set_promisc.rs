//! `sw_interface_set_promisc`: switches promiscuous mode.

use crate::message_types::{INTERFACE, SwInterfaceSetPromisc, SwInterfaceSetPromiscReply};
use crate::{SwIfIndex, interface};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

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
