//! `pg_interface_enable_disable_coalesce`: switches coalescing of segments on a port.

use crate::message_types::{
    PG, PgInterfaceEnableDisableCoalesce, PgInterfaceEnableDisableCoalesceReply,
};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

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
