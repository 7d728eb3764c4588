//! A router between test interfaces, and labelled packets that pass through it.

use std::net::Ipv4Addr;
use thalweg_device::testing::ip4::ip;
use thalweg_device::testing::{self, Lab, Setup, host_mac, our_mac};
use thalweg_wire::MacAddr;
use thalweg_wire::build::Packet;
use thalweg_wire::checksum::verify;
use thalweg_wire::ethernet::ethertype;
use thalweg_wire::ipv6::Ipv6View;
use thalweg_wire::mpls::{Entry, Stack};

/// 16.0.0.1 is far away.
pub(crate) const FAR: Ipv4Addr = Ipv4Addr::new(16, 0, 0, 1);

/// `test0` to `test2` with IPv4 addresses and two hosts each.
pub(crate) fn setup() -> Setup {
    let setup = Lab::of(&thalweg_feat_mpls::FEATURE).with(&thalweg_feat_l2::FEATURE);
    setup.with(&crate::punts::TAKER).ip4(2..=3)
}

/// MPLS on all interfaces.
pub(crate) fn labelling(setup: Setup) -> Lab {
    let mut lab = setup.start();
    lab.ok("mpls table add 0");
    (0..3).for_each(|n| lab.ok(&format!("set interface mpls test{n} enable")));
    lab
}

pub(crate) fn router() -> Lab {
    labelling(setup())
}

/// IPv6 as well.
pub(crate) fn router_with_ip6() -> Lab {
    labelling(setup().with(&thalweg_feat_neighbor::BY_CLOCK).ip6(2..=3))
}

/// Packets that are passed through the router.
pub(crate) trait Mpls {
    /// Passes `count` like packets from behind `testN`; returns frames and where they leave.
    fn forward(&mut self, n: u8, packet: &Packet, count: usize) -> Vec<(u8, Vec<u8>)>;
    /// Passes a packet singly and forty times in a frame, all of which leave alike.
    fn one(&mut self, n: u8, packet: &Packet) -> Left;
    /// Checks that a packet is dropped, and counted with this reason.
    fn lost(&mut self, n: u8, packet: &Packet, node: &str, why: &str);
}

impl Mpls for Lab {
    fn forward(&mut self, n: u8, packet: &Packet, count: usize) -> Vec<(u8, Vec<u8>)> {
        self.exchange(n, vec![framed(n, packet); count])
    }
    fn one(&mut self, n: u8, packet: &Packet) -> Left {
        let alone = self.forward(n, packet, 1);
        assert_eq!(alone.len(), 1, "{}", self.cli("show errors"));
        let many = self.forward(n, packet, 40);
        assert_eq!(many.len(), 40, "{}", self.cli("show errors"));
        assert!(many.iter().all(|sent| *sent == alone[0]), "kernels agree");
        left(&alone[0])
    }
    fn lost(&mut self, n: u8, packet: &Packet, node: &str, why: &str) {
        for count in [1, 20] {
            let before = self.count(node, why);
            assert_eq!(self.forward(n, packet, count), []);
            let n = self.count(node, why) - before;
            assert_eq!(n, count as u64, "{}", self.cli("show errors"));
        }
    }
}

/// A frame from a host behind `testN`.
pub(crate) fn framed(n: u8, packet: &Packet) -> Vec<u8> {
    let packet = packet.clone().build();
    let is_ip = packet.first() == Some(&0x45) && packet.get(..20).is_some_and(verify);
    let ethertype = match is_ip {
        true => ethertype::IPV4,
        false if Ipv6View::parse(&packet).is_ok() => ethertype::IPV6,
        false => ethertype::MPLS,
    };
    testing::framed(our_mac(n), host_mac(n, 2), ethertype, &packet)
}

/// A packet that left: its interface and neighbour, labels with bottom and TTL, and the rest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) by: u8,
    pub(crate) to: MacAddr,
    pub(crate) labels: Vec<(u32, u8, bool, u8)>,
    pub(crate) rest: Vec<u8>,
}

pub(crate) fn left((by, frame): &(u8, Vec<u8>)) -> Left {
    let to = MacAddr(frame[..6].try_into().expect("a MAC address"));
    let (labels, rest) = match frame[12..14] {
        [0x88, 0x47] => {
            let mut stack = Stack::new(&frame[14..]);
            let entry = |e: Entry| (e.label().0, e.traffic_class(), e.is_bottom(), e.ttl());
            let labels: Vec<_> = stack.by_ref().map(entry).collect();
            assert!(stack.reached_bottom());
            (labels, stack.payload().to_vec())
        }
        _ => (Vec::new(), frame[14..].to_vec()),
    };
    Left { by: *by, to, labels, rest }
}

pub(crate) fn udp(ttl: u8) -> Packet {
    Packet::new().ipv4(ip(0, 2), FAR).ttl(ttl).udp(1024, 53).payload(&[7; 100])
}

/// A labelled UDP packet; the outermost label first.
pub(crate) fn labelled(labels: &[u32], ttl: u8) -> Packet {
    let stack = labels.iter().fold(Packet::new(), |p, label| p.mpls(*label).ttl(ttl));
    stack.ipv4(ip(0, 2), FAR).ttl(33).udp(1024, 53).payload(&[7; 100])
}

pub(crate) fn inner(ttl: u8) -> Vec<u8> {
    udp(ttl).build()
}
