//! Keys of sessions, and the effect of translation on checksums.
//!
//! Addresses and ports are kept as they are in packets: words that hold the packet's bytes in
//! little-endian order, so that a key takes two loads. The Internet checksum comes out
//! byte-swapped, like the checksum field itself (RFC 1071 section 2).

use core::net::Ipv4Addr;

/// Both addresses; ports, protocol and routing table.
pub type Key = [u64; 2];

/// Largest routing table id: keys have 24 bits for it.
pub const MAX_TABLE: u32 = (1 << 24) - 1;

/// Builds a key from packet fields.
#[inline(always)]
pub fn key(addresses: u64, ports: u32, protocol: u8, table: u32) -> Key {
    [addresses, u64::from(ports) | u64::from(protocol) << 32 | u64::from(table) << 40]
}

/// The fields of a key, for display and slow paths.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tuple {
    /// Source address.
    pub src: Ipv4Addr,
    /// Source port; for ICMP queries, both ports are the identifier.
    pub sport: u16,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// Destination port.
    pub dport: u16,
    /// IP protocol.
    pub protocol: u8,
    /// Routing table in which the destination is looked up.
    pub table: u32,
}

impl Tuple {
    /// The tuple as a key.
    #[inline]
    pub fn key(self) -> Key {
        let word = |a: Ipv4Addr| u64::from(u32::from_le_bytes(a.octets()));
        let ports = u32::from(self.sport.swap_bytes()) | u32::from(self.dport.swap_bytes()) << 16;
        key(word(self.src) | word(self.dst) << 32, ports, self.protocol, self.table)
    }

    /// The tuple of a key.
    #[inline]
    pub fn of(key: &Key) -> Tuple {
        let address = |word: u64| Ipv4Addr::from((word as u32).to_le_bytes());
        let port = |word: u64| (word as u16).swap_bytes();
        Tuple {
            src: address(key[0]),
            sport: port(key[1]),
            dst: address(key[0] >> 32),
            dport: port(key[1] >> 16),
            protocol: (key[1] >> 32) as u8,
            table: (key[1] >> 40) as u32,
        }
    }

    /// The tuple of the opposite direction.
    #[must_use]
    #[inline]
    pub fn reversed(self) -> Tuple {
        let Tuple { src, sport, dst, dport, .. } = self;
        Tuple { src: dst, sport: dport, dst: src, dport: sport, ..self }
    }
}

/// The addresses of the opposite direction.
#[inline(always)]
pub fn reversed_addresses(key: &Key) -> u64 {
    key[0].rotate_left(32)
}

/// The ports of the opposite direction.
#[inline(always)]
pub fn reversed_ports(key: &Key) -> u32 {
    (key[1] as u32).rotate_left(16)
}

/// The key of the opposite direction.
#[inline]
pub fn reversed(key: &Key) -> Key {
    [reversed_addresses(key), key[1] & !0xffff_ffff | u64::from(reversed_ports(key))]
}

/// Folds a sum into 16 bits with end-around carry.
#[inline(always)]
pub fn fold(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

#[inline]
fn words(word: u64) -> u32 {
    let half = |w: u64| ((w & 0xffff) + (w >> 16 & 0xffff)) as u32;
    half(word) + half(word >> 32)
}

/// The checksum delta of a change of addresses.
#[inline]
pub fn address_delta(old: u64, new: u64) -> u16 {
    fold(words(!old) + words(new))
}

/// The checksum delta of a change of ports.
#[inline]
pub fn port_delta(old: u32, new: u32) -> u16 {
    fold(words(u64::from(!old)) + words(u64::from(new)))
}

/// Updates a checksum by a delta (RFC 1624, equation 3).
#[inline(always)]
pub fn follow(checksum: u16, delta: u16) -> u16 {
    // Two 16-bit numbers carry at most once.
    let sum = u32::from(!checksum) + u32::from(delta);
    !((sum + (sum >> 16)) as u16)
}

/// Updates a pseudo-header sum that a device will complete.
#[inline]
pub fn follow_partial(sum: u16, delta: u16) -> u16 {
    fold(u32::from(sum) + u32::from(delta))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum;
    use proptest::prelude::*;

    fn tuple() -> impl Strategy<Value = Tuple> {
        (any::<[u32; 2]>(), any::<[u16; 2]>(), any::<u8>(), 0..=MAX_TABLE).prop_map(
            |([src, dst], [sport, dport], protocol, table)| Tuple {
                src: src.into(),
                sport,
                dst: dst.into(),
                dport,
                protocol,
                table,
            },
        )
    }

    proptest! {
        #[test]
        fn keys_say_all(t in tuple()) {
            prop_assert_eq!(Tuple::of(&t.key()), t);
            prop_assert_eq!(reversed(&t.key()), t.reversed().key());
        }

        #[test]
        fn keys_stand_in_packets(t in tuple()) {
            let bytes = [t.src.octets(), t.dst.octets()].concat();
            let ports = [t.sport.to_be_bytes(), t.dport.to_be_bytes()].concat();
            let addresses = u64::from_le_bytes(bytes.try_into().unwrap());
            let ports = u32::from_le_bytes(ports.try_into().unwrap());
            prop_assert_eq!(key(addresses, ports, t.protocol, t.table), t.key());
        }

        /// An updated checksum equals a recomputed one.
        #[test]
        fn checksums_are_updated(
            old in any::<[u8; 12]>(),
            new in any::<[u8; 12]>(),
            rest in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let with = |head: [u8; 12]| [&head[..], &rest].concat();
            // The change of ports.
            let addresses = |b: [u8; 12]| u64::from_le_bytes(b[..8].try_into().unwrap());
            let ports = |b: [u8; 12]| u32::from_le_bytes(b[8..].try_into().unwrap());
            let delta = fold(
                u32::from(address_delta(addresses(old), addresses(new)))
                    + u32::from(port_delta(ports(old), ports(new))),
            );
            let sum = checksum::checksum(&with(old)).swap_bytes();
            let followed = follow(sum, delta).swap_bytes();
            let mut all = with(new);
            // The sum over packet and checksum is valid whether the checksum is written as 0 or as
            // 0xffff.
            if all.len() % 2 == 1 { all.push(0); }
            all.extend(followed.to_be_bytes());
            prop_assert!(checksum::verify(&all) || all.iter().all(|b| *b == 0));
            let back = follow(followed.swap_bytes(), !delta);
            let same = |a: u16, b: u16| a == b || (a ^ b == 0xffff && (a == 0 || b == 0));
            prop_assert!(same(back, sum), "{back:04x} {sum:04x}");
        }
    }
}
