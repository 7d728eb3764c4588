//! `mpls-icmp-error`: answers a labelled IPv4 packet with an ICMP error that quotes its stack (RFC
//! 4950), then has the packet dropped.
//!
//! Reads: rx interface (its address becomes the source), the cause in the meta. Keeps: aux (the
//! drop reason of the requesting node). Next: `ip4-lookup` for the message where a route leads back
//! to the sender; else `mpls-lookup`, as the message goes on along the path of the packet, whose
//! end knows the sender (RFC 3032 section 2.3.2).

use crate::error_message::{MAX_MESSAGE, message};
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Flags, Frame, IcmpCause, PktMut};
use thalweg_feat_ip4::tables::Tables;
use thalweg_fib::{DpoTable, Kind};
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};
use thalweg_tables::limit::RateLimit;
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::icmpv4::may_answer_with_error;
use thalweg_wire::ipv4::Ipv4View;
use thalweg_wire::mpls::{ENTRY_LEN, Entry, Stack};

/// Errors per second and worker, and burst size.
const RATE: u32 = 1000;
const BURST: u32 = 100;
/// TTL of the labels of a message that goes on along the path.
const TTL: u8 = 255;

thalweg_graph::next_nodes! {
    LOOKUP => "ip4-lookup",
    ALONG => "mpls-lookup",
    DROP => "error-drop",
}
thalweg_graph::errors! {
    SENT: Info, 256, "icmp errors sent";
    SENT_ALONG: Info, 256, "icmp errors sent along the labels of the packet";
    LIMITED: Warning, 256, "icmp errors not sent: rate limit";
    FORBIDDEN: Info, 256, "icmp errors not sent: not allowed for this packet";
    NO_ADDRESS: Warning, 256, "icmp errors not sent: interface without address";
    NO_BUFFER: Warning, 256, "icmp errors not sent: no buffer";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "mpls-icmp-error",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "error-drop",
    build: |cx| {
        let limiter = RateLimit::steady(RATE, BURST, thalweg_graph::clock::hz() as u64);
        Built::node(MplsIcmpError { tables: cx.shared(), dpos: cx.shared(), limiter })
    },
    ..NodeDecl::DEFAULT
};

struct MplsIcmpError {
    tables: Arc<Snapshot<Tables>>,
    dpos: Arc<DpoTable>,
    limiter: RateLimit,
}

impl MplsIcmpError {
    /// Returns whether a route leads to an address.
    fn leads_to(&self, cx: &NodeCx<'_>, p: &PktMut<'_>, address: u32) -> bool {
        let leaf = self.tables.load(cx.guard()).leaf(p.rx_if(), address);
        let dpo = self.dpos.resolve(leaf, || 0);
        let kind = self.dpos.get(dpo).state().kind;
        kind.is_sent() || kind == Kind::LOCAL || kind == Kind::LOOKUP || kind == Kind::INTERFACE_RX
    }
}

impl Node for MplsIcmpError {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let data = p.data();
        let mut stack = Stack::new(data);
        let n = stack.by_ref().count();
        let by_group = p.flags().contains(Flags::GROUP);
        let original = Ipv4View::parse_prefix(stack.payload()).ok();
        let may_answer = |packet: &Ipv4View<'_>| {
            stack.reached_bottom() && !by_group && may_answer_with_error(packet)
        };
        let Some(original) = original.filter(may_answer) else {
            cx.count(FORBIDDEN, 1);
            return DROP;
        };
        let Some(from) = self.tables.load(cx.guard()).address(p.rx_if()) else {
            cx.count(NO_ADDRESS, 1);
            return DROP;
        };
        if !self.limiter.allow(cx.now()) {
            cx.count(LIMITED, 1);
            return DROP;
        }
        let labels = data.get(..n * ENTRY_LEN).unwrap_or_default();
        let back = self.leads_to(cx, &p, original.src().to_bits());
        let mut buf = [0; MAX_MESSAGE];
        let Some(message) = message(p.meta().icmp, from, &original, labels, &mut buf) else {
            cx.count(FORBIDDEN, 1);
            return DROP;
        };
        let Some(mut answer) = cx.originate() else {
            cx.count(NO_BUFFER, 1);
            return DROP;
        };
        let mut filled = answer.fill(&[], cx.cache());
        if !back {
            for entry in Stack::new(labels) {
                let Entry(word) = entry.with_ttl(TTL);
                filled &= answer.append(&word.to_be_bytes(), cx.cache());
            }
        }
        if filled && answer.append(message, cx.cache()) {
            answer.set_rx_if(p.rx_if());
            cx.count(if back { SENT } else { SENT_ALONG }, 1);
            cx.send(answer, if back { LOOKUP } else { ALONG });
        } else {
            cx.count(NO_BUFFER, 1);
            cx.consume(answer);
        }
        DROP
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let IcmpCause { kind, code, .. } = frame.meta(i).icmp;
        let _ = writeln!(out, "answered with icmp type {kind} code {code}");
        let _ = thalweg_wire::fmt::mpls(frame.data(i), out, 0);
    }
}
