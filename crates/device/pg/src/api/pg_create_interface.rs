//! `pg_create_interface`: creates a port, for older clients.

use crate::api_types::{PG, PgInterfaceMode, create};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Creates a port; an existing one is left unchanged.
#[derive(Debug, Message)]
#[api(request, deprecated)]
pub struct PgCreateInterface {
    /// Port number.
    pub interface_id: InterfaceIndex,
    /// GSO; ignored.
    pub gso_enabled: bool,
    /// GSO segment size in bytes; ignored.
    pub gso_size: u32,
}

/// Reply to [`PgCreateInterface`].
#[derive(Debug, Default, Message)]
#[api(reply, deprecated)]
pub struct PgCreateInterfaceReply {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
}

/// The service.
pub static SERVICE: Call<Control, PgCreateInterface, PgCreateInterfaceReply> =
    Call::new(&PG, handle);

fn handle(c: &mut Control, rq: PgCreateInterface) -> Result<PgCreateInterfaceReply, Retval> {
    let sw_if_index = create(c, rq.interface_id, PgInterfaceMode::ETHERNET)?;
    Ok(PgCreateInterfaceReply { sw_if_index })
}
