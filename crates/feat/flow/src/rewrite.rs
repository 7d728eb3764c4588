//! Rewrites addresses and ports of frames, and updates checksums.

use std::net::IpAddr;

use thalweg_conntrack::batch::Packets;
use thalweg_conntrack::{Batch, Checks, IPV6, Millis, Parts, Tracker, Tuple};
use thalweg_wire::ethernet::ethertype;
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv4::Ipv4View;
use thalweg_wire::ipv6::Ipv6View;
use thalweg_wire::nat::packet::{self, Change, Kind};
use thalweg_wire::nat::{tuple, v6};
use thalweg_wire::owner::{self, Network};
use thalweg_wire::packet::PacketView;

use crate::rule::key::{self, Words};

/// Offset of the IPv4 header of an Ethernet frame, after any number of tags up to
/// [`owner::MAX_DEPTH`]. Behind labels a packet has no IPv4 fields for rules.
pub(crate) fn ipv4_at(frame: &[u8]) -> Option<usize> {
    ip_at(frame, ethertype::IPV4)
}

/// The same of IPv6.
pub(crate) fn ipv6_at(frame: &[u8]) -> Option<usize> {
    ip_at(frame, ethertype::IPV6)
}

/// The same of the family whose keys have `W` words.
pub(crate) fn l3_at<const W: usize>(frame: &[u8]) -> Option<usize> {
    if W == IPV6 { ipv6_at(frame) } else { ipv4_at(frame) }
}

fn ip_at(frame: &[u8], kind: u16) -> Option<usize> {
    let is_plain = |n: &Network| n.ethertype == kind && n.labels == 0;
    owner::network(frame).filter(is_plain).map(|n| n.at)
}

/// A tuple of IPv6 as the rewriter takes it.
fn ends(to: &Tuple) -> Option<v6::Ends> {
    let (IpAddr::V6(src), IpAddr::V6(dst)) = (to.src, to.dst) else { return None };
    let Tuple { sport, dport, .. } = *to;
    Some(v6::Ends { src, dst, sport, dport })
}

/// The change from one key to another.
fn change(old: &tuple::Key, new: &tuple::Key) -> Change {
    let l3 = tuple::address_delta(old[0], new[0]);
    let (was, is) = (old[1] as u32, new[1] as u32);
    let l4 = match (old[1] >> 32) as u8 {
        // One identifier, and no pseudo-header.
        protocol::ICMP => tuple::port_delta(was & 0xffff, is & 0xffff),
        _ => tuple::fold(u32::from(l3) + u32::from(tuple::port_delta(was, is))),
    };
    Change { addresses: new[0], ports: is, l3, l4 }
}

/// Rewrites a packet of a translated connection to the tuple of its direction, or both the headers
/// and the quoted packet of an ICMP error about it. `partial`: a device will complete the checksum.
/// `None` if the packet cannot be translated: it must not go on as it is.
pub(crate) fn translate(frame: &mut [u8], to: &Tuple, partial: bool) -> Option<()> {
    if let Some(to) = ends(to) {
        let l3 = frame.get_mut(ipv6_at(frame)?..)?;
        let done = match PacketView::read_prefix(l3)?.is_error() {
            true => v6::rewrite_error(l3, &to),
            false => v6::rewrite(l3, &to, partial),
        };
        return done.then_some(());
    }
    let l3 = frame.get_mut(ipv4_at(frame)?..)?;
    let parsed = packet::parse(l3, 0);
    let change = change(&parsed.key, &as_key(to)?);
    match parsed.kind {
        Kind::Error(_) => packet::rewrite_error(l3, &parsed, &change, false),
        Kind::Unknown => return None,
        _ if !packet::rewrite(l3, &parsed, &change, partial) => return None,
        _ => {}
    }
    Some(())
}

/// Translates a later fragment of an ICMP error about a translated connection. Only its addresses
/// are here: the source is a translated one if it is the other endpoint, as in the first fragment.
pub(crate) fn translate_rest(frame: &mut [u8], from: &Tuple, to: &Tuple) -> Option<()> {
    if let Some(ends) = ends(to) {
        let l3 = frame.get_mut(ipv6_at(frame)?..)?;
        let src = Ipv6View::parse_prefix(l3).ok()?.src();
        let src = if IpAddr::V6(src) == from.src { ends.src } else { src };
        return v6::readdress(l3, &v6::Ends { src, ..ends }, false).then_some(());
    }
    let l3 = frame.get_mut(ipv4_at(frame)?..)?;
    let ip = Ipv4View::parse_prefix(l3).ok()?;
    let (IpAddr::V4(src), IpAddr::V4(dst)) = (to.src, to.dst) else { return None };
    let src = if IpAddr::V4(ip.src()) == from.src { src } else { ip.src() };
    let addresses = |src, dst| tuple::Tuple { src, dst, ..tuple::Tuple::of(&[0; 2]) }.key()[0];
    let (old, new) = (addresses(ip.src(), ip.dst()), addresses(src, dst));
    packet::readdress(l3, new, tuple::address_delta(old, new));
    Some(())
}

/// Translations of one packet that are undone at most, each in a zone of its own.
const TRANSLATIONS: usize = 8;

/// Restores, in an ICMP error of the router itself about a packet of translated connections, the
/// packet that is quoted, and sends it to that one's sender: the last translation is undone first.
/// `l3` is the error from its IP header on. Returns whether it was about such a packet.
pub(crate) fn restore<const W: usize>(
    tracker: &Tracker,
    batch: &mut Batch<W>,
    zones: &[u16],
    l3: &mut [u8],
    now: Millis,
) -> bool
where
    Tracker: Parts<W>,
    Batch<W>: Packets<W>,
{
    batch.clear();
    if !PacketView::read_prefix(l3).is_some_and(|packet| packet.is_error()) {
        return false;
    }
    let most = zones.len().min(TRANSLATIONS);
    (0..most).take_while(|_| undo(tracker, batch, zones, l3, now)).count() > 0
}

/// Undoes the last translation of the packet that an ICMP error quotes.
fn undo<const W: usize>(
    tracker: &Tracker,
    batch: &mut Batch<W>,
    zones: &[u16],
    l3: &mut [u8],
    now: Millis,
) -> bool
where
    Tracker: Parts<W>,
    Batch<W>: Packets<W>,
{
    let to = zones.iter().find_map(|zone| {
        batch.clear();
        batch.add_packet(*zone, l3, l3.len(), Checks::NONE);
        tracker.look_up(batch);
        let (flow, reply) = tracker.find(batch, 0, now)?;
        tracker.translation::<W>(flow, reply)
    });
    let Some(to) = to else { return false };
    if let Some(to) = ends(&to) {
        return v6::rewrite_error(l3, &to);
    }
    let (parsed, Some(to)) = (packet::parse(l3, 0), as_key(&to)) else { return false };
    let Kind::Error(_) = parsed.kind else { return false };
    packet::rewrite_error(l3, &parsed, &change(&parsed.key, &to), false);
    true
}

/// A tuple of IPv4 as a key of the rewriter.
fn as_key(to: &Tuple) -> Option<tuple::Key> {
    let (IpAddr::V4(src), IpAddr::V4(dst)) = (to.src, to.dst) else { return None };
    let (sport, dport) = match to.protocol {
        protocol::ICMP => (to.sport, to.sport),
        _ => (to.sport, to.dport),
    };
    Some(tuple::Tuple { src, sport, dst, dport, protocol: to.protocol, table: 0 }.key())
}

/// Updates the fields of a packet that was [translated](translate). Fragments after the first have
/// no ports.
pub(crate) fn note(words: &mut Words, to: &Tuple, is_later: bool) {
    if let (IpAddr::V4(src), IpAddr::V4(dst)) = (to.src, to.dst) {
        key::NW_SRC.set(words, src.to_bits().into());
        key::NW_DST.set(words, dst.to_bits().into());
    }
    if let (IpAddr::V6(src), IpAddr::V6(dst)) = (to.src, to.dst) {
        key::set_long(words, key::IPV6_SRC, src.to_bits());
        key::set_long(words, key::IPV6_DST, dst.to_bits());
    }
    // Rules know the ports of these only.
    let has_ports = matches!(to.protocol, protocol::TCP | protocol::UDP | protocol::SCTP);
    if has_ports && !is_later {
        key::TP_SRC.set(words, to.sport.into());
        key::TP_DST.set(words, to.dport.into());
    }
}

/// The address or the port of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// An IPv4 address.
    Address(u32),
    /// An IPv6 address.
    Address6(u128),
    /// A TCP or UDP port.
    Port(u16),
}

/// Sets an address or a port, of the source or else of the destination.
pub(crate) fn set(frame: &mut [u8], source: bool, end: End, partial: bool) -> Option<()> {
    if let Some(at) = ipv6_at(frame) {
        return set6(frame.get_mut(at..)?, source, end, partial);
    }
    let l3 = frame.get_mut(ipv4_at(frame)?..)?;
    let mut parsed = packet::parse(l3, 0);
    if !matches!(parsed.kind, Kind::Ports | Kind::Query) {
        // The packet quoted by an ICMP error is left as it is, and later fragments have no ports.
        let addresses = u64::from_le_bytes(*l3.get(12..)?.first_chunk()?);
        parsed.key[0] = addresses;
        parsed.kind = Kind::Other;
    }
    let old = tuple::Tuple::of(&parsed.key);
    let mut new = old;
    match (end, source) {
        (End::Address(address), true) => new.src = address.into(),
        (End::Address(address), false) => new.dst = address.into(),
        (End::Port(port), true) if parsed.kind == Kind::Ports => new.sport = port,
        (End::Port(port), false) if parsed.kind == Kind::Ports => new.dport = port,
        (End::Port(_) | End::Address6(_), _) => return None,
    }
    let change = change(&parsed.key, &new.key());
    packet::rewrite(l3, &parsed, &change, partial).then_some(())
}

/// The same for a packet from its IPv6 header on.
fn set6(l3: &mut [u8], source: bool, end: End, partial: bool) -> Option<()> {
    let mut to = v6::Ends::of(l3)?;
    let has_ports = PacketView::read_prefix(l3)?.fixed_ports().is_some();
    match (end, source) {
        (End::Address6(address), true) => to.src = address.into(),
        (End::Address6(address), false) => to.dst = address.into(),
        (End::Port(port), true) if has_ports => to.sport = port,
        (End::Port(port), false) if has_ports => to.dport = port,
        (End::Port(_) | End::Address(_), _) => return None,
    }
    v6::readdress(l3, &to, partial).then_some(())
}

/// The IPv6 address of a packet, in whose fields it is, with some bits replaced.
pub(crate) fn some_of_6(words: &Words, source: bool, value: u128, mask: u128) -> End {
    let old = key::long(words, if source { key::IPV6_SRC } else { key::IPV6_DST });
    End::Address6(old & !mask | value)
}

/// Updates the fields of a packet whose address or port was [set](set).
pub(crate) fn note_end(words: &mut Words, source: bool, end: End) {
    match (end, source) {
        (End::Address(to), true) => key::NW_SRC.set(words, to.into()),
        (End::Address(to), false) => key::NW_DST.set(words, to.into()),
        (End::Address6(to), true) => key::set_long(words, key::IPV6_SRC, to),
        (End::Address6(to), false) => key::set_long(words, key::IPV6_DST, to),
        (End::Port(to), true) => key::TP_SRC.set(words, to.into()),
        (End::Port(to), false) => key::TP_DST.set(words, to.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};
    use thalweg_wire::MacAddr;
    use thalweg_wire::build::Packet;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const C: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 77);

    fn ether() -> Packet {
        Packet::new().ether(MacAddr([2; 6]), MacAddr([4; 6]))
    }

    /// A changed packet equals one built with the new fields.
    #[test]
    fn sums_follow() {
        for tag in [false, true] {
            let ether = || if tag { ether().vlan(5) } else { ether() };
            let mut tcp = ether().ipv4(A, B).tcp(5000, 80).payload(b"abc").build();
            set(&mut tcp, true, End::Address(C.to_bits()), false).unwrap();
            set(&mut tcp, false, End::Port(8080), false).unwrap();
            let expected = ether().ipv4(C, B).tcp(5000, 8080).payload(b"abc").build();
            assert_eq!(tcp, expected);
            let mut udp = ether().ipv4(A, B).udp(5000, 53).payload(b"abcd").build();
            let to = Tuple { src: A.into(), dst: C.into(), protocol: 17, sport: 77, dport: 53 };
            translate(&mut udp, &to, false).unwrap();
            assert_eq!(udp, ether().ipv4(A, C).udp(77, 53).payload(b"abcd").build());
            let mut ping = ether().ipv4(A, B).icmp_echo_request(7, 1).build();
            let to = Tuple { src: C.into(), dst: B.into(), protocol: 1, sport: 99, dport: 8 };
            translate(&mut ping, &to, false).unwrap();
            assert_eq!(ping, ether().ipv4(C, B).icmp_echo_request(99, 1).build());
            assert_eq!(set(&mut ping, true, End::Port(9), false), None, "no ports");
        }
        let ip = |n: u16| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n);
        let mut tcp = ether().ipv6(ip(1), ip(2)).tcp(5000, 80).payload(b"abc").build();
        set(&mut tcp, true, End::Address6(ip(3).to_bits()), false).unwrap();
        set(&mut tcp, false, End::Port(8080), false).unwrap();
        assert_eq!(tcp, ether().ipv6(ip(3), ip(2)).tcp(5000, 8080).payload(b"abc").build());
        assert_eq!(set(&mut tcp, true, End::Address(1), false), None);
        let to = Tuple { src: ip(9).into(), dst: ip(2).into(), protocol: 6, sport: 77, dport: 80 };
        translate(&mut tcp, &to, false).unwrap();
        assert_eq!(tcp, ether().ipv6(ip(9), ip(2)).tcp(77, 80).payload(b"abc").build());
        let mut arp = Packet::arp_request(MacAddr([2; 6]), A, B).build();
        assert_eq!(set(&mut arp, true, End::Address(1), false), None);
    }
}
