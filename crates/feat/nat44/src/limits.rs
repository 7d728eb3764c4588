//! Session limits per routing table and per host.
//!
//! Sessions are counted only while there is a limit. When a limit is set, existing sessions are
//! counted in slices: those with numbers below [`Limits::upto`] are counted, and no others.

use crate::worker::Refusal;
use std::net::Ipv4Addr;
use thalweg_fib::TableId;
use thalweg_tables::MapError;
use thalweg_tables::flow::{FlowId, FlowTable, MAX_TIMEOUT, Millis};
use thalweg_wire::nat::tuple::{Key, Tuple};

/// Number of sessions by host and routing table.
pub(crate) type Hosts = FlowTable<1, u32>;

/// Session limits as sent to a worker.
#[derive(Debug, Default)]
pub struct LimitSettings {
    /// Limits by routing table.
    pub(crate) tables: Vec<(TableId, u32)>,
    /// Limit per host; 0 = none.
    pub(crate) per_host: u32,
    /// Counters by host, if there is a limit per host.
    pub(crate) hosts: Option<Box<Hosts>>,
}

impl LimitSettings {
    /// The limits of a worker with room for `sessions` sessions.
    ///
    /// # Errors
    /// Fails if there is not enough address space.
    pub fn new(
        tables: Vec<(TableId, u32)>,
        per_host: u32,
        sessions: u32,
        now: Millis,
    ) -> Result<LimitSettings, MapError> {
        let hosts =
            (per_host > 0).then(|| Hosts::new(sessions, 1, now).map(Box::new)).transpose()?;
        if let Some(hosts) = &hosts {
            // If this fails, pages are mapped on first use.
            let _ = hosts.populate();
        }
        Ok(LimitSettings { tables, per_host, hosts })
    }
}

/// Limits in force, and the counters they need.
#[derive(Debug, Default)]
pub struct Limits {
    settings: LimitSettings,
    /// Number of sessions by limited routing table.
    counts: Vec<u32>,
    upto: u32,
    /// Sessions of hosts without a counter, because there was no room for it.
    uncounted: u32,
}

fn host_key(host: Ipv4Addr, table: TableId) -> [u64; 1] {
    [u64::from(host.to_bits()) | u64::from(table.0) << 32]
}

impl Limits {
    /// Limits with nothing counted yet.
    pub fn new(settings: LimitSettings) -> Limits {
        let counts = vec![0; settings.tables.len()];
        Limits { settings, counts, upto: 0, uncounted: 0 }
    }

    /// Returns whether there is no limit.
    #[inline]
    pub fn is_none(&self) -> bool {
        self.counts.is_empty() && self.settings.per_host == 0
    }

    /// The counters by host, to be freed.
    pub(crate) fn into_hosts(self) -> Option<Box<Hosts>> {
        self.settings.hosts
    }

    /// Sessions with numbers below this are counted.
    pub fn upto(&self) -> u32 {
        self.upto
    }

    /// Allows a host to open another session.
    ///
    /// # Errors
    /// The limit that it has reached.
    #[inline]
    pub fn allow(&self, host: Ipv4Addr, table: TableId) -> Result<(), Refusal> {
        if self.is_none() {
            return Ok(());
        }
        let tables = self.settings.tables.iter().zip(&self.counts);
        let mut mine = tables.filter(|((t, _), _)| *t == table);
        match () {
            () if !mine.all(|((_, most), n)| n < most) => Err(Refusal::TableLimit),
            () if self.is_host_full(host, table) => Err(Refusal::HostLimit),
            () => Ok(()),
        }
    }

    /// Returns whether a host has reached the limit per host, or might have.
    fn is_host_full(&self, host: Ipv4Addr, table: TableId) -> bool {
        match self.of_host(host, table) {
            // Its sessions may be among those for which there was no counter.
            0 => self.uncounted > 0,
            n => n >= self.most(),
        }
    }

    fn most(&self) -> u32 {
        self.settings.per_host.checked_sub(1).map_or(u32::MAX, |m| m + 1)
    }

    /// Number of sessions of a host counted so far.
    pub fn of_host(&self, host: Ipv4Addr, table: TableId) -> u32 {
        let Some(hosts) = &self.settings.hosts else { return 0 };
        let key = host_key(host, table);
        hosts.find(&key, hosts.hash(&key)).map_or(0, |found| *hosts.get(found.flow()))
    }

    /// Counts a new session.
    #[inline]
    pub fn add(&mut self, flow: FlowId, inside: &Key, now: Millis) {
        if !self.is_none() && flow.index() < self.upto {
            self.count(inside, true, now);
        }
    }

    /// Discounts a removed session.
    #[inline]
    pub fn remove(&mut self, flow: FlowId, inside: &Key) {
        if !self.is_none() && flow.index() < self.upto {
            self.count(inside, false, 0);
        }
    }

    /// Counts the next sessions, up to number `upto`.
    pub fn count_up(&mut self, insides: impl Iterator<Item = Key>, upto: u32, now: Millis) {
        insides.for_each(|key| self.count(&key, true, now));
        self.upto = upto;
    }

    fn count(&mut self, inside: &Key, more: bool, now: Millis) {
        let Tuple { src, table, .. } = Tuple::of(inside);
        for ((t, _), n) in self.settings.tables.iter().zip(&mut self.counts) {
            if *t == TableId(table) {
                *n = if more { *n + 1 } else { n.saturating_sub(1) };
            }
        }
        let Some(hosts) = &mut self.settings.hosts else { return };
        let key = host_key(src, TableId(table));
        let hash = hosts.hash(&key);
        match (hosts.find(&key, hash), more) {
            (Some(found), true) => *hosts.get_mut(found.flow()) += 1,
            (Some(found), false) => {
                let n = hosts.get_mut(found.flow());
                *n = n.saturating_sub(1);
                if *n == 0 {
                    hosts.remove(found.flow());
                }
            }
            // The table has room for one host per session, but not always where the hash leads.
            (None, true) => {
                let end = now.wrapping_add(MAX_TIMEOUT);
                self.uncounted += u32::from(hosts.add((key, hash), None, end, (1, ())).is_err());
            }
            (None, false) => self.uncounted = self.uncounted.saturating_sub(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host whose sessions could not be counted opens no others.
    #[test]
    fn a_host_without_a_counter_opens_no_more() {
        let mut limits = Limits::new(LimitSettings::new(Vec::new(), 2, 4, 0).unwrap());
        let key = |n: u32| {
            let (src, dst) = ((0x0a00_0000 + n).into(), [192, 0, 2, 1].into());
            Tuple { src, sport: 1, dst, dport: 2, protocol: 17, table: 0 }.key()
        };
        let mut hosts = 0;
        while limits.uncounted == 0 {
            hosts += 1;
            assert!(hosts < 1_000_000, "room without end");
            limits.count_up(std::iter::once(key(hosts)), hosts, 0);
        }
        let host = |n: u32| Ipv4Addr::from(0x0a00_0000 + n);
        assert_eq!(limits.allow(host(hosts), TableId(0)), Err(Refusal::HostLimit));
        assert_eq!(limits.allow(host(1), TableId(0)), Ok(()), "one of two");
        limits.count(&key(hosts), false, 0);
        assert_eq!(limits.allow(host(hosts), TableId(0)), Ok(()));
    }
}
