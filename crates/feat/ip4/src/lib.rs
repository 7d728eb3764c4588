//! IPv4: input checks, lookup, forwarding, local delivery, ICMP, fragmentation.
//!
//! Tables, routes and addresses are those of [`thalweg_feat_ip`], with which it registers.
//!
//! * [`family`]: what it brings along.
//! * [`tables`]: tables as workers read them.
#![forbid(unsafe_code)]

pub mod api;
pub mod api_types;
mod cli;
mod cli_support;
pub mod directed;
mod echo;
pub mod family;
pub mod icmp;
pub mod link;
pub mod message_types;
mod neighbors;
pub mod nodes;
pub mod proxy_arp;
pub mod settings;
pub mod tables;

pub use nodes::ip4_frag::{Failure, fragments, segments};
pub use nodes::ip4_input::{check_header, check_usual};

use thalweg_engine::Feature;
use thalweg_feat_ip::{demux, enabled, local};
use thalweg_fib::{Forwarding, Kind, LinkType};
use thalweg_graph::{ArcDecl, ArcKey, Control, Topic};
use thalweg_wire::ethernet::ethertype;

/// The feature.
pub static FEATURE: Feature = Feature {
    name: "ip4",
    about: "IPv4 forwarding",
    needs: &[
        &thalweg_device::FEATURE,
        &thalweg_fib::FEATURE,
        &thalweg_feat_ethernet::FEATURE,
        &thalweg_feat_neighbor::FEATURE,
        &thalweg_feat_arp::FEATURE,
        &thalweg_feat_ip::FEATURE,
    ],
    nodes: nodes::NODES,
    arcs: &[
        &ArcDecl { name: "ip4-unicast", key: ArcKey::Rx, end: "ip4-lookup" },
        // ICMP errors sent by the router, by rx interface of the offending packet.
        &ArcDecl { name: "ip4-icmp-error-reply", key: ArcKey::Rx, end: "ip4-lookup" },
        &ArcDecl { name: "ip4-multicast", key: ArcKey::Rx, end: "ip4-lookup" },
        // Packets to the router itself, before they are dealt to protocols.
        &ArcDecl { name: "ip4-local", key: ArcKey::Rx, end: "ip4-local-end-of-arc" },
        &ArcDecl { name: "ip4-punt", key: ArcKey::Rx, end: "punt-dispatch" },
        &ArcDecl { name: "ip4-drop", key: ArcKey::Rx, end: "error-drop" },
        // The arc comes after the checks of TTL, MTU and DF, before fragmenting and the link
        // header.
        &ArcDecl { name: "ip4-output", key: ArcKey::Tx, end: "ip4-rewrite-out" },
    ],
    commands: cli::COMMANDS,
    api: api::SERVICES,
    settings: &[&family::SETTINGS, &proxy_arp::SETTINGS],
    declared: settings::SETTINGS,
    end: |_, _| {},
    init,
    ready: local::publish::<u32>,
};

/// Topics of IPv4 nodes' events.
pub struct Topics {
    pub(crate) echo_reply: Topic,
}

fn init(c: &mut Control) {
    family::init(c);
    for (kind, node) in [(Kind::LOCAL, "ip4-local"), (Kind::MULTICAST, "ip4-rewrite")] {
        c.state::<Forwarding>().borrow_mut().set_exit(LinkType::Ip4, kind, node);
    }
    echo::init(c);
    local::init::<u32>(c);
    demux::init::<u32>(c);
    neighbors::init(c);
    enabled::init::<u32>(c);
    proxy_arp::init(c);
    directed::init(c);
    thalweg_feat_ethernet::register(c, ethertype::IPV4, "ip4-input");
    // ARP does not depend on ethernet-input, and only IPv4 needs it.
    thalweg_feat_ethernet::register(c, ethertype::ARP, "arp-input");
}

#[cfg(test)]
mod lists {
    #[test]
    fn are_current() {
        thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
    }
}
