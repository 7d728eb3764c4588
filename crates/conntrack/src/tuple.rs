//! Keys and tuples of connections.
//!
//! Both directions of a connection have the same key: the lower endpoint comes first, and a flag
//! says which of the two sent the packet. In keys of ICMP queries the requester comes first,
//! whatever its address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thalweg_wire::flow::FiveTuple;
use thalweg_wire::ip::protocol::{ICMP, ICMPV6};

use crate::{IPV4, IPV6};

/// The key of a connection.
pub type Key<const W: usize> = [u64; W];

/// Addresses and ports of packets in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tuple {
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// IP protocol.
    pub protocol: u8,
    /// Source port; the identifier of ICMP queries and replies.
    pub sport: u16,
    /// Destination port; the type of ICMP queries and replies.
    pub dport: u16,
}

/// The query type of an ICMP query or reply, and whether it is the query itself.
#[inline]
pub(crate) fn icmp_query(protocol: u8, kind: u8) -> Option<(u8, bool)> {
    match (protocol, kind) {
        (ICMP, 8 | 13 | 15) => Some((kind, true)),
        (ICMP, 0) => Some((8, false)),
        (ICMP, 14 | 16) => Some((kind - 1, false)),
        (ICMPV6, 128) => Some((128, true)),
        (ICMPV6, 129) => Some((128, false)),
        _ => None,
    }
}

/// The reply type of a query type.
pub(crate) fn icmp_answer(query: u16) -> u16 {
    match query {
        8 => 0,
        other => other + 1,
    }
}

/// Returns whether connections of a protocol are ICMP queries.
#[inline]
pub(crate) fn is_icmp(protocol: u8) -> bool {
    matches!(protocol, ICMP | ICMPV6)
}

/// The last word of a key: ports, zone and protocol.
#[inline]
pub(crate) fn last_word(low: u16, high: u16, zone: u16, protocol: u8) -> u64 {
    u64::from(low) << 48 | u64::from(high) << 32 | u64::from(zone) << 16 | u64::from(protocol) << 8
}

/// The zone of a key.
#[inline]
pub(crate) fn zone_of<const W: usize>(key: &Key<W>) -> u16 {
    (key[W - 1] >> 16) as u16
}

/// The protocol of a key.
#[inline]
pub(crate) fn protocol_of<const W: usize>(key: &Key<W>) -> u8 {
    (key[W - 1] >> 8) as u8
}

/// Hash of a key without its zone: [`thalweg_wire::owner::owner_hash`] of its packets.
#[inline]
pub(crate) fn owner_hash<const W: usize>(key: &Key<W>) -> u32 {
    let Tuple { src, dst, protocol, sport, dport } = Tuple::of_key(key, false);
    // The lower endpoint comes first, or the one that asks.
    let dst_port = if is_icmp(protocol) { sport } else { dport };
    let flow = FiveTuple { src, dst, protocol, src_port: sport, dst_port };
    if is_icmp(protocol) { flow.symmetric_hash32() } else { flow.hash32() }
}

impl Tuple {
    /// The hash that distributes connections to workers, as
    /// [`Batch::owner_hash`](crate::Batch::owner_hash): the same for both directions and in all
    /// zones. `None` for tuples that cannot be tracked.
    pub fn owner_hash(&self) -> Option<u32> {
        match self.src {
            IpAddr::V4(_) => self.key::<IPV4>(0).map(|(key, _)| owner_hash(&key)),
            IpAddr::V6(_) => self.key::<IPV6>(0).map(|(key, _)| owner_hash(&key)),
        }
    }

    /// The tuple of the opposite direction.
    pub fn reversed(&self) -> Tuple {
        let Tuple { src, dst, protocol, sport, dport } = *self;
        if is_icmp(protocol) {
            let dport = match icmp_query(protocol, dport as u8) {
                Some((query, true)) => icmp_answer(u16::from(query)),
                Some((query, false)) => u16::from(query),
                None => dport,
            };
            return Tuple { src: dst, dst: src, protocol, sport, dport };
        }
        Tuple { src: dst, dst: src, protocol, sport: dport, dport: sport }
    }

    /// The key in a zone, and whether the sender is the higher endpoint. `None` if the addresses
    /// are not of the family whose keys have `W` words, or the ICMP type is neither query nor
    /// reply.
    pub fn key<const W: usize>(&self, zone: u16) -> Option<(Key<W>, bool)> {
        let (src, dst) = match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) if W == IPV4 => {
                (u128::from(src.to_bits()), u128::from(dst.to_bits()))
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) if W == IPV6 => (src.to_bits(), dst.to_bits()),
            _ => return None,
        };
        let (low, high, ports, swapped) = if is_icmp(self.protocol) {
            let (query, asks) = icmp_query(self.protocol, u8::try_from(self.dport).ok()?)?;
            let (low, high) = if asks { (src, dst) } else { (dst, src) };
            (low, high, (self.sport, u16::from(query)), !asks)
        } else if (src, self.sport) > (dst, self.dport) {
            (dst, src, (self.dport, self.sport), true)
        } else {
            (src, dst, (self.sport, self.dport), false)
        };
        let mut key = [0; W];
        addresses(&mut key, low, high);
        key[W - 1] = last_word(ports.0, ports.1, zone, self.protocol);
        Some((key, swapped))
    }

    /// The tuple of a key, with the lower endpoint as sender or, with `swapped`, the higher one.
    #[inline]
    pub fn of_key<const W: usize>(key: &Key<W>, swapped: bool) -> Tuple {
        let (low, high) = if W == IPV4 {
            let address = |bits: u64| IpAddr::V4(Ipv4Addr::from_bits(bits as u32));
            (address(key[0] >> 32), address(key[0]))
        } else {
            let address = |at: usize| {
                let half = |i: usize| u128::from(key.get(i).copied().unwrap_or(0));
                IpAddr::V6(Ipv6Addr::from_bits(half(at) << 64 | half(at + 1)))
            };
            (address(0), address(2))
        };
        let last = key[W - 1];
        let tuple = Tuple {
            src: low,
            dst: high,
            protocol: protocol_of(key),
            sport: (last >> 48) as u16,
            dport: (last >> 32) as u16,
        };
        if swapped { tuple.reversed() } else { tuple }
    }
}

#[inline]
fn addresses<const W: usize>(key: &mut Key<W>, low: u128, high: u128) {
    if W == IPV4 {
        key[0] = (low as u64) << 32 | high as u64;
    } else if let [a, b, c, d, ..] = &mut key[..] {
        (*a, *b) = ((low >> 64) as u64, low as u64);
        (*c, *d) = ((high >> 64) as u64, high as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tuples() -> impl Strategy<Value = Tuple> {
        let v4 = (any::<[u32; 2]>(), any::<u8>(), any::<[u16; 2]>()).prop_map(|(ip, p, ports)| {
            let [src, dst] = ip.map(|ip| IpAddr::V4(Ipv4Addr::from_bits(ip)));
            (src, dst, p, ports)
        });
        let v6 = (any::<[u128; 2]>(), any::<u8>(), any::<[u16; 2]>()).prop_map(|(ip, p, ports)| {
            let [src, dst] = ip.map(|ip| IpAddr::V6(Ipv6Addr::from_bits(ip)));
            (src, dst, p, ports)
        });
        let protocol = prop_oneof![Just(1u8), Just(6), Just(17), Just(58), any::<u8>()];
        (prop_oneof![v4, v6], protocol, 0usize..6).prop_map(|((src, dst, _, ports), p, n)| {
            let [sport, dport] = ports;
            let dport = match p {
                ICMP => [0, 8, 13, 14, 15, 16][n],
                ICMPV6 => [128, 129][n % 2],
                _ => dport,
            };
            Tuple { src, dst, protocol: p, sport, dport }
        })
    }

    proptest! {
        #[test]
        fn keys_say_all(tuple in tuples(), zone: u16) {
            fn there_and_back<const W: usize>(tuple: Tuple, zone: u16) {
                let (key, swapped) = tuple.key::<W>(zone).unwrap();
                assert_eq!(Tuple::of_key(&key, swapped), tuple);
                assert_eq!((zone_of(&key), protocol_of(&key)), (zone, tuple.protocol));
                let (same, back) = tuple.reversed().key::<W>(zone).unwrap();
                assert_eq!(same, key);
                let itself = tuple.reversed() == tuple;
                assert_eq!(back, if itself { swapped } else { !swapped });
            }
            match tuple.src {
                IpAddr::V4(_) => there_and_back::<IPV4>(tuple, zone),
                IpAddr::V6(_) => there_and_back::<IPV6>(tuple, zone),
            }
            prop_assert_eq!(tuple.reversed().reversed(), tuple);
        }
    }
}
