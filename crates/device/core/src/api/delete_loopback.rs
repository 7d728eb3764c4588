//! `delete_loopback`: deletes a loopback.

use crate::api_types::view;
use crate::interface;
use crate::message_types::{DeleteLoopback, DeleteLoopbackReply, INTERFACE};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, DeleteLoopback, DeleteLoopbackReply> =
    Call::new(&INTERFACE, handle);

fn handle(c: &mut Control, rq: DeleteLoopback) -> Result<DeleteLoopbackReply, Retval> {
    let view = view(c, rq.sw_if_index)?;
    if view.dev_type != "Loopback" {
        let reason = format!("`{}` is a {} interface, not a loopback", view.name, view.dev_type);
        return Err(Retval::INVALID_SW_IF_INDEX.because(reason));
    }
    interface::delete(c, view.sw_if)?;
    Ok(DeleteLoopbackReply)
}
