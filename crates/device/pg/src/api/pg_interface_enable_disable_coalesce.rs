//! `pg_interface_enable_disable_coalesce`: switches coalescing of segments on a port.

use crate::api_types::PG;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Switches coalescing of transmitted segments.
#[derive(Debug, Message)]
#[api(request, autoreply, status = "in_progress")]
pub struct PgInterfaceEnableDisableCoalesce {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// True to enable.
    pub coalesce_enabled: bool,
}

/// The service.
pub static SERVICE: Call<
    Control,
    PgInterfaceEnableDisableCoalesce,
    PgInterfaceEnableDisableCoalesceReply,
> = Call::new(&PG, handle);

fn handle(
    c: &mut Control,
    rq: PgInterfaceEnableDisableCoalesce,
) -> Result<PgInterfaceEnableDisableCoalesceReply, Retval> {
    thalweg_device::api_types::view(c, rq.sw_if_index)?;
    match rq.coalesce_enabled {
        true => Err(Retval::UNIMPLEMENTED.because("coalescing is not supported")),
        false => Ok(PgInterfaceEnableDisableCoalesceReply),
    }
}
