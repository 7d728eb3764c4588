//! `collect_detailed_interface_stats`: packets by kind of address. They are always counted.

use crate::api_types::{INTERFACE, view};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Counts more, or less.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct CollectDetailedInterfaceStats {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// More.
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
