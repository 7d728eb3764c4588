//! `ip6-discover-neighbor`: holds IPv6 packets for an adjacency whose neighbour is being resolved.
//!
//! Reads: aux (the adjacency). Next: `ip6-rewrite` once the neighbour answers, else
//! `ip6-icmp-error`. The main thread, which knows the adjacency's neighbour, sends the requests:
//! the first as soon as it learns of the first packet. This node asks again as packets come.

use crate::ADDRESS_UNREACHABLE;
use crate::asker::Asker;
use std::net::IpAddr;
use thalweg_feat_neighbor::{Exits, IncompleteNode};
use thalweg_graph::{Built, NodeCx, NodeDecl};
use thalweg_wire::fmt;

thalweg_graph::next_nodes! { REWRITE => "ip6-rewrite", ICMP_ERROR => "ip6-icmp-error" }
thalweg_graph::errors! {
    HELD: Info, UNRESOLVED_NEIGH, "packets held for neighbour discovery";
    UNRESOLVED: Error, UNRESOLVED_NEIGH, "unresolved neighbour";
    OVERFLOW: Error, UNRESOLVED_NEIGH, "too many packets held for neighbour discovery";
    CROWDED: Error, UNRESOLVED_NEIGH, "too many unresolved neighbours";
    BUSY: Error, UNRESOLVED_NEIGH, "neighbor solicitation not sent: main thread busy";
    GONE: Error, DEV_READY, "adjacency deleted or down";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-discover-neighbor",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip6-drop",
    build: |cx| {
        let asker = Asker::new(cx);
        let ask = move |cx: &mut NodeCx<'_>, sw_if, ip| {
            if let IpAddr::V6(ip) = ip {
                asker.ask(cx, sw_if, ip);
            }
        };
        let node = IncompleteNode::new(cx, EXITS, GONE, |data, out, n| fmt::ip6(data, out, n));
        Built::node(node.asking(ask))
    },
    ..NodeDecl::DEFAULT
};

const EXITS: Exits = Exits {
    release: REWRITE,
    unreachable: ICMP_ERROR,
    cause: ADDRESS_UNREACHABLE,
    unresolved: UNRESOLVED,
    overflow: OVERFLOW,
    crowded: CROWDED,
    busy: BUSY,
    held: HELD,
};
