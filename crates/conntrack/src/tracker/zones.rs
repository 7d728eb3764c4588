//! Zones: how many connections each has, how many it may have, and its timeouts.

use std::collections::BTreeMap;

use crate::timeout::Policy;

/// A zone. All zero is one that nobody has said anything about.
#[derive(Clone, Copy, Debug, Default)]
struct Zone {
    count: u32,
    /// Its own limit and one more; 0: it has none of its own.
    limit: u32,
    /// Number of its timeouts; 0: those of all.
    policy: u16,
}

/// All zones.
#[derive(Debug)]
pub(super) struct Zones {
    zones: Vec<Zone>,
    /// For zones without a limit of their own; 0: as many as there is room for.
    default_limit: u32,
    /// Those of all zones first.
    policies: Vec<Policy>,
}

impl Zones {
    pub(super) fn new() -> Zones {
        Zones {
            zones: vec![Zone::default(); usize::from(u16::MAX) + 1],
            default_limit: 0,
            policies: vec![Policy::default()],
        }
    }

    #[inline]
    pub(super) fn policy(&self, zone: u16) -> &Policy {
        let at = if self.policies.len() == 1 { 0 } else { self.zones[usize::from(zone)].policy };
        &self.policies[usize::from(at)]
    }

    pub(super) fn set_policy(&mut self, zone: Option<u16>, policy: Option<Policy>) {
        let Some(zone) = zone else {
            self.policies[0] = policy.unwrap_or_default();
            return;
        };
        let at = self.zones[usize::from(zone)].policy;
        match (policy, at) {
            (Some(policy), 0) => {
                let used: Vec<u16> = self.zones.iter().map(|z| z.policy).collect();
                let free = (1..self.policies.len()).find(|n| !used.contains(&(*n as u16)));
                let at = free.unwrap_or(self.policies.len());
                self.policies.resize(self.policies.len().max(at + 1), Policy::default());
                self.policies[at] = policy;
                self.zones[usize::from(zone)].policy = at as u16;
            }
            (Some(policy), at) => self.policies[usize::from(at)] = policy,
            (None, _) => self.zones[usize::from(zone)].policy = 0,
        }
        if self.zones.iter().all(|zone| zone.policy == 0) {
            self.policies.truncate(1);
        }
    }

    /// Takes back all that was set.
    pub(super) fn clear(&mut self) {
        for zone in &mut self.zones {
            (zone.limit, zone.policy) = (0, 0);
        }
        self.default_limit = 0;
        self.policies = vec![Policy::default()];
    }

    pub(super) fn set_default_limit(&mut self, limit: u32) {
        self.default_limit = limit;
    }

    pub(super) fn default_limit(&self) -> u32 {
        self.default_limit
    }

    pub(super) fn set_limit(&mut self, zone: u16, limit: Option<u32>) {
        self.zones[usize::from(zone)].limit = limit.map_or(0, |limit| limit.saturating_add(1));
    }

    /// Zones with a limit of their own.
    pub(super) fn limits(&self) -> BTreeMap<u16, u32> {
        let own = self.zones.iter().enumerate().filter(|(_, zone)| zone.limit != 0);
        own.map(|(number, zone)| (number as u16, zone.limit - 1)).collect()
    }

    #[inline]
    pub(super) fn limit(&self, zone: u16) -> u32 {
        self.zones[usize::from(zone)].limit.checked_sub(1).unwrap_or(self.default_limit)
    }

    #[inline]
    pub(super) fn count(&self, zone: u16) -> u32 {
        self.zones[usize::from(zone)].count
    }

    #[inline]
    pub(super) fn is_full(&self, zone: u16) -> bool {
        let limit = self.limit(zone);
        limit != 0 && self.count(zone) >= limit
    }

    #[inline]
    pub(super) fn came(&mut self, zone: u16) {
        self.zones[usize::from(zone)].count += 1;
    }

    #[inline]
    pub(super) fn went(&mut self, zone: u16) {
        let count = &mut self.zones[usize::from(zone)].count;
        *count = count.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timeout;

    #[test]
    fn zones_have_limits_and_timeouts_of_their_own() {
        let mut zones = Zones::new();
        let policy = |s: u32| Policy::parse(&format!("udp_first={s}")).unwrap();
        let first = |zones: &Zones, zone| zones.policy(zone).millis(Timeout::UdpFirst) / 1000;
        assert_eq!(first(&zones, 7), 60);
        zones.set_policy(Some(7), Some(policy(1)));
        zones.set_policy(Some(65535), Some(policy(2)));
        zones.set_policy(None, Some(policy(3)));
        assert_eq!([7, 65535, 0].map(|zone| first(&zones, zone)), [1, 2, 3]);
        zones.set_policy(Some(7), None);
        zones.set_policy(Some(8), Some(policy(4)));
        assert_eq!([7, 65535, 8].map(|zone| first(&zones, zone)), [3, 2, 4]);
        assert_eq!(zones.policies.len(), 3);

        zones.set_default_limit(2);
        zones.set_limit(1, Some(0));
        zones.set_limit(2, Some(1));
        for zone in [1, 1, 1, 2, 3] {
            zones.came(zone);
        }
        assert_eq!([1, 2, 3].map(|zone| zones.is_full(zone)), [false, true, false]);
        zones.set_limit(2, None);
        zones.went(3);
        assert_eq!((zones.is_full(2), zones.count(3)), (false, 0));
        assert_eq!(zones.limits(), BTreeMap::from([(1, 0)]));
        zones.clear();
        assert_eq!((zones.limit(3), first(&zones, 8), zones.count(1)), (0, 60, 3));
    }
}
