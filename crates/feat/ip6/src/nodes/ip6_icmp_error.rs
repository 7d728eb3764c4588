//! `ip6-icmp-error`: answers a packet with an ICMPv6 error, and drops the packet.
//!
//! Reads: aux (the drop reason), rx interface, tx interface (if the packet would have left by one),
//! `icmp` of the metadata. Next: the `ip6-icmp-error-reply` arc or `ip6-lookup` for the message,
//! `ip6-drop` for the packet.

use crate::icmp::{self, Sources};
use std::fmt::Write;
use thalweg_buffer::{Flags, Frame, IcmpCause, PktMut};
use thalweg_feat_ip::icmp_errors::{ErrorLimit, WayOut};
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};
use thalweg_wire::icmpv6::{MAX_ERROR_LEN, emit_error};
use thalweg_wire::ipv6::{Ipv6Mut, Ipv6View};

thalweg_graph::next_nodes! { LOOKUP => "ip6-lookup", DROP => "ip6-drop" }
thalweg_graph::errors! {
    SENT: Info, UNKNOWN, "icmp errors sent";
    LIMITED: Warning, UNKNOWN, "icmp errors not sent: rate limit";
    FORBIDDEN: Info, UNKNOWN, "icmp errors not sent: not allowed for this packet";
    NO_ADDRESS: Warning, UNKNOWN, "icmp errors not sent: interface without address";
    NO_BUFFER: Warning, UNKNOWN, "icmp errors not sent: no buffer";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-icmp-error",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip6-drop",
    build: |cx| {
        let (limit, way_out) = (ErrorLimit::default(), icmp::way_out(cx, LOOKUP));
        Built::node(Ip6IcmpError { sources: Sources::new(cx), limit, way_out })
    },
    ..NodeDecl::DEFAULT
};

struct Ip6IcmpError {
    sources: Sources,
    limit: ErrorLimit,
    way_out: WayOut,
}

impl Node for Ip6IcmpError {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let (by_group, cause) = (p.flags().contains(Flags::GROUP), p.meta().icmp);
        let original = Ipv6View::parse_prefix(p.data()).ok();
        let asker = original.filter(|packet| icmp::may_answer(packet, by_group, cause));
        let Some(asker) = asker.map(|packet| packet.src()) else {
            cx.count(FORBIDDEN, 1);
            return DROP;
        };
        let Some(from) = self.sources.nearest(cx.guard(), p.rx_if(), asker) else {
            cx.count(NO_ADDRESS, 1);
            return DROP;
        };
        if !self.limit.allow(p.rx_if(), cx.now()) {
            cx.count(LIMITED, 1);
            return DROP;
        }
        let mut message = [0; MAX_ERROR_LEN];
        let Ok(n) = emit_error(icmp::repr(cause), from, p.data(), &mut message) else {
            cx.count(FORBIDDEN, 1);
            return DROP;
        };
        if let Ok(mut header) = Ipv6Mut::parse(&mut message) {
            header.set_hop_limit(u8::MAX);
        }
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
        let _ = writeln!(out, "answered with icmp6 type {kind} code {code}");
        let _ = thalweg_wire::fmt::ip6(frame.data(i), out, 0);
    }
}
