//! Rewrites addresses and ports of frames, and updates checksums.

use std::net::IpAddr;

use thalweg_conntrack::{Batch, Checks, IPV4, Millis, Tracker, Tuple};
use thalweg_wire::ethernet::ethertype;
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv4::Ipv4View;
use thalweg_wire::nat::packet::{self, Change, Kind};
use thalweg_wire::nat::tuple;
use thalweg_wire::owner::{self, Network};

use crate::rule::key::{self, Words};

/// Offset of the IPv4 header of an Ethernet frame, after any number of tags up to
/// [`owner::MAX_DEPTH`]. Behind labels a packet has no IPv4 fields for rules.
pub(crate) fn ipv4_at(frame: &[u8]) -> Option<usize> {
    let is_plain = |n: &Network| n.ethertype == ethertype::IPV4 && n.labels == 0;
    owner::network(frame).filter(is_plain).map(|n| n.at)
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
    let l3 = frame.get_mut(ipv4_at(frame)?..)?;
    let ip = Ipv4View::parse_prefix(l3).ok()?;
    let (IpAddr::V4(src), IpAddr::V4(dst)) = (to.src, to.dst) else { return None };
    let src = if IpAddr::V4(ip.src()) == from.src { src } else { ip.src() };
    let addresses = |src, dst| tuple::Tuple { src, dst, ..tuple::Tuple::of(&[0; 2]) }.key()[0];
    let (old, new) = (addresses(ip.src(), ip.dst()), addresses(src, dst));
    packet::readdress(l3, new, tuple::address_delta(old, new));
    Some(())
}

/// Restores, in an ICMP error of the router itself about a packet of a translated connection, the
/// packet that is quoted, and sends it to that one's sender. `l3` is the error from its IPv4 header
/// on. Returns whether it was about such a packet.
pub(crate) fn restore(
    tracker: &Tracker<IPV4>,
    batch: &mut Batch<IPV4>,
    zones: &[u16],
    l3: &mut [u8],
    now: Millis,
) -> bool {
    let parsed = packet::parse(l3, 0);
    let Kind::Error(_) = parsed.kind else { return false };
    let to = zones.iter().find_map(|zone| {
        batch.clear();
        batch.add_ipv4(*zone, l3, l3.len(), Checks::NONE);
        tracker.look_up(batch);
        let (flow, reply) = tracker.find(batch, 0, now)?;
        tracker.translation(flow, reply)
    });
    let Some(to) = to.as_ref().and_then(as_key) else { return false };
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
    /// A TCP or UDP port.
    Port(u16),
}

/// Sets an address or a port, of the source or else of the destination.
pub(crate) fn set(frame: &mut [u8], source: bool, end: End, partial: bool) -> Option<()> {
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
        (End::Port(_), _) => return None,
    }
    let change = change(&parsed.key, &new.key());
    packet::rewrite(l3, &parsed, &change, partial).then_some(())
}

/// Updates the fields of a packet whose address or port was [set](set).
pub(crate) fn note_end(words: &mut Words, source: bool, end: End) {
    match (end, source) {
        (End::Address(to), true) => key::NW_SRC.set(words, to.into()),
        (End::Address(to), false) => key::NW_DST.set(words, to.into()),
        (End::Port(to), true) => key::TP_SRC.set(words, to.into()),
        (End::Port(to), false) => key::TP_DST.set(words, to.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
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
        let mut arp = Packet::arp_request(MacAddr([2; 6]), A, B).build();
        assert_eq!(set(&mut arp, true, End::Address(1), false), None);
    }
}
