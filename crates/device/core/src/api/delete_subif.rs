//! `delete_subif`: deletes a sub-interface.

use crate::api_types::{INTERFACE, view};
use crate::interface;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Deletes a sub-interface.
#[derive(Debug, Message)]
#[api(request)]
pub struct DeleteSubif {
    /// The sub-interface.
    pub sw_if_index: InterfaceIndex,
}

/// Reply to [`DeleteSubif`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct DeleteSubifReply;

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
