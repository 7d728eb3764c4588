//! `pg_create_interface_v3`: creates a port.

use crate::api_types::{PG, PgInterfaceFlags, PgInterfaceMode, create};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Creates a port; an existing one is left unchanged.
#[derive(Debug, Message)]
#[api(request)]
pub struct PgCreateInterfaceV3 {
    /// Port number.
    pub interface_id: InterfaceIndex,
    /// Flags.
    pub pg_flags: PgInterfaceFlags,
    /// GSO segment size in bytes; ignored.
    pub gso_size: u32,
    /// Mode.
    pub mode: PgInterfaceMode,
}

/// Reply to [`PgCreateInterfaceV3`].
#[derive(Debug, Default, Message)]
#[api(reply)]
pub struct PgCreateInterfaceV3Reply {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

/// The service.
pub static SERVICE: Call<Control, PgCreateInterfaceV3, PgCreateInterfaceV3Reply> =
    Call::new(&PG, handle);

fn handle(c: &mut Control, rq: PgCreateInterfaceV3) -> Result<PgCreateInterfaceV3Reply, Retval> {
    let sw_if_index = create(c, rq.interface_id, rq.mode)?;
    Ok(PgCreateInterfaceV3Reply { sw_if_index })
}
