//! IPv6: input checks, lookup, forwarding, local delivery, ICMPv6.
//!
//! Tables, routes and addresses are those of [`thalweg_feat_ip`], with which it registers.
//!
//! * [`family`]: what it brings along.
//! * [`tables`]: tables as workers read them.
//! * [`link_local`]: the addresses and neighbours of each link.
//! * [`dad`]: addresses are tested before they are used.
//! * [`nd_proxy`]: addresses of other hosts that the router answers for.
#![forbid(unsafe_code)]

pub mod api;
mod api_types;
mod cli;
pub mod dad;
mod echo;
pub mod family;
pub mod icmp;
mod link;
pub mod link_local;
pub mod message_types;
pub mod nd_proxy;
mod neighbors;
pub mod nodes;
pub mod show;
pub mod tables;

use thalweg_engine::Feature;
use thalweg_feat_ip::{demux, enabled, local};
use thalweg_fib::{Forwarding, Kind, LinkType};
use thalweg_graph::{ArcDecl, ArcKey, Control, Topic};
use thalweg_wire::ethernet::ethertype;

/// The feature.
pub static FEATURE: Feature = Feature {
    name: "ip6",
    about: "IPv6 forwarding",
    needs: &[
        &thalweg_device::FEATURE,
        &thalweg_fib::FEATURE,
        &thalweg_feat_ethernet::FEATURE,
        &thalweg_feat_neighbor::FEATURE,
        &thalweg_feat_nd::FEATURE,
        &thalweg_feat_ip::FEATURE,
    ],
    nodes: nodes::NODES,
    arcs: &[
        &ArcDecl { name: "ip6-unicast", key: ArcKey::Rx, end: "ip6-lookup" },
        &ArcDecl { name: "ip6-multicast", key: ArcKey::Rx, end: "ip6-mfib-forward-lookup" },
        // Packets to the router itself, before they are dealt to protocols.
        &ArcDecl { name: "ip6-local", key: ArcKey::Rx, end: "ip6-local-end-of-arc" },
        // The router's own errors, before they are looked up.
        &ArcDecl { name: "ip6-icmp-error-reply", key: ArcKey::Rx, end: "ip6-lookup" },
        &ArcDecl { name: "ip6-punt", key: ArcKey::Rx, end: "punt-dispatch" },
        &ArcDecl { name: "ip6-drop", key: ArcKey::Rx, end: "error-drop" },
        // The arc comes after the checks of hop limit and MTU, before the link header.
        &ArcDecl { name: "ip6-output", key: ArcKey::Tx, end: "ip6-rewrite-out" },
    ],
    commands: cli::COMMANDS,
    api: api::SERVICES,
    settings: &[&family::SETTINGS, &dad::SETTINGS, &nd_proxy::SETTINGS],
    declared: &[],
    end: |_, _| {},
    init,
    ready: local::publish::<u128>,
};

/// Topics of IPv6 nodes' events.
pub struct Topics {
    pub(crate) echo_reply: Topic,
}

fn init(c: &mut Control) {
    family::init(c);
    c.state::<Forwarding>().borrow_mut().set_exit(LinkType::Ip6, Kind::LOCAL, "ip6-local");
    echo::init(c);
    local::init::<u128>(c);
    demux::init::<u128>(c);
    if let Err(e) = link_local::init(c) {
        tracing::error!("no table of link-local addresses: {e}");
    }
    neighbors::init(c);
    dad::init(c);
    nd_proxy::init(c);
    show::init(c);
    api_types::init(c);
    enabled::init::<u128>(c);
    thalweg_feat_ethernet::register(c, ethertype::IPV6, "ip6-input");
}

#[cfg(test)]
mod lists {
    #[test]
    fn are_current() {
        thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
    }
}
