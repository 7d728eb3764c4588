//! Random frames: sound ones to the addresses of a run, and some that are damaged.

use super::values;
use fastrand::Rng;
use std::net::{Ipv4Addr, Ipv6Addr};
use thalweg_wire::MacAddr;
use thalweg_wire::arp::ArpRepr;
use thalweg_wire::build::Packet;
use thalweg_wire::icmpv4::IcmpRepr;
use thalweg_wire::icmpv6::Icmp6Repr;
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
    let packet = match rng.u8(..16) {
        0 => {
            let request = ArpRepr::request(from, host4(rng, port), values::ip4(rng));
            Packet::new().ether(from, to).arp(request).padded()
        }
        // An answer to a question that the router may have asked, or not.
        10 => {
            let asked =
                ArpRepr::request(values::mac_of_port(port), values::ip4(rng), host4(rng, port));
            Packet::arp_reply(from, &asked).padded()
        }
        11 => neighbor_discovery(rng, packet, from, port),
        12 => error4(rng, packet, port),
        13 => error6(rng, packet, port),
        14 => behind_extension(rng, packet, port),
        15 => pseudowire(rng, packet, from, port),
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

/// A solicitation, an advertisement of a neighbour or one of a router.
fn neighbor_discovery(rng: &mut Rng, packet: Packet, from: MacAddr, port: u8) -> Packet {
    let (src, target) = (host6(rng, port), values::ip6(rng));
    let all_nodes = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    let dst = [values::ip6(rng), all_nodes][rng.usize(..2)];
    let (kind, rest) =
        [(135, 0), (136, 0x6000_0000), (136, 0xa000_0000), (134, 0x4000_0708)][rng.usize(..4)];
    let mut body = Vec::new();
    match kind {
        // Reachable time, retransmission timer, and a prefix (RFC 4861 section 4.6.2).
        134 => {
            body.extend([0; 8]);
            body.extend([3, 4, 64, 0xc0, 0, 0, 14, 16, 0, 0, 7, 8, 0, 0, 0, 0]);
            body.extend(target.octets());
        }
        _ => body.extend(target.octets()),
    }
    body.extend([if kind == 136 { 2 } else { 1 }, 1]);
    body.extend(from.0);
    let hops = if rng.u8(..8) == 0 { 64 } else { 255 };
    let message = packet.ipv6(src, dst).ttl(hops).icmp6(Icmp6Repr { kind, code: 0, rest });
    message.payload(&body)
}

/// A packet that a host may have got, for an error to quote.
fn quoted(rng: &mut Rng, six: bool, port: u8) -> Vec<u8> {
    let packet = match six {
        true => Packet::new().ipv6(values::ip6(rng), host6(rng, port)),
        false => Packet::new().ipv4(values::ip4(rng), host4(rng, port)),
    };
    let mut bytes = transport(rng, packet, six).build();
    bytes.truncate([8, 28, 68, 576][rng.usize(..4)]);
    bytes
}

fn error4(rng: &mut Rng, packet: Packet, port: u8) -> Packet {
    let error = match rng.u8(..4) {
        0 => IcmpRepr::ttl_exceeded(),
        1 => IcmpRepr::unreachable([0, 1, 3, 13][rng.usize(..4)]),
        _ => IcmpRepr::fragmentation_needed([0, 68, 576, 1400, 9000][rng.usize(..5)]),
    };
    let about = quoted(rng, false, port);
    packet.ipv4(host4(rng, port), values::ip4(rng)).icmp(error).payload(&about)
}

fn error6(rng: &mut Rng, packet: Packet, port: u8) -> Packet {
    let rest = [0, 1280, 1400, 9000][rng.usize(..4)];
    let error = Icmp6Repr { kind: rng.u8(1..5), code: rng.u8(..5), rest };
    let about = quoted(rng, true, port);
    packet.ipv6(host6(rng, port), values::ip6(rng)).icmp6(error).payload(&about)
}

/// A fragment of IPv6, or a packet behind options or a routing header.
fn behind_extension(rng: &mut Rng, packet: Packet, port: u8) -> Packet {
    let (src, dst) = (host6(rng, port), values::ip6(rng));
    let whole = transport(rng, Packet::new().ipv6(src, dst), true).build();
    let (protocol, payload) = (whole[6], whole.get(40..).unwrap_or_default());
    let offset = [0_u16, 8, 184, 8120][rng.usize(..4)] | u16::from(rng.bool());
    let [high, low] = offset.to_be_bytes();
    let (kind, header) = match rng.u8(..4) {
        0 => (0, [protocol, 0, 1, 4, 0, 0, 0, 0]),
        1 => (43, [protocol, 0, 0, rng.u8(..2), 0, 0, 0, 0]),
        // Few ids, so that fragments of one datagram meet.
        _ => (44, [protocol, 0, high, low, 0, 0, 0, 7]),
    };
    packet.ipv6(src, dst).protocol(kind).payload(&[&header[..], payload].concat())
}

/// A frame behind a label, with a control word or without (RFC 4448).
fn pseudowire(rng: &mut Rng, packet: Packet, from: MacAddr, port: u8) -> Packet {
    let inner = Packet::new().ether(from, values::mac_of_port(rng.u8(..3)));
    let inner = inner.ipv4(host4(rng, port), values::ip4(rng));
    let inner = transport(rng, inner, false).build();
    let word: &[u8] = if rng.bool() { &[0; 4] } else { &[] };
    let label = values::LABELS[rng.usize(..values::LABELS.len())];
    packet.mpls(label).ttl(64).payload(&[word, &inner[..]].concat())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Each kind of packet is among those of some seeds.
    #[test]
    fn all_kinds_come() {
        let mut rng = Rng::with_seed(7);
        let all: Vec<Vec<u8>> = (0..4000).map(|n| frame(&mut rng, n as u8 % 3)).collect();
        let some = |is: &dyn Fn(&[u8]) -> bool| all.iter().filter(|f| is(f)).count();
        let at = |f: &[u8], at: usize| f.get(at).copied().unwrap_or_default();
        let (v4, v6) = ([8, 0], [0x86, 0xdd]);
        let is = |f: &[u8], ethertype: [u8; 2]| f.get(12..14) == Some(&ethertype[..]);
        for (what, n) in [
            ("ARP replies", some(&|f| is(f, [8, 6]) && at(f, 21) == 2)),
            ("ICMP errors", some(&|f| is(f, v4) && at(f, 23) == 1 && at(f, 34) == 3)),
            ("ICMPv6 errors", some(&|f| is(f, v6) && at(f, 20) == 58 && at(f, 54) == 2)),
            ("advertisements", some(&|f| is(f, v6) && at(f, 20) == 58 && at(f, 54) == 136)),
            ("routers", some(&|f| is(f, v6) && at(f, 20) == 58 && at(f, 54) == 134)),
            ("fragments of IPv6", some(&|f| is(f, v6) && at(f, 20) == 44)),
            ("options", some(&|f| is(f, v6) && at(f, 20) == 0)),
            ("routing headers", some(&|f| is(f, v6) && at(f, 20) == 43)),
            ("labels", some(&|f| is(f, [0x88, 0x47]))),
        ] {
            assert!(n > 5, "{what}: {n}");
        }
    }
}
