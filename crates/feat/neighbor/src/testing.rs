//! A router with a made-up protocol that resolves neighbours of both families, as a feature outside
//! of this crate would: a resolver, and nodes that hold packets and report senders.
//!
//! Its frames have an ethertype of their own and carry an operation, a family and two addresses.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::{
    Config, Exits, Hold, HoldNodes, IncompleteNode, Neighbor, Neighbors, Origin, Reported,
    Reporter, Resolver, Version,
};
use std::any::Any;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use thalweg_buffer::{IcmpCause, PktMut};
use thalweg_device::testing::Lab;
use thalweg_device::{IfTable, InterfaceView, Interfaces, MacAddr, SwIfIndex, testing};
use thalweg_engine::Feature;
use thalweg_fib::{Dpo, DpoTable, Forwarding, Kind, LinkType, Peer};
use thalweg_graph::{Built, Control, Inject, Node, NodeCx, NodeDecl, NodeId, Verdict};
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::build::Packet;

/// Ethertype of the made-up protocol.
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
const REQUEST: u8 = 1;
const REPLY: u8 = 2;

/// Prefix lengths of addresses, by interface.
#[derive(Default)]
struct Addresses(BTreeMap<SwIfIndex, Vec<(IpAddr, u8)>>);

/// Returns whether two addresses share a prefix.
fn shared(a: IpAddr, b: IpAddr, len: u8) -> bool {
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            (a.to_bits() ^ b.to_bits()).checked_shr(32 - u32::from(len)).unwrap_or(0) == 0
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            (a.to_bits() ^ b.to_bits()).checked_shr(128 - u32::from(len)).unwrap_or(0) == 0
        }
        _ => false,
    }
}

fn addresses(c: &Control, sw_if: SwIfIndex) -> Vec<(IpAddr, u8)> {
    c.state::<Addresses>().borrow().0.get(&sw_if).cloned().unwrap_or_default()
}

/// Gives an interface addresses.
pub(crate) fn set_addresses(c: &mut Control, sw_if: SwIfIndex, all: &[(IpAddr, u8)]) {
    c.state::<Addresses>().borrow_mut().0.insert(sw_if, all.to_vec());
    Version::ALL.into_iter().for_each(|family| crate::addresses_changed(c, family, sw_if));
}

struct Stub(Version);

static STUBS: [Stub; 2] = [Stub(Version::V4), Stub(Version::V6)];

/// A frame of the protocol.
fn frame(to: MacAddr, from: MacAddr, operation: u8, ip: IpAddr) -> Vec<u8> {
    let bytes = match ip {
        IpAddr::V4(ip) => [&[4][..], &ip.octets()].concat(),
        IpAddr::V6(ip) => [&[6][..], &ip.octets()].concat(),
    };
    [&to.0[..], &from.0, &ETHERTYPE, &[operation], &bytes].concat()
}

/// A neighbour's reply to `test0`.
pub(crate) fn stub_reply(ip: IpAddr, mac: MacAddr) -> Vec<u8> {
    frame(testing::our_mac(0), mac, REPLY, ip)
}

/// Reads a frame of the protocol: destination, operation, address.
pub(crate) fn read(frame: &[u8]) -> Option<(MacAddr, u8, IpAddr)> {
    let (header, [operation, family, ip @ ..]) = frame.split_at_checked(14)? else { return None };
    let ip = match family {
        4 => IpAddr::V4(Ipv4Addr::from(*ip.first_chunk::<4>()?)),
        _ => IpAddr::V6(Ipv6Addr::from(*ip.first_chunk::<16>()?)),
    };
    (header[12..] == ETHERTYPE).then_some((MacAddr(*header.first_chunk()?), *operation, ip))
}

impl Resolver for Stub {
    fn family(&self) -> Version {
        self.0
    }
    fn reporters(&self) -> &'static [&'static str] {
        &["stub-input"]
    }
    fn can_ask(&self, c: &Control, sw_if: SwIfIndex, ip: IpAddr) -> bool {
        addresses(c, sw_if).iter().any(|(own, _)| Version::of_ip(*own) == self.0 && *own != ip)
    }
    fn ask(&self, c: &mut Control, view: &InterfaceView, ip: IpAddr, to: Option<MacAddr>) {
        let bytes = frame(to.unwrap_or(MacAddr([0xff; 6])), view.mac, REQUEST, ip);
        crate::send(c, view, &bytes);
    }
    fn is_peer(&self, c: &Control, sw_if: SwIfIndex, ip: IpAddr) -> bool {
        let own = addresses(c, sw_if);
        own.iter().all(|(own, _)| *own != ip) && self.is_connected(c, sw_if, ip)
    }
    fn is_connected(&self, c: &Control, sw_if: SwIfIndex, ip: IpAddr) -> bool {
        addresses(c, sw_if).iter().any(|(own, len)| shared(*own, ip, *len))
    }
    fn refuse(&self, c: &Control, sw_if: SwIfIndex, ip: IpAddr) -> Option<&'static str> {
        let own = addresses(c, sw_if).iter().any(|(own, _)| *own == ip);
        own.then_some("it is the interface's own address")
    }
    fn announce_one(&self, c: &mut Control, view: &InterfaceView, ip: IpAddr) {
        crate::send(c, view, &frame(MacAddr([0xff; 6]), view.mac, REPLY, ip));
    }
    fn announce(&self, c: &mut Control, view: &InterfaceView) -> usize {
        let own = addresses(c, view.sw_if);
        let own: Vec<_> = own.iter().filter(|(ip, _)| Version::of_ip(*ip) == self.0).collect();
        for (ip, _) in &own {
            self.announce_one(c, view, *ip);
        }
        own.len()
    }
}

static ETHERNET: NodeDecl = NodeDecl {
    name: "ethernet-input",
    next: &["stub-input"],
    build: |_| Built::node(Ethernet),
    ..NodeDecl::DEFAULT
};
struct Ethernet;
impl Node for Ethernet {
    fn packet(&mut self, _: &mut NodeCx<'_>, _: PktMut<'_>) -> Verdict {
        Verdict::next(0)
    }
}

mod input {
    thalweg_graph::errors! {
        BAD: Error, ARP_PARSING, "bad stub packet";
        LOST: Warning, UNKNOWN, "stub senders lost";
    }
}
static INPUT: NodeDecl = NodeDecl {
    name: "stub-input",
    errors: input::ERRORS,
    build: |cx| Built::node(Input(Reporter::new(cx))),
    ..NodeDecl::DEFAULT
};
struct Input(Reporter);
impl Node for Input {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let Some((_, operation, ip)) = read(p.data()) else { return Verdict::drop(input::BAD) };
        let mac = *p.data()[6..].first_chunk().unwrap();
        let origin = if operation == REPLY { Origin::Reply } else { Origin::Request };
        match self.0.sender(cx, p.rx_if(), (ip, MacAddr(mac)), origin) {
            Reported::Sent | Reported::Known => {}
            Reported::Throttled | Reported::Busy => cx.count(input::LOST, 1),
        }
        let (packet, kept) = cx.take(p);
        cx.deliver(packet);
        kept
    }
    fn message(&mut self, _: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        self.0.message(&*message);
    }
}

mod hold {
    thalweg_graph::next_nodes! { REWRITE => "stub-rewrite", ICMP_ERROR => "stub-error" }
    thalweg_graph::errors! {
        HELD: Info, UNRESOLVED_NEIGH, "packets held";
        UNRESOLVED: Error, UNRESOLVED_NEIGH, "unresolved neighbour";
        OVERFLOW: Error, UNRESOLVED_NEIGH, "too many packets held";
        CROWDED: Error, UNRESOLVED_NEIGH, "too many unresolved neighbours";
        BUSY: Error, UNRESOLVED_NEIGH, "main thread busy";
        GONE: Error, DEV_READY, "adjacency deleted or down";
    }
    pub(super) const REWRITE_NEXT: thalweg_graph::Verdict = REWRITE;
    pub(super) const ICMP_NEXT: thalweg_graph::Verdict = ICMP_ERROR;
}
/// Address unreachable (RFC 4443 section 3.1).
const CAUSE: IcmpCause = IcmpCause { kind: 1, code: 3, mtu: 0 };
const EXITS: Exits = Exits {
    release: hold::REWRITE_NEXT,
    unreachable: hold::ICMP_NEXT,
    cause: CAUSE,
    unresolved: hold::UNRESOLVED,
    overflow: hold::OVERFLOW,
    crowded: hold::CROWDED,
    busy: hold::BUSY,
    held: hold::HELD,
};

const fn incomplete(name: &'static str) -> NodeDecl {
    NodeDecl {
        name,
        next: hold::NEXT_NODES,
        errors: hold::ERRORS,
        build: |cx| Built::node(IncompleteNode::new(cx, EXITS, hold::GONE, |_, _, _| Ok(()))),
        ..NodeDecl::DEFAULT
    }
}
static INCOMPLETE4: NodeDecl = incomplete("stub4-incomplete");
static INCOMPLETE6: NodeDecl = incomplete("stub6-incomplete");

const fn glean(name: &'static str) -> NodeDecl {
    NodeDecl {
        name,
        next: hold::NEXT_NODES,
        errors: hold::ERRORS,
        build: |cx| Built::node(Glean(cx.shared(), Interfaces::table(cx), Hold::new(cx, EXITS))),
        ..NodeDecl::DEFAULT
    }
}
static GLEAN4: NodeDecl = glean("stub4-glean");
static GLEAN6: NodeDecl = glean("stub6-glean");
struct Glean(Arc<DpoTable>, Arc<Snapshot<IfTable>>, Hold);
impl Node for Glean {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let state = self.0.get(Dpo(p.aux())).state();
        if state.kind != Kind::GLEAN {
            return Verdict::drop(hold::GONE);
        }
        let data = p.data();
        let ip = match data[0] >> 4 {
            4 => IpAddr::V4(Ipv4Addr::from(*data[16..].first_chunk::<4>().unwrap())),
            _ => IpAddr::V6(Ipv6Addr::from(*data[24..].first_chunk::<16>().unwrap())),
        };
        let row = self.1.load(cx.guard()).get(state.tx_if());
        self.2.keep_for_host(cx, p, (state.tx_if(), ip), |cx| {
            let Some(mut request) = cx.originate() else { return };
            request.append(&frame(MacAddr([0xff; 6]), row.mac, REQUEST, ip), cx.cache());
            request.set_tx_if(state.tx_if());
            cx.send(request, Verdict::node(row.output));
        })
    }
    fn message(&mut self, cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        self.2.message(cx, message);
    }
}

mod rewrite {
    thalweg_graph::errors! { GONE: Error, DEV_READY, "no adjacency"; }
}
static REWRITE: NodeDecl = NodeDecl {
    name: "stub-rewrite",
    errors: rewrite::ERRORS,
    build: |cx| Built::node(Rewrite(cx.shared())),
    ..NodeDecl::DEFAULT
};
struct Rewrite(Arc<DpoTable>);
impl Node for Rewrite {
    fn packet(&mut self, _: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        let entry = self.0.get(Dpo(p.aux()));
        let state = entry.state();
        if state.kind != Kind::REWRITE {
            return Verdict::drop(rewrite::GONE);
        }
        let n = usize::from(state.len);
        p.push(n).unwrap().copy_from_slice(&entry.rewrite()[..n]);
        p.set_tx_if(state.tx_if());
        Verdict::node(NodeId(entry.next() as u16))
    }
}

mod error {
    thalweg_graph::errors! {
        ASKED: Error, UNRESOLVED_NEIGH, "address unreachable";
        WRONG: Error, UNKNOWN, "wrong cause";
    }
}
static ERROR: NodeDecl = NodeDecl {
    name: "stub-error",
    errors: error::ERRORS,
    build: |_| Built::node(Icmp),
    ..NodeDecl::DEFAULT
};
struct Icmp;
impl Node for Icmp {
    fn packet(&mut self, _: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        Verdict::drop(if p.meta().icmp == CAUSE { error::ASKED } else { error::WRONG })
    }
}

/// The feature as ARP's or ND's would be, with stand-ins for what is around it.
static STUB: Feature = Feature {
    name: "stub",
    about: "a made-up protocol",
    nodes: &[&ETHERNET, &INPUT, &INCOMPLETE4, &INCOMPLETE6, &GLEAN4, &GLEAN6, &REWRITE, &ERROR],
    init: |c| {
        c.insert(Addresses::default());
        STUBS.iter().for_each(|stub| crate::register(c, stub));
        let nodes = HoldNodes { incomplete: "stub4-incomplete", glean: Some("stub4-glean") };
        crate::hold_at(c, LinkType::Ip4, nodes);
        let nodes = HoldNodes { incomplete: "stub6-incomplete", glean: Some("stub6-glean") };
        crate::hold_at(c, LinkType::Ip6, nodes);
    },
    ..Feature::DEFAULT
};

/// Address of the test's IPv4 neighbour `n`.
pub(crate) fn ip4(n: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, n])
}

/// Address of the test's IPv6 neighbour `n`: its last 32 bits are those of the IPv4 neighbour.
pub(crate) fn ip6(n: u8) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8 << 96 | 0x0a00_0000 | u128::from(n)))
}

/// MAC address of the test's neighbour `n`.
pub(crate) fn mac(n: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, n])
}

/// A router with `test0` at 10.0.0.1/24 and 2001:db8::a00:1/64; `test1` has no addresses.
pub(crate) struct Bench {
    pub(crate) lab: Lab,
    pub(crate) sw_if: SwIfIndex,
}

impl Bench {
    pub(crate) fn new() -> Bench {
        Bench::of(1)
    }

    pub(crate) fn of(workers: usize) -> Bench {
        let setup = Lab::of(&crate::BY_CLOCK).with(&STUB).workers(workers).buffers(4096);
        let mut lab = setup.interfaces(2).start();
        let sw_if = lab.sw_if(0);
        set_addresses(&mut lab.c, sw_if, &[(ip4(1), 24), (ip6(1), 64)]);
        Bench { lab, sw_if }
    }

    /// A router without any resolver.
    pub(crate) fn bare() -> Lab {
        static ALONE: Feature = Feature {
            name: "alone",
            about: "stand-ins",
            nodes: &[&ETHERNET, &INPUT],
            ..Feature::DEFAULT
        };
        Lab::of(&crate::FEATURE).with(&ALONE).buffers(512).interfaces(1).start()
    }

    pub(crate) fn cli(&mut self, line: &str) -> String {
        self.lab.cli(line)
    }

    /// Changes the settings of a family.
    pub(crate) fn configure(&mut self, family: Version, f: impl FnOnce(&mut Config)) {
        let mut config = self.lab.c.state::<Neighbors>().borrow().config(family).unwrap();
        f(&mut config);
        crate::set_config(&mut self.lab.c, family, config).unwrap();
    }

    pub(crate) fn find(&self, ip: IpAddr) -> Option<Neighbor> {
        self.lab.c.state::<Neighbors>().borrow().find(self.sw_if, ip)
    }

    /// MAC address of a neighbour, if resolved.
    pub(crate) fn known(&self, ip: IpAddr) -> Option<MacAddr> {
        self.find(ip).and_then(|n| n.mac)
    }

    /// A neighbour on `test0` sends a request or a reply, by a worker.
    pub(crate) fn hear(&mut self, worker: usize, ip: IpAddr, mac: MacAddr, reply: bool) {
        let operation = if reply { REPLY } else { REQUEST };
        let bytes = frame(testing::our_mac(0), mac, operation, ip);
        self.lab.deliver_to(worker, 0, vec![bytes]);
        self.lab.seen();
        self.turn();
    }

    /// Neighbour `n` of a family replies.
    pub(crate) fn reply(&mut self, ip: IpAddr, mac: MacAddr) {
        self.hear(0, ip, mac, true);
    }

    /// Lets workers and the main thread do what is pending.
    pub(crate) fn turn(&mut self) {
        self.lab.turn();
    }

    /// Sends a packet to `ip` by the connected subnet, from a worker.
    pub(crate) fn packet(&mut self, worker: usize, ip: IpAddr, mark: u8) {
        let (node, link) = match ip {
            IpAddr::V4(_) => ("stub4-glean", LinkType::Ip4),
            IpAddr::V6(_) => ("stub6-glean", LinkType::Ip6),
        };
        let forwarding = self.lab.c.state::<Forwarding>();
        let dpo = forwarding.borrow_mut().glean(&self.lab.c, self.sw_if, link).unwrap();
        self.inject(worker, node, dpo, ip, mark);
    }

    /// Sends a packet to `ip` by an entry, from a worker.
    pub(crate) fn inject(&mut self, worker: usize, node: &str, dpo: Dpo, ip: IpAddr, mark: u8) {
        let packet = match ip {
            IpAddr::V4(ip) => Packet::new().ipv4(Ipv4Addr::new(192, 0, 2, 1), ip),
            IpAddr::V6(ip) => Packet::new().ipv6(Ipv6Addr::LOCALHOST, ip),
        };
        let bytes = packet.udp(1, 2).payload(&[mark]).build();
        let node = self.lab.c.node(node).unwrap();
        let inject = Inject { node, bytes, rx_if: self.sw_if, aux: dpo.get(), ..Inject::default() };
        self.lab.c.inject(worker, inject);
    }

    /// An adjacency of a neighbour on `test0`.
    pub(crate) fn adjacency(&mut self, link: LinkType, ip: IpAddr) -> Dpo {
        let forwarding = self.lab.c.state::<Forwarding>();
        let peer = Peer::Neighbor(ip);
        forwarding.borrow_mut().adjacency(&self.lab.c, self.sw_if, link, peer).unwrap()
    }

    /// Takes the requests sent: their destination and address.
    pub(crate) fn asked(&mut self) -> Vec<(MacAddr, IpAddr)> {
        let sent = self.lab.sent();
        sent.iter().filter_map(|(_, f)| read(f)).map(|(to, _, ip)| (to, ip)).collect()
    }

    /// Takes the packets sent: MAC address, ethertype and mark.
    pub(crate) fn released(&mut self) -> Vec<(MacAddr, u16, u8)> {
        let sent = self.lab.sent();
        let packets = sent.iter().map(|(_, f)| f).filter(|f| read(f).is_none());
        let parts = |f: &Vec<u8>| {
            let ethertype = u16::from_be_bytes([f[12], f[13]]);
            (MacAddr(*f.first_chunk().unwrap()), ethertype, *f.last().unwrap())
        };
        packets.map(parts).collect()
    }

    pub(crate) fn count(&self, node: &str, text: &str) -> u64 {
        self.lab.count(node, text)
    }

    /// Stops the router; no packet is missing.
    pub(crate) fn finish(self) {
        self.lab.close();
    }
}
