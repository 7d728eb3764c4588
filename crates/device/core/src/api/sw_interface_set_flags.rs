//! `sw_interface_set_flags`: brings an interface up or down.

use crate::api_types::INTERFACE;
use crate::{SwIfIndex, interface};
use thalweg_api::types::{IfStatusFlags, InterfaceIndex};
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Sets an interface's administrative state.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceSetFlags {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// New state: the administrative flag. That of the link is the device's, and changes nothing.
    pub flags: IfStatusFlags,
}

/// The service.
pub static SERVICE: Call<Control, SwInterfaceSetFlags, SwInterfaceSetFlagsReply> =
    Call::new(&INTERFACE, handle);

fn handle(c: &mut Control, rq: SwInterfaceSetFlags) -> Result<SwInterfaceSetFlagsReply, Retval> {
    if rq.flags.is_beyond(&[IfStatusFlags::ADMIN_UP, IfStatusFlags::LINK_UP]) {
        return Err(Retval::INVALID_VALUE.because("unknown flags"));
    }
    interface::set_admin(c, SwIfIndex(rq.sw_if_index.0), rq.flags.has(IfStatusFlags::ADMIN_UP))?;
    Ok(SwInterfaceSetFlagsReply)
}
