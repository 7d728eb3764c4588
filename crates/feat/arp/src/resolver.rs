//! ARP as the resolver of IPv4 neighbours, and the addresses that it asks from and answers for.

use crate::addrs::{IfAddr, IfAddrs, ProxyRange, RoutedPeers};
use crate::counters::{ArpCounters, Counted};
use crate::packet;
use std::net::{IpAddr, Ipv4Addr};
use thalweg_device::{InterfaceEvent, InterfaceView, MacAddr, SwIfIndex};
use thalweg_feat_neighbor::{self as neighbor, HoldNodes, Resolver, Version};
use thalweg_fib::LinkType;
use thalweg_graph::Control;
use thalweg_tables::snapshot;

/// ARP's state on the main thread.
struct Arp {
    addrs: snapshot::Writer<IfAddrs>,
}

struct ArpResolver;

static RESOLVER: ArpResolver = ArpResolver;

pub(crate) fn init(c: &mut Control) {
    ArpCounters::init(c);
    let (addrs, snapshot) = snapshot::channel(IfAddrs::default());
    c.share(snapshot);
    c.insert(Arp { addrs });
    neighbor::register(c, &RESOLVER);
    let nodes = HoldNodes { incomplete: "ip4-arp", glean: Some("ip4-glean") };
    neighbor::hold_at(c, LinkType::Ip4, nodes);
    c.subscribe(|c, event| {
        if let InterfaceEvent::Deleted(i) = *event {
            store(c, i, &[]);
            store_routed(c, i, RoutedPeers::default());
        }
    });
}

/// Sets all addresses of an interface, with their prefix lengths. To be called on each change; for
/// an unnumbered interface, with the addresses that it borrows. Dynamic neighbours outside of these
/// subnets are deleted.
pub fn set_addresses(c: &mut Control, sw_if: SwIfIndex, addrs: &[(Ipv4Addr, u8)]) {
    let addrs: Vec<IfAddr> =
        addrs.iter().map(|(ip, len)| IfAddr { ip: *ip, len: (*len).min(32) }).collect();
    store(c, sw_if, &addrs);
    neighbor::addresses_changed(c, Version::V4, sw_if);
}

/// Sets which hosts are on an interface by routes, whatever its addresses are: prefixes of routes
/// to the interface, each with its length, and next hops named together with it. To be called with
/// all of them on each change.
pub fn set_routed_peers(
    c: &mut Control,
    sw_if: SwIfIndex,
    attached: Vec<(Ipv4Addr, u8)>,
    next_hops: Vec<Ipv4Addr>,
) {
    if store_routed(c, sw_if, RoutedPeers::new(attached, next_hops)) {
        neighbor::addresses_changed(c, Version::V4, sw_if);
    }
}

/// Returns whether that has changed anything.
fn store_routed(c: &mut Control, sw_if: SwIfIndex, peers: RoutedPeers) -> bool {
    let state = c.state::<Arp>();
    let writer = &mut state.borrow_mut().addrs;
    let Some(new) = writer.get().with_routed(sw_if, peers) else { return false };
    writer.publish(c.domain(), new);
    true
}

/// Makes the router answer ARP for addresses as for its own, or no longer, each of a group of the
/// caller. A change takes the same time however many there are. [`answer_at`] says where it
/// answers.
pub fn answer_for_these(c: &mut Control, changes: &[(u64, Ipv4Addr, bool)]) {
    let state = c.state::<Arp>();
    let addrs = &mut state.borrow_mut().addrs;
    addrs.update(c.domain(), |old| old.answering_for_these(changes));
}

/// Answers for the addresses of groups on interfaces with a label, where these have a subnet around
/// them, or no longer there: group, label, whether.
pub fn answer_at(c: &mut Control, changes: &[(u64, u64, bool)]) {
    let state = c.state::<Arp>();
    state.borrow_mut().addrs.update(c.domain(), |old| old.answering_at(changes));
}

/// Sets the labels of an interface, of the caller's choice: takes the same time however many
/// interfaces have some.
pub fn set_labels(c: &mut Control, sw_if: SwIfIndex, labels: &[u64]) {
    let state = c.state::<Arp>();
    state.borrow_mut().addrs.update(c.domain(), |old| old.with_labels(sw_if, labels));
}

/// Ends answering for addresses of all groups.
pub fn answer_for_none(c: &mut Control) {
    let state = c.state::<Arp>();
    state.borrow_mut().addrs.update(c.domain(), IfAddrs::answering_for_none);
}

/// Sets for which addresses of other hosts the router answers, where [`set_proxy`] says. To be
/// called with all of them on each change.
pub fn answer_for_ranges(c: &mut Control, ranges: Vec<ProxyRange>) {
    let state = c.state::<Arp>();
    state.borrow_mut().addrs.update(c.domain(), |old| old.with_ranges(ranges));
}

/// Answers for addresses of other hosts on an interface, or not.
pub fn set_proxy(c: &mut Control, sw_if: SwIfIndex, on: bool) {
    let state = c.state::<Arp>();
    state.borrow_mut().addrs.update(c.domain(), |old| old.with_proxy(sw_if, on));
}

/// Returns the addresses of an interface.
pub fn addresses(c: &Control, sw_if: SwIfIndex) -> Vec<IfAddr> {
    read(c, |all| all.get(sw_if).to_vec())
}

fn store(c: &mut Control, sw_if: SwIfIndex, addrs: &[IfAddr]) {
    let state = c.state::<Arp>();
    let writer = &mut state.borrow_mut().addrs;
    if writer.get().get(sw_if) != addrs {
        writer.update(c.domain(), |old| old.with(sw_if, addrs));
    }
}

fn read<R>(c: &Control, f: impl FnOnce(&IfAddrs) -> R) -> R {
    f(c.state::<Arp>().borrow().addrs.get())
}

/// Source of requests for an address.
pub(crate) fn source_for(c: &Control, sw_if: SwIfIndex, ip: Ipv4Addr) -> Option<Ipv4Addr> {
    read(c, |all| all.source_for(sw_if, ip)).filter(|source| *source != ip)
}

/// Unwraps an address: [`Version::V4`] brings no others here.
fn ipv4(ip: IpAddr) -> Option<Ipv4Addr> {
    match ip {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    }
}

impl Resolver for ArpResolver {
    fn family(&self) -> Version {
        Version::V4
    }

    fn reporters(&self) -> &'static [&'static str] {
        &["arp-input", "arp-reply"]
    }

    fn can_ask(&self, c: &Control, sw_if: SwIfIndex, ip: IpAddr) -> bool {
        ipv4(ip).is_some_and(|ip| source_for(c, sw_if, ip).is_some())
    }

    fn ask(&self, c: &mut Control, view: &InterfaceView, ip: IpAddr, to: Option<MacAddr>) {
        let Some(ip) = ipv4(ip) else { return };
        let Some(source) = source_for(c, view.sw_if, ip) else { return };
        let frame = packet::request(view.mac, source, ip, to);
        neighbor::send(c, view, &frame);
        c.shared::<ArpCounters>().count_main(view.sw_if, Counted::TxRequest);
    }

    fn is_peer(&self, c: &Control, sw_if: SwIfIndex, ip: IpAddr) -> bool {
        ipv4(ip).is_some_and(|ip| read(c, |all| all.is_peer(sw_if, ip)))
    }

    fn is_connected(&self, c: &Control, sw_if: SwIfIndex, ip: IpAddr) -> bool {
        ipv4(ip).is_some_and(|ip| read(c, |all| all.is_connected(sw_if, ip)))
    }

    fn refuse(&self, c: &Control, sw_if: SwIfIndex, ip: IpAddr) -> Option<&'static str> {
        let ip = ipv4(ip)?;
        if read(c, |all| all.is_own(sw_if, ip)) {
            Some("it is the interface's own address")
        } else if ip.is_multicast() {
            Some("it is a multicast address")
        } else if ip.is_loopback() || ip.is_unspecified() || ip.is_broadcast() {
            Some("it is not a host address")
        } else {
            None
        }
    }

    /// RFC 5227 section 2.3.
    fn announce_one(&self, c: &mut Control, view: &InterfaceView, ip: IpAddr) {
        let Some(ip) = ipv4(ip) else { return };
        neighbor::send(c, view, &packet::announcement(view.mac, ip));
        c.shared::<ArpCounters>().count_main(view.sw_if, Counted::TxGratuitous);
    }

    fn announce(&self, c: &mut Control, view: &InterfaceView) -> usize {
        let addrs = addresses(c, view.sw_if);
        for a in &addrs {
            self.announce_one(c, view, a.ip.into());
        }
        addrs.len()
    }
}
