//! UDP datagrams in captured frames.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use pcap_parser::Linktype;
use thalweg_wire::bytes::get_be16;

use crate::merged::begins;

/// What a captured frame holds.
pub(crate) enum Extracted<'p> {
    /// A whole datagram to the port, or several that came as one.
    Datagram { source: SocketAddr, data: &'p [u8] },
    /// A fragment of an IP packet.
    Fragment,
    /// A datagram that the capture does not hold whole.
    Cut,
    /// Anything else.
    Other,
}

/// Looks for a datagram to UDP `port` in a frame.
pub(crate) fn extract(link: Linktype, data: &[u8], port: u16) -> Extracted<'_> {
    let ip = match link {
        Linktype::ETHERNET => behind_ether_type(data, 12),
        Linktype::LINUX_SLL => behind_ether_type(data, 14),
        // EtherType first, the rest of the twenty bytes behind it.
        Linktype(276) => match get_be16(data, 0) {
            Some(0x0800 | 0x86dd) => data.get(20..),
            _ => None,
        },
        // BSD loopback: the address family in front.
        Linktype::NULL | Linktype(108) => data.get(4..),
        Linktype::RAW | Linktype(12 | 14) | Linktype::IPV4 | Linktype::IPV6 => Some(data),
        _ => None,
    };
    let Some(ip) = ip else { return Extracted::Other };
    match ip.first().map(|b| b >> 4) {
        Some(4) => extract_ipv4(ip, port),
        Some(6) => extract_ipv6(ip, port),
        _ => Extracted::Other,
    }
}

/// What follows the EtherType at `at` and any VLAN tags, if it is IP.
fn behind_ether_type(data: &[u8], mut at: usize) -> Option<&[u8]> {
    loop {
        match get_be16(data, at)? {
            0x8100 | 0x88a8 | 0x9100 => at += 4,
            0x0800 | 0x86dd => return data.get(at + 2..),
            _ => return None,
        }
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
    // What is behind the packet is padding of the frame's. Too long for its field, it says 0.
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
    // Of datagrams that will be cut apart, some say the length of all, others that of the first.
    match usize::from(length).checked_sub(8).and_then(|n| whole.split_at_checked(n)) {
        Some((first, rest)) => {
            let data = if begins(rest) { whole } else { first };
            Extracted::Datagram { source: SocketAddr::new(source, from), data }
        }
        None => Extracted::Cut,
    }
}
