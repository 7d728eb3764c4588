//! The engine: moves frames from node to node.
//!
//! * [`decl`]: declarations of nodes, counters and arcs: statics next to the code they describe.
//! * [`node`]: the traits, and the loop that runs a per-packet function over a frame.
//! * [`worker`]: one thread with its own graph, buffers and counters.
//! * [`control`]: the main thread, the only writer of configuration.
//!
//! The engine knows no protocol and no device.

pub mod api;
pub mod api_modules;
pub mod arc;
pub mod cli;
pub mod clock;
pub mod control;
pub mod decl;
mod deleted_node;
pub mod feature;
pub mod heap;
pub mod log;
pub mod loop_times;
pub mod mailbox;
pub mod node;
pub mod nodes;
mod poller;
mod report;
pub mod stats;
pub mod trace;
pub mod worker;

pub use control::{
    BuildCx, Control, EngineConfig, EngineError, FileInfo, HandOffView, Rates, Remote,
};
pub use decl::{
    ArcDecl, ArcId, ArcKey, Built, ErrorDecl, FeatureDecl, Kind, NodeDecl, NodeId, Severity,
};
pub use feature::Feature;
pub use loop_times::{LoopCounts, LoopTimes};
pub use mailbox::{Event, Inject, Topic};
pub use node::{
    ErrorCode, Fate, FrameVerdict, InputNode, NEEDED, Node, Poll, Runner, RxMode, Tap, TapCx,
    Verdict,
};
pub use worker::{Core, DEVICE_INPUT, ERROR_DROP, HandOff, INTERFACE_OUTPUT, NodeCx, PerWorker};

/// The engine as a feature: its nodes, arcs and commands.
pub static ENGINE: Feature = Feature {
    name: "engine",
    about: "graph, workers, trace and counters",
    nodes: nodes::NODES,
    arcs: control::ARCS,
    commands: cli::COMMANDS,
    api: api::SERVICES,
    init: |c| {
        report::Sampler::init(c);
        api::trace_dump::Cache::init(c);
        c.insert(thalweg_api::Clients::default());
    },
    settings: &[],
    ready: report::Sampler::start,
};

#[cfg(test)]
mod tests {
    #[test]
    fn command_list_is_current() {
        thalweg_testkit::GeneratedList {
            dir: concat!(env!("CARGO_MANIFEST_DIR"), "/src/cli"),
            what: "command",
            list: "COMMANDS",
            element: "&dyn thalweg_cli::Command<crate::Control>",
            item: "COMMAND",
        }
        .check();
    }

    #[test]
    fn message_list_is_current() {
        thalweg_testkit::GeneratedList {
            dir: concat!(env!("CARGO_MANIFEST_DIR"), "/src/api"),
            what: "API message",
            list: "SERVICES",
            element: "&dyn thalweg_api::Service<crate::Control>",
            item: "SERVICE",
        }
        .check();
    }

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
