//! `sw_interface_set_unnumbered`: lets an interface use the addresses of another one.

use crate::address;
use crate::message_types::{INTERFACE, SwInterfaceSetUnnumbered, SwInterfaceSetUnnumberedReply};
use thalweg_api::{Call, Retval};
use thalweg_device::api_types::view;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, SwInterfaceSetUnnumbered, SwInterfaceSetUnnumberedReply> =
    Call::new(&INTERFACE, handle);

fn handle(
    c: &mut Control,
    rq: SwInterfaceSetUnnumbered,
) -> Result<SwInterfaceSetUnnumberedReply, Retval> {
    let sw_if = view(c, rq.unnumbered_sw_if_index)?.sw_if;
    let lender = match rq.is_add {
        true => Some(view(c, rq.sw_if_index).map_err(second)?.sw_if),
        false => None,
    };
    address::set_unnumbered(c, sw_if, lender)?;
    Ok(SwInterfaceSetUnnumberedReply)
}

/// The error for the other index.
fn second(error: Retval) -> Retval {
    Retval::INVALID_SW_IF_INDEX_2.because(error)
}
