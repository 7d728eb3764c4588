//! Parts of a [`Feature`], and the engine as the first of them: its commands and API messages over
//! `thalweg-graph`, which knows none of them.
#![forbid(unsafe_code)]

mod absent;
pub mod api;
mod asking;
mod came;
pub mod classify;
pub mod cli;
mod feature;
pub mod message_types;
pub mod punt;
mod report;
pub mod setting;
mod traces;

pub use absent::{Absent, absent, await_all, take_absent};
pub use asking::{ask_workers, tell_workers};
pub use came::{Came, Started};
pub use feature::{Feature, command_tree, commands, end, features, start, with_needs};
pub use report::{Rates, error_text, rates};

/// The engine as a feature: its commands and messages.
pub static ENGINE: Feature = Feature {
    name: "engine",
    about: "graph, workers, trace and counters",
    nodes: &[&punt::dispatch::NODE],
    commands: cli::COMMANDS,
    api: api::SERVICES,
    settings: &[&punt::settings::SETTINGS],
    init: |c| {
        absent::init(c);
        report::Sampler::init(c);
        traces::Tracing::init(c);
        classify::Classifier::init(c);
        punt::init(c);
        api::trace_dump::Cache::init(c);
        c.insert(thalweg_api::Clients::default());
    },
    ready: |c| {
        report::Sampler::start(c);
        punt::publish(c);
    },
    ..Feature::DEFAULT
};

#[cfg(test)]
mod tests {
    #[test]
    fn command_list_is_current() {
        thalweg_testkit::GeneratedList {
            dir: concat!(env!("CARGO_MANIFEST_DIR"), "/src/cli"),
            what: "command",
            list: "COMMANDS",
            element: "&dyn thalweg_cli::Command<thalweg_graph::Control>",
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
            element: "&dyn thalweg_api::Service<thalweg_graph::Control>",
            item: "SERVICE",
        }
        .check();
    }
}
