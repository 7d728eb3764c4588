//! MPLS: label tables, and the forwarding of labelled packets (RFC 3031, RFC 3032).
//!
//! Labels are imposed on IP packets by adjacencies of `fib` that have them in their rewrite; this
//! feature swaps and pops them.
//!
//! * [`label_table`]: tables as workers read them.
//! * [`labels`]: tables and labels on the main thread.
//! * [`tunnels`]: interfaces that put labels before what they send.
#![forbid(unsafe_code)]

pub mod api;
mod api_types;
mod behind;
mod cli;
mod disposition;
mod error;
mod error_message;
pub mod fuzz;
pub mod label_table;
pub mod labels;
pub mod message_types;
pub mod nodes;
mod punt;
mod resolve;
mod section;
pub mod settings;
pub mod tunnels;
mod via;
mod via_labels;

pub use error::MplsError;
pub use label_table::{Action, Behind, Key, Leaves, Tables, To};
pub use labels::{
    EnabledChanged, LabelTableDeleted, LabelView, MAX_TABLES, Mpls, add_label, add_table, bind,
    del_label, del_table, drop_needed_table, need_table, set_enabled, set_found_label, unbind,
};
pub use via::{Bound, Via};

use thalweg_engine::Feature;
use thalweg_feat_neighbor::{self as neighbor, HoldNodes};
use thalweg_fib::{Forwarding, LinkType};
use thalweg_graph::{ArcDecl, ArcKey, Control};
use thalweg_wire::ethernet::ethertype;

/// The feature.
pub static FEATURE: Feature = Feature {
    name: "mpls",
    about: "MPLS forwarding",
    needs: &[
        &thalweg_device::FEATURE,
        &thalweg_fib::FEATURE,
        &thalweg_feat_ethernet::FEATURE,
        &thalweg_feat_neighbor::FEATURE,
        &thalweg_feat_ip::FEATURE,
        &thalweg_feat_ip4::FEATURE,
        &thalweg_feat_ip6::FEATURE,
    ],
    nodes: nodes::NODES,
    arcs: &[
        &ArcDecl { name: "mpls-input", key: ArcKey::Rx, end: "mpls-lookup" },
        // The arc comes after the check of the MTU, before the link header.
        &ArcDecl { name: "mpls-output", key: ArcKey::Tx, end: "mpls-rewrite" },
    ],
    commands: cli::COMMANDS,
    api: api::SERVICES,
    settings: &[&section::SETTINGS],
    declared: settings::SETTINGS,
    init,
    ..Feature::DEFAULT
};

fn init(c: &mut Control) {
    labels::init(c);
    via_labels::init(c);
    punt::init(c);
    tunnels::init(c);
    c.state::<Forwarding>().borrow_mut().set_imposer("mpls-label-imposition-uniform");
    let nodes = HoldNodes { incomplete: "mpls-adj-incomplete", glean: None };
    neighbor::hold_at(c, LinkType::Mpls, nodes);
    thalweg_feat_ethernet::register(c, ethertype::MPLS, "mpls-input");
}

#[cfg(test)]
mod lists {
    #[test]
    fn are_current() {
        thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
    }
}
