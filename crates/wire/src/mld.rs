//! Multicast listener discovery: queries (ICMPv6 type 130) of both versions (RFC 2710, RFC 3810).

use core::net::Ipv6Addr;
use core::time::Duration;

use crate::bytes::{array, be16, header};
use crate::icmpv6::{Icmp6View, kind};
use crate::{Result, WireError};

/// The hop limit of messages: they never pass a router.
pub const HOP_LIMIT: u8 = 1;

/// Bytes of a query of version 1, and the fewest of one of version 2 (RFC 3810 section 8.1).
const OLD_LEN: usize = 24;
const NEW_LEN: usize = 28;

/// A query for the listeners of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Query {
    /// Version of the protocol, 1 or 2.
    pub version: u8,
    /// Time within which listeners answer.
    pub within: Duration,
    /// The group that is asked for; unspecified: all.
    pub group: Ipv6Addr,
    /// The querier's robustness, 0 if it says none. Version 1 has none.
    pub robustness: u8,
    /// The querier's interval, zero if it says none. Version 1 has none.
    pub interval: Duration,
    /// Number of sources that are asked for, 0 for all.
    pub sources: u16,
    /// The first of them; unspecified beyond their number.
    pub first: [Ipv6Addr; MAX_LISTED],
}

/// Most sources that a [`Query`] lists.
pub const MAX_LISTED: usize = 5;

/// Reads a floating-point code with 4 or 12 bits of mantissa (RFC 3810 sections 5.1.3 and 5.1.9).
const fn float(code: u32, bits: u32) -> u32 {
    if code >> (bits + 3) == 0 {
        return code;
    }
    let (mantissa, exponent) = (code & ((1 << bits) - 1), code >> bits & 7);
    (mantissa | 1 << bits) << (exponent + 3)
}

impl Query {
    /// Reads an ICMPv6 message; `None` if it is no query.
    ///
    /// # Errors
    /// `BadHeaderLength` for a length that no version has, `Truncated` if sources are missing.
    pub fn parse(icmp: &Icmp6View<'_>) -> Option<Result<Query>> {
        (icmp.kind() == kind::LISTENER_QUERY).then(|| Query::read(icmp))
    }

    fn read(icmp: &Icmp6View<'_>) -> Result<Query> {
        const WHAT: &str = "multicast listener query";
        let (h, rest) = header::<16>(icmp.payload(), WHAT)?;
        let (code, group) = (icmp.rest() >> 16, array::<16, _>(h, 0).into());
        let length = icmp.message().len();
        if length == OLD_LEN {
            let within = Duration::from_millis(code.into());
            let interval = Duration::ZERO;
            let first = [Ipv6Addr::UNSPECIFIED; MAX_LISTED];
            let (robustness, sources) = (0, 0);
            return Ok(Query { version: 1, within, group, robustness, interval, sources, first });
        }
        if length < NEW_LEN {
            return Err(WireError::BadHeaderLength { what: WHAT, length });
        }
        let (h, listed) = header::<4>(rest, WHAT)?;
        let sources = be16(h, 2);
        let (need, have) = (usize::from(sources) * 16, listed.len());
        if have < need {
            return Err(WireError::Truncated { what: WHAT, need, have });
        }
        let mut first = [Ipv6Addr::UNSPECIFIED; MAX_LISTED];
        for (to, from) in first.iter_mut().zip(listed[..need].as_chunks().0) {
            *to = Ipv6Addr::from(*from);
        }
        Ok(Query {
            version: 2,
            within: Duration::from_millis(float(code, 12).into()),
            group,
            robustness: h[0] & 7,
            interval: Duration::from_secs(float(h[1].into(), 4).into()),
            sources,
            first,
        })
    }

    /// Returns the sources that are asked for: none if all are, or more than [`MAX_LISTED`].
    pub fn listed(&self) -> &[Ipv6Addr] {
        self.first.get(..self.sources.into()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn query(bytes: &[u8]) -> Option<Result<Query>> {
        Query::parse(&Icmp6View::parse(bytes).unwrap())
    }

    fn bytes(code: u16, group: &str, rest: &[u8]) -> Vec<u8> {
        let group: Ipv6Addr = group.parse().unwrap();
        [&[130, 0, 0, 0][..], &code.to_be_bytes(), &[0; 2], &group.octets(), rest].concat()
    }

    #[test]
    fn the_length_tells_the_version() {
        let old = query(&bytes(10_000, "ff02::2", &[])).unwrap().unwrap();
        assert_eq!((old.version, old.within, old.robustness), (1, Duration::from_secs(10), 0));
        let new = query(&bytes(1000, "::", &[2, 125, 0, 0])).unwrap().unwrap();
        assert_eq!((new.version, new.within.as_millis(), new.group), (2, 1000, Ipv6Addr::from(0)));
        assert_eq!((new.robustness, new.interval.as_secs(), new.sources), (2, 125, 0));
        // The message ends between both lengths, or has fewer sources than it says.
        assert!(query(&bytes(1, "::", &[2, 125])).unwrap().is_err());
        assert!(query(&bytes(1, "ff02::2", &[2, 125, 0, 1])).unwrap().is_err());
        let asked = bytes(1, "ff02::2", &[&[0x0a, 125, 0, 1][..], &[9; 16]].concat());
        let asked = query(&asked).unwrap().unwrap();
        assert_eq!((asked.robustness, asked.sources), (2, 1));
        assert_eq!(asked.listed(), [Ipv6Addr::from([9; 16])]);
        // More than it lists stand for all.
        let many = bytes(1, "ff02::2", &[&[2, 125, 0, 6][..], &[9; 96]].concat());
        let many = query(&many).unwrap().unwrap();
        assert_eq!((many.sources, many.listed()), (6, &[][..]));
        let mut report = bytes(0, "::", &[]);
        report[0] = 143;
        assert_eq!(query(&report), None);
    }

    #[test]
    fn long_times_are_floating_point() {
        let new = |code, interval| {
            let q = query(&bytes(code, "::", &[0, interval, 0, 0])).unwrap().unwrap();
            (q.within.as_millis(), q.interval.as_secs())
        };
        assert_eq!(new(0x7fff, 0x7f), (32_767, 127));
        assert_eq!(new(0x8000, 0x80), (32_768, 128));
        assert_eq!(new(0xffff, 0xff), (8_387_584, 31_744));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            kind in prop_oneof![Just(130u8), any::<u8>()],
            rest in proptest::collection::vec(any::<u8>(), 7..80),
        ) {
            let _ = query(&[&[kind][..], &rest].concat());
        }
    }
}
