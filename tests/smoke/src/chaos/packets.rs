//! Random frames: sound ones to the addresses of a run, and some that are damaged.

use super::values;
use fastrand::Rng;
use std::net::{Ipv4Addr, Ipv6Addr};
use thalweg_wire::MacAddr;
use thalweg_wire::arp::ArpRepr;
use thalweg_wire::build::Packet;
use thalweg_wire::pcap::File;

/// Frames of a stream.
const FRAMES: usize = 24;
/// Frames that are damaged, in percent.
const DAMAGED: u8 = 15;
/// Longest frame in bytes.
const LONGEST: usize = 2000;

/// A capture file of frames that come in by port `port`.
pub(super) fn capture(rng: &mut Rng, port: u8) -> Vec<u8> {
    let mut file = File::new(1, 65_535);
    for at in 0..FRAMES {
        let bytes = frame(rng, port);
        file.packet(at as u64, bytes.len() as u32, [&bytes[..]]);
    }
    file.bytes().to_vec()
}

fn frame(rng: &mut Rng, port: u8) -> Vec<u8> {
    let from = MacAddr([2, 0, 0, 0, port, rng.u8(2..6)]);
    let to = match rng.u8(..10) {
        0 => MacAddr::BROADCAST,
        1 => MacAddr([1, 0, 0x5e, 0, 0, rng.u8(1..20)]),
        2 => MacAddr([0x33, 0x33, 0, 0, 0, rng.u8(1..3)]),
        3 => MacAddr([2, 0, 0, 0, rng.u8(..3), rng.u8(2..6)]),
        _ => values::mac_of_port(port),
    };
    let mut packet = Packet::new().ether(from, to);
    for _ in 0..[0, 0, 0, 0, 1, 1, 2, 3][rng.usize(..8)] {
        let id = values::VLANS[rng.usize(..values::VLANS.len())];
        packet = if rng.u8(..4) == 0 { packet.dot1ad(id) } else { packet.vlan(id) };
    }
    if rng.u8(..6) == 0 {
        for _ in 0..rng.u8(1..4) {
            packet = packet.mpls(values::LABELS[rng.usize(..values::LABELS.len())]);
            packet = packet.ttl([1, 2, 64][rng.usize(..3)]);
        }
    }
    let packet = match rng.u8(..10) {
        0 => {
            let request = ArpRepr::request(from, host4(rng, port), values::ip4(rng));
            Packet::new().ether(from, to).arp(request).padded()
        }
        1..3 => {
            let (src, dst) = (host6(rng, port), values::ip6(rng));
            transport(rng, packet.ipv6(src, dst), true)
        }
        _ => {
            let (src, dst) = (host4(rng, port), values::ip4(rng));
            transport(rng, packet.ipv4(src, dst), false)
        }
    };
    damaged(rng, packet.build())
}

/// A source: mostly a host of the port's subnet.
fn host4(rng: &mut Rng, port: u8) -> Ipv4Addr {
    match rng.u8(..5) {
        0 => values::ip4(rng),
        _ => Ipv4Addr::new(10, 0, port, rng.u8(2..5)),
    }
}

fn host6(rng: &mut Rng, port: u8) -> Ipv6Addr {
    match rng.u8(..5) {
        0 => values::ip6(rng),
        _ => Ipv6Addr::new(0x2001, 0xdb8, 0, u16::from(port), 0, 0, 0, rng.u16(2..6)),
    }
}

fn transport(rng: &mut Rng, packet: Packet, six: bool) -> Packet {
    let packet = match rng.u8(..6) {
        0 => packet.ttl(1),
        1 if !six => packet.dont_fragment(),
        _ => packet,
    };
    // Few ids, so that fragments of one datagram meet.
    let packet = match rng.u8(..8) {
        0 if !six => packet.id(7).fragment([0, 8, 185, 8123][rng.usize(..4)], rng.bool()),
        _ => packet,
    };
    let packet = match rng.u8(..6) {
        0 if six => packet.icmp6_echo_request(rng.u16(..4), 1),
        0 => packet.icmp_echo_request(rng.u16(..4), 1),
        1..3 => {
            let flags = [2, 0x12, 0x10, 0x11, 4][rng.usize(..5)];
            packet.tcp(values::port(rng), values::port(rng)).flags(flags)
        }
        3 => packet.protocol(rng.u8(..)),
        _ => packet.udp(values::port(rng), values::port(rng)),
    };
    packet.payload_len([0, 18, 200, 600, 1472][rng.usize(..5)])
}

/// The same bytes, sometimes with a few changed or missing.
fn damaged(rng: &mut Rng, mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(LONGEST);
    if rng.u8(..100) < DAMAGED && !bytes.is_empty() {
        for _ in 0..rng.u8(1..4) {
            let at = rng.usize(..bytes.len().min(80));
            bytes[at] = rng.u8(..);
        }
        if rng.u8(..3) == 0 {
            bytes.truncate(rng.usize(14.min(bytes.len())..=bytes.len()));
        }
    }
    bytes
}
