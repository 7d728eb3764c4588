//! MACVLAN links on twins, as VRRP has them for virtual routers (RFC 5798 section 7.3): the
//! interface takes frames to their MAC addresses, and what is for their IPv4 addresses goes to the
//! twin. The same holds for addresses of a twin that its interface cannot have, because a subnet is
//! in the way: keepalived without such links adds one of 32 bits within the twin's subnet.
//!
//! A virtual router that is not the master has its link, and no addresses on it: then the frames
//! are not for this router.

use super::{Place, Sync};
use crate::table;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use thalweg_device::{SwIfIndex, interface};
use thalweg_device_linux::mirror::Seen;
use thalweg_graph::Control;
use thalweg_netlink::Link;

/// A link on a twin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Virtual {
    /// The twin's interface.
    phy: SwIfIndex,
    /// Its MAC address, while it has IP addresses and is up.
    mac: Option<[u8; 6]>,
    /// Its IPv4 addresses, while it is up.
    ips: BTreeSet<Ipv4Addr>,
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

fn ip4(ip: &IpAddr) -> Option<Ipv4Addr> {
    if let IpAddr::V4(ip) = ip { Some(*ip) } else { None }
}

fn described(phy: SwIfIndex, link: &Link, seen: &Seen) -> Virtual {
    let is_global = |ip: IpAddr| match ip {
        IpAddr::V4(_) => true,
        IpAddr::V6(ip) => !ip.is_unicast_link_local(),
    };
    let usable = seen.addresses.iter().filter(|a| link.is_up() && a.is_usable());
    let ips: Vec<IpAddr> = usable.map(|a| a.ip).filter(|ip| is_global(*ip)).collect();
    Virtual {
        phy,
        mac: link.mac.filter(|_| !ips.is_empty()),
        ips: ips.iter().filter_map(ip4).collect(),
    }
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
    ips: BTreeSet<u32>,
}

/// Lets an interface take packets for the links on its twin, and for addresses that the twin alone
/// has.
pub(super) fn publish(c: &mut Control, phy: SwIfIndex) {
    let sync = c.state::<Sync>();
    let (before, now) = {
        let mut sync = sync.borrow_mut();
        let all = || sync.virtuals.values().filter(|of| of.phy == phy);
        let macs: BTreeSet<[u8; 6]> = all().filter_map(|of| of.mac).collect();
        let alone = sync.twins.get(&phy).into_iter().flat_map(|twin| &twin.refused);
        let alone = alone.filter_map(|((ip, _), _)| ip4(ip));
        let ips = all().flat_map(|of| of.ips.iter().copied()).chain(alone);
        let now = Taken { macs, ips: ips.map(Ipv4Addr::to_bits).collect() };
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
    if before.ips == now.ips {
        return;
    }
    let (was_on, on) = (!before.ips.is_empty(), !now.ips.is_empty());
    table::update(c, |table| table.set_of_host(phy, now.ips.into_iter().collect()));
    if is_there
        && was_on != on
        && let Err(e) = c.enable_feature("ip4-unicast", "linux-cp-host-ip4", phy, on)
    {
        tracing::error!("{}: {e}", c.interface_name(phy));
    }
}
