//! `sw_interface_clear_stats`: clears interface counters.

use crate::api_types::view;
use crate::interface;
use crate::message_types::{INTERFACE, SwInterfaceClearStats, SwInterfaceClearStatsReply};
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

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
