//! `pg_create_interface_v2`: creates a port, for older clients.

use crate::api_types::create;
use crate::message_types::{PG, PgCreateInterfaceV2, PgCreateInterfaceV2Reply};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, PgCreateInterfaceV2, PgCreateInterfaceV2Reply> =
    Call::new(&PG, handle);

fn handle(c: &mut Control, rq: PgCreateInterfaceV2) -> Result<PgCreateInterfaceV2Reply, Retval> {
    let sw_if_index = create(c, rq.interface_id, rq.mode)?;
    Ok(PgCreateInterfaceV2Reply { sw_if_index })
}
