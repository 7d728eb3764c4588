//! Neighbours of a twin are neighbours of its interface.
//!
//! Written ones of the interface stay as they are. Entries that Linux has written go when Linux
//! deletes them; entries that it has learned age here as others do, and ask for themselves.
//!
//! The router answers requests of neighbours, which the kernel does not see: one that comes back
//! with another MAC address has its entry in the kernel changed. Reports of the entry from before
//! that are void, as they have the old address. An address that came from the kernel is not passed
//! back, as the kernel may have a newer one.

use super::{Sync, note};
use std::collections::BTreeSet;
use std::net::IpAddr;
use thalweg_device::{MacAddr, SwIfIndex};
use thalweg_feat_neighbor::{NeighborChange, NeighborFlags, Neighbors, neighbors};
use thalweg_graph::Control;
use thalweg_netlink::Neighbour;

/// Takes a neighbour as it is in Linux, or `None` for one that went away.
pub(super) fn take(c: &mut Control, phy: SwIfIndex, ip: IpAddr, now: Option<Neighbour>) {
    let valid = now.filter(Neighbour::is_valid);
    let mac = valid.and_then(|n| n.mac).map(MacAddr).filter(|mac| mac.is_unicast());
    let (Some(n), Some(mac)) = (valid, mac) else { return lost(c, phy, ip) };
    if let Some(twin) = c.state::<Sync>().borrow_mut().twins.get_mut(&phy) {
        twin.macs.insert(ip, mac);
    }
    let ours = is_ours(c, phy, ip);
    let there = c.state::<Neighbors>().borrow().find(phy, ip);
    if let Some(there) = &there {
        let is_written = there.is_static && !ours;
        let is_equal = there.mac == Some(mac) && there.is_static == n.is_static();
        if is_written || is_equal {
            return;
        }
    }
    let flags = NeighborFlags { is_static: n.is_static(), ..NeighborFlags::default() };
    let done = neighbors::set(c, phy, ip, mac, flags);
    let sync = c.state::<Sync>();
    if done.is_ok()
        && let Some(twin) = sync.borrow_mut().twins.get_mut(&phy)
    {
        match n.is_static() {
            true => twin.neighbours.insert(ip),
            false => twin.neighbours.remove(&ip),
        };
    }
    note(c, phy, &format!("neighbour {ip}"), done);
}

/// Has the kernel send to a neighbour's new MAC address, if it sends to another one.
pub(super) fn moved(c: &Control, change: &NeighborChange) {
    let NeighborChange { sw_if, ip, mac: Some(mac), .. } = *change else { return };
    let sync = c.state::<Sync>();
    let mut sync = sync.borrow_mut();
    let Sync { mirrors, reports, twins, .. } = &mut *sync;
    let Some(twin) = twins.get_mut(&sw_if) else { return };
    if twin.macs.get(&ip) == Some(&mac) {
        return;
    }
    twin.macs.remove(&ip);
    let (id, index) = twin.place;
    if let Some((_, mirror)) = mirrors.get(&id) {
        mirror.move_neighbour(index, ip, mac.0);
    }
    if let Some(rest) = reports.get_mut(&id) {
        rest.forget_neighbour(index, ip);
    }
}

fn is_ours(c: &Control, phy: SwIfIndex, ip: IpAddr) -> bool {
    let sync = c.state::<Sync>();
    sync.borrow().twins.get(&phy).is_some_and(|twin| twin.neighbours.contains(&ip))
}

/// Removes a neighbour that Linux had written.
fn lost(c: &mut Control, phy: SwIfIndex, ip: IpAddr) {
    let sync = c.state::<Sync>();
    let was_ours = sync.borrow_mut().twins.get_mut(&phy).is_some_and(|twin| {
        twin.macs.remove(&ip);
        twin.neighbours.remove(&ip)
    });
    if was_ours {
        // The user may have deleted it here first.
        let _ = neighbors::remove(c, phy, ip);
    }
}

/// Removes those that Linux had written and has no longer.
pub(super) fn keep_only(c: &mut Control, phy: SwIfIndex, there: &BTreeSet<IpAddr>) {
    let gone: Vec<IpAddr> = {
        let sync = c.state::<Sync>();
        let mut sync = sync.borrow_mut();
        let Some(twin) = sync.twins.get_mut(&phy) else { return };
        twin.macs.retain(|ip, _| there.contains(ip));
        twin.neighbours.difference(there).copied().collect()
    };
    for ip in gone {
        lost(c, phy, ip);
    }
}

/// Removes all that Linux had written, of a twin that is forgotten.
pub(super) fn forget(c: &mut Control, phy: SwIfIndex, all: BTreeSet<IpAddr>) {
    for ip in all {
        let _ = neighbors::remove(c, phy, ip);
    }
}
