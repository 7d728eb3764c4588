//! Routes as the kernel has them (rtnetlink(7)): those of this thread's network namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::link::Link;
use crate::socket::{Port, Protocol, Question};
use crate::wire::{Attributes, Header, Writer, address};

const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RTM_NEWRULE: u16 = 32;
const RTM_GETRULE: u16 = 34;
const RTM_NEWNEXTHOP: u16 = 104;
const RTM_GETNEXTHOP: u16 = 106;

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

/// `struct rtmsg`: family, lengths of destination and source, TOS, table, protocol, scope, type,
/// flags. `struct fib_rule_hdr` is as long, with the action in place of the type.
const HEAD: usize = 12;
const RTM_F_CLONED: u32 = 0x200;
const RTM_F_LOOKUP_TABLE: u32 = 0x1000;
const RTM_F_FIB_MATCH: u32 = 0x2000;

const RTA_DST: u16 = 1;
const RTA_SRC: u16 = 2;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_MULTIPATH: u16 = 9;
const RTA_TABLE: u16 = 15;
const RTA_VIA: u16 = 18;
const RTA_NH_ID: u16 = 30;
/// `struct rtnexthop`: length, flags, hops, interface.
const HOP: usize = 8;

const FRA_TABLE: u16 = 15;
const FRA_L3MDEV: u16 = 19;
const TO_TABLE: u8 = 1;

/// `struct nhmsg`: family, scope, protocol, flags.
const NEXTHOP_HEAD: usize = 8;
const NHA_ID: u16 = 1;
const NHA_GROUP: u16 = 2;
const NHA_OIF: u16 = 5;
/// `struct nexthop_grp`: number, weight.
const MEMBER: usize = 8;

const UNICAST: u8 = 1;
const LOCAL: u8 = 2;
/// Tables of a kernel without rules: `default`, `main` and `local`.
const TABLES: [u32; 3] = [253, MAIN, 255];
const MAIN: u32 = 254;

/// A route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Destinations: an address and the number of its bits that count.
    pub destination: (IpAddr, u8),
    /// Routing table.
    pub table: u32,
    /// Address of the next router, if there is one; of several, the first.
    pub gateway: Option<IpAddr>,
    /// Indices of the interfaces by which it leads.
    pub interfaces: Vec<u32>,
    /// `RTN_*`: 1 leads elsewhere, 2 to this machine.
    kind: u8,
    /// Number of an object with next hops.
    hops: Option<u32>,
}

impl Route {
    /// Reads the payload of an `RTM_NEWROUTE` message; `None` if it is too short, of another
    /// address family, or a copy of another route.
    #[must_use]
    pub fn parse(payload: &[u8]) -> Option<Route> {
        let (head, attributes) = payload.split_first_chunk::<HEAD>()?;
        let any: IpAddr = match head[0] {
            AF_INET => Ipv4Addr::UNSPECIFIED.into(),
            AF_INET6 => Ipv6Addr::UNSPECIFIED.into(),
            _ => return None,
        };
        if u32::from_ne_bytes([head[8], head[9], head[10], head[11]]) & RTM_F_CLONED != 0 {
            return None;
        }
        let mut route = Route {
            destination: (any, head[1]),
            table: head[4].into(),
            gateway: None,
            interfaces: Vec::new(),
            kind: head[7],
            hops: None,
        };
        for a in Attributes::new(attributes).flatten() {
            match a.kind {
                RTA_DST => {
                    route.destination.0 = address(a.value).filter(|to| same_family(*to, any))?;
                }
                RTA_TABLE => route.table = a.u32().unwrap_or(route.table),
                RTA_NH_ID => route.hops = a.u32().ok(),
                RTA_MULTIPATH => route.learn_hops(a.value),
                _ => route.learn_hop(a.kind, a.value),
            }
        }
        Some(route)
    }

    fn learn_hop(&mut self, kind: u16, value: &[u8]) {
        match kind {
            RTA_OIF => self.interfaces.extend(value.try_into().ok().map(u32::from_ne_bytes)),
            RTA_GATEWAY => self.gateway = self.gateway.or_else(|| address(value)),
            // The address family stands before it.
            RTA_VIA => self.gateway = self.gateway.or_else(|| address(value.get(2..)?)),
            _ => {}
        }
    }

    fn learn_hops(&mut self, mut hops: &[u8]) {
        while let Some(head) = hops.first_chunk::<HOP>() {
            let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
            let Some(attributes) = hops.get(HOP..length) else { return };
            self.interfaces.push(u32::from_ne_bytes([head[4], head[5], head[6], head[7]]));
            for a in Attributes::new(attributes).flatten() {
                self.learn_hop(a.kind, a.value);
            }
            hops = hops.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
    }

    /// Returns whether it leads to other machines.
    #[must_use]
    pub fn leads_elsewhere(&self) -> bool {
        self.kind == UNICAST
    }

    /// Returns whether its destinations are this machine's own addresses.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.kind == LOCAL
    }

    /// All routes of all tables, of both versions.
    ///
    /// # Errors
    /// If a system call fails, or the kernel refuses.
    pub fn all() -> io::Result<Vec<Route>> {
        let port = Port::open(Protocol::Route)?;
        let mut routes = Vec::new();
        let all = Question::all(RTM_NEWROUTE);
        port.ask(all, RTM_GETROUTE, plain(&[0; HEAD]), |payload| {
            routes.extend(Route::parse(payload));
        })?;
        resolve(&port, &mut routes)?;
        Ok(routes)
    }

    /// The route that a packet to an address takes, from an address of this machine or whichever
    /// the kernel chooses; `None` if there is none. A route with several next hops has all
    /// their interfaces.
    ///
    /// # Errors
    /// If a system call fails.
    pub fn to(peer: IpAddr, from: Option<IpAddr>) -> io::Result<Option<Route>> {
        let port = Port::open(Protocol::Route)?;
        let from = from.filter(|from| same_family(*from, peer));
        let mut found: Vec<Route> = Vec::new();
        // The first says the way that is taken; older kernels do not know the second question.
        for flags in [RTM_F_LOOKUP_TABLE, RTM_F_LOOKUP_TABLE | RTM_F_FIB_MATCH] {
            let (family, bits) = if peer.is_ipv4() { (AF_INET, 32) } else { (AF_INET6, 128) };
            let mut head = [0; HEAD];
            (head[0], head[1]) = (family, bits);
            head[8..].copy_from_slice(&flags.to_ne_bytes());
            let encode = |out: &mut Vec<u8>, header: Header| {
                let mut w = Writer::with_payload(out, header, &head);
                put(&mut w, RTA_DST, peer);
                if let Some(from) = from {
                    put(&mut w, RTA_SRC, from);
                }
                w.finish();
            };
            // No route, or none from that address.
            let _ = port.ask(Question::one(RTM_NEWROUTE), RTM_GETROUTE, encode, |payload| {
                found.extend(Route::parse_any(payload));
            });
        }
        resolve(&port, &mut found)?;
        let mut found = found.into_iter();
        let Some(mut route) = found.next() else { return Ok(None) };
        for other in found {
            route.destination = other.destination;
            route.gateway = route.gateway.or(other.gateway);
            route.interfaces.extend(other.interfaces);
        }
        route.interfaces.sort_unstable();
        route.interfaces.dedup();
        Ok(Some(route))
    }

    /// Reads an answer to what was asked for: it is marked as a copy.
    fn parse_any(payload: &[u8]) -> Option<Route> {
        let mut copy = payload.to_vec();
        copy.get_mut(8..HEAD)?.fill(0);
        Route::parse(&copy)
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (to, bits) = self.destination;
        write!(f, "{to}/{bits}")?;
        if let Some(gateway) = self.gateway {
            write!(f, " via {gateway}")?;
        }
        match self.table {
            MAIN | 0 => Ok(()),
            table => write!(f, " in table {table}"),
        }
    }
}

fn same_family(a: IpAddr, b: IpAddr) -> bool {
    a.is_ipv4() == b.is_ipv4()
}

fn put(w: &mut Writer<'_>, kind: u16, address: IpAddr) {
    match address {
        IpAddr::V4(v4) => w.bytes(kind, &v4.octets()),
        IpAddr::V6(v6) => w.bytes(kind, &v6.octets()),
    };
}

/// Encodes a question that has only a head.
fn plain(head: &[u8]) -> impl FnOnce(&mut Vec<u8>, Header) {
    move |out, header| Writer::with_payload(out, header, head).finish()
}

/// Gives routes by objects the interfaces of these.
fn resolve(port: &Port, routes: &mut [Route]) -> io::Result<()> {
    if routes.iter().all(|route| route.hops.is_none()) {
        return Ok(());
    }
    let mut objects = BTreeMap::new();
    let all = Question::all(RTM_NEWNEXTHOP);
    port.ask(all, RTM_GETNEXTHOP, plain(&[0; NEXTHOP_HEAD]), |payload| {
        objects.extend(next_hop(payload));
    })?;
    for route in routes {
        let Some((interface, members)) = route.hops.and_then(|id| objects.get(&id)) else {
            continue;
        };
        // A member is no group.
        let members = members.iter().filter_map(|id| objects.get(id)?.0);
        route.interfaces.extend(interface.iter().copied().chain(members));
        route.interfaces.sort_unstable();
        route.interfaces.dedup();
    }
    Ok(())
}

/// The interface of a next hop, or of a group the numbers of its members.
type NextHop = (Option<u32>, Vec<u32>);

/// An object with next hops, and its number.
fn next_hop(payload: &[u8]) -> Option<(u32, NextHop)> {
    let (mut id, mut interface, mut members) = (None, None, Vec::new());
    for a in Attributes::new(payload.get(NEXTHOP_HEAD..)?).flatten() {
        match a.kind {
            NHA_ID => id = a.u32().ok(),
            NHA_OIF => interface = a.u32().ok(),
            NHA_GROUP => {
                let (all, _) = a.value.as_chunks::<MEMBER>();
                members.extend(all.iter().map(|m| u32::from_ne_bytes([m[0], m[1], m[2], m[3]])));
            }
            _ => {}
        }
    }
    Some((id?, (interface, members)))
}

/// The routing tables that rules refer to, those of VRFs among `links` included.
///
/// # Errors
/// If a system call fails.
pub fn tables(links: &[Link]) -> io::Result<BTreeSet<u32>> {
    let mut found = BTreeSet::new();
    let port = Port::open(Protocol::Route)?;
    let all = Question::all(RTM_NEWRULE);
    let asked = port.ask(all, RTM_GETRULE, plain(&[0; HEAD]), |payload| {
        found.extend(tables_of_rule(payload, links));
    });
    match asked {
        // A kernel without rules.
        Err(_) => Ok(TABLES.into()),
        Ok(()) if found.is_empty() => Ok(TABLES.into()),
        Ok(()) => Ok(found),
    }
}

fn tables_of_rule(payload: &[u8], links: &[Link]) -> Vec<u32> {
    let Some((head, attributes)) = payload.split_first_chunk::<HEAD>() else { return Vec::new() };
    if !matches!(head[0], AF_INET | AF_INET6) || head[7] != TO_TABLE {
        return Vec::new();
    }
    let mut tables = vec![u32::from(head[4])];
    for a in Attributes::new(attributes).flatten() {
        match a.kind {
            FRA_TABLE => tables.extend(a.u32().ok()),
            FRA_L3MDEV => tables.extend(links.iter().filter_map(|link| link.table)),
            _ => {}
        }
    }
    tables.retain(|table| *table != 0);
    tables
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(family: u8, bits: u8, fill: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut message = Vec::new();
        let head = [family, bits, 0, 0, 254, 3, 0, UNICAST, 0, 0, 0, 0];
        let mut w = Writer::with_payload(&mut message, Header::default(), &head);
        fill(&mut w);
        w.finish();
        message.split_off(16)
    }

    #[test]
    fn the_way_to_an_own_address_is_the_loopback() {
        let route = Route::to(Ipv4Addr::LOCALHOST.into(), None).unwrap().unwrap();
        assert!(route.is_local() && !route.leads_elsewhere());
        assert_eq!(route.interfaces, [1]);
    }

    #[test]
    fn rules_refer_to_the_main_table() {
        let tables = tables(&[]).unwrap();
        assert!(tables.contains(&MAIN), "{tables:?}");
        Route::all().unwrap();
    }

    #[test]
    fn a_default_route_is_read() {
        let route = message(AF_INET, 0, |w| {
            w.u32(RTA_TABLE, 1000).bytes(RTA_GATEWAY, &[10, 9, 0, 2]).u32(RTA_OIF, 7);
        });
        let route = Route::parse(&route).unwrap();
        assert_eq!(route.to_string(), "0.0.0.0/0 via 10.9.0.2 in table 1000");
        assert_eq!(route.interfaces, [7]);
        let of_six = message(AF_INET6, 3, |w| {
            w.bytes(RTA_DST, &[&[0x20][..], &[0; 15]].concat()).u32(RTA_OIF, 9);
        });
        assert_eq!(Route::parse(&of_six).unwrap().to_string(), "2000::/3");
    }

    #[test]
    fn all_next_hops_of_a_route_are_read() {
        let hop = |interface: u32, gateway: u8| {
            let mut hop = vec![16, 0, 0, 0];
            hop.extend(interface.to_ne_bytes());
            hop.extend([8, 0, 5, 0, 10, 0, 0, gateway]);
            hop
        };
        let hops = [hop(3, 1), hop(4, 2)].concat();
        let route = Route::parse(&message(AF_INET, 1, |w| _ = w.bytes(RTA_MULTIPATH, &hops)));
        let route = route.unwrap();
        assert_eq!(route.interfaces, [3, 4]);
        assert_eq!(route.gateway, Some([10, 0, 0, 1].into()));
    }

    #[test]
    fn copies_and_other_families_are_no_routes() {
        let mut copy = message(AF_INET, 0, |_| {});
        assert!(Route::parse(&copy).is_some());
        copy[8..12].copy_from_slice(&RTM_F_CLONED.to_ne_bytes());
        assert!(Route::parse(&copy).is_none() && Route::parse_any(&copy).is_some());
        assert!(Route::parse(&message(28, 0, |_| {})).is_none());
        assert!(Route::parse(&copy[..11]).is_none());
    }

    #[test]
    fn rules_name_tables_and_vrfs() {
        let vrf = Link { table: Some(77), ..Link::default() };
        let rule = |fill: fn(&mut Writer<'_>)| {
            tables_of_rule(&message(AF_INET, 0, fill), std::slice::from_ref(&vrf))
        };
        assert_eq!(rule(|_| {}), [254]);
        assert_eq!(rule(|w| _ = w.u32(FRA_TABLE, 1000)), [254, 1000]);
        assert_eq!(rule(|w| _ = w.u8(FRA_L3MDEV, 1)), [254, 77]);
    }

    #[test]
    fn objects_have_an_interface_or_members() {
        let object = |fill: fn(&mut Writer<'_>)| {
            let mut message = Vec::new();
            let mut w = Writer::with_payload(&mut message, Header::default(), &[0; NEXTHOP_HEAD]);
            fill(&mut w);
            w.finish();
            next_hop(&message[16..])
        };
        assert_eq!(object(|w| _ = w.u32(NHA_ID, 5).u32(NHA_OIF, 3)), Some((5, (Some(3), vec![]))));
        let group = object(|w| {
            w.u32(NHA_ID, 6).bytes(NHA_GROUP, &[5, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
        });
        assert_eq!(group, Some((6, (None, vec![5, 9]))));
        assert_eq!(object(|w| _ = w.u32(NHA_OIF, 3)), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200), v6: bool) {
            let mut bytes = bytes;
            if let Some(family) = bytes.first_mut() {
                *family = if v6 { AF_INET6 } else { AF_INET };
            }
            let _ = (Route::parse(&bytes), Route::parse_any(&bytes), next_hop(&bytes));
            let _ = tables_of_rule(&bytes, &[]);
        }
    }
}
