//! `ip6-link-local`: packets to link-local addresses, which mean something on the link of the rx
//! interface only: the router's own, or by a packet of the router's, its neighbours.
//!
//! Reads: rx interface. Writes: aux (the forwarding object). Next: by the object's kind.

use crate::link_local::LinkTable;
use std::fmt::Write;
use std::net::Ipv6Addr;
use std::sync::Arc;
use thalweg_buffer::{Flags, Frame, PktMut};
use thalweg_fib::{DpoTable, Kind};
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};

thalweg_graph::next_nodes! {
    REWRITE => "ip6-rewrite",
    LOCAL => "ip6-local",
    DISCOVER => "ip6-discover-neighbor",
    GLEAN => "ip6-glean",
}
thalweg_graph::errors! {
    UNMAPPED: Error, DIP_IS_LINK_LOCAL, "interface is not mapped to an IP6-LL table";
    NOT_OURS: Error, DIP_IS_LINK_LOCAL, "link-local destination address: not forwarded";
    DOWN: Error, DEV_READY, "next-hop interface is down";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-link-local",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip6-drop",
    build: |cx| Built::node(Ip6LinkLocal { table: cx.shared(), dpos: cx.shared() }),
    ..NodeDecl::DEFAULT
};

struct Ip6LinkLocal {
    table: Arc<LinkTable>,
    dpos: Arc<DpoTable>,
}

impl Node for Ip6LinkLocal {
    fn packet(&mut self, _: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let to = p.data().get(24..).and_then(<[u8]>::first_chunk::<16>);
        let Some(to) = to.map(|to| Ipv6Addr::from(*to)) else { return Verdict::drop(UNMAPPED) };
        let dpo = self.table.lookup(p.rx_if(), to);
        let kind = self.dpos.get(dpo).state().kind;
        p.set_aux(dpo.get());
        match kind {
            Kind::MISS => Verdict::drop(UNMAPPED),
            Kind::LOCAL => LOCAL,
            _ if !p.flags().contains(Flags::LOCAL) => Verdict::drop(NOT_OURS),
            Kind::INCOMPLETE => DISCOVER,
            Kind::GLEAN => GLEAN,
            kind if kind.is_complete() => REWRITE,
            _ => Verdict::drop(DOWN),
        }
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = writeln!(out, "dpo-idx {}", frame.aux()[usize::from(i)]);
        let _ = thalweg_wire::fmt::ip6(frame.data(i), out, 0);
    }
}
