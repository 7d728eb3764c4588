//! What is set of a tracker, and what it has counted.

use std::collections::VecDeque;

use super::{Counts, Event, Live, Tracker, WhenFull};
use crate::timeout::Policy;

impl<const W: usize> Tracker<W> {
    /// Connections that there are.
    pub fn len(&self) -> u32 {
        self.table.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Connections that the tracker was made for.
    pub fn capacity(&self) -> u32 {
        self.table.capacity()
    }

    /// Connections that there may be if all are translated.
    pub fn capacity_translated(&self) -> u32 {
        self.table.capacity_of_two()
    }

    /// Connections that there may be.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Sets how many connections there may be: not more than the tracker was made for.
    pub fn set_limit(&mut self, limit: u32) {
        self.limit = limit.min(self.table.capacity());
    }

    /// Sets what becomes of new connections when there is no room.
    pub fn set_when_full(&mut self, when_full: WhenFull) {
        self.when_full = when_full;
    }

    /// Sets whether sequence numbers of TCP are held against windows.
    pub fn set_check_windows(&mut self, check: bool) {
        self.check_windows = check;
    }

    /// Sets timeouts of a zone, or of all that have none of their own; without, takes them back. They
    /// hold from the next packet of each connection on. Returns a box that is not needed any more.
    pub fn set_policy(
        &mut self,
        zone: Option<u16>,
        policy: Option<Box<Policy>>,
    ) -> Option<Box<Policy>> {
        self.zones.set_policy(zone, policy)
    }

    /// Sets how many connections a zone may have, or those without a limit of their own; 0: as many as
    /// there is room for. Without, takes it back.
    pub fn set_zone_limit(&mut self, zone: Option<u16>, limit: Option<u32>) {
        match zone {
            Some(zone) => self.zones.set_limit(zone, limit),
            None => self.zones.set_default_limit(limit.unwrap_or(0)),
        }
    }

    /// The limit of zones that have none of their own; 0: none.
    pub fn default_zone_limit(&self) -> u32 {
        self.zones.default_limit()
    }

    /// Zones that have a limit of their own, and it.
    pub fn zone_limits(&self) -> std::collections::BTreeMap<u16, u32> {
        self.zones.limits()
    }

    /// Connections of a zone.
    pub fn zone_len(&self, zone: u16) -> u32 {
        self.zones.count(zone)
    }

    /// What happened so far.
    pub fn counts(&self) -> Counts {
        Counts { unready: self.counts.unready + self.table.counts().unready, ..self.counts }
    }

    /// Connections that there are, by protocol.
    pub fn live(&self) -> Live {
        self.live
    }

    /// Bytes of memory when all connections are in use, without labels.
    pub fn bytes(&self) -> usize {
        self.table.bytes()
    }

    /// Sets whether events are kept for [`take_events`](Self::take_events).
    pub fn set_events(&mut self, wanted: bool) {
        self.events.wanted = wanted;
    }

    /// Takes all events that were kept, the oldest first. The next ones go into `room`, which is empty: with
    /// room for [`EVENTS`](super::EVENTS), nothing is allocated for them.
    pub fn take_events(&mut self, room: VecDeque<Event>) -> VecDeque<Event> {
        self.events.swap(room)
    }

    /// Events that found no room.
    pub fn events_lost(&self) -> u64 {
        self.events.lost
    }
}
