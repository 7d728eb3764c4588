//! `ip6-glean`: resolves a destination in a connected subnet and holds the packet.
//!
//! Reads: aux (the glean entry). Next: `ip6-rewrite` with the new neighbour's adjacency once it
//! answers, else `ip6-icmp-error`. This node sends the first request at once, and others as packets
//! come; the main thread sends two more if none come.

use crate::ADDRESS_UNREACHABLE;
use crate::asker::Asker;
use std::any::Any;
use std::fmt::Write;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use thalweg_buffer::{Frame, PktMut};
use thalweg_feat_neighbor::{Exits, Hold};
use thalweg_fib::{Dpo, DpoTable, Kind};
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};

thalweg_graph::next_nodes! { REWRITE => "ip6-rewrite", ICMP_ERROR => "ip6-icmp-error" }
thalweg_graph::errors! {
    HELD: Info, UNRESOLVED_NEIGH, "packets held for neighbour discovery";
    REQUESTS_SENT: Info, UNKNOWN, "neighbor solicitations sent";
    NO_BUFFERS: Warning, NO_BUFFER_SPACE, "neighbor solicitations delayed: no buffers";
    UNRESOLVED: Error, UNRESOLVED_NEIGH, "unresolved neighbour";
    OVERFLOW: Error, UNRESOLVED_NEIGH, "too many packets held for neighbour discovery";
    CROWDED: Error, UNRESOLVED_NEIGH, "too many unresolved neighbours";
    BUSY: Error, UNRESOLVED_NEIGH, "neighbor solicitation not sent: main thread busy";
    NO_SOURCE: Error, UNRESOLVED_NEIGH, "no source address for neighbor solicitation";
    SHORT: Error, PKT_TOO_SMALL, "ip6 length < 40 bytes";
    GONE: Error, DEV_READY, "connected subnet deleted or interface down";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-glean",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip6-drop",
    build: |cx| {
        Built::node(Ip6Glean {
            asker: Asker::new(cx),
            dpos: cx.shared(),
            hold: Hold::new(cx, EXITS),
        })
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

struct Ip6Glean {
    asker: Asker,
    dpos: Arc<DpoTable>,
    hold: Hold,
}

fn destination(data: &[u8]) -> Option<Ipv6Addr> {
    Some(Ipv6Addr::from(*data.get(24..)?.first_chunk::<16>()?))
}

impl Node for Ip6Glean {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let state = self.dpos.get(Dpo(p.aux())).state();
        if state.kind != Kind::GLEAN {
            return Verdict::drop(GONE);
        }
        let Some(dst) = destination(p.data()) else { return Verdict::drop(SHORT) };
        let (addrs, tx_if) = (self.asker.addrs.load(cx.guard()), state.tx_if());
        if addrs.link_local(tx_if).is_none() || addrs.is_own(tx_if, dst) {
            return Verdict::drop(NO_SOURCE);
        }
        let asker = &self.asker;
        self.hold.keep_for_host(cx, p, (tx_if, IpAddr::V6(dst)), |cx| {
            // Otherwise the main thread sends the request again.
            let counter = if asker.ask(cx, tx_if, dst) { REQUESTS_SENT } else { NO_BUFFERS };
            cx.count(counter, 1);
        })
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = writeln!(out, "dpo-idx {}", frame.aux()[i as usize]);
        let _ = thalweg_wire::fmt::ip6(frame.data(i), out, 0);
    }

    fn message(&mut self, cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        self.hold.message(cx, message);
    }
}
