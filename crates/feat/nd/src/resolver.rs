//! Neighbour discovery as the resolver of IPv6 neighbours, and the addresses that it asks from and
//! answers for.

use crate::addrs::{IfAddr, IfAddrs, Proxy, RoutedPeers};
use crate::counters::{Counted, NdCounters};
use crate::packet::{self, Advertisement};
use crate::reports;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};
use thalweg_device::{InterfaceEvent, InterfaceView, MacAddr, SwIfIndex};
use thalweg_feat_neighbor::{self as neighbor, HoldNodes, Resolver, Version};
use thalweg_fib::LinkType;
use thalweg_graph::Control;
use thalweg_tables::snapshot;
use thalweg_wire::nd::solicited_node;

/// State on the main thread.
struct Nd {
    addrs: snapshot::Writer<IfAddrs>,
}

/// The event that the router listens to other groups.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GroupsChanged {
    /// Groups of an interface.
    Of(SwIfIndex),
    /// Membership of these groups, on more interfaces or fewer: [`has_joined`] says on which.
    Groups(BTreeSet<Ipv6Addr>),
}

struct NdResolver;

static RESOLVER: NdResolver = NdResolver;

pub(crate) fn init(c: &mut Control) {
    NdCounters::init(c);
    reports::init(c);
    let (addrs, snapshot) = snapshot::channel(IfAddrs::default());
    c.share(snapshot);
    c.insert(Nd { addrs });
    neighbor::register(c, &RESOLVER);
    let nodes = HoldNodes { incomplete: "ip6-discover-neighbor", glean: Some("ip6-glean") };
    neighbor::hold_at(c, LinkType::Ip6, nodes);
    c.subscribe(|c, event| {
        if let InterfaceEvent::Deleted(i) = *event {
            store(c, |old| old.with(i, None, &[]));
            c.publish(GroupsChanged::Of(i));
            store(c, |old| old.with_unusable(i, &[], &[]));
            store(c, |old| old.with_router(i, false));
            store(c, |old| old.with_table(i, 0));
            store(c, |old| old.with_routed(i, RoutedPeers::default()));
        }
    });
}

/// Sets the link-local address of an interface, without which it does not speak IPv6, and all
/// others with their prefix lengths. To be called on each change; for an unnumbered interface, with
/// the addresses that it borrows. Dynamic neighbours outside of these subnets are deleted.
pub fn set_addresses(
    c: &mut Control,
    sw_if: SwIfIndex,
    link_local: Option<Ipv6Addr>,
    addrs: &[IfAddr],
) {
    if store(c, |old| old.with(sw_if, link_local, addrs)) {
        c.publish(GroupsChanged::Of(sw_if));
    }
    neighbor::addresses_changed(c, Version::V6, sw_if);
}

/// Sets which hosts are on an interface by routes, whatever its addresses are: prefixes of routes
/// to the interface, and next hops named together with it. To be called with all of them on each
/// change.
pub fn set_routed_peers(
    c: &mut Control,
    sw_if: SwIfIndex,
    attached: Vec<IfAddr>,
    next_hops: Vec<Ipv6Addr>,
) {
    let peers = RoutedPeers::new(attached, next_hops);
    if store(c, |old| old.with_routed(sw_if, peers)) {
        neighbor::addresses_changed(c, Version::V6, sw_if);
    }
}

/// Sets which addresses of an interface may not be used: those still being tested, and those that
/// other hosts have. To be called with all of them on each change.
pub fn set_unusable(
    c: &mut Control,
    sw_if: SwIfIndex,
    tentative: &[Ipv6Addr],
    duplicate: &[Ipv6Addr],
) {
    store(c, |old| old.with_unusable(sw_if, tentative, duplicate));
}

/// Sets whether the router advertises itself on an interface: its other advertisements include
/// that, and it receives router solicitations.
pub fn set_router(c: &mut Control, sw_if: SwIfIndex, router: bool) {
    store(c, |old| old.with_router(sw_if, router));
}

/// Returns the groups of the link that the router listens to on an interface, in order.
pub fn groups(c: &Control, sw_if: SwIfIndex) -> Vec<Ipv6Addr> {
    read(c, |all| all.groups(sw_if))
}

/// Returns whether the router listens to a group on an interface.
pub fn has_joined(c: &Control, sw_if: SwIfIndex, group: Ipv6Addr) -> bool {
    read(c, |all| all.has_joined(sw_if, group))
}

/// Asks the link who has an address that is still being tested (RFC 4862 section 5.4.2).
pub fn probe(c: &mut Control, view: &InterfaceView, target: Ipv6Addr) {
    neighbor::send(c, view, &packet::probe(view.mac, target));
    c.shared::<NdCounters>().count_main(view.sw_if, Counted::TxRequest);
}

/// Sets the route table of an interface. To be called on each change.
pub fn set_table(c: &mut Control, sw_if: SwIfIndex, table: u32) {
    if store(c, |old| old.with_table(sw_if, table)) {
        c.publish(GroupsChanged::Of(sw_if));
    }
}

/// Answers for other hosts, or no longer. Takes the same time however many there are.
pub fn set_proxies(c: &mut Control, changes: &[(Proxy, bool)]) {
    store(c, |old| Some(old.with_proxies(changes)));
    let groups = changes.iter().map(|(proxy, _)| solicited_node(proxy.ip));
    c.publish(GroupsChanged::Groups(groups.collect()));
}

/// Publishes what has changed; returns whether anything has.
fn store(c: &mut Control, change: impl FnOnce(&IfAddrs) -> Option<IfAddrs>) -> bool {
    let state = c.state::<Nd>();
    let writer = &mut state.borrow_mut().addrs;
    let Some(new) = change(writer.get()) else { return false };
    writer.publish(c.domain(), new);
    true
}

fn read<R>(c: &Control, f: impl FnOnce(&IfAddrs) -> R) -> R {
    f(c.state::<Nd>().borrow().addrs.get())
}

/// Unwraps an address: [`Version::V6`] brings no others here.
fn ipv6(ip: IpAddr) -> Option<Ipv6Addr> {
    match ip {
        IpAddr::V6(ip) => Some(ip),
        IpAddr::V4(_) => None,
    }
}

impl Resolver for NdResolver {
    fn family(&self) -> Version {
        Version::V6
    }

    fn reporters(&self) -> &'static [&'static str] {
        &[
            "icmp6-neighbor-advertisement",
            "icmp6-neighbor-solicitation",
            "icmp6-router-solicitation",
            "icmp6-router-advertisement",
        ]
    }

    fn can_ask(&self, c: &Control, sw_if: SwIfIndex, ip: IpAddr) -> bool {
        let is_speaking =
            |all: &IfAddrs, ip| all.link_local(sw_if).is_some() && !all.is_own(sw_if, ip);
        ipv6(ip).is_some_and(|ip| read(c, |all| is_speaking(all, ip)))
    }

    fn ask(&self, c: &mut Control, view: &InterfaceView, ip: IpAddr, to: Option<MacAddr>) {
        let Some(ip) = ipv6(ip) else { return };
        let source =
            read(c, |all| all.link_local(view.sw_if).filter(|ip| all.is_usable(view.sw_if, *ip)));
        let Some(source) = source else { return };
        let frame = packet::solicitation(view.mac, source, ip, to);
        neighbor::send(c, view, &frame);
        c.shared::<NdCounters>().count_main(view.sw_if, Counted::TxRequest);
    }

    fn is_peer(&self, c: &Control, sw_if: SwIfIndex, ip: IpAddr) -> bool {
        ipv6(ip).is_some_and(|ip| read(c, |all| all.is_peer(sw_if, ip)))
    }

    fn is_connected(&self, c: &Control, sw_if: SwIfIndex, ip: IpAddr) -> bool {
        ipv6(ip).is_some_and(|ip| read(c, |all| all.is_connected(sw_if, ip)))
    }

    fn refuse(&self, c: &Control, sw_if: SwIfIndex, ip: IpAddr) -> Option<&'static str> {
        let ip = ipv6(ip)?;
        if read(c, |all| all.is_own(sw_if, ip)) {
            Some("it is the interface's own address")
        } else if ip.is_multicast() {
            Some("it is a multicast address")
        } else if ip.is_loopback() || ip.is_unspecified() {
            Some("it is not a host address")
        } else {
            None
        }
    }

    /// RFC 4861 section 7.2.6.
    fn announce_one(&self, c: &mut Control, view: &InterfaceView, ip: IpAddr) {
        let Some(ip) = ipv6(ip) else { return };
        neighbor::send(c, view, &Advertisement::unsolicited(view.mac, ip).frame());
        c.shared::<NdCounters>().count_main(view.sw_if, Counted::TxReply);
    }

    fn announce(&self, c: &mut Control, view: &InterfaceView) -> usize {
        let own = read(c, |all| {
            let others = all.get(view.sw_if).iter().map(|a| a.ip);
            let own = all.link_local(view.sw_if).into_iter().chain(others);
            own.filter(|ip| all.is_usable(view.sw_if, *ip)).collect::<Vec<_>>()
        });
        for ip in &own {
            self.announce_one(c, view, (*ip).into());
        }
        own.len()
    }
}
