//! ARP frames sent by the router.

use std::net::Ipv4Addr;
use thalweg_wire::MacAddr;
use thalweg_wire::arp::{ArpRepr, PACKET_LEN};
use thalweg_wire::ethernet::{EthernetRepr, HEADER_LEN, ethertype};

/// Length of an ARP frame in bytes, without padding, which the device adds.
pub const FRAME_LEN: usize = HEADER_LEN + PACKET_LEN;

/// A request for `target` from `ip` at `mac`, broadcast, or unicast to its last known address.
pub fn request(
    mac: MacAddr,
    ip: Ipv4Addr,
    target: Ipv4Addr,
    to: Option<MacAddr>,
) -> [u8; FRAME_LEN] {
    let dst = to.unwrap_or(MacAddr::BROADCAST);
    frame(dst, ArpRepr::request(mac, ip, target))
}

/// An announcement (RFC 5227 section 2.3): `ip` is at `mac`.
pub fn announcement(mac: MacAddr, ip: Ipv4Addr) -> [u8; FRAME_LEN] {
    frame(MacAddr::BROADCAST, ArpRepr::request(mac, ip, ip))
}

fn frame(dst: MacAddr, arp: ArpRepr) -> [u8; FRAME_LEN] {
    let mut out = [0; FRAME_LEN];
    let ether = EthernetRepr { dst, src: arp.sender_mac, ethertype: ethertype::ARP };
    // Both lengths are constant; the array has room for both.
    let _ = ether.emit(&mut out);
    let _ = arp.emit(&mut out[HEADER_LEN..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_wire::arp::ArpView;
    use thalweg_wire::ethernet::EthernetView;

    #[test]
    fn frames_parse_as_built() {
        let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let mac = [2, 0, 0, 0, 0, 1];
        let all = request(MacAddr(mac), a, b, None);
        let eth = EthernetView::parse(&all).unwrap();
        assert!(eth.dst().is_broadcast() && eth.ethertype() == ethertype::ARP);
        let arp = ArpView::parse(eth.payload()).unwrap();
        assert_eq!(arp.repr(), ArpRepr::request(MacAddr(mac), a, b));
        let one = request(MacAddr(mac), a, b, Some(MacAddr([2, 0, 0, 0, 0, 9])));
        assert_eq!(one[..6], [2, 0, 0, 0, 0, 9]);
        assert!(ArpView::parse(&announcement(MacAddr(mac), a)[14..]).unwrap().is_gratuitous());
    }
}
