//! Neighbours of the links of a mirror: those that have moved, and lists of all.

use super::{NeighbourKey, Shared, Worker};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use thalweg_netlink::{Neighbour, set_neighbour};

impl Worker {
    /// Gives neighbours that the kernel has learned their new MAC addresses, and reports those that
    /// have them already, or are the kernel's own: it announces the others. Any that stay at an
    /// old address are ordered again, and not reported.
    pub(super) fn move_neighbours(&mut self, mut moved: BTreeMap<NeighbourKey, [u8; 6]>) {
        self.stuck.join(&mut moved);
        if moved.is_empty() {
            return;
        }
        let links: BTreeSet<u32> = moved.keys().map(|(index, _)| *index).collect();
        for index in links {
            let of_link = (index, IpAddr::V4(Ipv4Addr::UNSPECIFIED))..;
            let of_link = moved.range(of_link).take_while(|((of, _), _)| *of == index);
            let Ok(there) = Neighbour::all(&self.port, Some(index)) else {
                of_link.for_each(|(key, mac)| self.stuck.keep(*key, *mac, None));
                continue;
            };
            let there: BTreeMap<IpAddr, Neighbour> = there.iter().map(|n| (n.ip, *n)).collect();
            for (key @ (_, ip), mac) in of_link {
                let now = there.get(ip).copied();
                let is_learned = |n: &Neighbour| n.is_valid() && !n.is_static();
                let Some(old) = now.filter(is_learned).filter(|n| n.mac != Some(*mac)) else {
                    self.heard.insert(*key, now);
                    continue;
                };
                if let Err(e) = self.move_neighbour(index, *ip, *mac) {
                    tracing::debug!("link {index} keeps the old MAC address of {ip}: {e}");
                    self.stuck.keep(*key, *mac, old.mac);
                }
            }
        }
        self.stuck.end_round();
    }

    fn move_neighbour(&self, index: u32, ip: IpAddr, mac: [u8; 6]) -> io::Result<()> {
        #[cfg(test)]
        if self.room.lock().refuses_moves {
            return Err(io::Error::other("a test"));
        }
        set_neighbour(&self.port, index, ip, mac, false)
    }

    /// Reports all neighbours of links of which changes were lost.
    pub(super) fn list_neighbours(&mut self) {
        if self.unlisted.is_empty() {
            return;
        }
        // A list that ends early would take good ones away: it is asked for again.
        let Ok(listed) = Neighbour::all(&self.port, None) else { return };
        let mut shared = self.room.lock();
        let Shared { watched, moved, report, .. } = &mut *shared;
        let links = std::mem::take(&mut self.unlisted).into_iter();
        let mut links: BTreeMap<u32, BTreeSet<IpAddr>> =
            links.filter(|i| watched.contains_key(i)).map(|i| (i, BTreeSet::new())).collect();
        report.neighbours.retain(|(of, _), _| !links.contains_key(of));
        for n in listed {
            let Some(there) = links.get_mut(&n.index) else { continue };
            there.insert(n.ip);
            let key = (n.index, n.ip);
            if !moved.contains_key(&key) && self.stuck.lets_pass(&key, Some(&n)) {
                report.neighbours.insert(key, Some(n));
            }
        }
        report.all_neighbours.extend(links);
    }
}
