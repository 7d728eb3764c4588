//! `pg_create_interface`: creates a port, for older clients.

use crate::api_types::create;
use crate::message_types::{PG, PgCreateInterface, PgCreateInterfaceReply, PgInterfaceMode};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, PgCreateInterface, PgCreateInterfaceReply> =
    Call::new(&PG, handle);

fn handle(c: &mut Control, rq: PgCreateInterface) -> Result<PgCreateInterfaceReply, Retval> {
    let sw_if_index = create(c, rq.interface_id, PgInterfaceMode::ETHERNET)?;
    Ok(PgCreateInterfaceReply { sw_if_index })
}
