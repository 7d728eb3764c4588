//! Zones: connection counts, limits and timeouts.

use std::collections::BTreeMap;

use crate::timeout::Policy;

/// A zone; all zero if nothing is configured.
#[derive(Clone, Debug, Default)]
struct Zone {
    count: u32,
    /// Its own limit plus one; 0 = none of its own.
    limit: u32,
    /// Its own timeouts.
    policy: Option<Box<Policy>>,
}

/// All zones. Each change takes a few steps, however many zones are configured.
#[derive(Debug)]
pub(super) struct Zones {
    zones: Vec<Zone>,
    /// Limit of zones without one of their own; 0 = unlimited.
    default_limit: u32,
    /// Timeouts of zones without a policy of their own, and the number of zones with one.
    policy: Policy,
    policies: u32,
}

impl Zones {
    pub(super) fn new() -> Zones {
        Zones {
            zones: vec![Zone::default(); usize::from(u16::MAX) + 1],
            default_limit: 0,
            policy: Policy::default(),
            policies: 0,
        }
    }

    #[inline]
    pub(super) fn policy(&self, zone: u16) -> &Policy {
        if self.policies == 0 {
            return &self.policy;
        }
        self.zones[usize::from(zone)].policy.as_deref().unwrap_or(&self.policy)
    }

    /// Returns the box that is no longer needed, so that the caller does not free memory.
    pub(super) fn set_policy(
        &mut self,
        zone: Option<u16>,
        policy: Option<Box<Policy>>,
    ) -> Option<Box<Policy>> {
        let Some(zone) = zone else {
            self.policy = policy.as_deref().cloned().unwrap_or_default();
            return policy;
        };
        self.policies += u32::from(policy.is_some());
        let old = std::mem::replace(&mut self.zones[usize::from(zone)].policy, policy);
        self.policies -= u32::from(old.is_some());
        old
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

    /// Limits of zones that have one of their own.
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
    pub(super) fn add(&mut self, zone: u16) {
        self.zones[usize::from(zone)].count += 1;
    }

    #[inline]
    pub(super) fn remove(&mut self, zone: u16) {
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
        let policy = |s: u32| Policy::parse(&format!("udp_first={s}")).ok().map(Box::new);
        let first = |zones: &Zones, zone| zones.policy(zone).millis(Timeout::UdpFirst) / 1000;
        assert_eq!(first(&zones, 7), 60);
        assert_eq!(zones.set_policy(Some(7), policy(1)), None);
        zones.set_policy(Some(65535), policy(2));
        assert_eq!(zones.set_policy(None, policy(3)), policy(3));
        assert_eq!([7, 65535, 0].map(|zone| first(&zones, zone)), [1, 2, 3]);
        assert_eq!(zones.set_policy(Some(7), None), policy(1));
        zones.set_policy(Some(8), policy(9));
        assert_eq!(zones.set_policy(Some(8), policy(4)), policy(9));
        assert_eq!([7, 65535, 8].map(|zone| first(&zones, zone)), [3, 2, 4]);
        assert_eq!(zones.policies, 2);

        zones.set_default_limit(2);
        zones.set_limit(1, Some(0));
        zones.set_limit(2, Some(1));
        for zone in [1, 1, 1, 2, 3] {
            zones.add(zone);
        }
        assert_eq!([1, 2, 3].map(|zone| zones.is_full(zone)), [false, true, false]);
        zones.set_limit(2, None);
        zones.remove(3);
        assert_eq!((zones.is_full(2), zones.count(3)), (false, 0));
        assert_eq!(zones.limits(), BTreeMap::from([(1, 0)]));
        zones.set_policy(None, None);
        assert_eq!([7, 65535, 8].map(|zone| first(&zones, zone)), [60, 2, 4]);
    }
}
