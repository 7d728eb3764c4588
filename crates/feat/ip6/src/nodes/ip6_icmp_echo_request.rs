//! `ip6-icmp-echo-request`: turns an echo request into its reply, a packet of its own: without the
//! request's extension headers (RFC 4443 section 4.2). One to a group is answered from an address
//! of the interface.
//!
//! Writes: marks the packet as locally originated. Next: `ip6-lookup`.

use std::fmt::Write;
use std::net::Ipv6Addr;
use std::sync::Arc;
use thalweg_buffer::{Flags, Frame, PktMut};
use thalweg_feat_nd::IfAddrs;
use thalweg_graph::{Built, Node, NodeCx, NodeDecl, Verdict};
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::checksum::{update_u16, update_u32};
use thalweg_wire::icmpv6::kind;
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv6::{HEADER_LEN, Ipv6View};

thalweg_graph::next_nodes! { LOOKUP => "ip6-lookup" }
thalweg_graph::errors! {
    REPLIED: Info, UNKNOWN, "icmp echo replies sent";
    SHORT: Error, ICMP_PARSING, "icmp message too short";
    ROUTED: Error, SRC_ROUTE_FAILED, "icmp echo request with a routing header";
    NO_ADDRESS: Warning, UNKNOWN, "icmp echo request to a group: interface without address";
    NO_SOURCE: Error, SIP_IS_UNSPECIFIED, "icmp echo request without source";
    SRC_GROUP: Error, SIP_IS_MC, "icmp echo request from a group";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ip6-icmp-echo-request",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip6-drop",
    build: |cx| Built::node(EchoRequest { addrs: cx.shared() }),
    ..NodeDecl::DEFAULT
};

struct EchoRequest {
    addrs: Arc<Snapshot<IfAddrs>>,
}

/// Fields of a request.
struct Asked {
    src: Ipv6Addr,
    dst: Ipv6Addr,
    /// Offset of the message.
    at: usize,
    /// True if it came by a routing header, which no reply reverses.
    routed: bool,
}

fn read(data: &[u8]) -> Option<Asked> {
    let ip = Ipv6View::parse_prefix(data).ok()?;
    let transport = ip.transport().ok()?;
    let at = HEADER_LEN + transport.offset;
    let (mut next, mut from, mut routed) = (ip.next_header(), HEADER_LEN, false);
    while from < at {
        routed |= next == protocol::ROUTING;
        let h = data.get(from..)?.first_chunk::<2>()?;
        from += match next {
            protocol::FRAGMENT => 8,
            protocol::AH => (usize::from(h[1]) + 2) * 4,
            _ => (usize::from(h[1]) + 1) * 8,
        };
        next = h[0];
    }
    Some(Asked { src: ip.src(), dst: ip.dst(), at, routed })
}

impl Node for EchoRequest {
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let Some(Asked { src, dst, at, routed }) = read(p.data()) else {
            return Verdict::drop(SHORT);
        };
        if routed {
            return Verdict::drop(ROUTED);
        }
        // A request to a group may come from a host without an address, which nothing reaches.
        if src.is_multicast() {
            return Verdict::drop(SRC_GROUP);
        }
        if src.is_unspecified() {
            return Verdict::drop(NO_SOURCE);
        }
        let own = match dst.is_multicast() {
            true => self.addrs.load(cx.guard()).source_for(p.rx_if(), src),
            false => Some(dst),
        };
        let Some(own) = own else { return Verdict::drop(NO_ADDRESS) };
        let data = p.data_mut();
        let Some(message) = data.get(at..).and_then(<[u8]>::first_chunk::<4>) else {
            return Verdict::drop(SHORT);
        };
        let mut sum = u16::from_be_bytes([message[2], message[3]]);
        let kinds = [kind::ECHO_REQUEST, kind::ECHO_REPLY];
        let [before, after] = kinds.map(|kind| u16::from_be_bytes([kind, message[1]]));
        sum = update_u16(sum, before, after);
        // Swapping source and destination leaves checksums unchanged.
        if own != dst {
            let words = |ip: Ipv6Addr| ip.segments();
            for (old, new) in words(dst).into_iter().zip(words(own)) {
                sum = update_u32(sum, u32::from(old), u32::from(new));
            }
        }
        data[at] = kind::ECHO_REPLY;
        data[at + 2..at + 4].copy_from_slice(&sum.to_be_bytes());
        let extensions = at - HEADER_LEN;
        data.copy_within(..HEADER_LEN, extensions);
        let data = &mut data[extensions..];
        let length = u16::from_be_bytes([data[4], data[5]]).saturating_sub(extensions as u16);
        data[4..6].copy_from_slice(&length.to_be_bytes());
        (data[6], data[7]) = (protocol::ICMPV6, 64);
        data[8..24].copy_from_slice(&own.octets());
        data[24..40].copy_from_slice(&src.octets());
        p.pull(extensions);
        p.unmark(Flags::GROUP);
        p.mark(Flags::LOCAL);
        cx.count(REPLIED, 1);
        LOOKUP
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip6(frame.data(i), out, 0);
    }
}
