//! `pg_delete_interface`: deletes a port.

use crate::api_types::PG;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// Deletes a port with its streams and its capture.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct PgDeleteInterface {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

/// The service.
pub static SERVICE: Call<Control, PgDeleteInterface, PgDeleteInterfaceReply> =
    Call::new(&PG, handle);

fn handle(c: &mut Control, rq: PgDeleteInterface) -> Result<PgDeleteInterfaceReply, Retval> {
    crate::delete_port(c, SwIfIndex(rq.sw_if_index.0))?;
    Ok(PgDeleteInterfaceReply)
}
