//! `pg_create_interface_v3`: creates a port without hardware.

use crate::api_types::{PG, PgInterfaceFlags, PgInterfaceMode, create};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Asks for a port; one that exists already stays as it is.
#[derive(Debug, Message)]
#[api(request)]
pub struct PgCreateInterfaceV3 {
    /// The number in its name.
    pub interface_id: InterfaceIndex,
    /// What it does for the router.
    pub pg_flags: PgInterfaceFlags,
    /// Bytes of a segment; without effect.
    pub gso_size: u32,
    /// What its packets begin with.
    pub mode: PgInterfaceMode,
}

/// Answers [`PgCreateInterfaceV3`].
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
