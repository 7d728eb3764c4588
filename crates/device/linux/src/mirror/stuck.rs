//! Neighbours that the kernel goes on to reach at an old MAC address, as it has refused the new one
//! or did not answer. They are ordered again, ever more rarely. Until then nothing is reported that
//! has the old address: it would take the router back to what it knows to be wrong.

use super::NeighbourKey;
use crate::backoff::Backoff;
use std::collections::BTreeMap;
use std::time::Duration;
use thalweg_netlink::Neighbour;

/// Addresses of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Macs {
    /// The one that it has now.
    new: [u8; 6],
    /// The one that the kernel has; any other than the new one, if that is not known.
    old: Option<[u8; 6]>,
}

/// Neighbours that wait to be moved.
#[derive(Debug, Default)]
pub(super) struct Stuck {
    all: BTreeMap<NeighbourKey, Macs>,
    backoff: Backoff,
}

impl Stuck {
    /// Adds what is due to orders, which are newer.
    pub(super) fn join(&mut self, orders: &mut BTreeMap<NeighbourKey, [u8; 6]>) {
        self.all.retain(|key, _| !orders.contains_key(key));
        if self.all.is_empty() || !self.backoff.is_due() {
            return;
        }
        let due = std::mem::take(&mut self.all).into_iter();
        orders.extend(due.map(|(key, macs)| (key, macs.new)));
    }

    /// Keeps a neighbour that has not moved.
    pub(super) fn keep(&mut self, key: NeighbourKey, new: [u8; 6], old: Option<[u8; 6]>) {
        self.all.insert(key, Macs { new, old });
    }

    /// Ends a round in which there were orders.
    pub(super) fn end_round(&mut self) {
        match self.all.is_empty() {
            true => _ = self.backoff.succeed(),
            false if self.backoff.is_due() => _ = self.backoff.fail(),
            // Others wait for the next attempt.
            false => {}
        }
    }

    /// Forgets neighbours of links that are not watched.
    pub(super) fn retain(&mut self, is_watched: impl Fn(u32) -> bool) {
        self.all.retain(|(index, _), _| is_watched(*index));
    }

    /// Returns whether an entry of the kernel may be reported. One that is another than the old one
    /// is: then the kernel has found out, or a program has written it.
    pub(super) fn lets_pass(&mut self, key: &NeighbourKey, now: Option<&Neighbour>) -> bool {
        let Some(Macs { new, old }) = self.all.get(key) else { return true };
        let is_old = now.filter(|n| n.is_valid() && !n.is_static()).is_some_and(|n| match old {
            Some(old) => n.mac == Some(*old),
            None => n.mac != Some(*new),
        });
        if !is_old {
            self.all.remove(key);
        }
        !is_old
    }

    /// Returns the time until the next attempt; `None` if none is awaited.
    pub(super) fn left(&self) -> Option<Duration> {
        if self.all.is_empty() { None } else { self.backoff.left() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    const OLD: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const NEW: [u8; 6] = [2, 0, 0, 0, 0, 2];
    const REACHABLE: u16 = 2;
    const PERMANENT: u16 = 0x80;

    fn key(n: u8) -> NeighbourKey {
        (7, IpAddr::from([192, 0, 2, n]))
    }

    fn entry(mac: [u8; 6], state: u16) -> Neighbour {
        Neighbour { index: 7, ip: key(1).1, mac: Some(mac), state }
    }

    fn passes(stuck: &mut Stuck, now: Option<Neighbour>) -> bool {
        stuck.lets_pass(&key(1), now.as_ref())
    }

    #[test]
    fn only_the_old_address_is_held_back() {
        let other = [2, 0, 0, 0, 0, 3];
        for old in [Some(OLD), None] {
            for (now, wanted) in [
                (Some(entry(OLD, REACHABLE)), false),
                (Some(entry(NEW, REACHABLE)), true),
                (Some(entry(OLD, PERMANENT)), true),
                (Some(entry(OLD, 0)), true),
                (None, true),
                // Without a list the old one may be any.
                (Some(entry(other, REACHABLE)), old.is_some()),
            ] {
                let mut stuck = Stuck::default();
                stuck.keep(key(1), NEW, old);
                assert_eq!(passes(&mut stuck, now), wanted, "{old:?} {now:?}");
                // An entry that passes ends it.
                assert_eq!(passes(&mut stuck, Some(entry(OLD, REACHABLE))), wanted);
            }
        }
        assert!(passes(&mut Stuck::default(), Some(entry(OLD, REACHABLE))));
    }

    #[test]
    fn they_are_ordered_again_after_a_pause_unless_a_newer_order_came() {
        let mut stuck = Stuck::default();
        stuck.keep(key(1), NEW, Some(OLD));
        stuck.keep(key(2), NEW, Some(OLD));
        stuck.end_round();
        assert!(stuck.left().is_some());
        let mut orders = BTreeMap::from([(key(2), OLD)]);
        stuck.join(&mut orders);
        assert_eq!(orders, BTreeMap::from([(key(2), OLD)]), "before the pause is over");
        stuck.end_round();
        let begin = std::time::Instant::now();
        while !orders.contains_key(&key(1)) {
            assert!(begin.elapsed() < Duration::from_secs(10));
            stuck.join(&mut orders);
        }
        assert_eq!(orders.remove(&key(1)), Some(NEW));
        stuck.end_round();
        assert_eq!(stuck.left(), None);
        stuck.keep(key(1), NEW, None);
        stuck.retain(|index| index != 7);
        stuck.join(&mut orders);
        assert_eq!(orders, BTreeMap::from([(key(2), OLD)]));
    }
}
