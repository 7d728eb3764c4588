//! `sw_interface_tag_add_del`: labels an interface.

use crate::api_types::{INTERFACE, view};
use crate::interface;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval, Text};
use thalweg_graph::Control;

/// Labels an interface, or takes its label away.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceTagAddDel {
    /// Labels it.
    pub is_add: bool,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// The label.
    pub tag: Text<64>,
}

/// The service.
pub static SERVICE: Call<Control, SwInterfaceTagAddDel, SwInterfaceTagAddDelReply> =
    Call::new(&INTERFACE, handle);

fn handle(c: &mut Control, rq: SwInterfaceTagAddDel) -> Result<SwInterfaceTagAddDelReply, Retval> {
    let sw_if = view(c, rq.sw_if_index)?.sw_if;
    let tag = if rq.is_add { rq.tag.as_str() } else { "" };
    if rq.is_add && tag.is_empty() {
        return Err(Retval::INVALID_VALUE.because("there is no tag"));
    }
    interface::set_tag(c, sw_if, tag).map_err(|error| Retval::INVALID_VALUE.because(error))?;
    Ok(SwInterfaceTagAddDelReply)
}
