//! `ip6-icmp-input`: ICMPv6 messages to the router.
//!
//! Reads: rx interface. Echo requests go to `ip6-icmp-echo-request`, neighbour discovery and
//! queries for listeners to their nodes. Echo replies are reported to the main thread (whose `ping`
//! waits for them) and delivered, as are all other messages unless a feature takes them.

use crate::echo::REPORT;
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Frame, PktMut};
use thalweg_engine::punt::Punt;
use thalweg_feat_ip::demux::Reasons;
use thalweg_graph::{Built, Event, Node, NodeCx, NodeDecl, Verdict};
use thalweg_wire::checksum::Checksum;
use thalweg_wire::icmpv6::kind;
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv6::{HEADER_LEN, Ipv6View};

thalweg_graph::next_nodes! {
    ECHO => "ip6-icmp-echo-request",
    PUNT => "ip6-punt",
    SOLICITATION => "icmp6-neighbor-solicitation",
    ADVERTISEMENT => "icmp6-neighbor-advertisement",
    ROUTER_SOLICITATION => "icmp6-router-solicitation",
    ROUTER_ADVERTISEMENT => "icmp6-router-advertisement",
    LISTENER_QUERY => "icmp6-mld-query",
}
thalweg_graph::errors! {
    SHORT: Error, ICMP_PARSING, "icmp message too short";
    CHECKSUM: Error, ICMP_PARSING, "bad icmp checksum";
    REPLIES: Info, UNKNOWN, "icmp echo replies received";
    OTHERS: Info, UNKNOWN, "icmp messages received";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-icmp-input",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip6-drop",
    build: |cx| {
        let (topics, reasons) = (cx.shared(), cx.shared());
        Built::node(Ip6IcmpInput { topics, punt: Punt::new(cx), reasons })
    },
    ..NodeDecl::DEFAULT
};

struct Ip6IcmpInput {
    topics: Arc<crate::Topics>,
    punt: Punt,
    reasons: Arc<Reasons<u128>>,
}

/// Adds `length` bytes of a packet from `at` on, of all segments.
pub(super) fn add_from(p: &PktMut<'_>, at: usize, length: usize, sum: &mut Checksum) {
    let (mut skip, mut left) = (at, length);
    for s in p.segments() {
        let from = skip.min(s.len());
        let part = &s[from..][..left.min(s.len() - from)];
        sum.add(part);
        skip -= from;
        left -= part.len();
    }
}

/// Returns the offset of a packet's message; an error if it is not sound.
fn message(p: &PktMut<'_>) -> Result<usize, Verdict> {
    let short = |_| Verdict::drop(SHORT);
    let ip = Ipv6View::parse_prefix(p.data()).map_err(short)?;
    let transport = ip.transport().map_err(short)?;
    if transport.payload.len() < 8 {
        return Err(Verdict::drop(SHORT));
    }
    let at = HEADER_LEN + transport.offset;
    let length = p.total_len().saturating_sub(at);
    let mut sum = ip.pseudo_header(protocol::ICMPV6, length as u32);
    add_from(p, at, length, &mut sum);
    if sum.is_valid() { Ok(at) } else { Err(Verdict::drop(CHECKSUM)) }
}

impl Node for Ip6IcmpInput {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let at = match message(&p) {
            Ok(at) => at,
            Err(v) => return v,
        };
        let data = p.data();
        let Some(head) = data.get(at..).and_then(<[u8]>::first_chunk::<8>) else {
            return Verdict::drop(SHORT);
        };
        match head[0] {
            kind::ECHO_REQUEST => return ECHO,
            kind::NEIGHBOR_SOLICITATION => return SOLICITATION,
            kind::NEIGHBOR_ADVERTISEMENT => return ADVERTISEMENT,
            kind::ROUTER_SOLICITATION => return ROUTER_SOLICITATION,
            kind::ROUTER_ADVERTISEMENT => return ROUTER_ADVERTISEMENT,
            kind::LISTENER_QUERY => return LISTENER_QUERY,
            kind::ECHO_REPLY => {
                cx.count(REPLIES, 1);
                let mut report = [0; REPORT];
                report[..16].copy_from_slice(&data[8..24]);
                report[16..20].copy_from_slice(&head[4..8]);
                report[20] = data[7];
                report[21..].copy_from_slice(&((p.total_len() - at) as u32).to_be_bytes());
                let now = thalweg_graph::clock::ticks();
                let event = Event::new(self.topics.echo_reply, p.rx_if(), now, &report);
                // A flood of them must not cost others their place.
                cx.event_if_room(event);
                // A host that shares the address may wait for it, too.
                if self.punt.has_host(cx.guard(), p.rx_if()) {
                    self.reasons.icmp_message.mark(&mut p);
                    return PUNT;
                }
            }
            _ if self.punt.is_wanted(cx.guard(), self.reasons.icmp_message, p.rx_if()) => {
                self.reasons.icmp_message.mark(&mut p);
                return PUNT;
            }
            _ => cx.count(OTHERS, 1),
        }
        let (packet, kept) = cx.take(p);
        cx.deliver(packet);
        kept
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip6(frame.data(i), out, 0);
    }
}
