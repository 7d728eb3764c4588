//! `collect_detailed_interface_stats`: counters by kind of address, which are always on.

use crate::api_types::view;
use crate::message_types::{
    CollectDetailedInterfaceStats, CollectDetailedInterfaceStatsReply, INTERFACE,
};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<
    Control,
    CollectDetailedInterfaceStats,
    CollectDetailedInterfaceStatsReply,
> = Call::new(&INTERFACE, handle);

fn handle(
    c: &mut Control,
    rq: CollectDetailedInterfaceStats,
) -> Result<CollectDetailedInterfaceStatsReply, Retval> {
    view(c, rq.sw_if_index)?;
    Ok(CollectDetailedInterfaceStatsReply)
}
