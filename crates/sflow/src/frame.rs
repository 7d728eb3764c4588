//! UDP datagrams in captured frames.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use pcap_parser::Linktype;
use thalweg_wire::bytes::get_be16;

use crate::merged::begins;

/// Contents of a captured frame.
pub(crate) enum Extracted<'p> {
    /// A whole datagram to the port, or several that came as one.
    Datagram { source: SocketAddr, data: &'p [u8] },
    /// A fragment of an IP packet.
    Fragment,
    /// A datagram that the capture does not hold whole.
    Cut,
    /// Something else behind a link header that is known.
    Other,
    /// A frame with a link header that is not.
    Link(u16),
}

/// Link types (tcpdump.org/linktypes.html).
mod link_type {
    pub(super) const NULL: u16 = 0;
    pub(super) const ETHERNET: u16 = 1;
    pub(super) const PPP: u16 = 9;
    pub(super) const PPP_HDLC: u16 = 50;
    pub(super) const PPP_ETHER: u16 = 51;
    pub(super) const RAW: u16 = 101;
    pub(super) const C_HDLC: u16 = 104;
    pub(super) const LOOP: u16 = 108;
    pub(super) const LINUX_SLL: u16 = 113;
    pub(super) const MPLS: u16 = 219;
    pub(super) const IPV4: u16 = 228;
    pub(super) const IPV6: u16 = 229;
    pub(super) const LINUX_SLL2: u16 = 276;
}

/// Looks for a datagram to UDP `port` in a frame.
pub(crate) fn extract(link: Linktype, data: &[u8], port: u16) -> Extracted<'_> {
    // The bits above say whether frames have a check sequence, and its length.
    let link = link.0 as u16;
    let ip = match link {
        link_type::ETHERNET => behind_type_at(data, 12),
        link_type::LINUX_SLL => behind_type_at(data, 14),
        // EtherType first, the rest of the twenty bytes behind it.
        link_type::LINUX_SLL2 => match (get_be16(data, 0), data.get(20..)) {
            (Some(kind), Some(rest)) => behind(kind, rest),
            _ => None,
        },
        // BSD loopback: the address family in front.
        link_type::NULL | link_type::LOOP => data.get(4..),
        // Some systems have numbers of their own for the same.
        link_type::RAW | 12 | 14 | link_type::IPV4 | link_type::IPV6 => Some(data),
        link_type::PPP | link_type::PPP_HDLC => behind_ppp(data),
        link_type::PPP_ETHER => data.get(PPPOE_HEADER..).and_then(behind_ppp),
        link_type::C_HDLC => behind_type_at(data, 2),
        link_type::MPLS => behind_labels(data),
        other => return Extracted::Link(other),
    };
    let Some(ip) = ip else { return Extracted::Other };
    match ip.first().map(|b| b >> 4) {
        Some(4) => extract_ipv4(ip, port),
        Some(6) => extract_ipv6(ip, port),
        _ => Extracted::Other,
    }
}

/// Bytes of a PPPoE header (RFC 2516 section 4).
const PPPOE_HEADER: usize = 6;

/// Returns the IP packet behind the EtherType at `at` and any VLAN tags, labels or PPP header.
fn behind_type_at(data: &[u8], mut at: usize) -> Option<&[u8]> {
    loop {
        match get_be16(data, at)? {
            0x8100 | 0x88a8 | 0x9100 => at += 4,
            kind => return behind(kind, data.get(at + 2..)?),
        }
    }
}

/// Returns the IP packet in one of this EtherType.
fn behind(kind: u16, rest: &[u8]) -> Option<&[u8]> {
    match kind {
        0x0800 | 0x86dd => Some(rest),
        0x8847 | 0x8848 => behind_labels(rest),
        0x8864 => behind_ppp(rest.get(PPPOE_HEADER..)?),
        _ => None,
    }
}

/// Returns the bytes behind an MPLS label stack (RFC 3032 section 2.1).
fn behind_labels(mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        let (entry, more) = rest.split_first_chunk::<4>()?;
        rest = more;
        if entry[2] & 1 != 0 {
            return Some(rest);
        }
    }
}

/// Returns the bytes behind a PPP header (RFC 1661 section 2, RFC 1662 section 3.1), or Cisco's.
fn behind_ppp(data: &[u8]) -> Option<&[u8]> {
    let rest = match data {
        [0x0f | 0x8f, 0, ..] => return behind_type_at(data, 2),
        [0xff, 3, rest @ ..] => rest,
        rest => rest,
    };
    let (protocol, rest) = match rest {
        // The first byte, if even, has the upper bits of the protocol.
        [high, low, rest @ ..] if high & 1 == 0 => (u16::from_be_bytes([*high, *low]), rest),
        [low, rest @ ..] => (u16::from(*low), rest),
        [] => return None,
    };
    match protocol {
        0x0021 | 0x0057 => Some(rest),
        0x0281 | 0x0283 => behind_labels(rest),
        _ => None,
    }
}

fn extract_ipv4(ip: &[u8], port: u16) -> Extracted<'_> {
    let Some(header) = ip.get(..20) else { return Extracted::Cut };
    if header[9] != 17 {
        return Extracted::Other;
    }
    if u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0 {
        return Extracted::Fragment;
    }
    let source = Ipv4Addr::new(header[12], header[13], header[14], header[15]);
    // Bytes behind the packet are padding of the frame. A packet too long for its length field has
    // 0.
    let ip = match usize::from(u16::from_be_bytes([header[2], header[3]])) {
        0 => ip,
        length => ip.get(..length).unwrap_or(ip),
    };
    extract_udp(ip, usize::from(header[0] & 15) * 4, source.into(), port)
}

fn extract_ipv6(ip: &[u8], port: u16) -> Extracted<'_> {
    let Some(header) = ip.get(..40) else { return Extracted::Cut };
    let ip = match usize::from(u16::from_be_bytes([header[4], header[5]])) {
        0 => ip,
        length => ip.get(..40 + length).unwrap_or(ip),
    };
    let mut next = header[6];
    let mut at = 40;
    while let 0 | 43 | 60 = next {
        let Some(extension) = ip.get(at..at + 8) else { return Extracted::Cut };
        next = extension[0];
        at += (usize::from(extension[1]) + 1) * 8;
    }
    let mut source = [0; 16];
    source.copy_from_slice(&header[8..24]);
    match next {
        17 => extract_udp(ip, at, Ipv6Addr::from(source).into(), port),
        44 => Extracted::Fragment,
        _ => Extracted::Other,
    }
}

fn extract_udp(ip: &[u8], at: usize, source: IpAddr, port: u16) -> Extracted<'_> {
    let (Some(from), Some(to), Some(length)) =
        (get_be16(ip, at), get_be16(ip, at + 2), get_be16(ip, at + 4))
    else {
        return Extracted::Cut;
    };
    if to != port {
        return Extracted::Other;
    }
    let whole = ip.get(at + 8..).unwrap_or_default();
    // Datagrams that will be cut apart give the length of all, or that of the first.
    match usize::from(length).checked_sub(8).and_then(|n| whole.split_at_checked(n)) {
        Some((first, rest)) => {
            let data = if begins(rest) { whole } else { first };
            Extracted::Datagram { source: SocketAddr::new(source, from), data }
        }
        None => Extracted::Cut,
    }
}
