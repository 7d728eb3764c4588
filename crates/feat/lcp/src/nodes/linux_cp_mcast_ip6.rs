//! `linux-cp-mcast-ip6`: IPv6 packets to groups of the link (ff02::/16, RFC 4291 section 2.7) are
//! for the router: packets that it does not handle go to the twin of the interface. Packets to the
//! groups of solicited nodes are for the router only if it has such an address; solicitations of an
//! address that a link on the twin has go to the twin.
//!
//! Reads: rx interface, the Ethernet header before the packet. Writes: tx interface. Next:
//! `ip6-local`, the output of the twin's TAP, or the next feature of the `ip6-multicast` arc. A
//! class of packets that has used up its limit is dropped.

use super::linux_cp_punt::{Reasons, ToTwin};
use crate::class::Class;
use std::fmt::Write;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::{Built, FeatureDecl, Node, NodeCx, NodeDecl, Verdict};
use thalweg_wire::ethernet::ethertype;
use thalweg_wire::icmpv6::kind;
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv6::Ipv6View;

thalweg_graph::next_nodes! { LOCAL => "ip6-local" }
thalweg_graph::errors! {
    PUNT_RATE: Error, TRAFFIC_SHAPING, "punt-rate: class of packets above its limit";
    NO_TWIN: Error, DEV_READY, "interface has no twin any more";
    NO_ROOM: Error, UNKNOWN_BUFFER, "no headroom for Ethernet header";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "linux-cp-mcast-ip6",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "ip6-drop",
    feature: Some(FeatureDecl::on("ip6-multicast")),
    build: |cx| Built::node(Mcast(ToTwin::new(cx))),
    ..NodeDecl::DEFAULT
};

/// First bytes of the groups of solicited nodes: ff02::1:ff00:0/104.
const SOLICITED: [u8; 13] = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff];

struct Mcast(ToTwin);

/// Returns the address that a packet solicits (RFC 4861 section 4.3).
fn solicited(packet: &[u8]) -> Option<[u8; 16]> {
    let transport = Ipv6View::parse_prefix(packet).and_then(|ip| ip.transport()).ok()?;
    let is_asked = transport.protocol == protocol::ICMPV6
        && transport.payload.first() == Some(&kind::NEIGHBOR_SOLICITATION);
    transport.payload.get(8..).filter(|_| is_asked)?.first_chunk::<16>().copied()
}

impl Node for Mcast {
    fn begin(&mut self, cx: &mut NodeCx<'_>, _: &Frame) {
        self.0.gate.begin(cx);
    }

    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        match p.data().get(24..40) {
            Some(group) if group.starts_with(&SOLICITED) => {}
            Some([0xff, 2, ..]) => return LOCAL,
            _ => return Verdict::CONTINUE,
        }
        let table = self.0.table.load(cx.guard());
        if !solicited(p.data()).is_some_and(|ip| table.is_of_host6(p.rx_if(), ip)) {
            return Verdict::CONTINUE;
        }
        let reasons = Reasons { rate: PUNT_RATE, no_twin: NO_TWIN, no_room: NO_ROOM };
        self.0.send(cx, &mut p, (ethertype::IPV6, Class::Nd), &reasons)
    }

    fn end(&mut self, cx: &mut NodeCx<'_>) {
        self.0.gate.end(cx);
    }

    fn trace(&self, _: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let _ = thalweg_wire::fmt::ip6(frame.data(i), out, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;
    use thalweg_wire::build::Packet;

    #[test]
    fn solicitations_name_an_address() {
        let [from, target] = [2, 0x100].map(|n| Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, n));
        let of = |message: &[u8]| {
            solicited(&Packet::new().ipv6(from, target).protocol(58).payload(message).build())
        };
        let ask = |kind: u8| [&[kind, 0, 0, 0, 0, 0, 0, 0][..], &target.octets()].concat();
        assert_eq!(of(&ask(kind::NEIGHBOR_SOLICITATION)), Some(target.octets()));
        assert_eq!(of(&ask(kind::NEIGHBOR_ADVERTISEMENT)), None);
        assert_eq!(of(&ask(kind::NEIGHBOR_SOLICITATION)[..23]), None);
        assert_eq!(solicited(&[0x60; 39]), None);
    }
}
