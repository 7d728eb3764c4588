//! Neighbor discovery for IPv6 (RFC 4861): the bodies of ICMPv6 types 133 to 137.

use core::net::Ipv6Addr;

use crate::bytes::{array, be16, be32, header};
use crate::ethernet::MacAddr;
use crate::icmpv6::{Icmp6View, fill_checksum, kind};
use crate::{Result, WireError};

/// The hop limit of valid messages, which did not pass a router (RFC 4861 section 7.1).
pub const HOP_LIMIT: u8 = 255;
/// Bytes in a solicitation or advertisement with a link-layer address option.
pub const MESSAGE_LEN: usize = 32;

/// Flags of a neighbor advertisement, in the header's second word.
pub mod flag {
    /// The sender is a router.
    pub const ROUTER: u32 = 0x8000_0000;
    /// The advertisement answers a solicitation.
    pub const SOLICITED: u32 = 0x4000_0000;
    /// Known link-layer addresses should be overwritten.
    pub const OVERRIDE: u32 = 0x2000_0000;
}

/// A neighbor discovery message.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    /// Router solicitation.
    RouterSolicitation {
        /// Options.
        options: Options<'a>,
    },
    /// Router advertisement.
    RouterAdvertisement {
        /// The hop limit hosts should use, 0 for unspecified.
        hop_limit: u8,
        /// Managed (0x80) and other (0x40) configuration flags.
        flags: u8,
        /// Lifetime as a default router, in seconds.
        lifetime: u16,
        /// Time that a neighbor stays reachable, in milliseconds; 0 for unspecified.
        reachable_ms: u32,
        /// Milliseconds between solicitations, 0 for unspecified.
        retransmit_ms: u32,
        /// Options.
        options: Options<'a>,
    },
    /// Neighbor solicitation.
    NeighborSolicitation {
        /// The solicited address.
        target: Ipv6Addr,
        /// Options.
        options: Options<'a>,
    },
    /// Neighbor advertisement.
    NeighborAdvertisement {
        /// Flags (see [`flag`]).
        flags: u32,
        /// The advertised address.
        target: Ipv6Addr,
        /// Options.
        options: Options<'a>,
    },
    /// Redirect to a better next hop.
    Redirect {
        /// The better next hop.
        target: Ipv6Addr,
        /// The destination it is better for.
        destination: Ipv6Addr,
        /// Options.
        options: Options<'a>,
    },
}

impl<'a> Message<'a> {
    /// Reads the body of an ICMPv6 message; `None` if it is not neighbor discovery.
    ///
    /// # Errors
    /// `Truncated` when the body ends early.
    pub fn parse(icmp: &Icmp6View<'a>) -> Option<Result<Self>> {
        let body = icmp.payload();
        let rest = icmp.rest();
        Some(match icmp.kind() {
            kind::ROUTER_SOLICITATION => {
                Ok(Self::RouterSolicitation { options: Options { rest: body } })
            }
            kind::ROUTER_ADVERTISEMENT => {
                header::<8>(body, "router advertisement").map(|(h, o)| Self::RouterAdvertisement {
                    hop_limit: (rest >> 24) as u8,
                    flags: (rest >> 16) as u8,
                    lifetime: rest as u16,
                    reachable_ms: be32(h, 0),
                    retransmit_ms: be32(h, 4),
                    options: Options { rest: o },
                })
            }
            kind::NEIGHBOR_SOLICITATION => address(body, "neighbor solicitation")
                .map(|(target, options)| Self::NeighborSolicitation { target, options }),
            kind::NEIGHBOR_ADVERTISEMENT => {
                address(body, "neighbor advertisement").map(|(target, options)| {
                    Self::NeighborAdvertisement { flags: rest, target, options }
                })
            }
            kind::REDIRECT => header::<32>(body, "redirect").map(|(h, o)| Self::Redirect {
                target: array::<16, _>(h, 0).into(),
                destination: array::<16, _>(h, 16).into(),
                options: Options { rest: o },
            }),
            _ => return None,
        })
    }

    /// The options.
    pub fn options(&self) -> Options<'a> {
        match *self {
            Self::RouterSolicitation { options }
            | Self::RouterAdvertisement { options, .. }
            | Self::NeighborSolicitation { options, .. }
            | Self::NeighborAdvertisement { options, .. }
            | Self::Redirect { options, .. } => options,
        }
    }

    /// The source (solicitations, router advertisements) or target (neighbor advertisements,
    /// redirects) link-layer address, if the message contains it.
    pub fn link_layer(&self) -> Option<MacAddr> {
        let want_target =
            matches!(self, Self::NeighborAdvertisement { .. } | Self::Redirect { .. });
        self.options().find_map(|o| match o {
            Ok(NdOption::SourceLinkLayer(mac)) if !want_target => Some(mac),
            Ok(NdOption::TargetLinkLayer(mac)) if want_target => Some(mac),
            _ => None,
        })
    }
}

fn address<'a>(body: &'a [u8], what: &'static str) -> Result<(Ipv6Addr, Options<'a>)> {
    let (h, rest) = header::<16>(body, what)?;
    Ok(((*h).into(), Options { rest }))
}

/// A neighbor discovery option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NdOption<'a> {
    /// Type 1: the sender's Ethernet address.
    SourceLinkLayer(MacAddr),
    /// Type 2: the target's Ethernet address.
    TargetLinkLayer(MacAddr),
    /// Type 3: a prefix of the link.
    Prefix {
        /// The prefix.
        prefix: Ipv6Addr,
        /// Its length in bits.
        length: u8,
        /// Flags: on-link (0x80) and autonomous (0x40).
        flags: u8,
        /// Valid for this many seconds.
        valid: u32,
        /// Preferred for this many seconds.
        preferred: u32,
    },
    /// Type 5: the link's MTU.
    Mtu(u32),
    /// Any other type, or a known type of a wrong length.
    Other {
        /// The type.
        kind: u8,
        /// The bytes after type and length.
        data: &'a [u8],
    },
}

/// Walks options; ends with an error at a bad length, for which the whole message must be dropped
/// (RFC 4861 section 4.6).
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<NdOption<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let (kind, units) = match *self.rest {
            [] => return None,
            [kind, units, ..] => (kind, units),
            [kind] => (kind, 0),
        };
        let length = usize::from(units) * 8;
        let Some((option, rest)) = self.rest.split_at_checked(length).filter(|_| units > 0) else {
            self.rest = &[];
            let what = "neighbor discovery option";
            return Some(Err(WireError::BadHeaderLength { what, length }));
        };
        self.rest = rest;
        let data = &option[2..];
        Some(Ok(match (kind, data.first_chunk::<6>(), data.first_chunk::<30>()) {
            (1, Some(mac), _) if units == 1 => NdOption::SourceLinkLayer(MacAddr(*mac)),
            (2, Some(mac), _) if units == 1 => NdOption::TargetLinkLayer(MacAddr(*mac)),
            (3, _, Some(d)) => NdOption::Prefix {
                prefix: array::<16, _>(d, 14).into(),
                length: d[0],
                flags: d[1],
                valid: be32(d, 2),
                preferred: be32(d, 6),
            },
            (5, Some(d), _) => NdOption::Mtu(u32::from(be16(d, 2)) << 16 | u32::from(be16(d, 4))),
            _ => NdOption::Other { kind, data },
        }))
    }
}

/// The solicited-node multicast address of `target` (RFC 4291 section 2.7.1).
pub const fn solicited_node(target: Ipv6Addr) -> Ipv6Addr {
    let s = target.segments();
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | s[6] & 0xff, s[7])
}

/// Writes a whole neighbor solicitation (the ICMPv6 message) with the sender's Ethernet address,
/// and returns its length.
///
/// # Errors
/// `NoRoom` below 32 bytes.
pub fn emit_solicitation(
    src: &Ipv6Addr,
    dst: &Ipv6Addr,
    target: Ipv6Addr,
    mac: MacAddr,
    buf: &mut [u8],
) -> Result<usize> {
    emit(src, dst, [kind::NEIGHBOR_SOLICITATION, 1], 0, target, mac, buf)
}

/// Writes a whole neighbor advertisement (the ICMPv6 message) with the target's Ethernet address,
/// and returns its length. `flags` are those of [`flag`].
///
/// # Errors
/// `NoRoom` below 32 bytes.
pub fn emit_advertisement(
    src: &Ipv6Addr,
    dst: &Ipv6Addr,
    flags: u32,
    target: Ipv6Addr,
    mac: MacAddr,
    buf: &mut [u8],
) -> Result<usize> {
    emit(src, dst, [kind::NEIGHBOR_ADVERTISEMENT, 2], flags, target, mac, buf)
}

fn emit(
    src: &Ipv6Addr,
    dst: &Ipv6Addr,
    [kind, option]: [u8; 2],
    word: u32,
    target: Ipv6Addr,
    mac: MacAddr,
    buf: &mut [u8],
) -> Result<usize> {
    let b = crate::bytes::room::<MESSAGE_LEN>(buf, "neighbor discovery message")?;
    b[..4].copy_from_slice(&[kind, 0, 0, 0]);
    b[4..8].copy_from_slice(&word.to_be_bytes());
    b[8..24].copy_from_slice(&target.octets());
    b[24..26].copy_from_slice(&[option, 1]);
    b[26..].copy_from_slice(&mac.0);
    fill_checksum(src, dst, b)?;
    Ok(MESSAGE_LEN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAC: MacAddr = MacAddr::new(2, 0xfe, 0, 0, 0, 1);

    #[test]
    fn solicitation_and_advertisement() {
        let (a, b): (Ipv6Addr, Ipv6Addr) =
            ("fe80::1".parse().unwrap(), "fe80::aa:bbcc".parse().unwrap());
        let group = solicited_node(b);
        assert_eq!(group, "ff02::1:ffaa:bbcc".parse::<Ipv6Addr>().unwrap());
        let mut buf = [0; 32];
        emit_solicitation(&a, &group, b, MAC, &mut buf).unwrap();
        let icmp = Icmp6View::parse(&buf).unwrap();
        assert!(icmp.checksum_ok(&a, &group));
        let m = Message::parse(&icmp).unwrap().unwrap();
        assert!(matches!(m, Message::NeighborSolicitation { target, .. } if target == b));
        assert_eq!(m.link_layer(), Some(MAC));

        let flags = flag::SOLICITED | flag::OVERRIDE;
        emit_advertisement(&b, &a, flags, b, MAC, &mut buf).unwrap();
        let icmp = Icmp6View::parse(&buf).unwrap();
        assert!(icmp.checksum_ok(&b, &a));
        let m = Message::parse(&icmp).unwrap().unwrap();
        let Message::NeighborAdvertisement { flags: f, target, .. } = m else { panic!("{m:?}") };
        assert_eq!((f, target, m.link_layer()), (flags, b, Some(MAC)));
    }

    #[test]
    fn a_router_advertisement() {
        let mut buf = [0u8; 16 + 8 + 32];
        buf[..8].copy_from_slice(&[134, 0, 0, 0, 64, 0x80, 0x07, 0x08]);
        buf[16..24].copy_from_slice(&[5, 1, 0, 0, 0, 0, 5, 0xdc]);
        buf[24..28].copy_from_slice(&[3, 4, 64, 0xc0]);
        buf[40..44].copy_from_slice(&[0x20, 1, 0xd, 0xb8]);
        let m = Message::parse(&Icmp6View::parse(&buf).unwrap()).unwrap().unwrap();
        let Message::RouterAdvertisement { hop_limit, flags, lifetime, mut options, .. } = m else {
            panic!("{m:?}")
        };
        assert_eq!((hop_limit, flags, lifetime), (64, 0x80, 1800));
        assert_eq!(options.next(), Some(Ok(NdOption::Mtu(1500))));
        let Some(Ok(NdOption::Prefix { prefix, length, flags, .. })) = options.next() else {
            panic!("no prefix")
        };
        let want: Ipv6Addr = "2001:db8::".parse().unwrap();
        assert_eq!((prefix, length, flags), (want, 64, 0xc0));
        assert_eq!(options.next(), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            mut data in proptest::collection::vec(any::<u8>(), 0..90), kind in 132u8..139,
        ) {
            if let Some(first) = data.first_mut() {
                *first = kind;
            }
            if let Ok(icmp) = Icmp6View::parse(&data)
                && let Some(Ok(m)) = Message::parse(&icmp)
            {
                prop_assert!(m.options().count() <= 12);
                m.link_layer();
            }
        }
    }
}
