//! Walks over all connections: expiry, lists, flushing.

use thalweg_tables::flow::{FlowId, Millis, OnExpiry};

use super::parts::Common;
use super::{EndReason, EventKind, Part, Parts, Tracker, label};
use crate::connection::Connection;
use crate::filter::Filter;
use crate::tuple::{protocol_of, zone_of};
use crate::{IPV4, IPV6};

/// The first place of connections of IPv6 in a walk; their number, too, is above that of any
/// connection of IPv4.
const IPV6_PLACES: u32 = 1 << 31;

impl Tracker {
    /// Removes expired connections in up to `steps` steps per family. Returns whether more are
    /// left. Callers should allow two steps per connection committed since the last call.
    pub fn expire(&mut self, now: Millis, steps: usize) -> bool {
        let more = self.expire_part::<IPV4>(now, steps);
        // No IPv6 connection may ever have existed.
        let is_used = self.v6.table.used() != 0;
        more | (is_used && self.expire_part::<IPV6>(now, steps))
    }

    fn expire_part<const W: usize>(&mut self, now: Millis, steps: usize) -> bool
    where
        Self: Parts<W>,
    {
        let (Part { table, labels }, common) = self.split();
        let Common { zones, live, counts, events, has_labels, .. } = common;
        table.expire(now, steps, |table, flow| {
            let (key, second) = table.keys(flow);
            if events.wanted {
                let label = if *has_labels { label(labels, flow) } else { 0 };
                let value = table.get(flow);
                let gone = Connection::new(key, second, value, label, (0, now), flow);
                events.push(EventKind::Ended(EndReason::Expired), gone);
            }
            zones.remove(zone_of(key));
            live.remove(protocol_of(key), W == IPV6);
            counts.ended(EndReason::Expired);
            OnExpiry::Remove
        })
    }

    /// Moves a walk on by up to `steps` places; returns the flows there, of IPv4 and of IPv6.
    fn walk(
        &self,
        from: &mut u32,
        steps: u32,
    ) -> (impl Iterator<Item = FlowId> + use<'_>, impl Iterator<Item = FlowId> + use<'_>) {
        let (mut v4, mut v6, mut left) = (None, None, steps);
        if *from < IPV6_PLACES {
            let first = *from;
            v4 = Some(self.v4.table.list(from, steps));
            if *from >= self.v4.table.used() {
                left = steps.saturating_sub(from.saturating_sub(first));
                *from = IPV6_PLACES;
            } else {
                left = 0;
            }
        }
        if left > 0 {
            let mut at = *from - IPV6_PLACES;
            v6 = Some(self.v6.table.list(&mut at, left));
            *from = IPV6_PLACES + at;
        }
        (v4.into_iter().flatten(), v6.into_iter().flatten())
    }

    /// Lists connections in up to `steps` places from `*from` on, and advances it. Start at 0, and
    /// stop at [`places`](Self::places). Expired connections are omitted.
    pub fn list(
        &self,
        from: &mut u32,
        steps: u32,
        now: Millis,
    ) -> impl Iterator<Item = Connection> + use<'_> {
        let (v4, v6) = self.walk(from, steps);
        let v4 = v4.filter(move |flow| !self.v4.table.is_expired(*flow, now));
        let v6 = v6.filter(move |flow| !self.v6.table.is_expired(*flow, now));
        v4.map(move |flow| self.connection::<IPV4>(flow, now))
            .chain(v6.map(move |flow| self.connection::<IPV6>(flow, now)))
    }

    /// Removes the connections that a filter selects in up to `steps` places from `*from` on, and
    /// advances it. Start at 0, and stop at [`places`](Self::places). Returns the number of
    /// connections removed.
    pub fn flush(&mut self, from: &mut u32, steps: u32, filter: &Filter, now: Millis) -> usize {
        let (v4, v6) = self.walk(from, steps);
        let (v4, v6): (Vec<FlowId>, Vec<FlowId>) = (v4.collect(), v6.collect());
        let before = self.len();
        self.flush_part::<IPV4>(v4, filter, now);
        self.flush_part::<IPV6>(v6, filter, now);
        (before - self.len()) as usize
    }

    fn flush_part<const W: usize>(&mut self, flows: Vec<FlowId>, filter: &Filter, now: Millis)
    where
        Self: Parts<W>,
    {
        self.part().table.fetch_removal(&flows);
        for flow in flows {
            if filter.is_all() || filter.selects(&self.connection::<W>(flow, now)) {
                self.end::<W>(flow, EndReason::Flushed, now);
            }
        }
    }

    /// The place at which a walk ends.
    pub fn places(&self) -> u32 {
        IPV6_PLACES + self.v6.table.used()
    }

    /// A connection for display.
    pub fn connection<const W: usize>(&self, flow: FlowId, now: Millis) -> Connection
    where
        Self: Parts<W>,
    {
        let (key, second) = self.part().table.keys(flow);
        let left = match self.part().table.is_expired(flow, now) {
            true => 0,
            false => self.part().table.expiry(flow).wrapping_sub(now),
        };
        let value = self.part().table.get(flow);
        Connection::new(key, second, value, self.label::<W>(flow), (left, now), flow)
    }
}
