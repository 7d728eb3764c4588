//! `sw_interface_tag_add_del`: tags an interface.

use crate::api_types::view;
use crate::interface;
use crate::message_types::{INTERFACE, SwInterfaceTagAddDel, SwInterfaceTagAddDelReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

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
