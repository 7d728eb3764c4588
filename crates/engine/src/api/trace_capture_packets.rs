//! `trace_capture_packets`: starts tracing packets.

use crate::api_modules::TRACEDUMP;
use thalweg_api::{Call, Message, Retval};
use thalweg_graph::control::Control;
use thalweg_graph::decl::{Kind, NodeId};
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
    /// Index of an input node.
    pub node_index: u32,
    /// Number of packets, per worker.
    pub max_packets: u32,
    /// True to trace only packets that match the filter.
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
    if node.kind != Kind::Input || !node.live {
        return Err(Retval::NO_SUCH_NODE.because("not an input node"));
    }
    if rq.use_filter {
        return Err(Retval::UNIMPLEMENTED.because("trace filters are not supported"));
    }
    let id = NodeId(rq.node_index as u16);
    let count = rq.max_packets.min(MAX_TRACES as u32);
    if rq.pre_capture_clear {
        c.ask(Core::trace_clear);
    }
    c.ask(move |core| core.trace_add(id, count));
    Ok(TraceCapturePacketsReply)
}
