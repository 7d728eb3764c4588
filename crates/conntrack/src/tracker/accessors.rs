//! Settings and counters of a tracker.

use std::collections::VecDeque;

use thalweg_tables::flow::{FlowId, Millis};

use super::{Counts, Event, Live, Tracker, WhenFull};
use crate::batch::Batch;
use crate::timeout::Policy;

impl<const W: usize> Tracker<W> {
    /// Number of connections.
    pub fn len(&self) -> u32 {
        self.table.len()
    }

    /// Returns whether there are no connections.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The connection of packet `i` of a batch that was [looked up](Self::look_up), and whether the
    /// packet is in the reply direction. Nothing is counted and no state changes.
    ///
    /// # Panics
    /// If the batch has no packet `i`.
    pub fn find(&self, batch: &Batch<W>, i: usize, now: Millis) -> Option<(FlowId, bool)> {
        let headers = &batch.headers[..batch.len][i];
        if !headers.kind.is_tracked() {
            return None;
        }
        let found = self.table.find(&batch.keys[i], batch.hashes[i])?;
        if self.table.is_expired(found.flow(), now) {
            return None;
        }
        let reply = super::direction(self.table.get(found.flow()), found, headers.swapped)?;
        Some((found.flow(), reply))
    }

    /// Number of connections that the tracker was created for.
    pub fn capacity(&self) -> u32 {
        self.table.capacity()
    }

    /// Number of connections that fit if all are translated.
    pub fn capacity_translated(&self) -> u32 {
        self.table.capacity_of_two()
    }

    /// Maximum number of connections.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Sets the maximum number of connections, up to the capacity.
    pub fn set_limit(&mut self, limit: u32) {
        self.limit = limit.min(self.table.capacity());
    }

    /// Sets the handling of new connections when the table is full.
    pub fn set_when_full(&mut self, when_full: WhenFull) {
        self.when_full = when_full;
    }

    /// Sets whether TCP sequence numbers are checked against windows.
    pub fn set_check_windows(&mut self, check: bool) {
        self.check_windows = check;
    }

    /// Sets the timeouts of a zone, or of all zones without a policy of their own; `None` removes
    /// them. They apply to each connection from its next packet on. Returns the box that is no
    /// longer needed.
    pub fn set_policy(
        &mut self,
        zone: Option<u16>,
        policy: Option<Box<Policy>>,
    ) -> Option<Box<Policy>> {
        self.zones.set_policy(zone, policy)
    }

    /// Sets the connection limit of a zone, or of all zones without a limit of their own; 0 =
    /// unlimited, `None` removes it.
    pub fn set_zone_limit(&mut self, zone: Option<u16>, limit: Option<u32>) {
        match zone {
            Some(zone) => self.zones.set_limit(zone, limit),
            None => self.zones.set_default_limit(limit.unwrap_or(0)),
        }
    }

    /// Limit of zones without one of their own; 0 = unlimited.
    pub fn default_zone_limit(&self) -> u32 {
        self.zones.default_limit()
    }

    /// Limits of the zones that have one of their own.
    pub fn zone_limits(&self) -> std::collections::BTreeMap<u16, u32> {
        self.zones.limits()
    }

    /// Number of connections in a zone.
    pub fn zone_len(&self, zone: u16) -> u32 {
        self.zones.count(zone)
    }

    /// Counters since the tracker was created.
    pub fn counts(&self) -> Counts {
        Counts { unready: self.counts.unready + self.table.counts().unready, ..self.counts }
    }

    /// Number of connections by protocol.
    pub fn live(&self) -> Live {
        self.live
    }

    /// Memory in bytes with all connections in use, without labels.
    pub fn bytes(&self) -> usize {
        self.table.bytes()
    }

    /// Sets whether events are recorded for [`take_events`](Self::take_events).
    pub fn set_events(&mut self, wanted: bool) {
        self.events.wanted = wanted;
    }

    /// Takes all recorded events, oldest first. The next ones go into `room`, which is empty; with
    /// a capacity of [`EVENTS`](super::EVENTS), it never reallocates.
    pub fn take_events(&mut self, room: VecDeque<Event>) -> VecDeque<Event> {
        self.events.swap(room)
    }

    /// Number of events lost because the queue was full.
    pub fn events_lost(&self) -> u64 {
        self.events.lost
    }
}
