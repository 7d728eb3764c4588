//! `pg_delete_interface`: deletes a port.

use crate::message_types::{PG, PgDeleteInterface, PgDeleteInterfaceReply};
use thalweg_api::{Call, Retval};
use thalweg_device::SwIfIndex;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, PgDeleteInterface, PgDeleteInterfaceReply> =
    Call::new(&PG, handle);

fn handle(c: &mut Control, rq: PgDeleteInterface) -> Result<PgDeleteInterfaceReply, Retval> {
    crate::delete_port(c, SwIfIndex(rq.sw_if_index.0))?;
    Ok(PgDeleteInterfaceReply)
}
