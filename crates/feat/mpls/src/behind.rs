//! The packet behind labels, which do not say what it is.

use thalweg_wire::ipv4::Ipv4View;
use thalweg_wire::ipv6::{HEADER_LEN, Ipv6View};

/// An IP packet behind labels. The view's payload is what is at hand of it.
pub(crate) enum IpBehind<'a> {
    V4(Ipv4View<'a>),
    V6(Ipv6View<'a>),
}

/// Longest packet that the link may have padded: behind an Ethernet header, and at least one label.
const PADDED: usize = 46;

/// Returns the IP packet of `len` bytes that begins with `first`, if it is one. A frame of a
/// pseudowire without control word begins with the bytes of a MAC address, which may look like
/// either version (RFC 4928 section 2): all of the header has to agree.
pub(crate) fn ip_behind(first: &[u8], len: usize) -> Option<IpBehind<'_>> {
    match first.first()? >> 4 {
        4 => {
            let view = Ipv4View::parse_chain(first, len).ok()?;
            view.checksum_ok().then_some(IpBehind::V4(view))
        }
        6 => {
            let view = Ipv6View::parse_chain(first, len).ok()?;
            let total = HEADER_LEN + usize::from(view.payload_len());
            (total == len || total < len && len <= PADDED).then_some(IpBehind::V6(view))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_wire::MacAddr;
    use thalweg_wire::build::Packet;

    fn version(bytes: &[u8]) -> Option<u8> {
        ip_behind(bytes, bytes.len()).map(|ip| match ip {
            IpBehind::V4(_) => 4,
            IpBehind::V6(_) => 6,
        })
    }

    #[test]
    fn whole_headers_are_ip() {
        let ip4 = Packet::new().ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).udp(1, 2);
        let sound = ip4.clone().payload_len(40).build();
        assert_eq!(version(&sound), Some(4));
        assert_eq!(version(&[&sound[..], &[0; 6]].concat()), Some(4), "padded");
        for at in 0..20 {
            let mut bad = sound.clone();
            bad[at] ^= 0x10;
            assert_eq!(version(&bad), None, "byte {at}");
        }
        assert_eq!(version(&sound[..60]), None);
        let ends = ["2001:db8::1", "2001:db8::2"].map(|ip| ip.parse().unwrap());
        let sound = Packet::new().ipv6(ends[0], ends[1]).udp(1, 2).payload_len(40).build();
        assert_eq!(version(&sound), Some(6));
        assert_eq!(version(&sound[..80]), None);
        assert_eq!(version(&[&sound[..], &[0; 6]].concat()), None);
        let short = Packet::new().ipv6(ends[0], ends[1]).protocol(59).payload_len(2).build();
        assert_eq!(version(&[&short[..], &[0; 4]].concat()), Some(6), "padded");
    }

    #[test]
    fn frames_are_not() {
        for first in [0x45, 0x4f, 0x60, 0x6f] {
            let to = MacAddr([first, 0, 0, 60, 0, 60]);
            let frame = Packet::new().ether(MacAddr([2, 0, 0, 0, 0, 1]), to);
            let frame = frame.ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).udp(1, 2);
            assert_eq!(version(&frame.payload_len(300).build()), None);
        }
        assert_eq!((version(&[]), version(&[0x45]), version(&[0x60; 39])), (None, None, None));
    }
}
