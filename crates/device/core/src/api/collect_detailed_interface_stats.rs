//! `collect_detailed_interface_stats`: counters by kind of address, which are always on.

use crate::api_types::{INTERFACE, view};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Enables or disables detailed counters.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct CollectDetailedInterfaceStats {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// True to enable.
    pub enable_disable: bool,
}

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
