//! `ip4-icmp-error`: answers a packet with an ICMP error, then passes the packet on to be dropped.
//!
//! Reads: rx interface (its address becomes the source), tx interface (if the packet would have
//! left by one), the cause in the meta. Keeps: aux (the drop reason of the requesting node). Next:
//! the `ip4-icmp-error-reply` arc or `ip4-lookup` for the message, `ip4-drop` for the packet.

use crate::icmp;
use crate::tables::Tables;
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Flags, Frame, IcmpCause, PktMut};
use thalweg_feat_ip::icmp_errors::{ErrorLimit, WayOut};
use thalweg_fib::DpoTable;
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::icmpv4::{emit_error, may_answer_with_error};
use thalweg_wire::ipv4::Ipv4View;

/// Maximum length of an ICMP error (RFC 1812 section 4.3.2.3).
const MAX_ERROR: usize = 576;

thalweg_graph::next_nodes! { LOOKUP => "ip4-lookup", DROP => "ip4-drop" }
thalweg_graph::errors! {
    SENT: Info, UNKNOWN, "icmp errors sent";
    LIMITED: Warning, UNKNOWN, "icmp errors not sent: rate limit";
    FORBIDDEN: Info, UNKNOWN, "icmp errors not sent: not allowed for this packet";
    NO_ADDRESS: Warning, UNKNOWN, "icmp errors not sent: interface without address";
    NO_BUFFER: Warning, UNKNOWN, "icmp errors not sent: no buffer";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-icmp-error",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip4-drop",
    build: |cx| {
        let (tables, dpos) = (cx.shared(), cx.shared());
        let (limit, way_out) = (ErrorLimit::default(), icmp::way_out(cx, LOOKUP));
        Built::node(Ip4IcmpError { tables, dpos, limit, way_out })
    },
    ..NodeDecl::DEFAULT
};

struct Ip4IcmpError {
    tables: Arc<Snapshot<Tables>>,
    dpos: Arc<DpoTable>,
    limit: ErrorLimit,
    way_out: WayOut,
}

impl Node for Ip4IcmpError {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let asker = Ipv4View::parse_prefix(p.data());
        let by_group = p.flags().contains(Flags::GROUP);
        let (tables, rx_if) = (self.tables.load(cx.guard()), p.rx_if());
        // Both ends are hosts.
        let is_host = |address| tables.is_host(&self.dpos, rx_if, address);
        let may_answer = |packet: &Ipv4View<'_>| {
            !by_group
                && may_answer_with_error(packet)
                && is_host(packet.src())
                && is_host(packet.dst())
        };
        let Some(original) = asker.ok().filter(may_answer) else {
            cx.count(FORBIDDEN, 1);
            return DROP;
        };
        let Some(from) = tables.address(rx_if) else {
            cx.count(NO_ADDRESS, 1);
            return DROP;
        };
        if !self.limit.allow(rx_if, cx.now()) {
            cx.count(LIMITED, 1);
            return DROP;
        }
        let mut message = [0; MAX_ERROR];
        let Ok(n) = emit_error(icmp::repr(p.meta().icmp), from, &original, &mut message) else {
            cx.count(FORBIDDEN, 1);
            return DROP;
        };
        let Some(mut answer) = cx.originate() else {
            cx.count(NO_BUFFER, 1);
            return DROP;
        };
        // A message fits into one buffer unless buffers are configured tiny; then it is truncated.
        if answer.fill(&message[..n], cx.cache()) {
            cx.count(SENT, 1);
            self.way_out.send(cx, answer, &p);
        } else {
            cx.count(NO_BUFFER, 1);
            cx.consume(answer);
        }
        DROP
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let IcmpCause { kind, code, .. } = frame.meta(i).icmp;
        let _ = writeln!(out, "answered with icmp type {kind} code {code}");
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}
