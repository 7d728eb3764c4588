//! The owner of a packet's flow: where several share the flows of all packets, each packet must
//! find the one that keeps its flow, whichever way it goes and whatever precedes its IP header.

use crate::bytes::{be16, be32};
use crate::ethernet::ethertype;
use crate::flow::FiveTuple;
use crate::ip::{has_ports, protocol};
use crate::mpls::Entry;
use crate::packet::{PacketView, Part};
use crate::vlan;

/// Maximum number of tags, and of labels, in front of an IP header.
pub const MAX_DEPTH: usize = 8;

/// Place of a frame's IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Its offset.
    pub at: usize,
    /// `ethertype::IPV4` or `ethertype::IPV6`.
    pub ethertype: u16,
    /// Number of MPLS labels in front of it.
    pub labels: usize,
}

/// Finds the IP header of an Ethernet frame, behind up to [`MAX_DEPTH`] VLAN tags and as many MPLS
/// labels. `None` if there is none, or more is in front of it.
#[inline]
pub fn network(frame: &[u8]) -> Option<Network> {
    let mut at = 12;
    let mut kind = be16_at(frame, at)?;
    for _ in 0..MAX_DEPTH {
        if !vlan::is_tag(kind) {
            break;
        }
        at += vlan::TAG_LEN;
        kind = be16_at(frame, at)?;
    }
    at += 2;
    match kind {
        ethertype::IPV4 | ethertype::IPV6 => {
            (at < frame.len()).then_some(Network { at, ethertype: kind, labels: 0 })
        }
        ethertype::MPLS | ethertype::MPLS_MULTICAST => labelled(frame, at),
        _ => None,
    }
}

/// Finds the IP header behind the label stack at an offset.
fn labelled(frame: &[u8], at: usize) -> Option<Network> {
    for labels in 1..=MAX_DEPTH {
        let entry = frame.get(at + 4 * (labels - 1)..)?.first_chunk::<4>()?;
        if !Entry(be32(entry, 0)).is_bottom() {
            continue;
        }
        let at = at + 4 * labels;
        // A control word (RFC 4385) begins with 0 or 1.
        let ethertype = match frame.get(at)? >> 4 {
            4 => ethertype::IPV4,
            6 => ethertype::IPV6,
            _ => return None,
        };
        return Some(Network { at, ethertype, labels });
    }
    None
}

#[inline]
fn be16_at(frame: &[u8], at: usize) -> Option<u16> {
    Some(be16(frame.get(at..)?.first_chunk::<2>()?, 0))
}

/// The flow of a packet that starts with its IP header, for [`owner_hash`]: that of the quoted
/// packet for an ICMP error, and with the identifier as both ports for an ICMP query or its answer.
/// `None` for fragments but the first, whose owner is that of the first, and for malformed
/// packets. The packet may be truncated after its headers.
#[inline]
pub fn flow(l3: &[u8]) -> Option<FiveTuple> {
    flow_of(&PacketView::read_prefix(l3)?, false)
}

fn flow_of(packet: &PacketView<'_>, quoted: bool) -> Option<FiveTuple> {
    if packet.part() == Part::Later {
        return None;
    }
    let protocol = packet.protocol();
    let (src_port, dst_port) = match protocol {
        protocol::ICMP | protocol::ICMPV6 => {
            if !quoted && packet.is_error() {
                return flow_of(&packet.quote()?, true);
            }
            packet.message()?;
            packet.identifier().map_or((0, 0), |id| (id, id))
        }
        _ if has_ports(protocol) => match quoted {
            true => packet.quoted_ports()?,
            false => packet.fixed_ports()?,
        },
        _ => (0, 0),
    };
    let (src, dst) = (packet.src(), packet.dst());
    Some(FiveTuple { src, dst, protocol, src_port, dst_port })
}

/// The hash that selects the owner of a frame's flow: the same for both directions, for ICMP errors
/// about it, and behind tags and labels. `None` if the frame has no [`flow`].
#[inline]
pub fn owner_hash(frame: &[u8]) -> Option<u32> {
    let network = network(frame)?;
    Some(flow(frame.get(network.at..)?)?.symmetric_hash32())
}

/// The owner of a frame's flow, of `owners`.
#[inline]
pub fn owner_of(frame: &[u8], owners: usize) -> Option<usize> {
    owner_hash(frame).map(|hash| share(hash, owners))
}

/// The share of `owners` that a hash belongs to.
#[inline]
pub const fn share(hash: u32, owners: usize) -> usize {
    ((hash as u64 * owners as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MacAddr;
    use crate::build::Packet;
    use crate::icmpv4::IcmpRepr;
    use crate::mpls::Label;
    use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
    use proptest::prelude::*;
    use std::vec::Vec;

    /// Headers in front of an IP header: TPIDs and labels.
    type Front = (Vec<u16>, Vec<u32>);

    fn front() -> impl Strategy<Value = Front> {
        let tpid = prop_oneof![Just(0x8100u16), Just(0x88a8), Just(0x9100)];
        (prop::collection::vec(tpid, 0..11), prop::collection::vec(0u32..1 << 20, 0..11))
    }

    fn packet() -> impl Strategy<Value = Packet> {
        let ends = (any::<[u32; 2]>(), any::<[u128; 2]>(), any::<[u16; 2]>());
        (ends, 0u8..6, any::<bool>()).prop_map(|((v4, v6, ports), kind, is_v6)| {
            let p = match is_v6 {
                true => Packet::new().ipv6(v6[0].into(), v6[1].into()),
                false => Packet::new().ipv4(v4[0].into(), v4[1].into()),
            };
            match kind {
                0 | 1 => p.udp(ports[0], ports[1]).payload(&[1; 9]),
                2 | 3 => p.tcp(ports[0], ports[1]).payload(&[2; 9]),
                4 if is_v6 => p.icmp6_echo_request(ports[0], 1),
                4 => p.icmp_echo_request(ports[0], 1),
                _ => p.protocol(50).payload(&[3; 20]),
            }
        })
    }

    fn framed((tags, labels): &Front, l3: &[u8]) -> Vec<u8> {
        let mut frame = [[2u8; 6], [4; 6]].concat();
        for tpid in tags {
            frame.extend(tpid.to_be_bytes());
            frame.extend([0, 7]);
        }
        let kind: u16 = if l3[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
        frame.extend(if labels.is_empty() { kind } else { 0x8847 }.to_be_bytes());
        for (i, label) in labels.iter().enumerate() {
            let entry = Entry::new(Label(*label), 0, i + 1 == labels.len(), 64);
            frame.extend(entry.0.to_be_bytes());
        }
        frame.extend(l3);
        frame
    }

    /// The same, read naively: cut off what is in front, one piece after the other.
    fn naive(frame: &[u8]) -> Option<(usize, usize)> {
        let mut rest = frame.get(12..)?;
        let mut tags = 0;
        while rest.len() >= 2 && [[0x81, 0], [0x88, 0xa8], [0x91, 0]].contains(&[rest[0], rest[1]])
        {
            rest = rest.get(4..)?;
            tags += 1;
        }
        let kind = rest.get(..2)?;
        rest = &rest[2..];
        let mut labels = 0;
        if kind == [0x88, 0x47] || kind == [0x88, 0x48] {
            loop {
                let bottom = rest.get(..4)?[2] & 1 == 1;
                rest = &rest[4..];
                labels += 1;
                if bottom {
                    break;
                }
            }
            [4, 6].contains(&(rest.first()? >> 4)).then_some(())?;
        } else if kind != [8, 0] && kind != [0x86, 0xdd] {
            return None;
        }
        let is_shallow = tags <= MAX_DEPTH && labels <= MAX_DEPTH;
        (is_shallow && !rest.is_empty()).then_some((frame.len() - rest.len(), labels))
    }

    proptest! {
        /// The header is found, or given up, where a naive reader finds it.
        #[test]
        fn headers_are_found_behind_tags_and_labels(
            front in front(), packet in packet(), cut in 0usize..80, noise in any::<[u8; 3]>(),
        ) {
            let mut frame = framed(&front, &packet.build());
            let found = network(&frame);
            prop_assert_eq!(found.map(|n| (n.at, n.labels)), naive(&frame));
            let fits = front.0.len() <= MAX_DEPTH && front.1.len() <= MAX_DEPTH;
            prop_assert_eq!(found.is_some(), fits);
            if let Some(n) = found {
                prop_assert_eq!(n.ethertype == ethertype::IPV4, packet.build()[0] >> 4 == 4);
            }
            frame.truncate(cut);
            prop_assert_eq!(network(&frame).map(|n| (n.at, n.labels)), naive(&frame));
            let [at, to, more] = noise;
            if let Some(byte) = frame.get_mut(usize::from(at) % 60) {
                *byte = to;
            }
            frame.resize(cut + usize::from(more % 9), more);
            prop_assert_eq!(network(&frame).map(|n| (n.at, n.labels)), naive(&frame));
            let _ = owner_hash(&frame);
        }

        /// A flow has one owner: both directions, behind anything, whole or truncated.
        #[test]
        fn a_flow_has_one_owner(a in front(), b in front(), packet in packet(), owners in 1usize..64) {
            let l3 = packet.build();
            let t = flow(&l3).unwrap();
            prop_assert_eq!(t.symmetric_hash32(), t.reversed().symmetric_hash32());
            let owner = share(t.symmetric_hash32(), owners);
            prop_assert!(owner < owners);
            for (tags, labels) in [a, b] {
                let front = (tags.into_iter().take(8).collect(), labels.into_iter().take(8).collect());
                prop_assert_eq!(owner_of(&framed(&front, &l3), owners), Some(owner));
                let headers = if l3[0] >> 4 == 4 { 40 } else { 60 }.min(l3.len());
                prop_assert_eq!(owner_of(&framed(&front, &l3[..headers]), owners), Some(owner));
            }
            // An error about it, sent by a router on the way.
            if l3[0] >> 4 == 4 {
                let from = Ipv4Addr::new(192, 0, 2, 1);
                let IpAddr::V4(src) = t.src else { panic!("a packet of IPv4") };
                let error = Packet::new().ipv4(from, src).icmp(IcmpRepr::ttl_exceeded()).payload(&l3);
                prop_assert_eq!(owner_of(&framed(&Default::default(), &error.build()), owners), Some(owner));
            }
        }

        #[test]
        fn any_bytes_have_an_owner_or_none(frame in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = (owner_of(&frame, 3), flow(&frame));
        }
    }

    #[test]
    fn a_frame_that_ends_before_its_ip_header_has_none() {
        for kind in [[0x86, 0xdd], [8, 0]] {
            let frame = [&[2; 12][..], &kind].concat();
            assert_eq!(network(&frame), None);
        }
    }

    #[test]
    fn answers_and_first_fragments_have_the_owner_of_their_flow() {
        let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let ask = Packet::new().ipv4(a, b).icmp_echo_request(7, 1).build();
        let answer = Packet::new().ipv4(b, a).icmp_echo_reply(7, 9).build();
        let hash = |l3: &[u8]| flow(l3).map(|t| t.symmetric_hash32());
        assert_eq!(hash(&ask), hash(&answer));
        assert_ne!(hash(&ask), hash(&Packet::new().ipv4(a, b).icmp_echo_request(8, 1).build()));
        let whole = Packet::new().ipv4(a, b).udp(1, 2).payload(&[0; 16]);
        assert_eq!(hash(&whole.build()), hash(&whole.clone().fragment(0, true).build()));
        assert_eq!(hash(&whole.clone().fragment(16, false).build()), None);
        // An error about an error is about no flow.
        let error =
            |l3: &[u8]| Packet::new().ipv4(b, a).icmp(IcmpRepr::ttl_exceeded()).payload(l3).build();
        assert_eq!(flow(&error(&error(&ask))).map(|t| t.protocol), Some(1));
        let (x, y): (Ipv6Addr, Ipv6Addr) =
            ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
        let v6 = Packet::new().ipv6(x, y).icmp6_echo_request(7, 1).build();
        assert_eq!(flow(&v6).map(|t| t.src_port), Some(7));
        let frame = Packet::arp_request(MacAddr([2; 6]), a, b).build();
        assert_eq!(owner_of(&frame, 4), None);
    }
}
