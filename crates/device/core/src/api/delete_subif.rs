//! `delete_subif`: deletes a sub-interface.

use crate::api_types::view;
use crate::interface;
use crate::message_types::{DeleteSubif, DeleteSubifReply, INTERFACE};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, DeleteSubif, DeleteSubifReply> = Call::new(&INTERFACE, handle);

fn handle(c: &mut Control, rq: DeleteSubif) -> Result<DeleteSubifReply, Retval> {
    let view = view(c, rq.sw_if_index)?;
    if view.sub.is_none() {
        let why = format!("`{}` is a {} interface", view.name, view.dev_type);
        return Err(Retval::INVALID_SUB_SW_IF_INDEX.because(why));
    }
    interface::delete(c, view.sw_if)?;
    Ok(DeleteSubifReply)
}
