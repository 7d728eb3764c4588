//! Messages between workers and the main thread.

use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use thalweg_device::{MacAddr, SwIfIndex};
use thalweg_fib::Parked;
use thalweg_graph::{NodeId, Topic};

/// Topics of workers' events.
#[derive(Clone, Copy)]
pub(crate) struct Topics {
    pub(crate) reports: Topic,
    pub(crate) requests: Topic,
}

/// Way in which a neighbour was learned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Origin {
    /// The neighbour sent a request for one of our addresses.
    Request,
    /// The neighbour answered a request.
    Reply,
    /// The neighbour announced itself.
    Gratuitous,
    /// The neighbour was configured.
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

/// An address as 17 bytes: the family, then the address.
fn put_address(ip: IpAddr, out: &mut [u8; 17]) {
    match ip {
        IpAddr::V4(ip) => {
            out[0] = 4;
            out[1..5].copy_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            out[0] = 6;
            out[1..].copy_from_slice(&ip.octets());
        }
    }
}

fn address(bytes: &[u8; 17]) -> IpAddr {
    let [family, address @ ..] = *bytes;
    match family {
        4 => {
            let [a, b, c, d, ..] = address;
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
        _ => IpAddr::V6(Ipv6Addr::from(address)),
    }
}

/// A sender seen by a worker, or another host that uses our address (`Conflict`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReportKind {
    Sender(Origin),
    Conflict,
}

impl ReportKind {
    pub(crate) fn tag(self) -> u8 {
        match self {
            ReportKind::Sender(Origin::Request) => 0,
            ReportKind::Sender(Origin::Reply) => 1,
            ReportKind::Sender(_) => 2,
            ReportKind::Conflict => 3,
        }
    }
}

/// Neighbour report: a worker's event about the sender of a received packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NeighborReport {
    pub(crate) kind: ReportKind,
    pub(crate) mac: MacAddr,
    pub(crate) ip: IpAddr,
}

impl NeighborReport {
    pub(crate) fn encode(self) -> [u8; 24] {
        let mut ip = [0; 17];
        put_address(self.ip, &mut ip);
        let mut out = [0; 24];
        out[0] = self.kind.tag();
        out[1..7].copy_from_slice(&self.mac.0);
        out[7..].copy_from_slice(&ip);
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<NeighborReport> {
        let kind = match bytes.first()? {
            0 => ReportKind::Sender(Origin::Request),
            1 => ReportKind::Sender(Origin::Reply),
            2 => ReportKind::Sender(Origin::Gratuitous),
            _ => ReportKind::Conflict,
        };
        let mac = MacAddr(*bytes.get(1..)?.first_chunk()?);
        let ip = address(bytes.get(7..)?.first_chunk()?);
        Some(NeighborReport { kind, mac, ip })
    }
}

/// Resolve request: the key under which a worker holds packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ResolveRequest {
    pub(crate) sw_if: SwIfIndex,
    pub(crate) ip: IpAddr,
    /// The adjacency that the packets came by, whose index may be another one's later; without one,
    /// they came by a connected subnet, and the worker has sent the first request already.
    pub(crate) dpo: Option<Parked>,
}

/// One word for all but IPv6 addresses of a subnet.
impl Hash for ResolveRequest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match (self.dpo, self.ip) {
            (Some(dpo), _) => state.write_u64(u64::from(dpo.0)),
            (None, IpAddr::V4(ip)) => {
                state.write_u64(u64::from(self.sw_if.get()) << 32 | u64::from(ip.to_bits()));
            }
            (None, IpAddr::V6(ip)) => {
                let bits = ip.to_bits();
                state.write_u64(u64::from(self.sw_if.get()));
                state.write_u64((bits >> 64) as u64);
                state.write_u64(bits as u64);
            }
        }
    }
}

/// An event's bytes: a resolve request, and the node that holds the packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Asked {
    pub(crate) request: ResolveRequest,
    pub(crate) node: NodeId,
}

impl Asked {
    pub(crate) fn encode(self) -> [u8; 28] {
        let ResolveRequest { sw_if, ip, dpo } = self.request;
        let mut address = [0; 17];
        put_address(ip, &mut address);
        let mut out = [0; 28];
        out[0] = u8::from(dpo.is_some());
        out[1..3].copy_from_slice(&self.node.0.to_be_bytes());
        out[3..7].copy_from_slice(&sw_if.0.to_be_bytes());
        out[7..11].copy_from_slice(&dpo.unwrap_or_default().0.to_be_bytes());
        out[11..].copy_from_slice(&address);
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Asked> {
        let number = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
        let node = NodeId(u16::from_be_bytes(*bytes.get(1..)?.first_chunk()?));
        let (sw_if, dpo) = (SwIfIndex(number(3)?), Parked(number(7)?));
        let ip = address(bytes.get(11..)?.first_chunk()?);
        let dpo = Some(dpo).filter(|_| bytes[0] != 0);
        Some(Asked { request: ResolveRequest { sw_if, ip, dpo }, node })
    }
}

/// Resolve reply: the main thread's message to the node that holds the packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ResolveReply {
    /// The neighbour is resolved: send the held packets by this adjacency.
    Release { request: ResolveRequest, dpo: Parked },
    /// No such neighbour: drop the held packets and all others until `until` (ticks).
    Fail { request: ResolveRequest, until: u64 },
}

/// Message to a node that holds packets: ask again for neighbours that have not answered, of one
/// interface or of all, with one address or any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EndSilences {
    pub(crate) sw_if: Option<SwIfIndex>,
    pub(crate) ip: Option<IpAddr>,
}

/// Message to a node that holds packets: this interface is deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gone(pub(crate) SwIfIndex);

/// Message to a node that reports senders: report all of them again.
pub(crate) struct ResetReports;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_ip() -> impl Strategy<Value = IpAddr> {
        prop_oneof![
            any::<u32>().prop_map(|ip| IpAddr::V4(ip.into())),
            any::<u128>().prop_map(|ip| IpAddr::V6(ip.into())),
        ]
    }

    proptest! {
        #[test]
        fn messages_round_trip(kind in 0usize..4, mac: [u8; 6], ip in any_ip(), n: u32, node: u16) {
            let kind = [ReportKind::Sender(Origin::Request), ReportKind::Sender(Origin::Reply),
                ReportKind::Sender(Origin::Gratuitous), ReportKind::Conflict][kind];
            let report = NeighborReport { kind, mac: MacAddr(mac), ip };
            prop_assert_eq!(NeighborReport::decode(&report.encode()), Some(report));
            for dpo in [None, Some(Parked(n / 2))] {
                let request = ResolveRequest { sw_if: SwIfIndex(n), ip, dpo };
                let asked = Asked { request, node: NodeId(node) };
                prop_assert_eq!(Asked::decode(&asked.encode()), Some(asked));
            }
        }

        #[test]
        fn any_bytes_decode_or_not(bytes in prop::collection::vec(any::<u8>(), 0..30)) {
            prop_assert_eq!(NeighborReport::decode(&bytes).is_some(), bytes.len() >= 24);
            prop_assert_eq!(Asked::decode(&bytes).is_some(), bytes.len() >= 28);
        }
    }
}
