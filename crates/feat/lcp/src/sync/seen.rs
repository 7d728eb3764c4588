//! Changes that Linux has made to a twin are made to its interface.

use super::wishes::{self, Wish};
use super::{
    Known, Prefixed, Sync, Twin, addresses, labels, neighbours, note, pair, virtuals, vlans, wanted,
};
use crate::options;
use crate::routes::table_of;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use thalweg_device::{MacAddr, MtuOf, SwIfIndex, interface};
use thalweg_device_linux::mirror::{Change, Lower, Seen};
use thalweg_feat_ip::{Ip, TableId, address};
use thalweg_feat_ip6::link_local;
use thalweg_graph::Control;
use thalweg_netlink::{Link, LinkAddress};

/// `RT_SCOPE_HOST`: addresses such as the loopback's.
const OF_HOST: u8 = 254;

/// Takes a report of the twin of an interface.
pub(super) fn take(c: &mut Control, phy: SwIfIndex, seen: Seen) {
    for refusal in &seen.refused {
        // One that is ordered again is refused in silence.
        let is_said = {
            let sync = c.state::<Sync>();
            let mut sync = sync.borrow_mut();
            let Some(twin) = sync.twins.get_mut(&phy) else { break };
            let is_said = twin.said.includes(&refusal.change);
            twin.said.merge(refusal.change.clone());
            is_said
        };
        if !is_said {
            let name = pair(c, phy).map(|pair| pair.name).unwrap_or_default();
            tracing::warn!("{}: its twin {name} cannot {refusal}", c.interface_name(phy));
        }
    }
    wanted::order_if_due(c, phy);
    let sync = c.state::<Sync>();
    let (before, was_down) = {
        let mut sync = sync.borrow_mut();
        let Some(twin) = sync.twins.get_mut(&phy) else { return };
        twin.was_down |= seen.was_down;
        for refusal in &seen.refused {
            twin.denied.merge(refusal.change.clone());
            twin.refused_since.merge(refusal.change.clone());
        }
        if seen.order < twin.order {
            // An order is under way: its report follows.
            return;
        }
        let link = seen.link.as_ref();
        let now = link.map(|link| all_known(link, &seen));
        if twin.is_held && now.is_some() {
            // The interface is in its VRF only after that.
            twin.known = now.map(|now| Known { vrf: None, ..now });
            return;
        }
        let mut before = std::mem::replace(&mut twin.known, now.clone());
        twin.is_taken = true;
        let refused = std::mem::take(&mut twin.refused_since);
        if let (Some(before), Some(now)) = (&mut before, &now) {
            excuse(before, now, &refused);
            if before != now {
                twin.denied = refused;
            }
        }
        (before, std::mem::take(&mut twin.was_down))
    };
    let Some(link) = &seen.link else { return gone(c, phy, seen.lower.is_some()) };
    let now = all_known(link, &seen);
    if let Some(before) = before {
        changed(c, phy, &before, &now, was_down);
    }
    set_link_local(c, phy, now.link_local);
    set_addresses(c, phy, &seen, &now);
    if let Some(twin) = sync.borrow_mut().twins.get_mut(&phy) {
        twin.is_taken = false;
    }
    wishes::account(c, phy);
    wanted::order(c, phy, false);
}

/// Takes out of a change what is nobody's wish: the kernel has refused an order and has something
/// else instead, or a VLAN link has followed the link that it is on.
fn excuse(before: &mut Known, now: &Known, refused: &Change) {
    before.up = if refused.up.is_some() { now.up } else { before.up };
    before.mtu = if refused.mtu.is_some() { now.mtu } else { before.mtu };
    before.mac = if refused.mac.is_some() { now.mac } else { before.mac };
    before.labels = if refused.labels.is_some() { now.labels } else { before.labels };
    for (address, there) in &refused.addresses {
        match there {
            true => before.addresses.remove(address),
            false => before.addresses.insert(*address),
        };
    }
    let Some(lower) = now.lower else { return };
    if lower.was_down || before.lower.is_some_and(|lower| !lower.up) {
        before.up = now.up;
    }
    if now.mtu < before.mtu && now.mtu == lower.mtu {
        before.mtu = now.mtu;
    }
}

fn all_known(link: &Link, seen: &Seen) -> Known {
    Known { labels: seen.labels, ..known(link, &seen.addresses, seen.vrf, seen.lower) }
}

/// Returns what is remembered of a link, but whether it takes labelled packets.
pub(super) fn known(
    link: &Link,
    addresses: &[LinkAddress],
    vrf: Option<u32>,
    lower: Option<Lower>,
) -> Known {
    let usual = |a: &&LinkAddress| a.scope != OF_HOST && !is_link_local(a.ip);
    let locals = || addresses.iter().filter(|a| is_link_local(a.ip) && a.is_usable());
    // A virtual router's has no subnet.
    let own = locals().find(|a| a.prefix_length < 128).or_else(|| locals().next());
    let link_local = own.map(|a| a.ip);
    Known {
        up: link.is_up(),
        mtu: link.mtu,
        mac: link.mac.map(MacAddr),
        // A VRF may have one of the kernel's main tables, which are one here.
        vrf: vrf.map(|table| table_of(table).get()),
        labels: None,
        addresses: addresses.iter().filter(usual).map(prefixed).collect(),
        link_local,
        more_link_locals: locals().map(|a| a.ip).filter(|ip| Some(*ip) != link_local).collect(),
        lower,
    }
}

/// Returns an address with the length of the subnet that it is in: with an address of the other
/// end, the prefix is around that.
fn prefixed(a: &LinkAddress) -> Prefixed {
    match (a.peer, a.ip) {
        (None, ip) => (ip, a.prefix_length),
        (Some(_), IpAddr::V4(_)) => (a.ip, 32),
        (Some(_), IpAddr::V6(_)) => (a.ip, 128),
    }
}

fn is_link_local(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

/// Applies changes of the twin to the interface.
fn changed(c: &mut Control, phy: SwIfIndex, before: &Known, now: &Known, was_down: bool) {
    let Ok(view) = interface::view(c, phy) else { return };
    if now.mac != before.mac
        && let Some(mac) = now.mac.filter(|mac| *mac != view.mac)
    {
        let done = interface::set_mac(c, phy, mac);
        note(c, phy, &format!("the MAC address {mac}"), done);
    }
    let (is_new, is_met) = (now.mtu != before.mtu, now.mtu == view.mtu.l3);
    let what = format!("the MTU {}", now.mtu);
    wishes::grant(c, phy, Wish::Mtu, (is_new, is_met), &what, |c| {
        interface::set_mtu(c, phy, MtuOf::L3, now.mtu)
    });
    set_vrf(c, phy, before.vrf, now.vrf);
    labels::changed(c, phy, before.labels, now.labels);
    // Last, so that an interface that comes up is complete.
    if now.up != before.up && now.up != view.admin_up {
        let done = interface::set_admin(c, phy, now.up);
        note(c, phy, if now.up { "that it is up" } else { "that it is down" }, done);
    }
    let gone = before.addresses.difference(&now.addresses);
    // The kernel takes IPv6 addresses from a link that goes down.
    let gone: Vec<Prefixed> = gone.filter(|(ip, _)| !was_down || ip.is_ipv4()).copied().collect();
    for (ip, length) in gone {
        if addresses::has(c, phy, ip, length) {
            let done = addresses::remove(c, phy, ip, length);
            note(c, phy, &format!("the end of address {ip}/{length}"), done);
        }
    }
}

/// Gives the interface the link-local address of its twin, to which neighbours send what is for
/// both. While the twin is down it has none, and the interface keeps it.
fn set_link_local(c: &mut Control, phy: SwIfIndex, ip: Option<IpAddr>) {
    let Some(IpAddr::V6(ip)) = ip else { return };
    if link_local::of(c, phy) != Some(ip) {
        let done = link_local::follow(c, phy, Some(ip));
        note(c, phy, &format!("the link-local address {ip}"), done);
    }
}

/// Gives the interface the twin's own addresses, and takes away those that the twin has lost.
fn set_addresses(c: &mut Control, phy: SwIfIndex, seen: &Seen, now: &Known) {
    let borrowed: BTreeSet<Prefixed> = match pair(c, phy) {
        Some(pair) => wanted::addresses(c, &pair, options::get(c).sync_unnumbered),
        None => return,
    };
    let sync = c.state::<Sync>();
    let (former, refused, shared) = {
        let sync = sync.borrow();
        let Some(twin) = sync.twins.get(&phy) else { return };
        (twin.found.clone(), twin.refused.clone(), twin.shared.clone())
    };
    for &(ip, length) in former.difference(&now.addresses) {
        if addresses::is_found(c, phy, ip, length) {
            let done = addresses::remove(c, phy, ip, length);
            note(c, phy, &format!("the end of address {ip}/{length}"), done);
        }
    }
    let mut found: BTreeSet<Prefixed> = former.intersection(&now.addresses).copied().collect();
    let mut still_refused = BTreeMap::new();
    for a in seen.addresses.iter().filter(|a| a.is_usable()) {
        let new @ (ip, length) = prefixed(a);
        let is_own = borrowed.contains(&new) || shared.contains(&new) || found.contains(&new);
        if !now.addresses.contains(&new) || is_own {
            continue;
        }
        let done = addresses::add_found(c, phy, ip, length);
        match &done {
            Ok(()) => _ = found.insert(new),
            Err(e) => _ = still_refused.insert(new, e.to_string()),
        }
        // One that was refused before is refused in silence.
        if done.is_ok() || !refused.contains_key(&new) {
            note(c, phy, &format!("address {ip}/{length}"), done);
        }
    }
    if let Some(twin) = sync.borrow_mut().twins.get_mut(&phy) {
        (twin.found, twin.refused) = (found, still_refused);
    }
    virtuals::publish(c, phy);
}

/// Moves the interface to the table of its twin's VRF, with the addresses that a user has written.
fn set_vrf(c: &mut Control, phy: SwIfIndex, before: Option<u32>, now: Option<u32>) {
    let table = TableId(now.unwrap_or(0));
    let is_met = c.state::<Ip<u32>>().borrow().table_of(phy) == table
        && c.state::<Ip<u128>>().borrow().table_of(phy) == table;
    let what = format!("table {table} (VRF)");
    wishes::grant(c, phy, Wish::Vrf, (before != now, is_met), &what, |c| {
        move_to::<u32>(c, phy, table).and_then(|()| move_to::<u128>(c, phy, table))
    });
}

fn move_to<A: thalweg_tables::Address>(
    c: &mut Control,
    phy: SwIfIndex,
    table: TableId,
) -> Result<(), String> {
    if c.state::<Ip<A>>().borrow().table_of(phy) == table {
        return Ok(());
    }
    thalweg_feat_ip::need_table::<A>(c, table).map_err(|e| e.to_string())?;
    address::move_to_table::<A>(c, phy, table).map_err(|e| e.to_string())
}

/// The twin is gone: what the interface has from it goes; what was written stays. `has_lower`: the
/// link that it was on is there.
fn gone(c: &mut Control, phy: SwIfIndex, has_lower: bool) {
    let Some(pair) = pair(c, phy) else { return };
    let twin = {
        let sync = c.state::<Sync>();
        let mut sync = sync.borrow_mut();
        let Some(twin) = sync.twins.get_mut(&phy) else { return };
        let order = twin.order;
        let place = twin.place;
        std::mem::replace(twin, Twin { order, ..Twin::at(place) })
    };
    wishes::account(c, phy);
    forget(c, phy, twin);
    virtuals::publish(c, phy);
    vlans::gone(c, &pair, has_lower);
}

/// Takes away what an interface has from a twin.
pub(super) fn forget(c: &mut Control, phy: SwIfIndex, twin: Twin) {
    for (ip, length) in twin.found {
        if addresses::is_found(c, phy, ip, length) {
            let _ = addresses::remove(c, phy, ip, length);
        }
    }
    neighbours::forget(c, phy, twin.neighbours);
    let _ = link_local::follow(c, phy, None);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn twin(up: bool, mtu: u32, lower: Option<Lower>) -> Known {
        Known { up, mtu, lower, ..Known::default() }
    }

    /// Returns what a user has changed between two looks.
    fn wish(before: &Known, now: &Known, refused: &Change) -> (Option<bool>, Option<u32>) {
        let mut before = before.clone();
        excuse(&mut before, now, refused);
        let up = (before.up != now.up).then_some(now.up);
        (up, (before.mtu != now.mtu).then_some(now.mtu))
    }

    #[test]
    fn what_the_kernel_does_to_vlan_links_is_nobodys_wish() {
        let lower = |up: bool, was_down: bool, mtu: u32| Some(Lower { up, was_down, mtu });
        let none = Change::default();
        let (on, off) = (lower(true, false, 1500), lower(false, true, 1500));
        let fell = lower(true, true, 1500);
        for (before, now, wanted) in [
            (twin(true, 1500, on), twin(false, 1500, on), (Some(false), None)),
            (twin(false, 1500, on), twin(true, 1500, on), (Some(true), None)),
            // The link goes down and comes up with the one below it.
            (twin(true, 1500, on), twin(false, 1500, off), (None, None)),
            (twin(false, 1500, off), twin(true, 1500, on), (None, None)),
            (twin(false, 1500, on), twin(true, 1500, fell), (None, None)),
            // Its MTU is not above that of the link below.
            (twin(true, 1500, on), twin(true, 1400, lower(true, false, 1400)), (None, None)),
            (twin(true, 1500, on), twin(true, 1400, on), (None, Some(1400))),
            (twin(true, 1400, on), twin(true, 1500, on), (None, Some(1500))),
        ] {
            assert_eq!(wish(&before, &now, &none), wanted, "{before:?} {now:?}");
        }
    }

    #[test]
    fn an_address_of_a_link_between_two_is_in_no_subnet() {
        let address = |peer: Option<[u8; 4]>| LinkAddress {
            index: 1,
            ip: [192, 0, 2, 1].into(),
            prefix_length: 24,
            peer: peer.map(IpAddr::from),
            scope: 0,
            flags: 0,
        };
        let of = |a| known(&Link::default(), &[a], None, None).addresses;
        let with_length = |length| BTreeSet::from([([192, 0, 2, 1].into(), length)]);
        assert_eq!(of(address(None)), with_length(24));
        assert_eq!(of(address(Some([10, 0, 0, 2]))), with_length(32));
    }

    #[test]
    fn the_main_tables_of_the_kernel_are_one() {
        let vrf = |table| known(&Link::default(), &[], table, None).vrf;
        assert_eq!([None, Some(7), Some(254)].map(vrf), [None, Some(7), Some(0)]);
    }

    #[test]
    fn what_the_kernel_refuses_is_nobodys_wish() {
        let refused = Change { mtu: Some(9000), ..Change::default() };
        // The MTU was ordered, and expected.
        let (before, now) = (twin(true, 9000, None), twin(false, 1500, None));
        assert_eq!(wish(&before, &now, &refused), (Some(false), None));
        let a: Prefixed = ([192, 0, 2, 1].into(), 24);
        let refused = Change { addresses: [(a, true)].into(), ..Change::default() };
        let mut before = Known { addresses: [a].into(), ..Known::default() };
        excuse(&mut before, &Known::default(), &refused);
        assert_eq!(before, Known::default());
    }
}
