//! A router between test interfaces, and what is passed through it.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::{Deref, DerefMut};
use thalweg_device::SwIfIndex;
use thalweg_device::testing;
use thalweg_engine::Feature;
use thalweg_feat_neighbor as neighbor;
use thalweg_wire::MacAddr;
use thalweg_wire::build::Packet;
use thalweg_wire::checksum::verify;
use thalweg_wire::ipv6::Ipv6View;
use thalweg_wire::mpls::{Entry, Stack};

pub(crate) struct Lab(pub(crate) testing::Lab);

impl Deref for Lab {
    type Target = testing::Lab;
    fn deref(&self) -> &testing::Lab {
        &self.0
    }
}

impl DerefMut for Lab {
    fn deref_mut(&mut self) -> &mut testing::Lab {
        &mut self.0
    }
}

pub(crate) fn ip(n: u8, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, n, host)
}

pub(crate) fn ip6(n: u8, host: u8) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, n.into(), 0, 0, 0, host.into())
}

pub(crate) fn host_mac(n: u8, host: u8) -> MacAddr {
    MacAddr::new(2, 0, 0, 0x99, n, host)
}

/// 16.0.0.1 is far away.
pub(crate) const FAR: Ipv4Addr = Ipv4Addr::new(16, 0, 0, 1);

impl Lab {
    /// `test0` to `test2` with 10.0.n.1/24, static neighbours 10.0.n.2 and .3, MPLS on all.
    pub(crate) fn new() -> Lab {
        Lab::of(1)
    }

    /// As [`new`](Self::new), with this number of workers.
    pub(crate) fn of(workers: usize) -> Lab {
        let features: [&Feature; 12] = [
            &thalweg_device::FEATURE,
            &thalweg_fib::FEATURE,
            &thalweg_feat_ethernet::FEATURE,
            &neighbor::FEATURE,
            &thalweg_feat_arp::FEATURE,
            &thalweg_feat_nd::FEATURE,
            &thalweg_feat_ip::FEATURE,
            &thalweg_feat_ip4::FEATURE,
            &thalweg_feat_ip6::FEATURE,
            &thalweg_feat_mpls::FEATURE,
            &thalweg_feat_l2::FEATURE,
            &crate::punts::TAKER,
        ];
        let mut lab = Lab(testing::Lab::new(&features, workers, 2048, 3));
        lab.ok("mpls table add 0");
        for n in 0..3 {
            lab.ok(&format!("set interface ip address test{n} 10.0.{n}.1/24"));
            lab.ok(&format!("set interface mpls test{n} enable"));
            for host in 2..=3 {
                lab.know(n, host);
            }
        }
        lab
    }

    /// As [`new`](Self::new), with 2001:db8:0:n::1/64 and static neighbours ::2 and ::3 as well.
    pub(crate) fn with_ip6() -> Lab {
        let mut lab = Lab::new();
        neighbor::set_throttle(&lab.c, std::time::Duration::from_secs(3600));
        for n in 0..3 {
            lab.ok(&format!("set interface ip address test{n} {}/64", ip6(n, 1)));
            for host in 2..=3 {
                let flags = neighbor::NeighborFlags { is_static: true, ..Default::default() };
                let (sw_if, mac) = (lab.sw_if(n), host_mac(n, host));
                neighbor::set(&mut lab.c, sw_if, ip6(n, host).into(), mac, flags)
                    .expect("neighbour");
            }
        }
        lab
    }

    pub(crate) fn know(&mut self, n: u8, host: u8) {
        let flags = neighbor::NeighborFlags { is_static: true, ..Default::default() };
        let sw_if = self.sw_if(n);
        neighbor::set(&mut self.c, sw_if, ip(n, host).into(), host_mac(n, host), flags)
            .expect("neighbour");
    }

    /// Receives a packet behind `testN` `count` times; returns what was sent.
    pub(crate) fn pass(&mut self, n: u8, packet: &Packet, count: usize) -> Vec<(u8, Vec<u8>)> {
        self.receive(n, vec![framed(n, packet); count]);
        let sent = self.sent();
        let number = |i: SwIfIndex| {
            let name = self.c.interface_name(i);
            name.strip_prefix("test").and_then(|n| n.parse().ok()).expect("an interface")
        };
        sent.into_iter().map(|(i, frame)| (number(i), frame)).collect()
    }

    /// As [`pass`](Self::pass), singly and in a full frame, all of which must leave alike: returns
    /// the interface, the neighbour, labels with bottom and TTL, and the rest.
    pub(crate) fn one(&mut self, n: u8, packet: &Packet) -> Left {
        let alone = self.pass(n, packet, 1);
        assert_eq!(alone.len(), 1, "{}", self.cli("show errors"));
        let many = self.pass(n, packet, 40);
        assert_eq!(many.len(), 40, "{}", self.cli("show errors"));
        assert!(many.iter().all(|sent| *sent == alone[0]), "kernels agree");
        left(&alone[0])
    }

    /// The packet goes nowhere, and this says why.
    pub(crate) fn lost(&mut self, n: u8, packet: &Packet, node: &str, why: &str) {
        for count in [1, 20] {
            let before = self.count(node, why);
            assert_eq!(self.pass(n, packet, count), []);
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
        true => [8, 0],
        false if Ipv6View::parse(&packet).is_ok() => [0x86, 0xdd],
        false => [0x88, 0x47],
    };
    [&testing::our_mac(n)[..], &host_mac(n, 2).0, &ethertype, &packet].concat()
}

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
