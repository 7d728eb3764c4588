//! `pg_create_interface_v3`: creates a port.

use crate::api_types::create;
use crate::message_types::{PG, PgCreateInterfaceV3, PgCreateInterfaceV3Reply};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, PgCreateInterfaceV3, PgCreateInterfaceV3Reply> =
    Call::new(&PG, handle);

fn handle(c: &mut Control, rq: PgCreateInterfaceV3) -> Result<PgCreateInterfaceV3Reply, Retval> {
    let sw_if_index = create(c, rq.interface_id, rq.mode)?;
    Ok(PgCreateInterfaceV3Reply { sw_if_index })
}
