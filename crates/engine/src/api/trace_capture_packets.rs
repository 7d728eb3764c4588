//! `trace_capture_packets`: starts tracing packets.

use crate::api_modules::TRACEDUMP;
use crate::asking::tell_workers;
use crate::classify::{self, User};
use crate::cli::trace_add::can_start;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::control::Control;
use thalweg_graph::decl::NodeId;
use thalweg_graph::trace::MAX_TRACES;
use thalweg_graph::worker::Core;

/// Traces the next packets of a node.
#[derive(Debug, Message)]
#[api(
    request,
    autoreply,
    vat_help = "trace_capture_packets [node_index <index>] [max <max>] [pre_capture_clear] \
                [use_filter] [verbose]"
)]
pub struct TraceCapturePackets {
    /// Index of an input node, or of one where the router makes packets.
    pub node_index: u32,
    /// Number of packets, per worker.
    pub max_packets: u32,
    /// True to trace only packets that match `classify filter trace`.
    pub use_filter: bool,
    /// Ignored: traces are always verbose.
    pub verbose: bool,
    /// True to clear earlier traces first.
    pub pre_capture_clear: bool,
}

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
