//! Five-tuples and their hashes, for spreading flows over paths and queues.
//!
//! The hashes have no secret, so they are not for tables that outsiders can fill.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::ipv6::Ipv6View;
use crate::packet::PacketView;

/// The five-tuple that identifies a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FiveTuple {
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// IP protocol.
    pub protocol: u8,
    /// Source port; 0 without ports.
    pub src_port: u16,
    /// Destination port; 0 without ports.
    pub dst_port: u16,
}

impl FiveTuple {
    /// The same flow in the other direction.
    pub const fn reversed(&self) -> Self {
        let Self { src, dst, protocol, src_port, dst_port } = *self;
        Self { src: dst, dst: src, protocol, src_port: dst_port, dst_port: src_port }
    }

    /// A hash that differs between the directions of a flow.
    #[inline]
    pub fn hash32(&self) -> u32 {
        match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                hash_v4(src, dst, self.protocol, self.src_port, self.dst_port)
            }
            (src, dst) => hash_v6(v6(src), v6(dst), self.protocol, self.src_port, self.dst_port),
        }
    }

    /// A hash that is the same for both directions of a flow.
    #[inline]
    pub fn symmetric_hash32(&self) -> u32 {
        if (self.src, self.src_port) <= (self.dst, self.dst_port) {
            self.hash32()
        } else {
            self.reversed().hash32()
        }
    }
}

fn v6(addr: IpAddr) -> Ipv6Addr {
    match addr {
        IpAddr::V4(a) => a.to_ipv6_mapped(),
        IpAddr::V6(a) => a,
    }
}

/// The five-tuple of a packet that starts with its IP header; `None` if that is malformed. The
/// packet may be truncated after its headers.
///
/// Fragments have no ports, including the first, so that all of a datagram's fragments take the
/// same path. A transport header that is not whole has none either.
#[inline]
pub fn five_tuple(l3: &[u8]) -> Option<FiveTuple> {
    let Some(packet) = PacketView::read_prefix(l3) else { return beneath(l3) };
    let ports = if packet.is_fragment() { None } else { packet.fixed_ports() };
    let (src_port, dst_port) = ports.unwrap_or((0, 0));
    let (src, dst) = (packet.src(), packet.dst());
    Some(FiveTuple { src, dst, protocol: packet.protocol(), src_port, dst_port })
}

/// The addresses of a packet of IPv6 whose extension headers cannot be read.
#[cold]
fn beneath(l3: &[u8]) -> Option<FiveTuple> {
    let ip = Ipv6View::parse_prefix(l3).ok()?;
    let (src, dst) = (ip.src().into(), ip.dst().into());
    Some(FiveTuple { src, dst, protocol: ip.next_header(), src_port: 0, dst_port: 0 })
}

/// Odd factors of [`hash_v4`].
pub const FACTORS: [u32; 4] = [0x9e37_79b1, 0x85eb_ca6b, 0xc2b2_ae35, 0x27d4_eb2f];

/// [`FiveTuple::hash32`] for IPv4, without building the tuple.
///
/// In 32 bits, over words as packets have them, so that sixteen packets can be hashed at once: each
/// step is a multiplication, which carries upwards, and a shift, which brings that down again.
#[inline]
pub fn hash_v4(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8, src_port: u16, dst_port: u16) -> u32 {
    let ports = u32::from(src_port.swap_bytes()) | u32::from(dst_port.swap_bytes()) << 16;
    let word = |address: Ipv4Addr| u32::from_le_bytes(address.octets());
    let h = (word(src) ^ u32::from(protocol)).wrapping_mul(FACTORS[0]);
    let h = (h ^ h >> 15 ^ word(dst)).wrapping_mul(FACTORS[1]);
    let h = (h ^ h >> 13 ^ ports).wrapping_mul(FACTORS[2]);
    let h = (h ^ h >> 15).wrapping_mul(FACTORS[3]);
    h ^ h >> 16
}

/// [`FiveTuple::hash32`] for IPv6, without building the tuple.
#[inline]
pub fn hash_v6(src: Ipv6Addr, dst: Ipv6Addr, protocol: u8, src_port: u16, dst_port: u16) -> u32 {
    let (s, d) = (src.to_bits(), dst.to_bits());
    let mut h = mix((s >> 64) as u64, s as u64);
    h = mix(h, (d >> 64) as u64);
    h = mix(h, d as u64);
    finish(mix(h, ports_word(protocol, src_port, dst_port)))
}

#[inline]
fn ports_word(protocol: u8, src_port: u16, dst_port: u16) -> u64 {
    u64::from(protocol) << 32 | u64::from(src_port) << 16 | u64::from(dst_port)
}

/// Odd constants: the fractions of the golden ratio and of the square root of three.
const K1: u64 = 0x9e37_79b9_7f4a_7c15;
const K2: u64 = 0xbb67_ae85_84ca_a73b;

#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let x = a.wrapping_mul(K1);
    let x = (x ^ x >> 32 ^ b).wrapping_mul(K2);
    x ^ x >> 29
}

#[inline]
fn finish(h: u64) -> u32 {
    (h.wrapping_mul(K1) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Packet;
    use proptest::prelude::*;
    use std::{vec, vec::Vec};

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    #[test]
    fn ports_come_from_whole_packets_only() {
        let udp = Packet::new().ipv4(A, B).udp(1000, 53).payload(b"abc").build();
        let t = five_tuple(&udp).unwrap();
        let want =
            FiveTuple { src: A.into(), dst: B.into(), protocol: 17, src_port: 1000, dst_port: 53 };
        assert_eq!(t, want);
        for word in [0x2000u16, 0x0001] {
            let mut fragment = udp.clone();
            fragment[6..8].copy_from_slice(&word.to_be_bytes());
            let t = five_tuple(&fragment).unwrap();
            assert_eq!((t.src_port, t.dst_port, t.protocol), (0, 0, 17));
        }
        assert_eq!(five_tuple(&udp[..27]).unwrap().src_port, 0);
        assert_eq!(five_tuple(&udp[..19]), None);
        let ping = Packet::new().ipv4(A, B).icmp_echo_request(7, 1).build();
        assert_eq!(five_tuple(&ping).unwrap().src_port, 0);
    }

    #[test]
    fn ipv6_fragments_have_no_ports() {
        let (a, b) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
        let whole = Packet::new().ipv6(a, b).tcp(1, 2).build();
        assert_eq!(five_tuple(&whole).unwrap().dst_port, 2);
        let header = |word: u8| [6, 0, 0, word, 0, 0, 0, 1];
        for (word, port) in [(0, 2), (1, 0), (8, 0)] {
            let mut p = [&whole[..40], &header(word), &whole[40..]].concat();
            (p[5], p[6]) = (p[5] + 8, 44);
            let t = five_tuple(&p).unwrap();
            assert_eq!((t.protocol, t.dst_port), (6, port));
        }
    }

    /// Spreads `n` flows over 16 paths and returns the fullest one's load relative to the mean.
    fn worst(n: u32, hash: impl Fn(u32) -> u32) -> f64 {
        let mut paths = vec![0u32; 16];
        for i in 0..n {
            let h = hash(i);
            paths[(h & 15) as usize] += 1;
        }
        f64::from(paths.into_iter().max().unwrap_or(0)) / f64::from(n / 16)
    }

    #[test]
    fn similar_flows_spread_over_the_paths() {
        let by_src = |i: u32| hash_v4((0x0a00_0000 + i).into(), B, 17, 53, 53);
        let by_dst = |i: u32| hash_v4(A, (0x0a00_0000 + (i << 8)).into(), 6, 1024, 80);
        let by_port = |i: u32| hash_v4(A, B, 6, 1024 + i as u16, 80);
        let base = 0x2001_0db8_u128 << 96;
        let by_v6 = |i: u32| hash_v6((base + u128::from(i)).into(), base.into(), 6, 1, 2);
        // Both addresses grow, or address and port do.
        let by_both = |i: u32| hash_v4((0x0a00_0000 + i).into(), (0x1400_0000 + i).into(), 6, 1, 2);
        let by_pair = |i: u32| {
            hash_v4((0x0a00_0000 + i / 16).into(), (0x1400_0000 + i % 16).into(), 17, 9, 9)
        };
        let by_host = |i: u32| hash_v4((0x0a00_0000 + i % 99).into(), B, 6, 1024 + i as u16, 443);
        let by_ports = |i: u32| hash_v4(A, B, 17, 1024 + i as u16, 1024 + i as u16);
        for share in [
            worst(16_000, by_both),
            worst(16_000, by_pair),
            worst(16_000, by_host),
            worst(16_000, by_ports),
            worst(16_000, |i| by_both(i) >> 28),
            worst(16_000, |i| by_pair(i) >> 28),
            worst(16_000, |i| by_dst(i) >> 28),
            worst(16_000, by_src),
            worst(16_000, by_dst),
            worst(16_000, by_port),
            worst(16_000, by_v6),
            worst(16_000, |i| by_src(i) >> 28),
            worst(16_000, |i| by_port(i) >> 28),
        ] {
            assert!(share < 1.2, "{share}");
        }
        let mut seen: Vec<u32> = (0..16_000).map(by_src).collect();
        seen.sort_unstable();
        seen.dedup();
        assert!(seen.len() > 15_990, "{}", seen.len());
    }

    proptest! {
        #[test]
        fn the_symmetric_hash_ignores_direction(
            src: u32, dst: u32, wide: [u128; 2], protocol: u8, src_port: u16, dst_port: u16,
        ) {
            let (src, dst) = (Ipv4Addr::from(src), Ipv4Addr::from(dst));
            let v4 =
                FiveTuple { src: src.into(), dst: dst.into(), protocol, src_port, dst_port };
            let [a, b] = wide.map(|w| IpAddr::from(Ipv6Addr::from(w)));
            let v6 = FiveTuple { src: a, dst: b, ..v4 };
            // A host that sends to itself differs in ports only.
            let own = FiveTuple { dst: v4.src, ..v4 };
            for t in [v4, v6, own] {
                prop_assert_eq!(t.symmetric_hash32(), t.reversed().symmetric_hash32());
                prop_assert_eq!(t.reversed().reversed(), t);
            }
            prop_assert_eq!(v4.hash32(), hash_v4(src, dst, protocol, src_port, dst_port));
        }

        #[test]
        fn any_bytes_have_a_tuple_or_none(
            mut data in proptest::collection::vec(any::<u8>(), 0..100), version in 4u8..7,
        ) {
            if let Some(first) = data.first_mut() {
                *first = version << 4 | *first & 0xf;
            }
            let _ = five_tuple(&data).map(|t| t.symmetric_hash32());
        }
    }
}
