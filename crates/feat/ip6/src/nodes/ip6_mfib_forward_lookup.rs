//! `ip6-mfib-forward-lookup`: packets to a group, which the router takes if it listens to that
//! group on the rx interface. The router has no multicast routes.
//!
//! Reads: rx interface. Next: `ip6-local`.

use std::fmt::Write;
use std::net::Ipv6Addr;
use std::sync::Arc;
use thalweg_buffer::{Frame, PktMut};
use thalweg_feat_nd::IfAddrs;
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};
use thalweg_tables::snapshot::Snapshot;

thalweg_graph::next_nodes! { LOCAL => "ip6-local" }
thalweg_graph::errors! {
    NOT_JOINED: Info, UNKNOWN_L3, "ip6 group not joined on the interface";
    SHORT: Error, PKT_TOO_SMALL, "ip6 length < 40 bytes";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-mfib-forward-lookup",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip6-drop",
    build: |cx| Built::node(MfibForwardLookup { addrs: cx.shared() }),
    ..NodeDecl::DEFAULT
};

struct MfibForwardLookup {
    addrs: Arc<Snapshot<IfAddrs>>,
}

impl Node for MfibForwardLookup {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let to = p.data().get(24..).and_then(<[u8]>::first_chunk::<16>);
        let Some(to) = to.map(|to| Ipv6Addr::from(*to)) else { return Verdict::drop(SHORT) };
        match self.addrs.load(cx.guard()).has_joined(p.rx_if(), to) {
            true => LOCAL,
            false => Verdict::drop(NOT_JOINED),
        }
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip6(frame.data(i), out, 0);
    }
}
