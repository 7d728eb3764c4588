//! `sw_interface_clear_stats`: clears interface counters.

use crate::api_types::{INTERFACE, view};
use crate::interface;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::Control;

/// Clears the counters of `show interface`.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceClearStats {
    /// Interface; all ones for all.
    pub sw_if_index: InterfaceIndex,
}

/// The service.
pub static SERVICE: Call<Control, SwInterfaceClearStats, SwInterfaceClearStatsReply> =
    Call::new(&INTERFACE, handle);

fn handle(
    c: &mut Control,
    rq: SwInterfaceClearStats,
) -> Result<SwInterfaceClearStatsReply, Retval> {
    let one = match rq.sw_if_index {
        InterfaceIndex::NONE => None,
        one => Some(view(c, one)?.sw_if),
    };
    interface::clear_counters(c, one);
    Ok(SwInterfaceClearStatsReply)
}
