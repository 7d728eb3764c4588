//! `sw_interface_tag_add_del`: tags an interface.

use crate::api_types::{INTERFACE, view};
use crate::interface;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval, Text};
use thalweg_graph::Control;

/// Sets or removes an interface's tag.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceTagAddDel {
    /// True to set, false to remove.
    pub is_add: bool,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Tag.
    pub tag: Text<64>,
}

/// The service.
pub static SERVICE: Call<Control, SwInterfaceTagAddDel, SwInterfaceTagAddDelReply> =
    Call::new(&INTERFACE, handle);

fn handle(c: &mut Control, rq: SwInterfaceTagAddDel) -> Result<SwInterfaceTagAddDelReply, Retval> {
    let sw_if = view(c, rq.sw_if_index)?.sw_if;
    let tag = if rq.is_add { rq.tag.as_str() } else { "" };
    if rq.is_add && tag.is_empty() {
        return Err(Retval::INVALID_VALUE.because("the tag is empty"));
    }
    interface::set_tag(c, sw_if, tag).map_err(|error| Retval::INVALID_VALUE.because(error))?;
    Ok(SwInterfaceTagAddDelReply)
}
