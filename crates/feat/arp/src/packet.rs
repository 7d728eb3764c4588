//! ARP frames sent by the router, and messages between workers and the main thread.

use std::net::Ipv4Addr;
use thalweg_device::{Mac, SwIfIndex};
use thalweg_fib::Dpo;
use thalweg_wire::MacAddr;
use thalweg_wire::arp::{ArpRepr, PACKET_LEN};
use thalweg_wire::ethernet::{EthernetRepr, HEADER_LEN, ethertype};

/// Length of an ARP frame in bytes, without padding, which the device adds.
pub const FRAME_LEN: usize = HEADER_LEN + PACKET_LEN;

/// A request for `target` from `ip` at `mac`, broadcast, or unicast to its last known address.
pub fn request(mac: Mac, ip: Ipv4Addr, target: Ipv4Addr, to: Option<Mac>) -> [u8; FRAME_LEN] {
    let dst = to.map_or(MacAddr::BROADCAST, MacAddr);
    frame(dst, ArpRepr::request(MacAddr(mac), ip, target))
}

/// An announcement (RFC 5227 section 2.3): `ip` is at `mac`.
pub fn announcement(mac: Mac, ip: Ipv4Addr) -> [u8; FRAME_LEN] {
    frame(MacAddr::BROADCAST, ArpRepr::request(MacAddr(mac), ip, ip))
}

fn frame(dst: MacAddr, arp: ArpRepr) -> [u8; FRAME_LEN] {
    let mut out = [0; FRAME_LEN];
    let ether = EthernetRepr { dst, src: arp.sender_mac, ethertype: ethertype::ARP };
    // Both lengths are constant; the array has room for both.
    let _ = ether.emit(&mut out);
    let _ = arp.emit(&mut out[HEADER_LEN..]);
    out
}

/// How a neighbour was learned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Origin {
    /// It sent a request for one of our addresses.
    Request,
    /// It answered a request.
    Reply,
    /// It sent gratuitous ARP.
    Gratuitous,
    /// It was configured.
    Config,
}

impl Origin {
    /// Word used by `show` commands.
    pub fn word(self) -> &'static str {
        match self {
            Origin::Request => "request",
            Origin::Reply => "reply",
            Origin::Gratuitous => "gratuitous",
            Origin::Config => "config",
        }
    }
}

/// A sender seen by a worker, or another host that uses our address (`Conflict`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReportKind {
    Sender(Origin),
    Conflict,
}

/// Neighbour report: a worker's event about a received ARP packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NeighborReport {
    pub(crate) kind: ReportKind,
    pub(crate) mac: Mac,
    pub(crate) ip: Ipv4Addr,
}

impl NeighborReport {
    pub(crate) fn encode(self) -> [u8; 11] {
        let tag = match self.kind {
            ReportKind::Sender(Origin::Request) => 0,
            ReportKind::Sender(Origin::Reply) => 1,
            ReportKind::Sender(_) => 2,
            ReportKind::Conflict => 3,
        };
        let ([a, b, c, d, e, f], [g, h, i, j]) = (self.mac, self.ip.octets());
        [tag, a, b, c, d, e, f, g, h, i, j]
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<NeighborReport> {
        let &[tag, a, b, c, d, e, f, g, h, i, j] = bytes.first_chunk::<11>()?;
        let kind = match tag {
            0 => ReportKind::Sender(Origin::Request),
            1 => ReportKind::Sender(Origin::Reply),
            2 => ReportKind::Sender(Origin::Gratuitous),
            _ => ReportKind::Conflict,
        };
        Some(NeighborReport { kind, mac: [a, b, c, d, e, f], ip: Ipv4Addr::new(g, h, i, j) })
    }
}

/// Resolve request: the key under which a worker holds packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub(crate) enum ResolveRequest {
    /// `ip4-glean`: a host of a connected subnet. The worker has sent the first request already.
    Host(SwIfIndex, Ipv4Addr),
    /// `ip4-arp`: the neighbour of an adjacency.
    Adjacency(Dpo),
}

impl ResolveRequest {
    pub(crate) fn key(self) -> u64 {
        match self {
            ResolveRequest::Host(sw_if, ip) => u64::from(sw_if) << 32 | u64::from(ip.to_bits()),
            ResolveRequest::Adjacency(dpo) => u64::from(dpo),
        }
    }

    pub(crate) fn encode(self) -> [u8; 9] {
        let (kind, key) =
            (u8::from(matches!(self, ResolveRequest::Adjacency(_))), self.key().to_be_bytes());
        let [a, b, c, d, e, f, g, h] = key;
        [kind, a, b, c, d, e, f, g, h]
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<ResolveRequest> {
        let &[kind, a, b, c, d, e, f, g, h] = bytes.first_chunk::<9>()?;
        let low = u32::from_be_bytes([e, f, g, h]);
        Some(match kind {
            0 => ResolveRequest::Host(u32::from_be_bytes([a, b, c, d]), low.into()),
            _ => ResolveRequest::Adjacency(low),
        })
    }
}

/// Resolve reply: the main thread's message to the node that holds the packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ResolveReply {
    /// The neighbour is resolved: send the held packets by this adjacency.
    Release { key: u64, dpo: Dpo },
    /// No such neighbour: drop the held packets and all others until `until` (ticks).
    Fail { key: u64, until: u64 },
}

/// Message to `arp-input` after a flush: report all senders again.
pub(crate) struct ResetReports;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use thalweg_wire::arp::ArpView;
    use thalweg_wire::ethernet::EthernetView;

    #[test]
    fn frames_parse_as_built() {
        let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let mac = [2, 0, 0, 0, 0, 1];
        let all = request(mac, a, b, None);
        let eth = EthernetView::parse(&all).unwrap();
        assert!(eth.dst().is_broadcast() && eth.ethertype() == ethertype::ARP);
        let arp = ArpView::parse(eth.payload()).unwrap();
        assert_eq!(arp.repr(), ArpRepr::request(MacAddr(mac), a, b));
        let one = request(mac, a, b, Some([2, 0, 0, 0, 0, 9]));
        assert_eq!(one[..6], [2, 0, 0, 0, 0, 9]);
        assert!(ArpView::parse(&announcement(mac, a)[14..]).unwrap().is_gratuitous());
    }

    proptest! {
        #[test]
        fn messages_round_trip(kind in 0usize..4, mac: [u8; 6], ip: u32, sw_if: u32) {
            let kind = [ReportKind::Sender(Origin::Request), ReportKind::Sender(Origin::Reply),
                ReportKind::Sender(Origin::Gratuitous), ReportKind::Conflict][kind];
            let report = NeighborReport { kind, mac, ip: ip.into() };
            prop_assert_eq!(NeighborReport::decode(&report.encode()), Some(report));
            for request in [ResolveRequest::Host(sw_if, ip.into()), ResolveRequest::Adjacency(ip)] {
                prop_assert_eq!(ResolveRequest::decode(&request.encode()), Some(request));
            }
        }
    }
}
