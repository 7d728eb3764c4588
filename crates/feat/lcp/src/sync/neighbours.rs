//! Neighbours of a twin are neighbours of its interface.
//!
//! Written ones of the interface stay as they are. Entries that Linux has written go when Linux
//! deletes them; entries that it has learned are heard here, as others are: they age, ask for
//! themselves, and give way in a full table.
//!
//! The router answers requests of neighbours, which the kernel does not see: one that comes back
//! with another MAC address has its entry in the kernel changed. Reports of the entry from before
//! that are void, as they have the old address. An address that came from the kernel is not passed
//! back, as the kernel may have a newer one.
//!
//! Written neighbours for which there is no room are tried again: the kernel says nothing about
//! them any more. Neighbours that it has learned are asked for when they are needed.

use super::{Sync, note};
use crate::turn::InTurn;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use thalweg_device::{MacAddr, SwIfIndex};
use thalweg_feat_neighbor::{NeighborChange, NeighborFlags, Neighbors, neighbors};
use thalweg_graph::Control;
use thalweg_netlink::Neighbour;

/// Neighbours that Linux has written and their interfaces have refused, of all twins.
#[derive(Debug, Default)]
pub(super) struct Lacking {
    all: InTurn<(SwIfIndex, IpAddr)>,
    /// Neighbours that were refused so far, learned ones included.
    refused: u64,
    /// Some are tried again soon.
    is_due: bool,
}

/// Time for which neighbours that go are awaited before some are tried again in their place: in a
/// full table they go all the time.
const SOON: Duration = Duration::from_millis(100);

impl Lacking {
    fn of(&self, phy: SwIfIndex) -> impl Iterator<Item = (SwIfIndex, IpAddr)> {
        let from = (phy, IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        self.all.all().range(from..).take_while(move |(of, _)| *of == phy).copied()
    }

    /// Returns their number of an interface.
    pub(super) fn count(&self, phy: SwIfIndex) -> usize {
        self.of(phy).count()
    }

    /// Forgets those of an interface that `goes` names.
    pub(super) fn forget(&mut self, phy: SwIfIndex, goes: impl Fn(&IpAddr) -> bool) {
        let gone: Vec<_> = self.of(phy).filter(|(_, ip)| goes(ip)).collect();
        gone.iter().for_each(|key| self.all.remove(key));
    }
}

/// Takes a neighbour as it is in Linux, or `None` for one that went away.
pub(super) fn take(c: &mut Control, phy: SwIfIndex, ip: IpAddr, now: Option<Neighbour>) {
    let valid = now.filter(Neighbour::is_valid);
    let mac = valid.and_then(|n| n.mac).map(MacAddr).filter(|mac| mac.is_unicast());
    let (Some(n), Some(mac)) = (valid, mac) else { return lost(c, phy, ip) };
    if let Some(twin) = c.state::<Sync>().borrow_mut().twins.get_mut(&phy) {
        twin.macs.insert(ip, mac);
    }
    if has(c, phy, ip, mac, n.is_static()) {
        c.state::<Sync>().borrow_mut().lacking.all.remove(&(phy, ip));
        return;
    }
    give(c, phy, ip, mac, n.is_static());
}

/// Returns whether an interface has a neighbour already, or has written another one.
fn has(c: &Control, phy: SwIfIndex, ip: IpAddr, mac: MacAddr, is_static: bool) -> bool {
    let Some(there) = c.state::<Neighbors>().borrow().find(phy, ip) else { return false };
    let is_written = there.is_static && !is_ours(c, phy, ip);
    is_written || there.mac == Some(mac) && there.is_static == is_static
}

/// Gives an interface a neighbour of its twin; returns whether it has taken it.
fn give(c: &mut Control, phy: SwIfIndex, ip: IpAddr, mac: MacAddr, is_static: bool) -> bool {
    let was_written = is_ours(c, phy, ip);
    let done = if is_static || was_written {
        let flags = NeighborFlags { is_static, ..NeighborFlags::default() };
        neighbors::set(c, phy, ip, mac, flags)
    } else {
        match neighbors::hear(c, phy, ip, mac) {
            Ok(true) => Ok(()),
            // The router asks for it when it is needed.
            Ok(false) => return false,
            Err(e) => Err(e),
        }
    };
    let is_done = done.is_ok();
    let is_said = {
        let sync = c.state::<Sync>();
        let mut sync = sync.borrow_mut();
        let Sync { twins, lacking, counters, .. } = &mut *sync;
        let Some(twin) = twins.get_mut(&phy) else { return is_done };
        let is_known = match (&done, is_static) {
            (Err(e), true) => {
                twin.lacking_why = e.to_string();
                !lacking.all.insert((phy, ip))
            }
            _ => {
                lacking.all.remove(&(phy, ip));
                false
            }
        };
        match (is_done, is_static) {
            (true, true) => _ = twin.neighbours.insert(ip),
            (true, false) => _ = twin.neighbours.remove(&ip),
            (false, _) if is_known => {}
            (false, _) => {
                lacking.refused += 1;
                // Very many may have the same reason.
                counters.not_taken += u64::from(!lacking.refused.is_power_of_two());
            }
        }
        is_done || !is_known && lacking.refused.is_power_of_two()
    };
    if is_said {
        note(c, phy, &format!("neighbour {ip}"), done);
    }
    is_done
}

/// Tries some again soon, as a neighbour has gone.
pub(super) fn try_again_soon(c: &mut Control) {
    {
        let sync = c.state::<Sync>();
        let lacking = &mut sync.borrow_mut().lacking;
        if lacking.all.all().is_empty() || std::mem::replace(&mut lacking.is_due, true) {
            return;
        }
    }
    c.after(SOON, |c| {
        c.state::<Sync>().borrow_mut().lacking.is_due = false;
        try_again(c);
    });
}

/// Tries again to give interfaces written neighbours that they have refused: as long as there is
/// room for some.
pub(super) fn try_again(c: &mut Control) {
    let some: Vec<(SwIfIndex, IpAddr, Option<MacAddr>)> = {
        let sync = c.state::<Sync>();
        let mut sync = sync.borrow_mut();
        let Sync { twins, lacking, .. } = &mut *sync;
        let mac = |phy: &SwIfIndex, ip: &IpAddr| twins.get(phy)?.macs.get(ip).copied();
        let with_mac = |(phy, ip)| (phy, ip, mac(&phy, &ip));
        lacking.all.some().into_iter().map(with_mac).collect()
    };
    let mut is_any_done = false;
    for (phy, ip, mac) in some {
        match mac {
            Some(mac) if !has(c, phy, ip, mac, true) => is_any_done |= give(c, phy, ip, mac, true),
            // The interface has one of its own by now; or it has moved, and a report follows.
            _ => c.state::<Sync>().borrow_mut().lacking.all.remove(&(phy, ip)),
        }
    }
    if is_any_done {
        c.after(Duration::ZERO, try_again);
    }
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
    let was_ours = {
        let mut sync = sync.borrow_mut();
        sync.lacking.all.remove(&(phy, ip));
        sync.twins.get_mut(&phy).is_some_and(|twin| {
            twin.macs.remove(&ip);
            twin.neighbours.remove(&ip)
        })
    };
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
        sync.lacking.forget(phy, |ip| !there.contains(ip));
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
    c.state::<Sync>().borrow_mut().lacking.forget(phy, |_| true);
    for ip in all {
        let _ = neighbors::remove(c, phy, ip);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_an_interface_are_told_from_others() {
        let mut lacking = Lacking::default();
        let key = |n: u32| (SwIfIndex(n % 2 + 1), IpAddr::V4(Ipv4Addr::from_bits(n)));
        (0..150).for_each(|n| assert!(lacking.all.insert(key(n))));
        assert_eq!([1, 2, 3].map(|n| lacking.count(SwIfIndex(n))), [75, 75, 0]);
        lacking.forget(SwIfIndex(1), |_| true);
        assert_eq!([1, 2].map(|n| lacking.count(SwIfIndex(n))), [0, 75]);
        lacking.forget(SwIfIndex(2), |ip| *ip != key(1).1);
        assert_eq!(lacking.all.some(), [key(1)]);
    }
}
