//! `pg_create_interface_v2`: creates a port without hardware, as older clients ask for it.

use crate::api_types::{PG, PgInterfaceMode, create};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Asks for a port; one that exists already stays as it is.
#[derive(Debug, Message)]
#[api(request, deprecated)]
pub struct PgCreateInterfaceV2 {
    /// The number in its name.
    pub interface_id: InterfaceIndex,
    /// It segments; without effect.
    pub gso_enabled: bool,
    /// Bytes of a segment; without effect.
    pub gso_size: u32,
    /// What its packets begin with.
    pub mode: PgInterfaceMode,
}

/// Answers [`PgCreateInterfaceV2`].
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
