//! `mpls-adj-incomplete`: holds labelled packets for an adjacency whose neighbour is being
//! resolved.
//!
//! Reads: aux (the adjacency). Next: `mpls-output` once the neighbour answers, else
//! `mpls-icmp-error`. The main thread sends the requests.

use thalweg_buffer::IcmpCause;
use thalweg_feat_neighbor::{Exits, IncompleteNode};
use thalweg_graph::{Built, NodeDecl};
use thalweg_wire::fmt;

thalweg_graph::next_nodes! { OUTPUT => "mpls-output", ICMP_ERROR => "mpls-icmp-error" }
thalweg_graph::errors! {
    HELD: Info, UNRESOLVED_NEIGH, "mpls packets held for a neighbour";
    UNRESOLVED: Error, UNRESOLVED_NEIGH, "unresolved neighbour";
    OVERFLOW: Error, UNRESOLVED_NEIGH, "too many packets held for neighbours";
    CROWDED: Error, UNRESOLVED_NEIGH, "too many unresolved neighbours";
    BUSY: Error, UNRESOLVED_NEIGH, "request not sent: main thread busy";
    GONE: Error, DEV_READY, "adjacency deleted or down";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "mpls-adj-incomplete",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "error-drop",
    build: |cx| {
        Built::node(IncompleteNode::new(cx, EXITS, GONE, |data, out, n| fmt::mpls(data, out, n)))
    },
    ..NodeDecl::DEFAULT
};

const EXITS: Exits = Exits {
    release: OUTPUT,
    unreachable: ICMP_ERROR,
    cause: IcmpCause::HOST_UNREACHABLE,
    unresolved: UNRESOLVED,
    overflow: OVERFLOW,
    crowded: CROWDED,
    busy: BUSY,
    held: HELD,
};
