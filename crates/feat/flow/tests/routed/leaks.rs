//! Nothing inside leaves by a translating interface as it is, whatever it is, and two workers do
//! what one does.

use crate::setup;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::net::{IpAddr, Ipv4Addr};
use thalweg_buffer::{GsoKind, Offload};
use thalweg_device::SwIfIndex;
use thalweg_device::testing::Lab;
use thalweg_device::testing::ip4::{framed, ip};
use thalweg_wire::build::{self, Packet};
use thalweg_wire::icmpv4::IcmpRepr;
use thalweg_wire::ip::protocol::{DCCP, ESP, GRE, ICMP, SCTP, TCP, UDP, UDP_LITE};
use thalweg_wire::ipv4::{Ipv4View, flag};
use thalweg_wire::packet::PacketView;

const SHARED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Packets sent to each lab.
const PACKETS: usize = 250;

/// The ways to translate what goes from `test0` to `test1`.
const TRANSLATORS: [&str; 4] = [
    "nat44 plugin enable sessions 10000
     nat44 add address 192.0.2.1
     set interface nat44 in test0 out test1",
    // Setup with a copy of each packet, which the rule sends to where nothing is translated.
    "nat44 plugin enable sessions 10000
     nat44 add address 192.0.2.1
     set interface nat44 out test1 output-feature
     flow add 7 priority=1,actions=normal,output:test2
     set interface flow test0 7",
    "flow add 7 table=0,priority=2,ip,actions=ct(table=1,nat)
     flow add 7 table=0,priority=1,actions=normal
     flow add 7 table=1,ip,ct_state=+new,in_port=test0,actions=ct(commit,nat(src=192.0.2.1)),normal
     flow add 7 table=1,ip,ct_state=+est,actions=normal
     flow add 7 table=1,ip,ct_state=+rel,actions=normal
     set interface flow test0 7
     set interface flow test1 7",
    // Rules that do not look at the state, and copy.
    "flow add 7 table=0,priority=1,actions=normal
     flow add 7 priority=2,ip,in_port=test0,actions=ct(commit,nat(src=192.0.2.1)),normal,output:test2
     flow add 7 priority=2,ip,in_port=test1,actions=ct(nat),normal
     set interface flow test0 7
     set interface flow test1 7",
];

#[derive(Clone, Debug)]
struct Sent {
    host: u8,
    far: u8,
    number: u8,
    ports: (u16, u16),
    size: usize,
    shape: Shape,
    ttl: u8,
    dont_fragment: bool,
    options: bool,
    worker: usize,
}

#[derive(Clone, Debug)]
enum Shape {
    Plain,
    /// Fragments of about this number of bytes, the last one first if set.
    Parts(usize, bool),
    /// Ends within its transport header.
    Short(usize),
    /// TCP to be segmented, or with a checksum to be completed.
    Offload(u16),
    /// An ICMP error, of this type, about a packet from `far`; if set, to another host.
    Error(u8, bool),
    /// Bytes without a meaning behind the IPv4 header.
    Noise,
}

fn sent() -> impl Strategy<Value = Sent> {
    let known = prop::sample::select(&[TCP, UDP, ICMP, UDP_LITE, DCCP, SCTP, GRE, ESP][..]);
    let number = prop_oneof![12 => known, 1 => any::<u8>()];
    let shape = prop_oneof![
        6 => Just(Shape::Plain),
        3 => (8usize..1500, any::<bool>()).prop_map(|(size, back)| Shape::Parts(size, back)),
        1 => (0usize..20).prop_map(Shape::Short),
        2 => prop_oneof![Just(0u16), 500u16..1460].prop_map(Shape::Offload),
        2 => (prop_oneof![4 => Just(3u8), 1 => Just(11), 1 => Just(5)], prop::bool::weighted(0.2))
            .prop_map(|(kind, astray)| Shape::Error(kind, astray)),
        1 => Just(Shape::Noise),
    ];
    let ends = (2u8..5, 2u8..40, number, (1u16..4, 1u16..4));
    let size = prop_oneof![3 => 0usize..100, 1 => 0usize..3500];
    let ttl = prop_oneof![8 => Just(64u8), 1 => 0u8..4];
    (ends, size, shape, ttl, any::<[bool; 2]>(), 0usize..2).prop_map(
        |((host, far, number, ports), size, shape, ttl, [dont_fragment, options], worker)| {
            let options = options && size % 3 == 0;
            Sent { host, far, number, ports, size, shape, ttl, dont_fragment, options, worker }
        },
    )
}

impl Sent {
    fn near(&self) -> Ipv4Addr {
        ip(0, self.host)
    }

    fn far(&self) -> Ipv4Addr {
        Ipv4Addr::new(198, 51, 100, self.far)
    }

    fn packet(&self, from: Ipv4Addr, to: Ipv4Addr) -> Packet {
        let packet = Packet::new().ipv4(from, to).ttl(self.ttl).id(self.size as u16);
        let packet = if self.dont_fragment { packet.dont_fragment() } else { packet };
        if self.options { packet.ip_options(&[1, 1, 1, 1]) } else { packet }
    }

    /// The whole datagram.
    fn datagram(&self) -> Vec<u8> {
        let (from, to) = (self.near(), self.far());
        let (sport, dport) = (5000 + self.ports.0, 80 + self.ports.1);
        let packet = self.packet(from, to);
        let data = vec![7; self.size];
        match (&self.shape, self.number) {
            (Shape::Error(kind, astray), _) => {
                let repr = IcmpRepr { kind: *kind, ..IcmpRepr::unreachable(3) };
                let other = Ipv4Addr::new(198, 51, 100, 77);
                let quote = Packet::new().ipv4(if *astray { other } else { to }, from);
                let quote = quote.udp(dport, sport).payload(&data[..data.len().min(400)]);
                packet.icmp(repr).payload(&quote.build()).build()
            }
            (Shape::Noise, number) => packet.protocol(number).payload(&data).build(),
            (Shape::Offload(_), _) | (_, TCP) => {
                packet.tcp(sport, dport).flags(2).payload(&data).build()
            }
            (_, ICMP) => packet.icmp_echo_request(sport, dport).payload(&data).build(),
            (_, number) => {
                let l4 = build::segment(number, (from, sport), (to, dport), &data, 3);
                packet.protocol(number).payload(&l4).build()
            }
        }
    }

    /// Returns the arriving packets, and the work left to the device.
    fn arrives(&self) -> (Vec<Vec<u8>>, Option<Offload>) {
        let mut whole = self.datagram();
        match self.shape {
            Shape::Parts(size, back) => {
                let mut parts = cut(&whole, size);
                if back {
                    parts.reverse();
                }
                (parts, None)
            }
            Shape::Short(length) => {
                let header = usize::from(whole[0] & 15) * 4;
                whole.truncate(header + length);
                resum(&mut whole);
                (vec![whole], None)
            }
            Shape::Offload(gso_size) => {
                let start = (usize::from(whole[0] & 15) * 4) as u16;
                let gso = if gso_size > 0 { GsoKind::Tcp4 } else { GsoKind::None };
                let (hdr_len, csum_start) = (start + 20, start);
                let offload =
                    Offload { gso_size, hdr_len, csum_start, csum_offset: 16, gso, ..left() };
                (vec![whole], Some(offload))
            }
            _ => (vec![whole], None),
        }
    }
}

fn left() -> Offload {
    Offload { needs_csum: true, ..Offload::default() }
}

/// Makes length and checksum of an IPv4 header right.
fn resum(l3: &mut [u8]) {
    let length = (l3.len() as u16).to_be_bytes();
    l3[2..4].copy_from_slice(&length);
    l3[10..12].fill(0);
    let header = usize::from(l3[0] & 15) * 4;
    let sum = thalweg_wire::checksum::checksum(&l3[..header]);
    l3[10..12].copy_from_slice(&sum.to_be_bytes());
}

fn cut(whole: &[u8], size: usize) -> Vec<Vec<u8>> {
    let (head, rest) = whole.split_at(usize::from(whole[0] & 15) * 4);
    let size = (size / 8).max(1) * 8;
    // The pieces must be few.
    let size = size.max(rest.len().div_ceil(64) * 8);
    let count = rest.len().div_ceil(size).max(1);
    let part = |n: usize| {
        let data = &rest[n * size..rest.len().min((n + 1) * size)];
        let mut part = [head, data].concat();
        let more = if n + 1 < count { flag::MORE_FRAGMENTS } else { 0 };
        part[6..8].copy_from_slice(&(more | (n * size / 8) as u16).to_be_bytes());
        resum(&mut part);
        part
    };
    (0..count).map(part).collect()
}

fn is_inside(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(a) if a.octets()[..3] == [10, 0, 0])
}

/// True if a packet shows an inside address, in its header or in one that it quotes.
fn shows_inside(l3: &[u8]) -> bool {
    let Some(packet) = PacketView::read_prefix(l3) else { return true };
    let quote = packet.quote();
    let shows = |p: &PacketView<'_>| is_inside(p.src()) || is_inside(p.dst());
    shows(&packet) || quote.as_ref().is_some_and(shows)
}

fn samples(seed: u8) -> Vec<Sent> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = sent();
    (0..PACKETS).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

fn lab(translator: &str, workers: usize) -> Lab {
    let mut lab = setup().workers(workers).buffers(8192).start();
    lab.ok("ip route add 198.51.100.0/24 via 10.0.1.2 test1");
    translator.lines().for_each(|line| lab.ok(line.trim()));
    lab.c.sync();
    lab
}

/// Packets that leave for one by each interface, without the translator's choices: interface,
/// protocol, length in bytes.
type Left = Vec<(SwIfIndex, u8, usize)>;

/// Sends packets to a lab. Returns what has left for each.
fn pass(lab: &mut Lab, all: &[Sent], mirrors: bool) -> Vec<Left> {
    let workers = lab.c.workers();
    let each = |sent: &Sent| {
        let (packets, offload) = sent.arrives();
        let host = sent.host;
        let frames: Vec<Vec<u8>> = packets.iter().map(|p| framed(0, host, p)).collect();
        match offload {
            Some(offload) => lab.receive_offload(0, frames[0].clone(), offload),
            None => {
                lab.deliver_to(sent.worker % workers, 0, frames);
                lab.settle();
            }
        }
        let mut left = Left::new();
        for (sw_if, frame) in lab.sent() {
            let l3 = &frame[14..];
            let out = sw_if == lab.sw_if(1) || (mirrors && sw_if == lab.sw_if(2));
            assert!(!out || !shows_inside(l3), "{sent:?}\n{l3:02x?}");
            if sw_if == lab.sw_if(1) {
                let view = Ipv4View::parse_prefix(l3).expect("a header");
                assert!(view.checksum_ok());
                assert_eq!(view.src(), SHARED, "{sent:?}");
            }
            left.push((sw_if, l3[9], l3.len()));
        }
        left.sort_unstable();
        left
    };
    all.iter().map(each).collect()
}

#[test]
fn nothing_leaves_as_it_is() {
    for (n, translator) in TRANSLATORS.iter().enumerate() {
        let all = samples(n as u8 + 1);
        let [one, two] = [1, 2].map(|workers| {
            let mut lab = lab(translator, workers);
            let left = pass(&mut lab, &all, n == 3);
            // Most of it is translated.
            let out = left.iter().filter(|left| left.iter().any(|l| l.0 == lab.sw_if(1))).count();
            assert!(out > PACKETS / 3, "{out} of {PACKETS}: {}", lab.cli("show errors"));
            lab.close();
            left
        });
        for ((sent, one), two) in all.iter().zip(&one).zip(&two) {
            assert_eq!(one, two, "translator {n}: {sent:?}");
        }
    }
}
