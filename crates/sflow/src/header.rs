//! The sampled bytes of a packet, as far as they reach.
//!
//! A sample is cut anywhere, so every layer may be missing. Fields here have been read completely;
//! nothing is guessed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thalweg_wire::bytes::{get, get_be16};

use crate::model::RawHeader;
use crate::value::{Value, Visitor, name};

/// Protocol that sampled bytes begin with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct HeaderProtocol(pub u32);

impl HeaderProtocol {
    /// Ethernet.
    pub const ETHERNET: HeaderProtocol = HeaderProtocol(1);
    /// IPv4 without a link layer.
    pub const IPV4: HeaderProtocol = HeaderProtocol(11);
    /// IPv6 without a link layer.
    pub const IPV6: HeaderProtocol = HeaderProtocol(12);
    /// MPLS without a link layer.
    pub const MPLS: HeaderProtocol = HeaderProtocol(13);
    /// The largest number that means something (sFlow's structures, 802.11 A-MSDU).
    const LAST_KNOWN: u32 = 17;
}

/// Tags and extension headers that are remembered of one packet.
const MAX_STACK: usize = 8;

/// A short list without allocation; what does not fit is forgotten.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stack {
    items: [u16; MAX_STACK],
    len: usize,
}

impl Stack {
    fn push(&mut self, item: u16) {
        if self.len < MAX_STACK {
            self.items[self.len] = item;
            self.len += 1;
        }
    }

    /// The items, outermost first.
    #[must_use]
    pub fn as_slice(&self) -> &[u16] {
        &self.items[..self.len]
    }
}

/// The transport header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Transport {
    /// Cut off, a later fragment, or of another protocol.
    #[default]
    None,
    /// ICMP; ICMPv6 has its own type numbers, see the protocol.
    Icmp {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
    },
    /// TCP.
    Tcp {
        /// Source port.
        source: u16,
        /// Destination port.
        destination: u16,
        /// Flags, when the sample reaches that far.
        flags: Option<u8>,
        /// Offset at which the flags are or would be in the sampled bytes.
        flags_at: usize,
    },
    /// UDP.
    Udp {
        /// Source port.
        source: u16,
        /// Destination port.
        destination: u16,
        /// Length field.
        length: u16,
    },
}

/// An IPv4 header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv4Fields {
    /// Total length.
    pub total_length: u16,
    /// Identification.
    pub id: u16,
    /// Type of service.
    pub tos: u8,
    /// Time to live.
    pub ttl: u8,
    /// Protocol.
    pub protocol: u8,
    /// Fragment offset in units of eight bytes.
    pub fragment_offset: u16,
    /// Source.
    pub source: Ipv4Addr,
    /// Destination.
    pub destination: Ipv4Addr,
    /// The transport header.
    pub transport: Transport,
}

/// An IPv6 header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv6Fields {
    /// Traffic class.
    pub traffic_class: u8,
    /// Flow label.
    pub flow_label: u32,
    /// Payload length; 0 for a jumbogram.
    pub payload_length: u16,
    /// Hop limit.
    pub hop_limit: u8,
    /// Source.
    pub source: Ipv6Addr,
    /// Destination.
    pub destination: Ipv6Addr,
    /// Extension headers that were passed over.
    pub extensions: Stack,
    /// Upper-layer protocol, when the sample reaches it.
    pub protocol: Option<u8>,
    /// The transport header.
    pub transport: Transport,
}

/// The network header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Network {
    /// No IP, or cut off.
    #[default]
    None,
    /// IPv4.
    V4(Ipv4Fields),
    /// IPv6.
    V6(Ipv6Fields),
}

/// The layers of a sampled packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampledHeader {
    /// Destination and source MAC address.
    pub macs: Option<([u8; 6], [u8; 6])>,
    /// 802.1Q/ad tag control information, outermost first.
    pub vlans: Stack,
    /// EtherType behind the tags and a SNAP header.
    pub ether_type: Option<u16>,
    /// A SNAP header of a vendor.
    pub snap_oui: Option<[u8; 3]>,
    /// Offset of the IP header, which may be cut off.
    pub ip_offset: Option<usize>,
    /// The IP header.
    pub network: Network,
}

fn is_vlan_tag(ether_type: u16) -> bool {
    matches!(ether_type, 0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300)
}

impl SampledHeader {
    /// Reads what is there. Tunnels and MPLS are not looked into.
    #[must_use]
    pub fn parse(protocol: HeaderProtocol, header: &[u8]) -> Self {
        let mut out = SampledHeader::default();
        match protocol {
            HeaderProtocol::ETHERNET => out.parse_ethernet(header),
            HeaderProtocol::IPV4 => out.parse_ipv4(header, 0),
            HeaderProtocol::IPV6 => out.parse_ipv6(header, 0),
            _ => None,
        };
        out
    }

    /// Parses like [`SampledHeader::parse`], and also passes over MPLS labels, so that the
    /// addresses of labelled IP packets are found.
    #[must_use]
    pub fn parse_through_mpls(protocol: HeaderProtocol, header: &[u8]) -> Self {
        let mut out = Self::parse(protocol, header);
        let labels_at = match (protocol, out.ether_type) {
            (HeaderProtocol::MPLS, _) => 0,
            (HeaderProtocol::ETHERNET, Some(0x8847 | 0x8848)) => 14 + 4 * out.vlans.len,
            _ => return out,
        };
        let mut at = labels_at;
        while let Some(entry) = header.get(at..at + 4) {
            at += 4;
            if entry[2] & 1 == 1 {
                match header.get(at).map(|b| b >> 4) {
                    Some(4) => out.parse_ipv4(header, at),
                    Some(6) => out.parse_ipv6(header, at),
                    _ => None,
                };
                break;
            }
        }
        out
    }

    fn parse_ethernet(&mut self, header: &[u8]) -> Option<()> {
        let destination = get(header, 0)?;
        let source = get(header, 6)?;
        let mut ether_type = get_be16(header, 12)?;
        self.macs = Some((destination, source));
        let mut at = 14;
        while is_vlan_tag(ether_type) {
            let tci = get_be16(header, at)?;
            ether_type = get_be16(header, at + 2)?;
            self.vlans.push(tci);
            at += 4;
        }
        // Nothing of interest fits into less.
        if header.len() < 20 {
            return None;
        }
        if ether_type <= 1500 {
            let llc: [u8; 3] = get(header, at)?;
            at += 3;
            if llc == [0xaa, 0xaa, 0x03] {
                let oui = get(header, at)?;
                if oui != [0; 3] {
                    self.snap_oui = Some(oui);
                    return None;
                }
                ether_type = get_be16(header, at + 3)?;
                at += 5;
            } else if llc[..2] == [0x06, 0x06] && llc[2] & 1 == 1 {
                ether_type = 0x0800;
            } else {
                return None;
            }
        }
        self.ether_type = Some(ether_type);
        match ether_type {
            0x0800 => self.parse_ipv4(header, at),
            0x86dd => self.parse_ipv6(header, at),
            _ => None,
        }
    }

    fn parse_ipv4(&mut self, header: &[u8], at: usize) -> Option<()> {
        let ip: [u8; 20] = get(header, at)?;
        if ip[0] >> 4 != 4 || ip[0] & 15 < 5 {
            return None;
        }
        self.ip_offset = Some(at);
        let fragment_offset = u16::from_be_bytes([ip[6], ip[7]]) & 0x1fff;
        let next = at + usize::from(ip[0] & 15) * 4;
        let transport = match fragment_offset {
            0 => parse_transport(header, next, ip[9]),
            _ => Transport::None,
        };
        self.network = Network::V4(Ipv4Fields {
            total_length: u16::from_be_bytes([ip[2], ip[3]]),
            id: u16::from_be_bytes([ip[4], ip[5]]),
            tos: ip[1],
            ttl: ip[8],
            protocol: ip[9],
            fragment_offset,
            source: Ipv4Addr::new(ip[12], ip[13], ip[14], ip[15]),
            destination: Ipv4Addr::new(ip[16], ip[17], ip[18], ip[19]),
            transport,
        });
        Some(())
    }

    fn parse_ipv6(&mut self, header: &[u8], at: usize) -> Option<()> {
        if header.get(at)? >> 4 != 6 {
            return None;
        }
        self.ip_offset = Some(at);
        let ip: [u8; 40] = get(header, at)?;
        let first = u32::from_be_bytes([ip[0], ip[1], ip[2], ip[3]]);
        let mut fields = Ipv6Fields {
            traffic_class: (first >> 20) as u8,
            flow_label: first & 0xf_ffff,
            payload_length: u16::from_be_bytes([ip[4], ip[5]]),
            hop_limit: ip[7],
            source: get::<16>(&ip, 8)?.into(),
            destination: get::<16>(&ip, 24)?.into(),
            extensions: Stack::default(),
            protocol: None,
            transport: Transport::None,
        };
        if let Some((protocol, next, whole)) =
            skip_extensions(header, at + 40, ip[6], &mut fields.extensions)
        {
            fields.protocol = Some(protocol);
            if whole {
                fields.transport = parse_transport(header, next, protocol);
            }
        }
        self.network = Network::V6(fields);
        Some(())
    }

    /// Source, destination and protocol of the IP packet.
    #[must_use]
    pub fn addresses(&self) -> Option<(IpAddr, IpAddr, u8)> {
        match &self.network {
            Network::None => None,
            Network::V4(ip) => Some((ip.source.into(), ip.destination.into(), ip.protocol)),
            Network::V6(ip) => {
                Some((ip.source.into(), ip.destination.into(), ip.protocol.unwrap_or(59)))
            }
        }
    }

    /// Returns the header behind the IP header.
    #[must_use]
    pub fn transport(&self) -> Transport {
        match &self.network {
            Network::None => Transport::None,
            Network::V4(ip) => ip.transport,
            Network::V6(ip) => ip.transport,
        }
    }

    /// Length of the IP packet: of the frame on the wire, without what was stripped and without
    /// what comes before the IP header.
    #[must_use]
    pub fn ip_size(&self, raw: &RawHeader<'_>) -> Option<u32> {
        let offset = self.ip_offset? as u32;
        Some(raw.frame_length.wrapping_sub(raw.stripped).wrapping_sub(offset))
    }

    /// Returns the offset of the payload of the last known header: behind TCP or UDP, else behind
    /// IP, else behind the link layer. The payload may be cut off.
    #[must_use]
    pub fn payload_offset(&self, raw: &RawHeader<'_>) -> usize {
        let link = match self.macs {
            Some(_) => 14 + 4 * self.vlans.len,
            None => 0,
        };
        let Some(ip) = self.ip_offset else { return link };
        let first = raw.header.get(ip).copied().unwrap_or(0);
        let behind_ip = match &self.network {
            Network::None => return ip,
            Network::V4(_) => ip + usize::from(first & 15) * 4,
            Network::V6(v6) => {
                let mut seen = Stack::default();
                let next = raw.header.get(ip + 6).copied().unwrap_or(59);
                match skip_extensions(raw.header, ip + 40, next, &mut seen) {
                    Some((_, at, _)) if v6.protocol.is_some() => at,
                    _ => ip + 40,
                }
            }
        };
        match self.transport() {
            Transport::None => behind_ip,
            Transport::Icmp { .. } | Transport::Udp { .. } => behind_ip + 8,
            Transport::Tcp { .. } => {
                let words = raw.header.get(behind_ip + 12).copied().unwrap_or(0) >> 4;
                behind_ip + usize::from(words.max(5)) * 4
            }
        }
    }

    pub(crate) fn visit<V: Visitor>(&self, raw: &RawHeader<'_>, v: &mut V) {
        if let Some((destination, source)) = self.macs {
            v.field(name!("dstMAC"), Value::Mac(destination));
            v.field(name!("srcMAC"), Value::Mac(source));
        } else if !matches!(raw.protocol.0, 1 | 11 | 12) {
            let text = format!("headerProtocol={}", raw.protocol.0);
            let known = raw.protocol.0 <= HeaderProtocol::LAST_KNOWN;
            let name = if known { name!("NO_DECODE") } else { name!("UNKNOWN") };
            v.field(name, Value::Str(&text));
        }
        for (i, tci) in self.vlans.as_slice().iter().enumerate() {
            let (vlan, priority) = (u32::from(tci & 0xfff), u32::from(tci >> 13));
            if i == 0 {
                v.field(name!("decodedVLAN"), Value::U32(vlan));
                v.field(name!("decodedPriority"), Value::U32(priority));
            } else {
                v.numbered(format_args!("decodedVLAN.{i}"), Value::U32(vlan));
                v.numbered(format_args!("decodedPriority.{i}"), Value::U32(priority));
            }
        }
        if let Some(oui) = self.snap_oui {
            v.field(name!("VSNAP_OUI"), Value::Bytes(&oui));
        }
        if let Some(ether_type) = self.ether_type {
            v.field(name!("ethernet_type"), Value::U32(ether_type.into()));
        }
        if let Some(size) = self.ip_size(raw) {
            v.field(name!("IPSize"), Value::U32(size));
        }
        match &self.network {
            Network::None => {}
            Network::V4(ip) => ip.visit(raw, v),
            Network::V6(ip) => ip.visit(raw, v),
        }
    }
}

/// Passes over extension headers (RFC 8200 §4): the protocol behind them, where it starts, and
/// whether the packet is whole or a first fragment.
fn skip_extensions(
    header: &[u8],
    mut at: usize,
    mut next: u8,
    seen: &mut Stack,
) -> Option<(u8, usize, bool)> {
    let mut whole = true;
    while let 0 | 43 | 44 | 51 | 60 = next {
        seen.push(next.into());
        let words = header.get(at..at + 8)?;
        let length = match next {
            44 => {
                whole &= u16::from_be_bytes([words[2], words[3]]) & 0xfff8 == 0;
                8
            }
            51 => (usize::from(words[1]) + 2) * 4,
            _ => (usize::from(words[1]) + 1) * 8,
        };
        next = words[0];
        at += length;
    }
    Some((next, at, whole))
}

fn parse_transport(header: &[u8], at: usize, protocol: u8) -> Transport {
    let Some(first) = get::<8>(header, at) else { return Transport::None };
    let source = u16::from_be_bytes([first[0], first[1]]);
    let destination = u16::from_be_bytes([first[2], first[3]]);
    match protocol {
        1 | 58 => Transport::Icmp { kind: first[0], code: first[1] },
        6 => {
            let flags_at = at + 13;
            Transport::Tcp { source, destination, flags: header.get(flags_at).copied(), flags_at }
        }
        17 => {
            let length = u16::from_be_bytes([first[4], first[5]]);
            Transport::Udp { source, destination, length }
        }
        _ => Transport::None,
    }
}

impl Ipv4Fields {
    fn visit<V: Visitor>(&self, raw: &RawHeader<'_>, v: &mut V) {
        v.field(name!("ip.tot_len"), Value::U32(self.total_length.into()));
        v.field(name!("srcIP"), Value::Address(Some(self.source.into())));
        v.field(name!("dstIP"), Value::Address(Some(self.destination.into())));
        v.field(name!("IPProtocol"), Value::U32(self.protocol.into()));
        v.field(name!("IPTOS"), Value::U32(self.tos.into()));
        v.field(name!("IPTTL"), Value::U32(self.ttl.into()));
        // sflowtool prints the identification as a little-endian machine loads it, and the fields
        // are compared with its.
        v.field(name!("IPID"), Value::U32(self.id.swap_bytes().into()));
        if self.fragment_offset > 0 {
            v.field(name!("IPFragmentOffset"), Value::U32(self.fragment_offset.into()));
        }
        self.transport.visit(raw, self.protocol, v);
    }
}

impl Ipv6Fields {
    fn visit<V: Visitor>(&self, raw: &RawHeader<'_>, v: &mut V) {
        // The split of the first word is sflowtool's, not that of RFC 8200 §3: four bits of the
        // traffic class count as type of service, the other four as part of the label.
        let low = u32::from(self.traffic_class & 15) << 20;
        v.field(name!("IPTOS"), Value::U32((self.traffic_class >> 4).into()));
        v.field(name!("IP6_label"), Value::Hex(low | self.flow_label));
        match self.payload_length {
            0 => v.field(name!("IPV6_payloadLen"), Value::Str("<jumbo>")),
            length => v.field(name!("IPV6_payloadLen"), Value::U32(length.into())),
        }
        v.field(name!("IPTTL"), Value::U32(self.hop_limit.into()));
        v.field(name!("srcIP6"), Value::Address(Some(self.source.into())));
        v.field(name!("dstIP6"), Value::Address(Some(self.destination.into())));
        for extension in self.extensions.as_slice() {
            v.field(name!("IP6HeaderExtension"), Value::U32((*extension).into()));
        }
        if let Some(protocol) = self.protocol {
            v.field(name!("IPProtocol"), Value::U32(protocol.into()));
            self.transport.visit(raw, protocol, v);
        }
    }
}

impl Transport {
    fn visit<V: Visitor>(&self, raw: &RawHeader<'_>, protocol: u8, v: &mut V) {
        match *self {
            Transport::None => {}
            // sflowtool shows the type of ICMP, but not of ICMPv6.
            Transport::Icmp { kind, code } => {
                if protocol == 1 {
                    v.field(name!("ICMPType"), Value::U32(kind.into()));
                    v.field(name!("ICMPCode"), Value::U32(code.into()));
                }
            }
            Transport::Tcp { source, destination, flags, flags_at } => {
                v.field(name!("TCPSrcPort"), Value::U32(source.into()));
                v.field(name!("TCPDstPort"), Value::U32(destination.into()));
                if let Some(flags) = flags.or_else(|| v.beyond(raw.header, flags_at)) {
                    v.field(name!("TCPFlags"), Value::U32(flags.into()));
                }
            }
            Transport::Udp { source, destination, length } => {
                v.field(name!("UDPSrcPort"), Value::U32(source.into()));
                v.field(name!("UDPDstPort"), Value::U32(destination.into()));
                v.field(name!("UDPBytes"), Value::U32(length.into()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(s: &str) -> Vec<u8> {
        let digits: Vec<u8> = s.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits
            .chunks(2)
            .map(|d| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap())
            .collect()
    }

    const MPLS: &str = "02-00-00-00-00-11-02-00-00-00-00-22-88-47-00-00-10-40-00-01-01-40-\
        45-28-00-5C-00-06-40-00-3F-11-4F-28-C0-00-02-01-C6-33-64-06-C0-06-00-35-00-48-00-00";

    #[test]
    fn labels_are_passed_over_only_when_asked() {
        let header = hex(MPLS);
        let plain = SampledHeader::parse(HeaderProtocol::ETHERNET, &header);
        assert_eq!((plain.ether_type, plain.network), (Some(0x8847), Network::None));
        let through = SampledHeader::parse_through_mpls(HeaderProtocol::ETHERNET, &header);
        let (source, destination, protocol) = through.addresses().unwrap();
        assert_eq!(source, "192.0.2.1".parse::<IpAddr>().unwrap());
        assert_eq!(destination, "198.51.100.6".parse::<IpAddr>().unwrap());
        assert_eq!(protocol, 17);
        assert_eq!(
            through.transport(),
            Transport::Udp { source: 0xc006, destination: 53, length: 72 }
        );
    }

    #[test]
    fn extension_headers_are_passed_over() {
        let mut header = hex("60000000 0018 00 40");
        header.extend([0x20; 32]);
        header.extend(hex("2c00 000000000000")); // hop-by-hop, next is fragment
        header.extend(hex("1100 0000 00000001")); // first fragment, next is UDP
        header.extend(hex("1000 2000 0008 0000"));
        let parsed = SampledHeader::parse(HeaderProtocol::IPV6, &header);
        let Network::V6(ip) = parsed.network else { panic!("{parsed:?}") };
        assert_eq!((ip.extensions.as_slice(), ip.protocol), (&[0, 44][..], Some(17)));
        assert!(matches!(ip.transport, Transport::Udp { source: 0x1000, .. }));
        header[50] = 8; // now a later fragment
        assert_eq!(
            SampledHeader::parse(HeaderProtocol::IPV6, &header).transport(),
            Transport::None
        );
    }

    #[test]
    fn protocols_that_do_not_exist_are_unknown() {
        use crate::value::Value;
        struct Names(Vec<(String, String)>);
        impl Visitor for Names {
            fn prefixed(&mut self, _: &str, name: &'static crate::value::Name, value: Value<'_>) {
                let Value::Str(text) = value else { panic!("a text") };
                let name = String::from_utf8_lossy(name.as_bytes()).into_owned();
                self.0.push((name, text.to_owned()));
            }
            fn numbered(&mut self, _: std::fmt::Arguments<'_>, _: Value<'_>) {}
        }
        for (protocol, expected) in
            [(13, "NO_DECODE"), (17, "NO_DECODE"), (18, "UNKNOWN"), (77, "UNKNOWN")]
        {
            let protocol = HeaderProtocol(protocol);
            let raw = RawHeader { protocol, frame_length: 64, stripped: 0, header: &[0; 20] };
            let mut names = Names(Vec::new());
            SampledHeader::parse(protocol, raw.header).visit(&raw, &mut names);
            let text = format!("headerProtocol={}", protocol.0);
            assert_eq!(names.0, [(expected.to_owned(), text)]);
        }
    }

    #[test]
    fn any_cut_is_fine() {
        let header = hex(MPLS);
        for n in 0..header.len() {
            for protocol in 0..20 {
                let _ = SampledHeader::parse_through_mpls(HeaderProtocol(protocol), &header[..n]);
            }
        }
    }

    #[test]
    fn snap_and_802_3() {
        let mut header = hex("020000000011 020000000022 0030 aaaa03 000000 0806");
        header.resize(60, 0);
        let parsed = SampledHeader::parse(HeaderProtocol::ETHERNET, &header);
        assert_eq!(parsed.ether_type, Some(0x0806));
        header[17] = 8;
        let parsed = SampledHeader::parse(HeaderProtocol::ETHERNET, &header);
        assert_eq!((parsed.ether_type, parsed.snap_oui), (None, Some([8, 0, 0])));
    }
}
