//! `trace_capture_packets`: starts tracing packets.

use crate::asking::tell_workers;
use crate::classify::{self, User};
use crate::cli::trace_add::can_start;
use crate::message_types::{TRACEDUMP, TraceCapturePackets, TraceCapturePacketsReply};
use thalweg_api::{Call, Retval};
use thalweg_graph::control::Control;
use thalweg_graph::decl::NodeId;
use thalweg_graph::trace::MAX_TRACES;
use thalweg_graph::worker::Core;

/// The service.
pub static SERVICE: Call<Control, TraceCapturePackets, TraceCapturePacketsReply> =
    Call::new(&TRACEDUMP, handle);

fn handle(c: &mut Control, rq: TraceCapturePackets) -> Result<TraceCapturePacketsReply, Retval> {
    let node = c.nodes().get(rq.node_index as usize).ok_or(Retval::NO_SUCH_NODE)?;
    if !can_start(node) {
        return Err(Retval::NO_SUCH_NODE.because("no packets begin at this node"));
    }
    let filter = match rq.use_filter {
        true => Some(classify::filter(c, User::Trace)?),
        false => None,
    };
    let id = NodeId(rq.node_index as u16);
    let count = rq.max_packets.min(MAX_TRACES as u32);
    if rq.pre_capture_clear {
        tell_workers(c, Core::trace_clear);
    }
    tell_workers(c, move |core| core.trace_add(id, count, filter.clone()));
    Ok(TraceCapturePacketsReply)
}
