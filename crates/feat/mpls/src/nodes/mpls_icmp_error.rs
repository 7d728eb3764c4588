//! `mpls-icmp-error`: answers a labelled IP packet with an ICMP error that quotes its stack (RFC
//! 4950), then drops the packet.
//!
//! Reads: rx interface (its address becomes the source), tx interface (if the packet would have
//! left by one), the cause in the meta. Keeps: aux (the drop reason of the requesting node). Next,
//! for the message about a packet that came with one label or none, where a route leads back to
//! the sender: the way of all errors, by the arcs `ip4-icmp-error-reply` and
//! `ip6-icmp-error-reply`, so that what translated the packet restores the quote. Otherwise
//! `mpls-lookup` or `mpls-output`: the message goes on along the path of the packet, whose end
//! knows the sender (RFC 3032 section 2.3.2). Behind several labels is a customer's packet: routes
//! of the core do not lead to its sender, even if one matches. Bytes that are no whole IP packet
//! are not answered: no label says that they are one.

use crate::behind::{IpBehind, ip_behind};
use crate::error_message::{MAX_MESSAGE, MAX_MESSAGE6, cause6, message, message6};
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Frame, IcmpCause, LabelsChanged, PktMut};
use thalweg_feat_ip::icmp_errors::{About, Ends, Errors, Unanswered, WayOut};
use thalweg_feat_ip4::icmp::{self as icmp4, Hosts};
use thalweg_feat_ip4::tables::Tables;
use thalweg_feat_ip6::icmp::{self as icmp6, Sources};
use thalweg_feat_ip6::tables::Tables as Tables6;
use thalweg_fib::{Dpo, DpoTable, Kind};
use thalweg_graph::{Built, ErrorCode, Node, NodeCx, NodeDecl, Verdict};
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::ipv4::Ipv4View;
use thalweg_wire::ipv6::Ipv6View;
use thalweg_wire::mpls::{ENTRY_LEN, Entry, Stack};

/// TTL of the labels of a message that goes on along the path.
const TTL: u8 = 255;

thalweg_graph::next_nodes! {
    LOOKUP => "ip4-lookup",
    LOOKUP6 => "ip6-lookup",
    ALONG => "mpls-lookup",
    OUTPUT => "mpls-output",
    DROP => "error-drop",
}
thalweg_graph::errors! {
    SENT: Info, UNKNOWN, "icmp errors sent";
    SENT_ALONG: Info, UNKNOWN, "icmp errors sent along the labels of the packet";
    LIMITED: Warning, UNKNOWN, "icmp errors not sent: rate limit";
    FORBIDDEN: Info, UNKNOWN, "icmp errors not sent: not allowed for this packet";
    NO_ADDRESS: Warning, UNKNOWN, "icmp errors not sent: interface without address";
    NO_BUFFER: Warning, UNKNOWN, "icmp errors not sent: no buffer";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "mpls-icmp-error",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "error-drop",
    build: |cx| {
        Built::node(MplsIcmpError {
            tables: cx.shared(),
            tables6: cx.shared(),
            errors: Errors::new(Hosts::new(cx)),
            errors6: Errors::new(Sources::new(cx)),
            dpos: cx.shared(),
            way_out: icmp4::way_out(cx, LOOKUP),
            way_out6: icmp6::way_out(cx, LOOKUP6),
        })
    },
    ..NodeDecl::DEFAULT
};

struct MplsIcmpError {
    tables: Arc<Snapshot<Tables>>,
    tables6: Arc<Snapshot<Tables6>>,
    errors: Errors<Hosts>,
    errors6: Errors<Sources>,
    dpos: Arc<DpoTable>,
    way_out: WayOut,
    way_out6: WayOut,
}

/// Answer to a packet.
struct Answer {
    message: [u8; MAX_MESSAGE6],
    len: usize,
    /// A route leads back to the sender.
    back: bool,
    way_out: WayOut,
}

/// The counter of packets that are not answered.
fn counter(why: Unanswered) -> ErrorCode {
    match why {
        Unanswered::Forbidden => FORBIDDEN,
        Unanswered::NoAddress => NO_ADDRESS,
        Unanswered::Limited => LIMITED,
    }
}

impl MplsIcmpError {
    /// Returns whether an object leads on.
    fn leads_on(&self, leaf: Dpo) -> bool {
        let kind = self.dpos.get(self.dpos.resolve(leaf, || 0)).state().kind;
        kind.is_sent() || kind == Kind::LOCAL || kind == Kind::LOOKUP || kind == Kind::INTERFACE_RX
    }

    /// Builds the answer to an IPv4 packet; else returns the counter that says why there is none.
    fn ip4(
        &mut self,
        cx: &NodeCx<'_>,
        p: &PktMut<'_>,
        labels: &[u8],
        (packet, ends): (Ipv4View<'_>, Ends),
    ) -> Result<Answer, ErrorCode> {
        let about = About { packet, cause: p.meta().icmp, ends };
        let from = self.errors.source(cx, p, &about).map_err(counter)?;
        let original = &about.packet;
        let tables = self.tables.load(cx.guard());
        let back = self.leads_on(tables.leaf(p.rx_if(), original.src().to_bits()));
        let mut buf = [0; MAX_MESSAGE];
        let built = message(about.cause, from, original, labels, &mut buf).ok_or(FORBIDDEN)?;
        let (mut message, len) = ([0; MAX_MESSAGE6], built.len());
        message[..len].copy_from_slice(built);
        Ok(Answer { message, len, back, way_out: self.way_out })
    }

    /// The same for an IPv6 packet.
    fn ip6(
        &mut self,
        cx: &NodeCx<'_>,
        p: &PktMut<'_>,
        labels: &[u8],
        bytes: &[u8],
        (packet, ends): (Ipv6View<'_>, Ends),
    ) -> Result<Answer, ErrorCode> {
        let about = About { packet, cause: cause6(p.meta().icmp), ends };
        let from = self.errors6.source(cx, p, &about).map_err(counter)?;
        let tables = self.tables6.load(cx.guard());
        let back = self.leads_on(tables.leaf(p.rx_if(), about.packet.src().to_bits()));
        let mut message = [0; MAX_MESSAGE6];
        let built = message6(about.cause, from, bytes, labels, &mut message);
        let len = built.ok_or(FORBIDDEN)?.len();
        Ok(Answer { message, len, back, way_out: self.way_out6 })
    }
}

impl Node for MplsIcmpError {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let data = p.data();
        let mut stack = Stack::new(data);
        let n = stack.by_ref().count();
        let labels = data.get(..n * ENTRY_LEN).unwrap_or_default();
        let packet = stack.payload();
        let len = p.total_len() - labels.len();
        let behind = stack.reached_bottom().then(|| ip_behind(packet, len)).flatten();
        let LabelsChanged { popped, pushed } = p.meta().labels;
        let came_with = (n + usize::from(popped)).saturating_sub(pushed.into());
        let ends = if came_with > 1 { Ends::Elsewhere } else { Ends::Here };
        let built = match behind {
            Some(IpBehind::V4(original)) => self.ip4(cx, &p, labels, (original, ends)),
            Some(IpBehind::V6(original)) => self.ip6(cx, &p, labels, packet, (original, ends)),
            None => Err(FORBIDDEN),
        };
        let Answer { message, len, back, way_out } = match built {
            Ok(answer) => answer,
            Err(why) => {
                cx.count(why, 1);
                return DROP;
            }
        };
        let Some(mut answer) = cx.originate() else {
            cx.count(NO_BUFFER, 1);
            return DROP;
        };
        let along = match came_with {
            0 => false,
            1 => !back,
            _ => true,
        };
        let mut filled = answer.fill(&[], cx.cache());
        if along {
            for entry in Stack::new(labels) {
                let Entry(word) = entry.with_ttl(TTL);
                filled &= answer.append(&word.to_be_bytes(), cx.cache());
            }
        }
        if !filled || !answer.append(&message[..len], cx.cache()) {
            cx.count(NO_BUFFER, 1);
            cx.consume(answer);
            return DROP;
        }
        cx.count(if along { SENT_ALONG } else { SENT }, 1);
        if !along {
            way_out.send(cx, answer, &p);
            return DROP;
        }
        answer.set_rx_if(p.rx_if());
        let to = match p.meta().path {
            0 => ALONG,
            // Its labels are those of the way out already.
            path => {
                answer.set_aux(path);
                OUTPUT
            }
        };
        cx.send(answer, to);
        DROP
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let IcmpCause { kind, code, .. } = frame.meta(i).icmp;
        let _ = writeln!(out, "answered with icmp type {kind} code {code}");
        let _ = thalweg_wire::fmt::mpls(frame.data(i), out, 0);
    }
}
