//! The engine: moves frames from node to node.
//!
//! * [`decl`]: declarations of nodes, counters and arcs: statics next to the code they describe.
//! * [`node`]: the traits, and the loop that runs a per-packet function over a frame.
//! * [`worker`]: one thread with its own graph, buffers and counters.
//! * [`control`]: the main thread, the only writer of configuration.
//!
//! The engine knows no protocol and no device.

pub mod arc;
pub mod clock;
pub mod control;
pub mod decl;
mod deleted_node;
pub mod discard;
pub mod filter;
pub mod heap;
pub mod log;
pub mod loop_times;
pub mod mailbox;
pub mod node;
pub mod nodes;
pub mod part;
mod poller;
pub mod stats;
pub mod trace;
pub mod worker;

pub use control::{BuildCx, Control, EngineConfig, EngineError, FileInfo, HandOffView, Remote};
pub use decl::{
    ArcDecl, ArcId, ArcKey, Built, ErrorDecl, FeatureDecl, Kind, NodeDecl, NodeId, Severity, Stage,
};
pub use loop_times::{LoopCounts, LoopTimes};
pub use mailbox::{EVENT_BYTES, Event, Inject, Topic};
pub use node::{
    Copies, ErrorCode, Fate, FrameVerdict, InputNode, NEEDED, Node, Poll, Runner, RxMode, Tap,
    TapCx, Verdict,
};
pub use part::Part;
pub use worker::{Core, DEVICE_INPUT, ERROR_DROP, HandOff, INTERFACE_OUTPUT, NodeCx, PerWorker};

#[cfg(test)]
mod tests {
    #[test]
    fn node_list_is_current() {
        thalweg_testkit::GeneratedList {
            dir: concat!(env!("CARGO_MANIFEST_DIR"), "/src/nodes"),
            what: "graph node",
            list: "NODES",
            element: "&crate::NodeDecl",
            item: "NODE",
        }
        .check();
    }
}
