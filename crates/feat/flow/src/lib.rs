//! Flow rules in Open vSwitch's syntax, and connection tracking.
//!
//! A *set* of rules has a number. The set applies to the ports of the bridge domain with that
//! number, and to interfaces that it is attached to. Each frame received on such an interface is
//! looked up in table 0 directly after the device; `normal` forwards it as if there were no rules:
//! to the bridge, the cross connect or the router.
//!
//! Each worker has its own tracker. With several workers, packets of a connection that another
//! worker owns are handed over, a frame at a time.
#![forbid(unsafe_code)]

pub mod cli;
mod compile;
mod ct;
mod dry_run;
mod events;
mod expiry;
mod fragments;
mod in_use;
mod megaflow;
pub mod nodes;
mod outputs;
mod paths;
mod rewrite;
pub mod rule;
mod section;
mod sets;
pub mod settings;
mod spread;
mod subs;
mod tables;
mod tags;
mod tracking;

pub use sets::{
    FlowError, RuleView, SetTotals, add, attach, attached, compilations, delete, following, rules,
    totals,
};
pub use tracking::{Next, Sums, SumsAsked, Tracking, Visit, sums};

use std::sync::Arc;
use std::time::Duration;

use tables::{Published, Tallies, Tally};
use thalweg_device::InterfaceEvent;
use thalweg_engine::Feature;
use thalweg_graph::Control;
use thalweg_tables::snapshot;

/// Name of the hand-off queue.
pub(crate) const QUEUE: &str = "flow-handoff";
/// The queue of the router's own ICMP errors about packets whose connection another worker tracks.
pub(crate) const ERRORS: &str = "flow-icmp-error-handoff";

/// Interval at which workers expire connections, should no packet arrive.
const TICK: Duration = Duration::from_millis(200);

/// The feature.
pub static FEATURE: Feature = Feature {
    name: "flow",
    about: "flow rules and connection tracking",
    needs: &[&thalweg_device::FEATURE, &thalweg_feat_l2::FEATURE],
    nodes: nodes::NODES,
    commands: cli::COMMANDS,
    settings: &[&section::SETTINGS],
    declared: settings::SETTINGS,
    init,
    ready,
    ..Feature::DEFAULT
};

fn init(c: &mut Control) {
    let (writer, snapshot) = snapshot::channel(Published::default());
    c.share(snapshot);
    let tallies: Result<Vec<Tally>, _> =
        (0..c.config().workers.len()).map(|_| Tally::new()).collect();
    // A few megabytes of address space: without them nothing else would work either.
    let tallies = match tallies {
        Ok(tallies) => Arc::new(Tallies(tallies)),
        Err(e) => return c.refuse_start(format_args!("counters of flow rules: {e}")),
    };
    c.share(tallies.clone());
    c.insert(sets::Sets::new(writer, tallies));
    c.insert(Tracking::default());
    c.insert(tracking::Providing::default());
    c.insert(events::Events::default());
    for (queue, node) in [(QUEUE, "flow-rules"), (ERRORS, "flow-icmp-error")] {
        if let Err(e) = c.add_hand_off(queue, node) {
            // Before the start this only registers the queue, and cannot fail.
            tracing::error!("flow rules: {e}");
        }
    }
    c.subscribe(|c, &e: &InterfaceEvent| match e {
        InterfaceEvent::Deleted(gone) => sets::interface_gone(c, gone),
        InterfaceEvent::Created(new) => sets::interface_created(c, new),
        InterfaceEvent::Tag(_) => sets::tag_changed(c),
        _ => {}
    });
}

fn ready(c: &mut Control) {
    c.subscribe(|c, changed: &thalweg_feat_l2::PortsChanged| sets::port_changed(c, changed.0));
    c.after(TICK, events::run);
    c.every(TICK, |c| {
        tracking::tick(c);
        true
    });
}

#[cfg(test)]
mod lists {
    #[test]
    fn are_current() {
        thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
    }
}
