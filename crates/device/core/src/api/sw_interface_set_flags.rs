//! `sw_interface_set_flags`: brings an interface up or down.

use crate::message_types::{INTERFACE, SwInterfaceSetFlags, SwInterfaceSetFlagsReply};
use crate::{SwIfIndex, interface};
use thalweg_api::types::IfStatusFlags;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

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
