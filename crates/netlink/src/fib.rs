//! Routes and next-hop objects as messages have them (rtnetlink(7)), read in place: a full table
//! is a million messages, so nothing is allocated for one.
//!
//! [`Route`](crate::Route) is for those who ask for a few routes; this is for those who follow all.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use crate::address::{LinkAddress, RTM_DELADDR, RTM_NEWADDR};
use crate::label::LabelMessage;
use crate::link::{Link, RTM_DELLINK, RTM_NEWLINK};
use crate::socket::{Port, Protocol, Question};
use crate::wire::{Attributes, Header, Messages, Raw, Writer, address};

pub(crate) const RTM_NEWROUTE: u16 = 24;
const RTM_DELROUTE: u16 = 25;
pub(crate) const RTM_GETROUTE: u16 = 26;
const RTM_NEWNEXTHOP: u16 = 104;
const RTM_DELNEXTHOP: u16 = 105;
const RTM_GETNEXTHOP: u16 = 106;

const AF_UNSPEC: u8 = 0;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

/// `struct rtmsg`: family, lengths of destination and source, TOS, table, protocol, scope, type,
/// flags.
pub(crate) const ROUTE_HEAD: usize = 12;
/// `struct nhmsg`: family, scope, protocol, reserved, flags.
const NEXTHOP_HEAD: usize = 8;

const RTM_F_CLONED: u32 = 0x200;
const RTNH_F_DEAD: u32 = 1;
const RTNH_F_ONLINK: u32 = 4;

pub(crate) const RTA_DST: u16 = 1;
const RTA_SRC: u16 = 2;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PRIORITY: u16 = 6;
pub(crate) const RTA_MULTIPATH: u16 = 9;
const RTA_TABLE: u16 = 15;
const RTA_VIA: u16 = 18;
const RTA_NEWDST: u16 = 19;
const RTA_ENCAP_TYPE: u16 = 21;
const RTA_ENCAP: u16 = 22;
const RTA_NH_ID: u16 = 30;
/// `struct rtnexthop`: length, flags, hops, interface.
const HOP: usize = 8;

const NHA_ID: u16 = 1;
const NHA_GROUP: u16 = 2;
const NHA_BLACKHOLE: u16 = 4;
const NHA_OIF: u16 = 5;
const NHA_GATEWAY: u16 = 6;
const NHA_ENCAP_TYPE: u16 = 7;
const NHA_ENCAP: u16 = 8;
const NHA_FDB: u16 = 11;
/// `struct nexthop_grp`: number, weight less 1, its upper bits, reserved.
const MEMBER: usize = 8;

/// `LWTUNNEL_ENCAP_MPLS`, and its attributes: the label stack and its TTL.
const ENCAP_MPLS: u32 = 1;
const MPLS_IPTUNNEL_DST: u16 = 1;
const MPLS_IPTUNNEL_TTL: u16 = 2;

/// Kind of a route (`RTN_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RouteKind {
    /// Leads to a next hop, or to hosts on a link.
    Unicast,
    /// Dropped silently.
    Blackhole,
    /// Dropped with ICMP "host unreachable".
    Unreachable,
    /// Dropped with ICMP "administratively prohibited".
    Prohibit,
    /// Leads to the next table of the kernel's rules.
    Throw,
    /// An address of this machine, a broadcast, anycast or multicast address.
    Own,
    /// Any other.
    Other(u8),
}

impl RouteKind {
    pub(crate) fn of(number: u8) -> RouteKind {
        match number {
            1 => RouteKind::Unicast,
            2..=5 => RouteKind::Own,
            6 => RouteKind::Blackhole,
            7 => RouteKind::Unreachable,
            8 => RouteKind::Prohibit,
            9 => RouteKind::Throw,
            other => RouteKind::Other(other),
        }
    }
}

/// Protocol number of routes that the kernel makes itself (`RTPROT_KERNEL`), as for addresses.
pub const PROTOCOL_KERNEL: u8 = 2;
/// Highest protocol number of routes that a person wrote, or a program at the start
/// (`RTPROT_STATIC`).
pub const PROTOCOL_STATIC: u8 = 4;

/// A next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop<'a> {
    /// Index of the link, or 0.
    pub link: u32,
    /// Address of the next router, if there is one; of any version.
    pub gateway: Option<IpAddr>,
    /// Share among the hops, from 1.
    pub weight: u16,
    /// The gateway is on the link, whatever the link's addresses say.
    pub on_link: bool,
    /// The kernel does not use it, as its link is down.
    pub is_dead: bool,
    /// MPLS labels to impose, as entries of four bytes, the outermost first; in a
    /// label's route they take its place.
    pub labels: &'a [u8],
    /// TTL of the labels, 0 for that of the packet; `None` if the namespace's settings say.
    pub ttl: Option<u8>,
    /// Packets go there in a way that is not among these: by a MAC address, or in another
    /// encapsulation.
    pub is_odd: bool,
}

impl<'a> Hop<'a> {
    pub(crate) const NONE: Hop<'a> = Hop {
        link: 0,
        gateway: None,
        weight: 1,
        on_link: false,
        is_dead: false,
        labels: &[],
        ttl: None,
        is_odd: false,
    };

    pub(crate) fn learn_flags(&mut self, flags: u32) {
        self.on_link = flags & RTNH_F_ONLINK != 0;
        self.is_dead = flags & RTNH_F_DEAD != 0;
    }

    fn learn_gateway(&mut self, bytes: Option<&[u8]>) {
        self.gateway = bytes.and_then(address);
        self.is_odd |= self.gateway.is_none();
    }

    pub(crate) fn learn(&mut self, attributes: Attributes<'a>) {
        let mut encap = Encap::default();
        for a in attributes.flatten() {
            match a.kind {
                RTA_OIF => self.link = a.u32().unwrap_or(0),
                RTA_GATEWAY => self.learn_gateway(Some(a.value)),
                // The address family stands before it.
                RTA_VIA => self.learn_gateway(a.value.get(2..)),
                RTA_NEWDST => self.labels = a.value,
                RTA_ENCAP_TYPE => encap.kind = a.u32().ok(),
                RTA_ENCAP => encap.content = Some(a.attributes()),
                _ => {}
            }
        }
        self.learn_encap(encap);
    }

    fn learn_encap(&mut self, encap: Encap<'a>) {
        match (encap.kind, encap.content) {
            // `LWTUNNEL_ENCAP_NONE`
            (None | Some(0), _) => {}
            (Some(ENCAP_MPLS), Some(content)) => {
                for a in content.flatten() {
                    match a.kind {
                        MPLS_IPTUNNEL_DST => self.labels = a.value,
                        MPLS_IPTUNNEL_TTL => self.ttl = a.value.first().copied(),
                        _ => {}
                    }
                }
            }
            _ => self.is_odd = true,
        }
    }
}

/// Encapsulation of the packets of a hop.
#[derive(Default)]
struct Encap<'a> {
    kind: Option<u32>,
    content: Option<Attributes<'a>>,
}

/// A route.
#[derive(Debug, Clone)]
pub struct RouteMessage<'a> {
    /// Destinations: an address, and the number of its bits that count.
    pub destination: (IpAddr, u8),
    /// Routing table.
    pub table: u32,
    /// The lower, the better.
    pub metric: u32,
    /// Type of service that packets need; 0 for all.
    pub tos: u8,
    /// Its protocol (`RTPROT_*`).
    pub protocol: u8,
    /// Its kind.
    pub kind: RouteKind,
    /// Packets need a source, too: the kernel looks at more than the destination.
    pub has_source: bool,
    /// Number of the object with its next hops.
    pub object: Option<u32>,
    single: Hop<'a>,
    several: &'a [u8],
}

impl<'a> RouteMessage<'a> {
    /// Reads the payload of an `RTM_NEWROUTE` or `RTM_DELROUTE` message; `None` if it is too short,
    /// of another address family, or a copy of another route.
    #[must_use]
    pub fn parse(payload: &'a [u8]) -> Option<RouteMessage<'a>> {
        let (head, attributes) = payload.split_first_chunk::<ROUTE_HEAD>()?;
        let (any, most): (IpAddr, u8) = match head[0] {
            AF_INET => (Ipv4Addr::UNSPECIFIED.into(), 32),
            AF_INET6 => (Ipv6Addr::UNSPECIFIED.into(), 128),
            _ => return None,
        };
        let flags = u32::from_ne_bytes([head[8], head[9], head[10], head[11]]);
        if flags & RTM_F_CLONED != 0 || head[1] > most {
            return None;
        }
        let mut route = RouteMessage {
            destination: (any, head[1]),
            table: head[4].into(),
            metric: 0,
            tos: head[3],
            protocol: head[5],
            kind: RouteKind::of(head[7]),
            has_source: head[2] != 0,
            object: None,
            single: Hop::NONE,
            several: &[],
        };
        for a in Attributes::new(attributes).flatten() {
            match a.kind {
                RTA_DST => {
                    let to = address(a.value).filter(|to| to.is_ipv4() == any.is_ipv4())?;
                    route.destination.0 = to;
                }
                RTA_SRC => route.has_source = true,
                RTA_PRIORITY => route.metric = a.u32().ok()?,
                RTA_TABLE => route.table = a.u32().ok()?,
                RTA_NH_ID => route.object = a.u32().ok(),
                RTA_MULTIPATH => route.several = a.value,
                _ => {}
            }
        }
        route.single.learn_flags(flags);
        route.single.learn(Attributes::new(attributes));
        Some(route)
    }

    /// Its next hops; none of an object.
    pub fn hops(&self) -> impl Iterator<Item = Hop<'a>> + use<'a> {
        hops(self.single, self.several)
    }
}

/// The next hops of a route: several, or the one that its message names.
pub(crate) fn hops<'a>(
    single: Hop<'a>,
    several: &'a [u8],
) -> impl Iterator<Item = Hop<'a>> + use<'a> {
    let alone = several.is_empty() && (single.link, single.gateway) != (0, None);
    Hops { left: several }.chain(alone.then_some(single))
}

/// Next hops of a route that has several.
struct Hops<'a> {
    left: &'a [u8],
}

impl<'a> Iterator for Hops<'a> {
    type Item = Hop<'a>;

    fn next(&mut self) -> Option<Hop<'a>> {
        let head = self.left.first_chunk::<HOP>()?;
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let attributes = self.left.get(HOP..length)?;
        let link = u32::from_ne_bytes([head[4], head[5], head[6], head[7]]);
        let mut hop = Hop { weight: u16::from(head[3]) + 1, ..Hop::NONE };
        hop.learn_flags(head[2].into());
        hop.learn(Attributes::new(attributes));
        hop.link = link;
        self.left = self.left.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(hop)
    }
}

/// An object with next hops, of which routes have the number.
#[derive(Debug, Clone)]
pub struct NextHopMessage<'a> {
    /// Its number.
    pub id: u32,
    /// True if it drops packets.
    pub is_blackhole: bool,
    /// True if it is for MAC addresses of a bridge, not for routes.
    pub is_fdb: bool,
    /// The next hop, if it is no group.
    pub hop: Hop<'a>,
    group: &'a [u8],
}

impl<'a> NextHopMessage<'a> {
    /// Reads the payload of an `RTM_NEWNEXTHOP` or `RTM_DELNEXTHOP` message; `None` if it is too
    /// short or has no number.
    #[must_use]
    pub fn parse(payload: &'a [u8]) -> Option<NextHopMessage<'a>> {
        let (head, attributes) = payload.split_first_chunk::<NEXTHOP_HEAD>()?;
        let mut id = None;
        let (mut is_blackhole, mut is_fdb, mut group): (bool, bool, &[u8]) = (false, false, &[]);
        let (mut hop, mut encap) = (Hop::NONE, Encap::default());
        for a in Attributes::new(attributes).flatten() {
            match a.kind {
                NHA_ID => id = a.u32().ok(),
                NHA_GROUP => group = a.value,
                NHA_BLACKHOLE => is_blackhole = true,
                NHA_OIF => hop.link = a.u32().unwrap_or(0),
                NHA_GATEWAY => hop.learn_gateway(Some(a.value)),
                NHA_ENCAP_TYPE => encap.kind = a.u32().ok(),
                NHA_ENCAP => encap.content = Some(a.attributes()),
                NHA_FDB => is_fdb = true,
                _ => {}
            }
        }
        hop.learn_flags(u32::from_ne_bytes([head[4], head[5], head[6], head[7]]));
        hop.learn_encap(encap);
        Some(NextHopMessage { id: id?, is_blackhole, is_fdb, hop, group })
    }

    /// Numbers of the members, with their weights; none if it is no group.
    pub fn members(&self) -> impl Iterator<Item = (u32, u16)> + use<'a> {
        let (all, _) = self.group.as_chunks::<MEMBER>();
        all.iter().map(|m| {
            let id = u32::from_ne_bytes([m[0], m[1], m[2], m[3]]);
            (id, u16::from_le_bytes([m[4], m[5]]).saturating_add(1))
        })
    }
}

/// Place of a new route among those of the same destination and metric: the first is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placing {
    /// The route is the only one.
    Only,
    /// Replaces the first.
    Replace,
    /// Goes behind the others; IPv6 has the hops of both in one route.
    Append,
    /// Goes before the others.
    Prepend,
}

const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_EXCL: u16 = 0x200;
const NLM_F_CREATE: u16 = 0x400;
const NLM_F_APPEND: u16 = 0x800;

impl Placing {
    /// Returns the one that the flags of an `RTM_NEWROUTE` message mean.
    #[must_use]
    pub fn of(flags: u16) -> Placing {
        match flags {
            f if f & NLM_F_REPLACE != 0 => Placing::Replace,
            f if f & NLM_F_APPEND != 0 => Placing::Append,
            f if f & NLM_F_CREATE != 0 && f & NLM_F_EXCL == 0 => Placing::Prepend,
            _ => Placing::Only,
        }
    }
}

/// Packets that leave by a link do not leave the machine by some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkRole {
    /// They do.
    Usual,
    /// They are received by the machine itself.
    Loopback,
    /// They are looked up in this table, that of a VRF.
    Vrf(u32),
}

/// State of a link that matters to routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkState {
    /// True if it is up and has a carrier.
    pub is_up: bool,
    /// Its role.
    pub role: LinkRole,
}

impl LinkState {
    /// Returns that of a link.
    #[must_use]
    pub fn of(link: &Link) -> LinkState {
        const IFF_LOOPBACK: u32 = 8;
        let role = match link.table {
            Some(table) => LinkRole::Vrf(table),
            None if link.flags & IFF_LOOPBACK != 0 => LinkRole::Loopback,
            None => LinkRole::Usual,
        };
        LinkState { is_up: link.is_up() && link.is_running(), role }
    }
}

/// Change, or reason to look for changes that the kernel does not report.
#[derive(Debug, Clone)]
pub enum FibNotice<'a> {
    /// A route is new or changed.
    Route(Placing, RouteMessage<'a>),
    /// A route was deleted.
    RouteGone(RouteMessage<'a>),
    /// An object is new or changed.
    NextHop(NextHopMessage<'a>),
    /// An object was deleted, by this number.
    NextHopGone(u32),
    /// A label's route is new or changed.
    Label(LabelMessage<'a>),
    /// A label's route was deleted.
    LabelGone(LabelMessage<'a>),
    /// A link has this index and state.
    Link(u32, LinkState),
    /// A link was deleted.
    LinkGone(u32),
    /// A link has one IPv4 address more or less.
    Addresses(u32),
    /// Notices were lost.
    Lost,
}

impl<'a> FibNotice<'a> {
    pub(crate) fn parse(raw: &Raw<'a>) -> Option<FibNotice<'a>> {
        let payload = raw.payload;
        match raw.header.kind {
            RTM_NEWROUTE => {
                let placing = Placing::of(raw.header.flags);
                let route = RouteMessage::parse(payload);
                let route = route.map(|route| FibNotice::Route(placing, route));
                route.or_else(|| LabelMessage::parse(payload).map(FibNotice::Label))
            }
            RTM_DELROUTE => {
                let route = RouteMessage::parse(payload).map(FibNotice::RouteGone);
                route.or_else(|| LabelMessage::parse(payload).map(FibNotice::LabelGone))
            }
            RTM_NEWNEXTHOP => NextHopMessage::parse(payload).map(FibNotice::NextHop),
            RTM_DELNEXTHOP => NextHopMessage::parse(payload).map(|o| FibNotice::NextHopGone(o.id)),
            RTM_NEWLINK => {
                Link::parse(payload).map(|link| FibNotice::Link(link.index, LinkState::of(&link)))
            }
            RTM_DELLINK => Link::parse(payload).map(|link| FibNotice::LinkGone(link.index)),
            RTM_NEWADDR | RTM_DELADDR => {
                LinkAddress::parse(payload).map(|a| FibNotice::Addresses(a.index))
            }
            _ => None,
        }
    }
}

/// `RTNLGRP_*`: links, IPv4 addresses, routes of both versions and of labels, next-hop objects.
const GROUPS: [u32; 6] = [1, 5, 7, 11, 27, 32];
/// More than the kernel puts into one datagram.
const DATAGRAM_BYTES: usize = 64 * 1024;
/// Bytes of the datagrams that are read at once: most have a hundred.
const BUFFER_BYTES: usize = 2 * DATAGRAM_BYTES;

/// A subscription to the changes of routes of the namespace in which it was opened.
#[derive(Debug)]
pub struct FibNotices {
    port: Port,
    buffer: Box<[u8]>,
    /// Places of the datagrams in the buffer; `None` for some that were lost.
    datagrams: Vec<Option<Range<usize>>>,
    /// Error that came behind them.
    failed: Option<Errno>,
}

impl FibNotices {
    /// Subscribes in the calling thread's namespace. `bytes` of notices may wait in the kernel, or
    /// fewer if the system grants fewer.
    ///
    /// # Errors
    /// If netlink fails.
    pub fn open(bytes: usize) -> io::Result<Self> {
        let port = Port::open(Protocol::Route)?;
        port.set_receive_buffer(bytes);
        for group in GROUPS {
            port.join(group)?;
        }
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        Ok(FibNotices { port, buffer, datagrams: Vec::new(), failed: None })
    }

    /// Bytes of notices that may wait in the kernel; a route takes 832.
    #[must_use]
    pub fn receive_buffer(&self) -> usize {
        self.port.receive_buffer()
    }

    /// Reads up to `most` datagrams in the place of the last ones; never waits. Returns false if
    /// there may be more. [`hand_out`](Self::hand_out) has their notices: a caller need not keep
    /// others waiting while the system copies.
    ///
    /// # Errors
    /// If netlink fails: nothing more will come.
    pub fn read(&mut self, most: usize) -> io::Result<bool> {
        self.datagrams.clear();
        if let Some(error) = self.failed.take() {
            return Err(error.into());
        }
        let mut used = 0;
        while self.datagrams.len() < most && self.buffer.len() - used >= DATAGRAM_BYTES {
            let room = &mut self.buffer[used..];
            match self.port.receive(room) {
                Ok(length) if length <= room.len() => {
                    self.datagrams.push(Some(used..used + length));
                    used += length;
                }
                Err(Errno::AGAIN) => return Ok(true),
                // The kernel had more notices than the socket or the buffer holds.
                Ok(_) | Err(Errno::NOBUFS) => self.datagrams.push(None),
                Err(error) if self.datagrams.is_empty() => return Err(error.into()),
                Err(error) => {
                    self.failed = Some(error);
                    return Ok(false);
                }
            }
        }
        Ok(false)
    }

    /// Hands `each` the notices that were read last.
    pub fn hand_out(&self, mut each: impl FnMut(FibNotice<'_>)) {
        for datagram in &self.datagrams {
            let Some(place) = datagram else {
                each(FibNotice::Lost);
                continue;
            };
            let messages = Messages::new(&self.buffer[place.clone()]).map_while(Result::ok);
            messages.filter_map(|raw| FibNotice::parse(&raw)).for_each(&mut each);
        }
    }
}

impl AsFd for FibNotices {
    /// Descriptor to poll: readable when notices are pending.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.port.as_fd()
    }
}

/// Hands `each` all routes of a port's namespace, of both versions, and `None` before the system
/// is asked for more, for a caller that keeps others waiting.
///
/// # Errors
/// If a system call fails or the kernel refuses; [`io::ErrorKind::Interrupted`] if routes changed
/// meanwhile, so that some may be missing.
pub fn all_routes(port: &Port, mut each: impl FnMut(Option<RouteMessage<'_>>)) -> io::Result<()> {
    let mut interrupted = false;
    for family in [AF_INET, AF_INET6] {
        let mut head = [0; ROUTE_HEAD];
        head[0] = family;
        let encode = |out: &mut Vec<u8>, header: Header| {
            Writer::with_payload(out, header, &head).finish();
        };
        let question = Question::all(RTM_NEWROUTE);
        let done = port.ask_parts(question, RTM_GETROUTE, encode, |payload| match payload {
            Some(payload) => {
                if let Some(route) = RouteMessage::parse(payload) {
                    each(Some(route));
                }
            }
            None => each(None),
        });
        interrupted |= is_interrupted(done)?;
    }
    if interrupted { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
}

/// Hands `each` all next-hop objects of a port's namespace. A kernel that knows none has none.
///
/// # Errors
/// As [`all_routes`].
pub fn all_next_hops(port: &Port, mut each: impl FnMut(NextHopMessage<'_>)) -> io::Result<()> {
    const EOPNOTSUPP: i32 = 95;
    let head = [AF_UNSPEC; NEXTHOP_HEAD];
    let encode = |out: &mut Vec<u8>, header: Header| {
        Writer::with_payload(out, header, &head).finish();
    };
    let done = port.ask_all(Question::all(RTM_NEWNEXTHOP), RTM_GETNEXTHOP, encode, |payload| {
        if let Some(object) = NextHopMessage::parse(payload) {
            each(object);
        }
    });
    match done {
        Err(e) if e.raw_os_error() == Some(EOPNOTSUPP) => Ok(()),
        done => done,
    }
}

fn is_interrupted(done: io::Result<()>) -> io::Result<bool> {
    match done {
        Ok(()) => Ok(false),
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(true),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::payload as message;
    use proptest::prelude::*;

    fn route(family: u8, bits: u8, kind: u8, fill: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        message(&[family, bits, 0, 0, 254, 186, 0, kind, 0, 0, 0, 0], fill)
    }

    fn hop(weight: u8, link: u32, gateway: [u8; 4]) -> Vec<u8> {
        let attribute = [&8_u16.to_ne_bytes()[..], &RTA_GATEWAY.to_ne_bytes(), &gateway].concat();
        let length = (HOP + attribute.len()) as u16;
        [&length.to_ne_bytes()[..], &[0, weight - 1], &link.to_ne_bytes(), &attribute].concat()
    }

    #[test]
    fn a_route_with_one_hop() {
        let payload = route(AF_INET, 24, 1, |w| {
            w.bytes(RTA_DST, &[192, 0, 2, 0]).u32(RTA_PRIORITY, 20).u32(RTA_OIF, 7);
            w.bytes(RTA_GATEWAY, &[10, 0, 0, 1]);
        });
        let route = RouteMessage::parse(&payload).unwrap();
        assert_eq!((route.destination, route.metric), (([192, 0, 2, 0].into(), 24), 20));
        assert_eq!((route.table, route.protocol, route.kind), (254, 186, RouteKind::Unicast));
        let hops: Vec<Hop<'_>> = route.hops().collect();
        let wanted = Hop { link: 7, gateway: Some([10, 0, 0, 1].into()), ..Hop::NONE };
        assert_eq!(hops, [wanted]);
    }

    #[test]
    fn a_route_with_several_hops() {
        let hops = [hop(3, 7, [10, 0, 0, 1]), hop(1, 8, [10, 0, 1, 1])].concat();
        let payload = route(AF_INET, 0, 1, |w| _ = w.bytes(RTA_MULTIPATH, &hops));
        let several = RouteMessage::parse(&payload).unwrap();
        let seen: Vec<_> = several.hops().map(|h| (h.weight, h.link, h.gateway)).collect();
        let gateway = |a: [u8; 4]| Some(a.into());
        assert_eq!(seen, [(3, 7, gateway([10, 0, 0, 1])), (1, 8, gateway([10, 0, 1, 1]))]);
        // A length that leads out of the list ends it.
        let mut cut = hops.clone();
        cut[16] = 200;
        let payload = route(AF_INET, 0, 1, |w| _ = w.bytes(RTA_MULTIPATH, &cut));
        assert_eq!(RouteMessage::parse(&payload).unwrap().hops().count(), 1);
    }

    #[test]
    fn a_gateway_of_the_other_version_and_labels() {
        let stack = [0, 1, 1, 64];
        let encap = [&8_u16.to_ne_bytes()[..], &MPLS_IPTUNNEL_DST.to_ne_bytes(), &stack].concat();
        let via = [&AF_INET6.to_ne_bytes()[..], &[0], &[0x20; 16]].concat();
        let payload = route(AF_INET, 32, 1, |w| {
            w.bytes(RTA_DST, &[192, 0, 2, 1]).u32(RTA_OIF, 7).bytes(RTA_VIA, &via);
            w.bytes(RTA_ENCAP, &encap).bytes(RTA_ENCAP_TYPE, &(ENCAP_MPLS as u16).to_ne_bytes());
        });
        let route = RouteMessage::parse(&payload).unwrap();
        let hop = route.hops().next().unwrap();
        assert_eq!((hop.gateway, hop.labels), (Some([0x20; 16].into()), &stack[..]));
        assert_eq!((hop.ttl, hop.is_odd), (None, false));
    }

    #[test]
    fn encapsulations_have_a_ttl_or_are_odd() {
        let hop = |kind: u16, ttl: Option<u8>| {
            let payload = route(AF_INET, 32, 1, |w| {
                w.bytes(RTA_DST, &[192, 0, 2, 1]).u32(RTA_OIF, 7);
                w.u16(RTA_ENCAP_TYPE, kind).nest(RTA_ENCAP, |w| {
                    w.bytes(MPLS_IPTUNNEL_DST, &[0, 1, 1, 0]);
                    ttl.into_iter().for_each(|ttl| _ = w.u8(MPLS_IPTUNNEL_TTL, ttl));
                });
            });
            let route = RouteMessage::parse(&payload).unwrap();
            let hop = route.hops().next().unwrap();
            (hop.labels.len(), hop.ttl, hop.is_odd)
        };
        assert_eq!(hop(1, Some(9)), (4, Some(9), false));
        assert_eq!(hop(1, Some(0)), (4, Some(0), false));
        assert_eq!(hop(1, None), (4, None, false));
        // SRv6.
        assert_eq!(hop(5, None), (0, None, true));
        assert_eq!(hop(0, None), (0, None, false));
        let payload = message(&[AF_INET, 0, 186, 0, 0, 0, 0, 0], |w| {
            w.u32(NHA_ID, 5).u32(NHA_OIF, 7).u16(NHA_ENCAP_TYPE, 6);
        });
        assert!(NextHopMessage::parse(&payload).unwrap().hop.is_odd);
    }

    #[test]
    fn objects_are_hops_or_groups() {
        let payload = message(&[AF_INET, 0, 186, 0, 0, 0, 0, 0], |w| {
            w.u32(NHA_ID, 5).u32(NHA_OIF, 7).bytes(NHA_GATEWAY, &[10, 0, 0, 1]);
        });
        let object = NextHopMessage::parse(&payload).unwrap();
        assert_eq!((object.id, object.hop.link, object.members().count()), (5, 7, 0));
        let members = [5, 0, 0, 0, 2, 1, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0];
        let payload = message(&[0; 8], |w| _ = w.u32(NHA_ID, 9).bytes(NHA_GROUP, &members));
        if cfg!(target_endian = "little") {
            let object = NextHopMessage::parse(&payload).unwrap();
            assert_eq!(object.members().collect::<Vec<_>>(), [(5, 0x103), (6, 1)]);
        }
    }

    #[test]
    fn flags_say_where_a_route_stands() {
        let of = [0x600, 0xc00, 0x100, 0x400, 0].map(Placing::of);
        let wanted =
            [Placing::Only, Placing::Append, Placing::Replace, Placing::Prepend, Placing::Only];
        assert_eq!(of, wanted);
    }

    #[test]
    fn this_namespace_is_listed() {
        let mut notices = FibNotices::open(1 << 20).unwrap();
        let port = Port::open(Protocol::Route).unwrap();
        // Others may change routes at any time.
        let fine = |done: io::Result<()>| match done {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            done => done.unwrap(),
        };
        fine(all_routes(&port, |route| assert!(route.is_none_or(|r| r.destination.1 <= 128))));
        fine(all_next_hops(&port, |object| assert!(object.id != 0)));
        assert!(notices.read(10).is_ok() && notices.receive_buffer() > 0);
        notices.hand_out(|_| {});
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..160)) {
            if let Some(route) = RouteMessage::parse(&bytes) {
                prop_assert!(route.hops().count() <= bytes.len() / HOP);
            }
            if let Some(object) = NextHopMessage::parse(&bytes) {
                prop_assert!(object.members().count() <= bytes.len() / MEMBER);
            }
        }
    }
}
