//! Settings and counters of a tracker.

use std::collections::VecDeque;

use thalweg_tables::flow::{FlowId, Millis};

use super::{Counts, Event, Live, Parts, Tracker, WhenFull, label};
use crate::Tuple;
use crate::batch::Batch;
use crate::entry::{self, flag};
use crate::state::State;
use crate::timeout::Policy;

impl Tracker {
    /// Number of connections.
    pub fn len(&self) -> u32 {
        self.v4.table.len() + self.v6.table.len()
    }

    /// Returns whether there are no connections.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The connection of packet `i` of a batch that was [looked up](Self::look_up), and whether the
    /// packet is in the reply direction. Nothing is counted and no state changes.
    ///
    /// # Panics
    /// If the batch has no packet `i`.
    pub fn find<const W: usize>(
        &self,
        batch: &Batch<W>,
        i: usize,
        now: Millis,
    ) -> Option<(FlowId, bool)>
    where
        Self: Parts<W>,
    {
        let table = &self.part().table;
        let headers = &batch.headers[..batch.len][i];
        if !headers.kind.is_tracked() {
            return None;
        }
        let found = table.find(&batch.keys[i], batch.hashes[i])?;
        if table.is_expired(found.flow(), now) {
            return None;
        }
        let reply = super::direction(table.get(found.flow()), found, headers.swapped)?;
        Some((found.flow(), reply))
    }

    /// Number of connections that the tracker was created for.
    pub fn capacity(&self) -> u32 {
        self.v4.table.capacity()
    }

    /// Number of connections that fit if all are translated.
    pub fn capacity_translated(&self) -> u32 {
        self.v4.table.capacity_of_two()
    }

    /// Number of connections of IPv6 that the tracker was created for; with `translated`, if all
    /// are translated.
    pub fn capacity_ipv6(&self, translated: bool) -> u32 {
        if translated { self.v6.table.capacity_of_two() } else { self.v6.table.capacity() }
    }

    /// Returns whether there are no connections of IPv6.
    pub fn has_no_ipv6(&self) -> bool {
        self.v6.table.is_empty()
    }

    /// Maximum number of connections.
    pub fn limit(&self) -> u32 {
        self.common.limit
    }

    /// Sets the maximum number of connections, up to the capacity.
    pub fn set_limit(&mut self, limit: u32) {
        self.common.limit = limit.min(self.v4.table.capacity());
    }

    /// Sets the handling of new connections when the table is full.
    pub fn set_when_full(&mut self, when_full: WhenFull) {
        self.common.when_full = when_full;
    }

    /// Sets whether TCP sequence numbers are checked against windows.
    pub fn set_check_windows(&mut self, check: bool) {
        self.common.check_windows = check;
    }

    /// Sets the timeouts of a zone, or of all zones without a policy of their own; `None` removes
    /// them. They apply to each connection from its next packet on. Returns the box that is no
    /// longer needed.
    pub fn set_policy(
        &mut self,
        zone: Option<u16>,
        policy: Option<Box<Policy>>,
    ) -> Option<Box<Policy>> {
        self.common.zones.set_policy(zone, policy)
    }

    /// Sets the connection limit of a zone, or of all zones without a limit of their own; 0 =
    /// unlimited, `None` removes it.
    pub fn set_zone_limit(&mut self, zone: Option<u16>, limit: Option<u32>) {
        match zone {
            Some(zone) => self.common.zones.set_limit(zone, limit),
            None => self.common.zones.set_default_limit(limit.unwrap_or(0)),
        }
    }

    /// Limit of zones without one of their own; 0 = unlimited.
    pub fn default_zone_limit(&self) -> u32 {
        self.common.zones.default_limit()
    }

    /// Limits of the zones that have one of their own.
    pub fn zone_limits(&self) -> std::collections::BTreeMap<u16, u32> {
        self.common.zones.limits()
    }

    /// Number of connections in a zone.
    pub fn zone_len(&self, zone: u16) -> u32 {
        self.common.zones.count(zone)
    }

    /// Counters since the tracker was created.
    pub fn counts(&self) -> Counts {
        let counts = self.common.counts;
        let tables = self.v4.table.counts().unready + self.v6.table.counts().unready;
        Counts { unready: counts.unready + tables, ..counts }
    }

    /// Number of connections by protocol.
    pub fn live(&self) -> Live {
        self.common.live
    }

    /// Memory in bytes with all connections in use, without labels: if all are of IPv4, and if all
    /// are of IPv6.
    pub fn bytes(&self) -> [usize; 2] {
        [self.v4.table.bytes(), self.v6.table.bytes()]
    }

    /// Sets whether events are recorded for [`take_events`](Self::take_events).
    pub fn set_events(&mut self, wanted: bool) {
        self.common.events.wanted = wanted;
    }

    /// Takes all recorded events, oldest first. The next ones go into `room`, which is empty; with
    /// a capacity of [`EVENTS`](super::EVENTS), it never reallocates.
    pub fn take_events(&mut self, room: VecDeque<Event>) -> VecDeque<Event> {
        self.common.events.swap(room)
    }

    /// Number of events lost because the queue was full.
    pub fn events_lost(&self) -> u64 {
        self.common.events.lost
    }

    /// Mark of a connection.
    #[inline]
    pub fn mark<const W: usize>(&self, flow: FlowId) -> u32
    where
        Self: Parts<W>,
    {
        entry::mark(self.part().table.get(flow))
    }

    /// Label of a connection.
    #[inline]
    pub fn label<const W: usize>(&self, flow: FlowId) -> u128
    where
        Self: Parts<W>,
    {
        if self.common.has_labels { label(&self.part().labels, flow) } else { 0 }
    }

    /// Original tuple of a connection, before translation.
    pub fn original<const W: usize>(&self, flow: FlowId) -> Tuple
    where
        Self: Parts<W>,
    {
        let swapped = entry::has(self.part().table.get(flow), flag::SWAPPED);
        Tuple::of_key(self.part().table.keys(flow).0, swapped)
    }

    /// The tuple that packets of a direction are rewritten to, if the connection is translated.
    pub fn translation<const W: usize>(&self, flow: FlowId, reply: bool) -> Option<Tuple>
    where
        Self: Parts<W>,
    {
        let (_, second) = self.part().table.keys(flow);
        let second = second?;
        if reply {
            return Some(self.original::<W>(flow).reversed());
        }
        let swapped = entry::has(self.part().table.get(flow), flag::REPLY_SWAPPED);
        Some(Tuple::of_key(second, swapped).reversed())
    }

    /// Returns whether a connection of the zone has this reply tuple already.
    pub fn is_taken<const W: usize>(&self, reply: &Tuple, zone: u16) -> bool
    where
        Self: Parts<W>,
    {
        let Some((key, _)) = reply.key::<W>(zone) else { return true };
        self.part().table.find(&key, self.part().table.hash(&key)).is_some()
    }

    /// Counts a connection that was refused because no translation was free.
    pub fn count_reply_taken(&mut self) {
        self.common.counts.taken += 1;
    }

    /// The flags that translation adds to packets of a direction.
    #[inline]
    pub fn translated<const W: usize>(&self, flow: FlowId, reply: bool) -> State
    where
        Self: Parts<W>,
    {
        let entry = self.part().table.get(flow);
        let (snat, dnat) = (entry::has(entry, flag::SNAT), entry::has(entry, flag::DNAT));
        let (snat, dnat) = if reply { (dnat, snat) } else { (snat, dnat) };
        let one = |has: bool, state| if has { state } else { State::NONE };
        one(snat, State::SNAT) | one(dnat, State::DNAT)
    }
}
