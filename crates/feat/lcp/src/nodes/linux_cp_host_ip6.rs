//! `linux-cp-host-ip6`: IPv6 packets for an address that a link on the twin of the interface has,
//! such as that of a virtual router, and solicitations of such a neighbour, go to the twin.
//!
//! Reads: rx interface, the Ethernet header before the packet. Writes: tx interface. Next: the
//! output of the twin's TAP, or the next feature of the arc. A class of packets that has used up
//! its limit is dropped.

use super::linux_cp_mcast_ip6::SOLICITED;
use super::linux_cp_punt::{Reasons, ToTwin, trace};
use crate::class;
use std::fmt::Write;
use thalweg_buffer::{Frame, PktMut};
use thalweg_graph::{Built, FeatureDecl, Node, NodeCx, NodeDecl, Stage, Verdict};
use thalweg_wire::ethernet::ethertype;
use thalweg_wire::icmpv6::kind;
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv6::Ipv6View;

thalweg_graph::errors! {
    PUNT_RATE: Error, TRAFFIC_SHAPING, "punt-rate: class of packets above its limit";
    NO_TWIN: Error, DEV_READY, "interface has no twin any more";
    NO_ROOM: Error, UNKNOWN_BUFFER, "no headroom for Ethernet header";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "linux-cp-host-ip6",
    errors: ERRORS,
    drop: "ip6-drop",
    feature: Some(FeatureDecl::on("ip6-unicast").at(Stage::Admission)),
    also_on: &["ip6-multicast"],
    build: |cx| Built::node(HostIp6(ToTwin::new(cx))),
    ..NodeDecl::DEFAULT
};

struct HostIp6(ToTwin);

/// Returns the address whose owner a packet is for: its destination, or the neighbour that is
/// solicited by the group of such addresses (RFC 4861 section 4.3).
fn wanted(packet: &[u8]) -> Option<[u8; 16]> {
    let to = packet.get(24..)?.first_chunk::<16>()?;
    if !to.starts_with(&SOLICITED) {
        return Some(*to);
    }
    let transport = Ipv6View::parse_prefix(packet).and_then(|ip| ip.transport()).ok()?;
    let is_asked = transport.protocol == protocol::ICMPV6
        && transport.payload.first() == Some(&kind::NEIGHBOR_SOLICITATION);
    transport.payload.get(8..).filter(|_| is_asked)?.first_chunk::<16>().copied()
}

impl Node for HostIp6 {
    fn begin(&mut self, cx: &mut NodeCx<'_>, _: &Frame) {
        self.0.gate.begin(cx);
    }

    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let table = self.0.table.load(cx.guard());
        if !wanted(p.data()).is_some_and(|ip| table.is_of_host6(p.rx_if(), ip)) {
            return Verdict::CONTINUE;
        }
        let class = class::of_ip(p.data());
        let reasons = Reasons { rate: PUNT_RATE, no_twin: NO_TWIN, no_room: NO_ROOM };
        self.0.send(cx, &mut p, (ethertype::IPV6, class), &reasons)
    }

    fn end(&mut self, cx: &mut NodeCx<'_>) {
        self.0.gate.end(cx);
    }

    fn trace(&self, _: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        trace("lip-host", frame, i, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;
    use thalweg_wire::build::Packet;

    #[test]
    fn packets_are_for_their_destination_or_the_solicited() {
        let [from, target] = [2, 0x100].map(|n| Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, n));
        let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 0x100);
        let icmp = |to, message: &[u8]| {
            wanted(&Packet::new().ipv6(from, to).protocol(58).payload(message).build())
        };
        let ask = |kind: u8| [&[kind, 0, 0, 0, 0, 0, 0, 0][..], &target.octets()].concat();
        assert_eq!(icmp(target, &[128, 0]), Some(target.octets()));
        assert_eq!(icmp(group, &ask(kind::NEIGHBOR_SOLICITATION)), Some(target.octets()));
        assert_eq!(icmp(group, &ask(kind::NEIGHBOR_ADVERTISEMENT)), None);
        assert_eq!(icmp(group, &ask(kind::NEIGHBOR_SOLICITATION)[..23]), None);
        assert_eq!(wanted(&[0x60; 39]), None);
    }
}
