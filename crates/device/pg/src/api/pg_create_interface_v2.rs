//! `pg_create_interface_v2`: creates a port, for older clients.

use crate::api_types::{PG, PgInterfaceMode, create};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Creates a port; an existing one is left unchanged.
#[derive(Debug, Message)]
#[api(request, deprecated)]
pub struct PgCreateInterfaceV2 {
    /// Port number.
    pub interface_id: InterfaceIndex,
    /// GSO; ignored.
    pub gso_enabled: bool,
    /// GSO segment size in bytes; ignored.
    pub gso_size: u32,
    /// Mode.
    pub mode: PgInterfaceMode,
}

/// Reply to [`PgCreateInterfaceV2`].
#[derive(Debug, Default, Message)]
#[api(reply, deprecated)]
pub struct PgCreateInterfaceV2Reply {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

/// The service.
pub static SERVICE: Call<Control, PgCreateInterfaceV2, PgCreateInterfaceV2Reply> =
    Call::new(&PG, handle);

fn handle(c: &mut Control, rq: PgCreateInterfaceV2) -> Result<PgCreateInterfaceV2Reply, Retval> {
    let sw_if_index = create(c, rq.interface_id, rq.mode)?;
    Ok(PgCreateInterfaceV2Reply { sw_if_index })
}
