//! MACVLAN links on twins, as VRRP has them for virtual routers (RFC 5798 section 7.3): the
//! interface takes frames to their MAC addresses, and what is for their addresses goes to the twin.
//! The same holds for addresses of a twin that its interface cannot have, because a subnet is in
//! the way: keepalived without such links adds one of 32 or 128 bits within the twin's subnet, and
//! a DHCPv6 client one of 128 bits. The same holds for further link-local addresses.
//!
//! A virtual router that is not the master has its link, and no addresses on it: then the frames
//! are not for this router.

use super::{Place, Sync};
use crate::table;
use std::collections::BTreeSet;
use std::net::IpAddr;
use thalweg_device::{SwIfIndex, interface};
use thalweg_device_linux::mirror::Seen;
use thalweg_graph::Control;
use thalweg_netlink::{Link, LinkAddress};

/// A link on a twin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Virtual {
    /// The twin's interface.
    phy: SwIfIndex,
    /// Its MAC address, while it has IP addresses and is up.
    mac: Option<[u8; 6]>,
    /// Its IP addresses, while it is up.
    ips: BTreeSet<IpAddr>,
}

/// Begins to follow a link on a twin.
pub(super) fn find(c: &Control, place: Place, link: Option<&Link>) {
    let Some(link) = link.filter(|link| link.kind == "macvlan") else { return };
    let sync = c.state::<Sync>();
    let mut sync = sync.borrow_mut();
    let Sync { mirrors, by_place, virtuals, .. } = &mut *sync;
    let lower = link.lower.and_then(|lower| Some((lower, *by_place.get(&(place.0, lower))?)));
    let (Some((lower, phy)), Some((_, mirror))) = (lower, mirrors.get(&place.0)) else { return };
    virtuals.entry(place).or_insert_with(|| {
        mirror.watch(place.1, Some(lower));
        Virtual { phy, mac: None, ips: BTreeSet::new() }
    });
}

/// Takes a report of a link on a twin.
pub(super) fn take(c: &mut Control, place: Place, seen: &Seen) {
    let sync = c.state::<Sync>();
    let phy = {
        let mut sync = sync.borrow_mut();
        let Sync { mirrors, virtuals, .. } = &mut *sync;
        let Some(known) = virtuals.get_mut(&place) else { return };
        let phy = known.phy;
        let now = seen.link.as_ref().map(|link| described(phy, link, seen));
        match now {
            Some(now) if now == *known => return,
            Some(now) => *known = now,
            None => {
                virtuals.remove(&place);
                if let Some((_, mirror)) = mirrors.get(&place.0) {
                    mirror.forget(place.1);
                }
            }
        }
        phy
    };
    publish(c, phy);
}

/// Returns whether an address is a virtual router's. A link-local one with a subnet is the link's
/// own, and may be the twin's, too: keepalived sends from that.
fn is_virtual(a: &LinkAddress) -> bool {
    match a.ip {
        IpAddr::V4(_) => true,
        IpAddr::V6(ip) => !ip.is_unicast_link_local() || a.prefix_length == 128,
    }
}

fn described(phy: SwIfIndex, link: &Link, seen: &Seen) -> Virtual {
    let usable = seen.addresses.iter().filter(|a| link.is_up() && a.is_usable());
    let ips: BTreeSet<IpAddr> = usable.filter(|a| is_virtual(a)).map(|a| a.ip).collect();
    Virtual { phy, mac: link.mac.filter(|_| !ips.is_empty()), ips }
}

/// Forgets all links on the twin of an interface, before it goes or is another device.
pub(super) fn forget(c: &mut Control, phy: SwIfIndex) {
    let sync = c.state::<Sync>();
    {
        let mut sync = sync.borrow_mut();
        let Sync { mirrors, virtuals, .. } = &mut *sync;
        virtuals.retain(|place, of| {
            if of.phy == phy
                && let Some((_, mirror)) = mirrors.get(&place.0)
            {
                mirror.forget(place.1);
            }
            of.phy != phy
        });
    }
    publish(c, phy);
}

/// Addresses that an interface takes for its twin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    macs: BTreeSet<[u8; 6]>,
    ip4: BTreeSet<u32>,
    ip6: BTreeSet<u128>,
}

impl Taken {
    fn new(macs: BTreeSet<[u8; 6]>, ips: impl Iterator<Item = IpAddr>) -> Taken {
        let (mut ip4, mut ip6) = (BTreeSet::new(), BTreeSet::new());
        for ip in ips {
            match ip {
                IpAddr::V4(ip) => ip4.insert(ip.to_bits()),
                IpAddr::V6(ip) => ip6.insert(ip.to_bits()),
            };
        }
        Taken { macs, ip4, ip6 }
    }
}

/// The arcs and nodes that take packets of both versions for addresses of the twin.
const FEATURES: [(&str, &str); 2] =
    [("ip4-unicast", "linux-cp-host-ip4"), ("ip6-unicast", "linux-cp-host-ip6")];

/// Lets an interface take packets for the links on its twin, and for addresses that the twin alone
/// has.
pub(super) fn publish(c: &mut Control, phy: SwIfIndex) {
    let sync = c.state::<Sync>();
    let (before, now) = {
        let mut sync = sync.borrow_mut();
        let all = || sync.virtuals.values().filter(|of| of.phy == phy);
        let macs: BTreeSet<[u8; 6]> = all().filter_map(|of| of.mac).collect();
        let twin = sync.twins.get(&phy);
        let alone = twin.into_iter().flat_map(|twin| twin.refused.keys().map(|(ip, _)| *ip));
        let locals = twin.and_then(|twin| twin.known.as_ref()).into_iter();
        let locals = locals.flat_map(|known| known.more_link_locals.iter().copied());
        let ips = all().flat_map(|of| of.ips.iter().copied()).chain(alone).chain(locals);
        let now = Taken::new(macs, ips);
        let before = match now == Taken::default() {
            true => sync.taken.remove(&phy),
            false => sync.taken.insert(phy, now.clone()),
        };
        (before.unwrap_or_default(), now)
    };
    // An interface that is gone has nothing.
    let is_there = interface::view(c, phy).is_ok();
    if before.macs != now.macs {
        let what = format!("{} MAC addresses of links on it", now.macs.len());
        let done = interface::set_found_macs(c, phy, now.macs);
        if is_there {
            super::note(c, phy, &what, done);
        }
    }
    let was_on = [!before.ip4.is_empty(), !before.ip6.is_empty()];
    let on = [!now.ip4.is_empty(), !now.ip6.is_empty()];
    if before.ip4 == now.ip4 && before.ip6 == now.ip6 {
        return;
    }
    table::update(c, |table| {
        table.set_of_host(phy, now.ip4.into_iter().collect());
        table.set_of_host6(phy, now.ip6.into_iter().collect());
    });
    for (version, (arc, node)) in FEATURES.into_iter().enumerate() {
        if is_there
            && was_on[version] != on[version]
            && let Err(e) = c.enable_feature(arc, node, phy, on[version])
        {
            tracing::error!("{}: {e}", c.interface_name(phy));
        }
    }
}
