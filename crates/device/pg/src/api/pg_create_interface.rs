//! `pg_create_interface`: creates a port without hardware, as older clients ask for it.

use crate::api_types::{PG, PgInterfaceMode, create};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Asks for a port; one that exists already stays as it is.
#[derive(Debug, Message)]
#[api(request, deprecated)]
pub struct PgCreateInterface {
    /// The number in its name.
    pub interface_id: InterfaceIndex,
    /// It segments; without effect.
    pub gso_enabled: bool,
    /// Bytes of a segment; without effect.
    pub gso_size: u32,
}

/// Answers [`PgCreateInterface`].
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
