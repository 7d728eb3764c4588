//! Text for packet traces, in the form of VPP's traces.
//!
//! Each function writes whole lines: `indent` spaces, the text, a newline. Malformed and truncated
//! bytes are shown as far as they go, with a line that describes the error; nothing here panics on
//! any bytes.

use core::fmt::{self, Display, Formatter, Result, Write};

use crate::arp::{ArpView, Operation};
use crate::ethernet::{MIN_ETHERTYPE, ethertype};
use crate::gre::GreView;
use crate::icmpv4::IcmpView;
use crate::icmpv6::Icmp6View;
use crate::ip::{dscp_name, ecn_name, protocol, protocol_name};
use crate::ipv4::{self, Ipv4View};
use crate::ipv6::Ipv6View;
use crate::llc::{LlcView, Payload};
use crate::tcp::TcpView;
use crate::udp::{self, UdpView};
use crate::vlan::{Tag, layer2};
use crate::vxlan::VxlanView;
use crate::{icmpv4, icmpv6, mpls, nd, tcp, vlan};

/// Maximum depth of nested packets.
const MAX_DEPTH: u8 = 4;

/// Writes one line: the indent, the text, a newline.
macro_rules! line {
    ($out:expr, $indent:expr, $($text:tt)*) => {{
        write!($out, "{:1$}", "", $indent)?;
        write!($out, $($text)*)?;
        $out.write_char('\n')
    }};
}

/// The name of an ethertype, if it has one.
pub const fn ethertype_name(number: u16) -> Option<&'static str> {
    Some(match number {
        ethertype::IPV4 => "IP4",
        ethertype::ARP => "ARP",
        ethertype::TEB => "TEB",
        ethertype::VLAN => "VLAN",
        ethertype::IPV6 => "IP6",
        ethertype::SLOW => "SLOW_PROTOCOLS",
        ethertype::PPPOE_DISCOVERY => "PPPOE_DISCOVERY",
        ethertype::PPPOE_SESSION => "PPPOE_SESSION",
        ethertype::MPLS => "MPLS",
        ethertype::MPLS_MULTICAST => "MPLS_MULTICAST",
        ethertype::DOT1AD => "DOT1AD",
        ethertype::LLDP => "802_1_LLDP",
        ethertype::LOOPBACK => "LOOPBACK",
        ethertype::QINQ_9100 => "VLAN_9100",
        _ => return None,
    })
}

/// A name, or the number in a fallback form.
struct Named<N: Display>(Option<&'static str>, N);

impl<N: Display> Display for Named<N> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.0 {
            Some(name) => f.write_str(name),
            None => self.1.fmt(f),
        }
    }
}

struct Hex16(u16);

impl Display for Hex16 {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{:#06x}", self.0)
    }
}

struct Unknown(u8);

impl Display for Unknown {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "unknown {}", self.0)
    }
}

fn type_of(number: u16) -> Named<Hex16> {
    Named(ethertype_name(number), Hex16(number))
}

fn protocol_of(number: u8) -> Named<Unknown> {
    Named(protocol_name(number), Unknown(number))
}

/// A whole Ethernet frame as text, without indent: for messages and test failures.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a>(pub &'a [u8]);

impl Display for Frame<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        packet(self.0, f, 0)
    }
}

/// A packet from its IP header on, as text, without indent.
#[derive(Clone, Copy, Debug)]
pub struct Ip<'a>(pub &'a [u8]);

impl Display for Ip<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        ip(self.0, f, 0)
    }
}

/// A whole frame: Ethernet, tags, and all known inner headers.
pub fn packet(frame: &[u8], out: &mut dyn Write, indent: usize) -> Result {
    frame_at(frame, out, indent, MAX_DEPTH)
}

fn frame_at(frame: &[u8], out: &mut dyn Write, indent: usize, depth: u8) -> Result {
    ethernet(frame, out, indent)?;
    let Ok(l2) = layer2(frame) else { return Ok(()) };
    match l2.ethertype {
        number if number < MIN_ETHERTYPE && l2.tag_count == 0 => {
            match LlcView::of_frame(&l2.ethernet) {
                Ok(view) => llc(&view, out, indent),
                Err(e) => line!(out, indent, "{e}"),
            }
        }
        number => payload_of(number, l2.payload, out, indent, depth),
    }
}

/// The payload of an ethertype.
pub fn l3(ethertype: u16, data: &[u8], out: &mut dyn Write, indent: usize) -> Result {
    payload_of(ethertype, data, out, indent, MAX_DEPTH)
}

fn payload_of(kind: u16, data: &[u8], out: &mut dyn Write, indent: usize, depth: u8) -> Result {
    match kind {
        ethertype::IPV4 => ip4_at(data, out, indent, depth),
        ethertype::IPV6 => ip6_at(data, out, indent, depth),
        ethertype::ARP => arp(data, out, indent),
        ethertype::MPLS | ethertype::MPLS_MULTICAST => mpls_at(data, out, indent, depth),
        ethertype::TEB if depth > 0 => frame_at(data, out, indent, depth - 1),
        _ => Ok(()),
    }
}

/// The line of an Ethernet header with its tags:
/// `IP4: 02:fe:00:00:00:01 -> 02:fe:00:00:00:02 802.1q vlan 10`.
pub fn ethernet(frame: &[u8], out: &mut dyn Write, indent: usize) -> Result {
    let l2 = match crate::ethernet::EthernetView::parse(frame) {
        Ok(view) => view,
        Err(e) => return line!(out, indent, "{e}"),
    };
    // The type after the tags comes first, so they are walked twice.
    let mut tags = vlan::Tags::new(l2.ethertype(), l2.payload());
    tags.by_ref().for_each(drop);
    let kind = type_of(tags.ethertype());
    write!(out, "{:indent$}{kind}: {} -> {}", "", l2.src(), l2.dst())?;
    for tag in vlan::Tags::new(l2.ethertype(), l2.payload()) {
        vlan_tag(tag, out)?;
    }
    out.write_char('\n')
}

fn vlan_tag(tag: Tag, out: &mut dyn Write) -> Result {
    match tag.tpid {
        ethertype::VLAN => out.write_str(" 802.1q")?,
        ethertype::DOT1AD => out.write_str(" 802.1ad")?,
        other => write!(out, " {other:#06x}")?,
    }
    write!(out, " vlan {}", tag.id())?;
    if tag.priority() != 0 {
        write!(out, " priority {}", tag.priority())?;
    }
    if tag.drop_eligible() {
        out.write_str(" dei")?;
    }
    Ok(())
}

fn llc(view: &LlcView<'_>, out: &mut dyn Write, indent: usize) -> Result {
    match view.payload_kind() {
        Payload::Bpdu => line!(out, indent, "LLC bpdu -> bpdu"),
        Payload::Snap { oui, protocol } => {
            line!(out, indent, "SNAP oui {oui:#08x} protocol {protocol:#06x}")
        }
        _ => line!(out, indent, "LLC {:#04x} -> {:#04x}", view.ssap(), view.dsap()),
    }
}

/// Two lines for ARP: the operation, and the addresses of sender and target.
pub fn arp(data: &[u8], out: &mut dyn Write, indent: usize) -> Result {
    let view = match ArpView::parse(data) {
        Ok(view) => view,
        Err(e) => return line!(out, indent, "{e}"),
    };
    const LAYOUT: &str = "type ethernet/IP4, address size 6/4";
    match view.operation() {
        Operation::Request => line!(out, indent, "request, {LAYOUT}")?,
        Operation::Reply => line!(out, indent, "reply, {LAYOUT}")?,
        Operation::Other(n) => line!(out, indent, "unknown {n:#x}, {LAYOUT}")?,
    }
    let (sender, target) = (view.sender_mac(), view.target_mac());
    line!(out, indent, "{sender}/{} -> {target}/{}", view.sender_ip(), view.target_ip())
}

/// An IP packet of either version, by its first byte.
pub fn ip(data: &[u8], out: &mut dyn Write, indent: usize) -> Result {
    ip_at(data, out, indent, MAX_DEPTH)
}

fn ip_at(data: &[u8], out: &mut dyn Write, indent: usize, depth: u8) -> Result {
    match data.first() {
        Some(byte) if byte >> 4 == 6 => ip6_at(data, out, indent, depth),
        _ => ip4_at(data, out, indent, depth),
    }
}

/// An IPv4 header, and the transport after it.
pub fn ip4(data: &[u8], out: &mut dyn Write, indent: usize) -> Result {
    ip4_at(data, out, indent, MAX_DEPTH)
}

fn ip4_at(data: &[u8], out: &mut dyn Write, indent: usize, depth: u8) -> Result {
    // The lenient parser shows what a packet that failed the checks looks like.
    let view = match Ipv4View::parse_unchecked(data) {
        Ok(view) => view,
        Err(e) => return line!(out, indent, "{e}"),
    };
    line!(out, indent, "{}: {} -> {}", protocol_of(view.protocol()), view.src(), view.dst())?;
    let more = indent + 2;
    let ihl = usize::from(view.header()[0] & 0xf) * 4;
    if view.version() != 4 || ihl != ipv4::HEADER_LEN {
        line!(out, more, "version {}, header length {ihl}", view.version())?;
    }
    write!(out, "{:more$}tos {:#04x}, ttl {}, ", "", view.tos(), view.ttl())?;
    write!(out, "length {}, checksum {:#06x}", view.total_len(), view.checksum())?;
    if !view.checksum_ok() {
        write!(out, " (should be {:#06x})", view.computed_checksum())?;
    }
    let dscp = Named(dscp_name(view.dscp()), Unknown(view.dscp()));
    writeln!(out, " dscp {dscp} ecn {}", ecn_name(view.ecn()))?;
    fragment_line(&view, out, more)?;
    if view.fragment_offset() > 0 || view.version() != 4 || ihl < ipv4::HEADER_LEN {
        return Ok(());
    }
    // Cut off link padding if the length is valid.
    let payload = Ipv4View::parse_prefix(data).map_or(view.payload(), |v| v.payload());
    transport(view.protocol(), payload, out, indent, depth)
}

fn fragment_line(view: &Ipv4View<'_>, out: &mut dyn Write, indent: usize) -> Result {
    write!(out, "{:indent$}fragment id {:#06x}", "", view.id())?;
    if view.fragment_offset() > 0 {
        write!(out, " offset {}", view.fragment_offset())?;
    }
    let word = view.fragment_word();
    let names = [
        (ipv4::flag::MORE_FRAGMENTS, "MORE_FRAGMENTS"),
        (ipv4::flag::DONT_FRAGMENT, "DONT_FRAGMENT"),
        (ipv4::flag::RESERVED, "CONGESTION"),
    ];
    let mut lead = ", flags ";
    for (_, name) in names.into_iter().filter(|(bit, _)| word & bit != 0) {
        write!(out, "{lead}{name}")?;
        lead = " ";
    }
    out.write_char('\n')
}

/// An IPv6 header, and the transport after it and its extension headers.
pub fn ip6(data: &[u8], out: &mut dyn Write, indent: usize) -> Result {
    ip6_at(data, out, indent, MAX_DEPTH)
}

fn ip6_at(data: &[u8], out: &mut dyn Write, indent: usize, depth: u8) -> Result {
    let view = match Ipv6View::parse_prefix(data) {
        Ok(view) => view,
        Err(e) => return line!(out, indent, "{e}"),
    };
    line!(out, indent, "{}: {} -> {}", protocol_of(view.next_header()), view.src(), view.dst())?;
    let (class, label) = (view.traffic_class(), view.flow_label());
    let (hops, length) = (view.hop_limit(), view.payload_len());
    let more = indent + 2;
    line!(
        out,
        more,
        "tos {class:#04x}, flow label {label:#x}, hop limit {hops}, payload length {length}"
    )?;
    let t = match view.transport() {
        Ok(t) => t,
        Err(e) => return line!(out, more, "{e}"),
    };
    if let Some(f) = t.fragment {
        let flags = if f.more { ", flags MORE_FRAGMENTS" } else { "" };
        line!(out, more, "fragment id {:#010x} offset {}{flags}", f.id, f.offset)?;
        if f.offset > 0 {
            return Ok(());
        }
    }
    transport(t.protocol, t.payload, out, indent, depth)
}

fn transport(kind: u8, data: &[u8], out: &mut dyn Write, indent: usize, depth: u8) -> Result {
    match kind {
        protocol::ICMP => icmp4_at(data, out, indent, depth),
        protocol::ICMPV6 => icmp6_at(data, out, indent, depth),
        protocol::TCP => tcp(data, out, indent),
        protocol::UDP => udp_at(data, out, indent, depth),
        protocol::GRE => gre(data, out, indent, depth),
        protocol::IP_IN_IP | protocol::IPV6 if depth > 0 => ip_at(data, out, indent, depth - 1),
        protocol::MPLS_IN_IP => mpls_at(data, out, indent, depth),
        _ => Ok(()),
    }
}

/// `ICMP echo_request checksum 0x1bad id 2959`; errors show the quoted packet below.
pub fn icmp4(data: &[u8], out: &mut dyn Write, indent: usize) -> Result {
    icmp4_at(data, out, indent, MAX_DEPTH)
}

fn icmp4_at(data: &[u8], out: &mut dyn Write, indent: usize, depth: u8) -> Result {
    let view = match IcmpView::parse(data) {
        Ok(view) => view,
        Err(e) => return line!(out, indent, "{e}"),
    };
    let name = Named(icmpv4::kind_name(view.kind()), Unknown(view.kind()));
    write!(out, "{:indent$}ICMP {name}", "")?;
    if let Some(code) = icmpv4::code_name(view.kind(), view.code()) {
        write!(out, " {code}")?;
    }
    write!(out, " checksum {:#06x}", view.checksum())?;
    if let Some(echo) = view.echo() {
        write!(out, " id {}", echo.id)?;
    }
    if let Some(mtu) = view.mtu() {
        write!(out, " mtu {mtu}")?;
    }
    out.write_char('\n')?;
    if view.is_error() && depth > 0 && !view.payload().is_empty() {
        ip4_at(view.payload(), out, indent + 2, depth - 1)?;
    }
    Ok(())
}

/// `ICMP neighbor_solicitation checksum 0xd7a`, with the target below for neighbor discovery.
pub fn icmp6(data: &[u8], out: &mut dyn Write, indent: usize) -> Result {
    icmp6_at(data, out, indent, MAX_DEPTH)
}

fn icmp6_at(data: &[u8], out: &mut dyn Write, indent: usize, depth: u8) -> Result {
    let view = match Icmp6View::parse(data) {
        Ok(view) => view,
        Err(e) => return line!(out, indent, "{e}"),
    };
    let name = Named(icmpv6::kind_name(view.kind()), Unknown(view.kind()));
    write!(out, "{:indent$}ICMP {name}", "")?;
    if let Some(code) = icmpv6::code_name(view.kind(), view.code()) {
        write!(out, " {code}")?;
    }
    write!(out, " checksum {:#x}", view.checksum())?;
    if let Some(echo) = view.echo() {
        write!(out, " id {}", echo.id)?;
    }
    out.write_char('\n')?;
    match nd::Message::parse(&view) {
        Some(Ok(message)) => neighbor(&message, out, indent + 2),
        Some(Err(e)) => line!(out, indent + 2, "{e}"),
        None if view.is_error() && depth > 0 && !view.payload().is_empty() => {
            ip6_at(view.payload(), out, indent + 2, depth - 1)
        }
        None => Ok(()),
    }
}

fn neighbor(message: &nd::Message<'_>, out: &mut dyn Write, indent: usize) -> Result {
    use nd::Message::{NeighborAdvertisement, NeighborSolicitation, Redirect};
    if let NeighborSolicitation { target, .. }
    | NeighborAdvertisement { target, .. }
    | Redirect { target, .. } = message
    {
        line!(out, indent, "target address {target}")?;
    }
    match message.link_layer() {
        Some(mac) => line!(out, indent, "link-layer address {mac}"),
        None => Ok(()),
    }
}

/// `UDP: 1234 -> 4321`, and its length and checksum.
pub fn udp(data: &[u8], out: &mut dyn Write, indent: usize) -> Result {
    udp_at(data, out, indent, 0)
}

fn udp_at(data: &[u8], out: &mut dyn Write, indent: usize, depth: u8) -> Result {
    let view = match UdpView::parse_prefix(data) {
        Ok(view) => view,
        Err(e) => return line!(out, indent, "{e}"),
    };
    line!(out, indent, "UDP: {} -> {}", view.src_port(), view.dst_port())?;
    line!(out, indent + 2, "length {}, checksum {:#06x}", view.length(), view.checksum())?;
    if view.dst_port() == udp::port::VXLAN
        && depth > 0
        && let Ok(vxlan) = VxlanView::parse(view.payload())
    {
        line!(out, indent, "VXLAN: vni {}", vxlan.vni())?;
        frame_at(vxlan.payload(), out, indent + 2, depth - 1)?;
    }
    Ok(())
}

/// `TCP: 1 -> 2`, with numbers, flags, window and checksum.
pub fn tcp(data: &[u8], out: &mut dyn Write, indent: usize) -> Result {
    // Parse the header without its options, so that one that is truncated in them is still shown.
    let (view, length) = match data.first_chunk::<{ tcp::HEADER_LEN }>() {
        Some(fixed) => {
            let mut short = *fixed;
            let length = usize::from(short[12] >> 4) * 4;
            short[12] = 0x50;
            (short, length)
        }
        None => {
            let have = data.len();
            return line!(out, indent, "TCP header: truncated, needs 20 bytes and has {have}");
        }
    };
    let Ok(view) = TcpView::parse(&view) else { return Ok(()) };
    line!(out, indent, "TCP: {} -> {}", view.src_port(), view.dst_port())?;
    let more = indent + 2;
    line!(out, more, "seq. {:#010x} ack {:#010x}", view.seq(), view.ack())?;
    write!(out, "{:more$}flags {:#04x}", "", view.flags())?;
    for (bit, name) in tcp::flag::NAMES.iter().enumerate() {
        if view.flags() & 1 << bit != 0 {
            write!(out, " {name}")?;
        }
    }
    writeln!(out, ", tcp header: {length} bytes")?;
    line!(out, more, "window {}, checksum {:#06x}", view.window(), view.checksum())
}

fn gre(data: &[u8], out: &mut dyn Write, indent: usize, depth: u8) -> Result {
    let view = match GreView::parse(data) {
        Ok(view) => view,
        Err(e) => return line!(out, indent, "{e}"),
    };
    write!(out, "{:indent$}GRE: {}", "", type_of(view.protocol()))?;
    if let Some(key) = view.key() {
        write!(out, " key {key:#x}")?;
    }
    if let Some(sequence) = view.sequence() {
        write!(out, " sequence {sequence}")?;
    }
    out.write_char('\n')?;
    match depth {
        0 => Ok(()),
        _ => payload_of(view.protocol(), view.payload(), out, indent + 2, depth - 1),
    }
}

/// A line per label stack entry, and the IP packet after the bottom.
pub fn mpls(data: &[u8], out: &mut dyn Write, indent: usize) -> Result {
    mpls_at(data, out, indent, MAX_DEPTH)
}

fn mpls_at(data: &[u8], out: &mut dyn Write, indent: usize, depth: u8) -> Result {
    // An endless stack would fill the trace; no router pushes as many as these.
    let mut stack = mpls::Stack::new(data);
    for e in stack.by_ref().take(16) {
        let (label, class, eos) = (e.label(), e.traffic_class(), u8::from(e.is_bottom()));
        line!(out, indent, "MPLS: label {label} exp {class} eos {eos} ttl {}", e.ttl())?;
    }
    let version = stack.payload().first().map(|b| b >> 4);
    match version {
        Some(4 | 6) if stack.reached_bottom() && depth > 0 => {
            ip_at(stack.payload(), out, indent, depth - 1)
        }
        _ => Ok(()),
    }
}

/// Bytes as hex, 32 a line, as in traces of rewrites: `00000000: 02fe...`.
pub fn hex(data: &[u8], out: &mut dyn Write, indent: usize) -> Result {
    for (i, chunk) in data.chunks(32).enumerate() {
        write!(out, "{:indent$}{:08x}: ", "", i * 32)?;
        for byte in chunk {
            write!(out, "{byte:02x}")?;
        }
        out.write_char('\n')?;
    }
    Ok(())
}

/// Bytes as hex and text, 16 a line, for reading by eye.
pub fn hexdump(data: &[u8], out: &mut dyn Write, indent: usize) -> Result {
    for (i, chunk) in data.chunks(16).enumerate() {
        write!(out, "{:indent$}{:04x}:", "", i * 16)?;
        for column in 0..16 {
            let gap = if column == 8 { "  " } else { " " };
            match chunk.get(column) {
                Some(byte) => write!(out, "{gap}{byte:02x}")?,
                None => write!(out, "{gap}  ")?,
            }
        }
        out.write_str("  ")?;
        for &byte in chunk {
            let printable = byte.is_ascii_graphic() || byte == b' ';
            out.write_char(if printable { char::from(byte) } else { '.' })?;
        }
        out.write_char('\n')?;
    }
    Ok(())
}

/// [`hexdump`] as a value that can be displayed.
#[derive(Clone, Copy, Debug)]
pub struct Hexdump<'a>(pub &'a [u8]);

impl fmt::Display for Hexdump<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        hexdump(self.0, f, 0)
    }
}

#[cfg(test)]
mod tests;
