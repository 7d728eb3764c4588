//! `ip4-icmp-input`: ICMP messages to the router.
//!
//! Reads: rx interface. Echo requests go to `ip4-icmp-echo-request`. Echo replies are reported to
//! the main thread (whose `ping` waits for them) and delivered, as are all other messages unless a
//! feature takes them.

use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{Frame, PktMut};
use thalweg_engine::punt::Punt;
use thalweg_feat_ip::demux::Reasons;
use thalweg_graph::{Built, Event, Node, NodeCx, NodeDecl, Verdict};
use thalweg_wire::checksum::Checksum;

thalweg_graph::next_nodes! { ECHO => "ip4-icmp-echo-request", PUNT => "ip4-punt" }
thalweg_graph::errors! {
    SHORT: Error, ICMP_PARSING, "icmp message too short";
    CHECKSUM: Error, ICMP_PARSING, "bad icmp checksum";
    REPLIES: Info, UNKNOWN, "icmp echo replies received";
    OTHERS: Info, UNKNOWN, "icmp messages received";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip4-icmp-input",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip4-drop",
    build: |cx| {
        let (topics, reasons) = (cx.shared(), cx.shared());
        Built::node(Ip4IcmpInput { topics, punt: Punt::new(cx), reasons })
    },
    ..NodeDecl::DEFAULT
};

struct Ip4IcmpInput {
    topics: Arc<crate::Topics>,
    punt: Punt,
    reasons: Arc<Reasons<u32>>,
}

/// Sum over a packet from `at` on, all segments.
pub(crate) fn sum_from(p: &PktMut<'_>, at: usize) -> Checksum {
    let mut sum = Checksum::new();
    let mut skip = at;
    for s in p.segments() {
        let from = skip.min(s.len());
        sum.add(&s[from..]);
        skip -= from;
    }
    sum
}

impl Node for Ip4IcmpInput {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let data = p.data();
        let header = usize::from(data.first().map_or(0, |b| b & 15)) * 4;
        let Some(message) = data.get(header..header + 8) else { return Verdict::drop(SHORT) };
        if !sum_from(&p, header).is_valid() {
            return Verdict::drop(CHECKSUM);
        }
        match message[0] {
            8 => return ECHO,
            0 => {
                cx.count(REPLIES, 1);
                // Source, identifier, sequence number, TTL and message length.
                let mut report = [0; 13];
                report[..4].copy_from_slice(&data[12..16]);
                report[4..8].copy_from_slice(&message[4..8]);
                report[8] = data[8];
                report[9..13].copy_from_slice(&((p.total_len() - header) as u32).to_be_bytes());
                let at = thalweg_graph::clock::ticks();
                let event = Event::new(self.topics.echo_reply, p.rx_if(), at, &report);
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
        let _ = thalweg_wire::fmt::ip4(frame.data(i), out, 0);
    }
}
