//! Connections: found, moved on, committed, ended.

mod accounts;
mod events;
mod first;
#[cfg(test)]
mod model;
mod opened;
mod stats;
#[cfg(test)]
mod tests;
mod zones;

use std::ops::Range;

use thalweg_tables::flow::{
    AHEAD, AddError, FlowHash, FlowId, FlowTable, Found, Guess, Millis, OnExpiry, is_due,
};
use thalweg_tables::{MapError, PagedTable, Pages};

use crate::batch::{Batch, Headers, Kind};
use crate::connection::Connection;
use crate::entry::{self, Entry, Seen, flag};
use crate::filter::Filter;
use crate::state::State;
use crate::tcp::Outcome;
use crate::timeout::Timeout;
use crate::tuple::{Key, Tuple, protocol_of, zone_of};
pub use events::{Event, ROOM as EVENTS, What, Why};
pub use first::FirstPart;
use opened::{opened, translated};
pub use stats::{Counts, Live};
use zones::Zones;

/// What to do for a new connection when there is no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// It is not committed.
    #[default]
    Refuse,
    /// The one that has waited for an answer for longest gives its place.
    Recycle,
}

/// What the tracker knows of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tracked {
    /// As rules see it.
    pub state: State,
    /// Its connection, if there is one.
    pub flow: Option<FlowId>,
    /// Whether it goes against the direction that was committed.
    pub reply: bool,
}

/// How to commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    /// The direction of this packet is to be the first, also if there is a connection of the other.
    pub force: bool,
    /// Bits of the mark to set, and which.
    pub mark: Option<(u32, u32)>,
    /// Bits of the label to set, and which.
    pub label: Option<(u128, u128)>,
    /// How replies will look, if the connection is translated.
    pub reply: Option<Tuple>,
}

/// A connection, and whether a packet is a reply of it.
type Place = (FlowId, bool);

/// Connections of one worker, with keys of `W` words.
#[derive(Debug)]
pub struct Tracker<const W: usize> {
    table: FlowTable<W, Entry>,
    /// By flow; memory is used only once there is a label, or is to be.
    labels: PagedTable<[u64; 2]>,
    has_labels: bool,
    zones: Zones,
    check_windows: bool,
    when_full: WhenFull,
    limit: u32,
    counts: Counts,
    live: Live,
    events: events::Events,
}

impl<const W: usize> Tracker<W> {
    /// A tracker for so many connections; for fewer, if more than a quarter of them is translated, which
    /// take the room of up to two. Memory is used as they come: 128 bytes for each.
    ///
    /// # Errors
    /// [`MapError`] if there is no address space for them.
    pub fn new(capacity: u32, now: Millis) -> Result<Self, MapError> {
        Self::with_keys(capacity, 1, now)
    }

    /// A tracker for so many connections, be they translated or not: 136 bytes for each.
    ///
    /// # Errors
    /// [`MapError`] if there is no address space for them.
    pub fn for_translated(capacity: u32, now: Millis) -> Result<Self, MapError> {
        Self::with_keys(capacity, 2, now)
    }

    fn with_keys(capacity: u32, keys: usize, now: Millis) -> Result<Self, MapError> {
        Ok(Tracker {
            table: FlowTable::new(capacity, keys, now)?,
            labels: PagedTable::with_pages(capacity as usize, Pages::Huge)?,
            has_labels: false,
            zones: Zones::new(),
            check_windows: true,
            when_full: WhenFull::default(),
            limit: capacity,
            counts: Counts::default(),
            live: Live::default(),
            events: events::Events::default(),
        })
    }

    /// From now on memory is cleared before connections come to it, by a thread; the first of it at once,
    /// which takes milliseconds. Connections that come faster than that are not committed. With `labels`, memory
    /// for those is cleared, too.
    ///
    /// # Errors
    /// If there can be no such thread. The tracker can be used all the same.
    pub fn prepare(&mut self, labels: bool) -> std::io::Result<()> {
        self.table.prepare_with("flow-memory", &self.labels, labels)
    }

    /// Whether connections that have come have memory for labels, if that is cleared before.
    pub fn has_room_for_labels(&self) -> bool {
        self.table.has_side_memory()
    }

    /// There are going to be labels: their memory is cleared, too. Until there is [some](Self::has_room_for_labels)
    /// for all connections that there are, new ones with a label are not committed; others are.
    pub fn want_labels(&self) {
        self.table.want_side_memory();
    }

    /// Prepares to look up the packets of a batch, whose connections are then on their way in time.
    #[inline]
    pub fn look_up(&self, batch: &mut Batch<W>) {
        let n = batch.len;
        let (hashes, guesses) = (&mut batch.hashes[..n], &mut batch.guesses[..n]);
        self.table.hash_all(&batch.keys[..n], hashes, guesses);
        batch.ahead = 0;
    }

    /// Has the connections of packets behind packet `i` come. Elsewhere, as is all of which most packets have no need:
    /// what they do need has the registers then.
    #[inline(never)]
    fn fetch_ahead(&self, batch: &mut Batch<W>, i: usize) {
        let n = batch.len;
        self.table.fetch_ahead(&batch.hashes[..n], &mut batch.guesses[..n], i);
        batch.ahead = i + AHEAD;
    }

    /// Moves the connection of packet `i` on, and says what the packet is. The batch must have been
    /// [looked up](Self::look_up); packets are to be tracked in their order.
    ///
    /// # Panics
    /// If the batch has no packet `i`.
    #[inline]
    pub fn track(&mut self, batch: &mut Batch<W>, i: usize, now: Millis) -> Tracked {
        if i >= batch.ahead {
            self.fetch_ahead(batch, i);
        }
        match self.usual(batch, i, batch.guesses[i], now) {
            Ok(tracked) => tracked,
            Err(place) => self.rest(batch, i, place, now),
        }
    }

    /// A packet of which there is nothing more to say than of nearly all, if its connection is where it is guessed to
    /// be. Nothing happens if it is anything else; what it belongs to, if that was there.
    #[inline(always)]
    fn usual(
        &mut self,
        batch: &Batch<W>,
        i: usize,
        guess: Guess,
        now: Millis,
    ) -> Result<Tracked, Option<Place>> {
        let (headers, key) = (&batch.headers[..batch.len][i], &batch.keys[i]);
        let guessed = self.table.guessed(key, guess);
        let Some((found, end, value)) = guessed else { return Err(None) };
        if is_due(*end, now) {
            return Err(None);
        }
        let Some(reply) = direction(value, found, headers.swapped) else { return Err(None) };
        let flow = found.flow();
        if headers.kind != Kind::Tcp {
            return Err(headers.kind.is_tracked().then_some((flow, reply)));
        }
        let settled = entry::may_be_ordinary(value, &headers.segment);
        let fits = match settled {
            true => entry::ordinary(value, reply, &headers.segment),
            false => entry::usual(value, reply, &headers.segment),
        };
        if !fits {
            return Err(Some((flow, reply)));
        }
        entry::count(value, reply, headers.bytes);
        self.counts.established += 1;
        let (timeout, becomes) = match settled {
            true => (Timeout::TcpEstablished, false),
            false => (entry::timeout(value), entry::becomes_established(value)),
        };
        let later = now.wrapping_add(self.zones.policy(zone_of(key)).millis(timeout));
        if is_due(*end, later) {
            *end = later;
        } else {
            self.end_sooner(flow, later);
        }
        if becomes {
            self.established(flow);
        }
        Ok(known(flow, reply))
    }

    #[inline(never)]
    fn end_sooner(&mut self, flow: FlowId, end: Millis) {
        self.table.set_expiry(flow, end);
    }

    /// A packet that is no usual one, and what it belongs to if that is known.
    #[inline]
    fn rest(&mut self, batch: &Batch<W>, i: usize, place: Option<Place>, now: Millis) -> Tracked {
        match place {
            Some((flow, reply)) => self.move_on(batch, i, flow, reply, now),
            None => self.other(batch, i, now),
        }
    }

    /// A packet whose connection is not where it was guessed to be, or that has none.
    #[inline(never)]
    fn other(&mut self, batch: &Batch<W>, i: usize, now: Millis) -> Tracked {
        let headers = &batch.headers[i];
        if !headers.kind.is_tracked() {
            self.counts.invalid_headers += 1;
            return self.invalid(None, false);
        }
        let found = self.table.find(&batch.keys[i], batch.hashes[i]);
        match found {
            Some(found) => self.elsewhere(batch, i, found, now),
            None => self.unknown(headers),
        }
    }

    /// A packet whose connection was found elsewhere than where it was guessed to be.
    #[inline(never)]
    fn elsewhere(&mut self, batch: &Batch<W>, i: usize, found: Found, now: Millis) -> Tracked {
        match self.usual(batch, i, found.into(), now) {
            Ok(tracked) => tracked,
            Err(Some((flow, reply))) => self.move_on(batch, i, flow, reply, now),
            Err(None) => self.unknown(&batch.headers[i]),
        }
    }

    /// Tracks all packets, and commits those that are new if `commit` says how. `states` gets as many
    /// as there is room for.
    pub fn track_all(
        &mut self,
        batch: &mut Batch<W>,
        commit: Option<&Commit>,
        now: Millis,
        states: &mut [State],
    ) {
        self.look_up(batch);
        let n = batch.len.min(states.len());
        if let Some(commit) = commit.filter(|commit| **commit != Commit::default()) {
            // There is something to be done for each of them.
            for (i, state) in states[..n].iter_mut().enumerate() {
                let tracked = self.track(batch, i, now);
                *state = tracked.state;
                self.commit(batch, i, tracked, commit, now);
            }
            return;
        }
        for at in (0..n).step_by(AHEAD) {
            self.fetch_ahead(batch, at);
            let mut rows = at..n.min(at + AHEAD);
            while !rows.is_empty() {
                let place = match batch.guesses[rows.start].is_nothing() {
                    true => None,
                    false => match self.usual_ones(batch, &mut rows, now, states) {
                        Some(place) => place,
                        None => break,
                    },
                };
                let i = rows.start;
                let tracked = self.rest(batch, i, place, now);
                states[i] = tracked.state;
                if let Some(commit) = commit
                    && tracked.flow.is_none()
                {
                    self.commit_here(batch, i, tracked, commit, now);
                }
                rows.start += 1;
            }
        }
    }

    /// Tracks packets as long as they are usual ones; what the first of the others belongs to, if that was where it
    /// was guessed to be, if there is one. Apart from what only those need, so that the loop has the registers.
    #[inline(never)]
    fn usual_ones(
        &mut self,
        batch: &Batch<W>,
        rows: &mut Range<usize>,
        now: Millis,
        states: &mut [State],
    ) -> Option<Option<Place>> {
        let end = rows.end.min(batch.len).min(states.len());
        let (mut i, states) = (rows.start, &mut states[..end]);
        while i < end {
            match self.usual(batch, i, batch.guesses[i], now) {
                Ok(tracked) => states[i] = tracked.state,
                Err(place) => {
                    rows.start = i;
                    return Some(place);
                }
            }
            i += 1;
        }
        rows.start = end;
        None
    }

    fn invalid(&mut self, flow: Option<FlowId>, reply: bool) -> Tracked {
        self.counts.invalid += 1;
        Tracked { state: State::TRACKED | State::INVALID, flow, reply }
    }

    /// A packet without a connection: what may begin one is new.
    fn unknown(&mut self, headers: &Headers) -> Tracked {
        let may_open = match headers.kind {
            Kind::Tcp => headers.segment.may_open(),
            Kind::Datagram => true,
            Kind::Query => !headers.swapped,
            Kind::Related | Kind::Fragment | Kind::Invalid => false,
        };
        if !may_open {
            match headers.kind {
                Kind::Tcp if !headers.segment.flags_are_valid() => self.counts.invalid_flags += 1,
                _ => self.counts.unexpected += 1,
            }
            return self.invalid(None, false);
        }
        self.counts.new += 1;
        Tracked { state: State::TRACKED | State::NEW, flow: None, reply: false }
    }

    /// What needs the whole rule, or is not TCP.
    #[inline(never)]
    fn move_on(
        &mut self,
        batch: &Batch<W>,
        i: usize,
        flow: FlowId,
        reply: bool,
        now: Millis,
    ) -> Tracked {
        let (headers, key) = (&batch.headers[i], &batch.keys[i]);
        let outcome = match headers.kind {
            Kind::Tcp => self.segment(flow, reply, headers),
            Kind::Related => {
                self.counts.related += 1;
                let state = State::TRACKED | State::RELATED;
                let state = if reply { state | State::REPLY } else { state };
                return Tracked { state, flow: Some(flow), reply };
            }
            kind => self.datagram(flow, reply, kind == Kind::Query),
        };
        let (timeout, is_new) = match outcome {
            Moved::On(timeout, is_new) => (timeout, is_new),
            Moved::Nowhere => return self.invalid(Some(flow), reply),
            Moved::Away => {
                self.end(flow, Why::Replaced, now);
                return self.unknown(headers);
            }
        };
        let value = self.table.get_mut(flow);
        entry::count(value, reply, headers.bytes);
        if let Some(timeout) = timeout {
            self.restart(flow, zone_of(key), timeout, now);
        }
        if is_new {
            self.counts.new += 1;
            return Tracked { state: State::TRACKED | State::NEW, flow: Some(flow), reply };
        }
        self.counts.established += 1;
        known(flow, reply)
    }

    fn segment(&mut self, flow: FlowId, reply: bool, headers: &Headers) -> Moved {
        let value = self.table.get_mut(flow);
        let mut pair = entry::pair(value);
        let outcome = pair.update(reply, &headers.segment, self.check_windows);
        match outcome {
            Outcome::BadFlags => {
                self.counts.invalid_flags += 1;
                return Moved::Nowhere;
            }
            Outcome::OutOfWindow => {
                self.counts.out_of_window += 1;
                return Moved::Nowhere;
            }
            Outcome::Reopens => return Moved::Away,
            Outcome::Unchecked => self.counts.unchecked += 1,
            Outcome::Valid | Outcome::Stray | Outcome::Repeated => {}
        }
        entry::put_pair(value, &pair);
        if entry::becomes_established(value) {
            self.established(flow);
        }
        match outcome {
            Outcome::Repeated => Moved::On(Some(Timeout::TcpSynSent), true),
            Outcome::Stray => Moved::On(None, false),
            _ => Moved::On(Some(pair.timeout()), false),
        }
    }

    fn datagram(&mut self, flow: FlowId, reply: bool, query: bool) -> Moved {
        let value = self.table.get_mut(flow);
        let before = entry::seen(value);
        let seen = match before {
            _ if reply => Seen::Both,
            Seen::First if !query => Seen::Single,
            before => before,
        };
        if seen != before {
            entry::put_seen(value, seen);
            if seen == Seen::Both {
                self.established(flow);
            }
        }
        let timeout = match (query, seen) {
            (true, Seen::Both) => Timeout::IcmpReply,
            (true, _) => Timeout::IcmpFirst,
            (false, Seen::First) => Timeout::UdpFirst,
            (false, Seen::Single) => Timeout::UdpSingle,
            (false, Seen::Both) => Timeout::UdpMultiple,
        };
        Moved::On(Some(timeout), seen != Seen::Both)
    }

    #[inline(never)]
    fn established(&mut self, flow: FlowId) {
        entry::set(self.table.get_mut(flow), flag::ESTABLISHED);
        self.table.promote(flow);
        self.tell(What::Established, flow);
    }

    #[inline]
    fn restart(&mut self, flow: FlowId, zone: u16, timeout: Timeout, now: Millis) {
        let end = now.wrapping_add(self.zones.policy(zone).millis(timeout));
        if end.wrapping_sub(self.table.expiry(flow)) < 1 << 31 {
            self.table.extend(flow, end);
        } else {
            self.table.set_expiry(flow, end);
        }
    }

    /// Commits packet `i`, of which [`track`](Self::track) has just said this: remembers its
    /// connection if it is new, and sets what is to be set. What it then is; nothing is remembered
    /// if there is no room, or of what is invalid or only about a connection.
    ///
    /// # Panics
    /// If the batch has no packet `i`.
    pub fn commit(
        &mut self,
        batch: &Batch<W>,
        i: usize,
        tracked: Tracked,
        how: &Commit,
        now: Millis,
    ) -> Tracked {
        self.commit_here(batch, i, tracked, how, now)
    }

    /// What [`commit`](Self::commit) does, without a call.
    #[inline(always)]
    fn commit_here(
        &mut self,
        batch: &Batch<W>,
        i: usize,
        tracked: Tracked,
        how: &Commit,
        now: Millis,
    ) -> Tracked {
        let headers = &batch.headers[..batch.len][i];
        if tracked.state.contains(State::INVALID) {
            return tracked;
        }
        let mut result = tracked;
        if let Some(flow) = tracked.flow
            && how.force
            && tracked.reply
            && headers.kind != Kind::Related
        {
            self.end(flow, Why::Replaced, now);
            result = Tracked { state: State::TRACKED | State::NEW, flow: None, reply: false };
        }
        if result.flow.is_none() && headers.kind != Kind::Related {
            result.flow = self.remember((batch.keys[i], batch.hashes[i]), headers, how, now);
        }
        if let Some(flow) = result.flow {
            self.paint(flow, how);
        }
        result
    }

    fn remember(
        &mut self,
        key: (Key<W>, FlowHash),
        headers: &Headers,
        how: &Commit,
        now: Millis,
    ) -> Option<FlowId> {
        let zone = zone_of(&key.0);
        if self.zones.is_full(zone) {
            self.counts.zone_full += 1;
            return None;
        }
        // From the first label on, each connection's is written as it comes.
        if (how.label.is_some() || self.has_labels) && !self.has_room_for_labels() {
            self.want_labels();
            self.counts.unready += 1;
            return None;
        }
        if self.table.len() >= self.limit && !(self.recycles() && self.recycle(now)) {
            self.counts.full += 1;
            return None;
        }
        let (value, timeout) = opened(headers);
        let (value, second) = translated(value, &key.0, headers, how);
        let second = second.map(|key| (key, self.table.hash(&key)));
        let end = now.wrapping_add(self.zones.policy(zone).millis(timeout));
        let mut value = value;
        entry::set_since(&mut value, now);
        let flow = loop {
            match self.table.add(key, second, end, (value, ())) {
                Ok(flow) => break flow,
                // Two keys may need the room of two that go.
                Err(AddError::Full) if self.recycles() && self.recycle(now) => {}
                Err(AddError::Full) => {
                    self.counts.full += 1;
                    return None;
                }
                // The table counts these.
                Err(AddError::Unready) => return None,
                Err(AddError::Taken(found)) if self.table.is_expired(found.flow(), now) => {
                    self.end(found.flow(), Why::Expired, now);
                }
                Err(AddError::Taken(_)) => {
                    self.counts.taken += 1;
                    return None;
                }
            }
        };
        if self.has_labels {
            self.labels.as_mut_slice()[flow.index() as usize] = [0; 2];
        }
        self.counts.created += 1;
        self.zones.came(zone);
        self.live.came(protocol_of(&key.0));
        self.tell(What::New, flow);
        Some(flow)
    }

    fn recycles(&self) -> bool {
        self.when_full == WhenFull::Recycle
    }

    /// Sets the mark and the label.
    #[inline]
    fn paint(&mut self, flow: FlowId, how: &Commit) {
        if let Some((value, mask)) = how.mark {
            let entry = self.table.get_mut(flow);
            entry::set_mark(entry, entry::mark(entry) & !mask | value & mask);
        }
        if let Some((value, mask)) = how.label {
            if !self.has_labels {
                self.has_labels = true;
                self.want_labels();
            }
            let label = self.label(flow) & !mask | value & mask;
            let at = flow.index() as usize;
            self.labels.as_mut_slice()[at] = [label as u64, (label >> 64) as u64];
        }
    }

    /// Ends a connection.
    fn end(&mut self, flow: FlowId, why: Why, now: Millis) {
        let key = *self.table.keys(flow).0;
        if self.events.wanted {
            self.events.push(What::Ended(why), self.connection(flow, now));
        }
        self.table.remove(flow);
        self.gone(&key, why);
    }

    fn gone(&mut self, key: &Key<W>, why: Why) {
        self.zones.went(zone_of(key));
        self.live.went(protocol_of(key));
        self.counts.ended(why);
    }

    #[inline]
    fn tell(&mut self, what: What, flow: FlowId) {
        if self.events.wanted {
            let now = entry::since(self.table.get(flow));
            self.events.push(what, self.connection(flow, now));
        }
    }

    /// Gives up the connection that has waited for an answer for longest.
    fn recycle(&mut self, now: Millis) -> bool {
        let mut oldest = None;
        let done = self.table.recycle(|table, flow| {
            let (first, second) = table.keys(flow);
            oldest = Some((*first, second.copied(), *table.get(flow), table.expiry(flow), flow));
        });
        if let Some((key, second, value, end, flow)) = oldest {
            if self.events.wanted {
                let label = self.label(flow);
                let left = end.wrapping_sub(now);
                let gone = Connection::new(&key, second.as_ref(), &value, label, (left, now), flow);
                self.events.push(What::Ended(Why::Recycled), gone);
            }
            self.gone(&key, Why::Recycled);
        }
        done
    }

    /// Ends connections that were silent for too long, looking at up to `steps`. True if there is
    /// more to do. Allow two steps for each connection that was committed since.
    pub fn expire(&mut self, now: Millis, steps: usize) -> bool {
        let Tracker { table, zones, live, counts, events, labels, .. } = self;
        table.expire(now, steps, |table, flow| {
            let (key, second) = table.keys(flow);
            if events.wanted {
                let label = label(labels, flow);
                let value = table.get(flow);
                let gone = Connection::new(key, second, value, label, (0, now), flow);
                events.push(What::Ended(Why::Expired), gone);
            }
            zones.went(zone_of(key));
            live.went(protocol_of(key));
            counts.ended(Why::Expired);
            OnExpiry::Remove
        })
    }

    /// The connections among up to `steps` places from `*from` on, which moves; from 0 until it is
    /// [`places`](Self::places). Those that are over are left out.
    pub fn list(
        &self,
        from: &mut u32,
        steps: u32,
        now: Millis,
    ) -> impl Iterator<Item = Connection> {
        let flows = self.table.list(from, steps);
        flows
            .filter(move |flow| !self.table.is_expired(*flow, now))
            .map(move |flow| self.connection(flow, now))
    }

    /// Forgets the connections that a filter chooses among up to `steps` places from `*from` on,
    /// which moves; from 0 until it is [`places`](Self::places). Returns how many.
    pub fn flush(&mut self, from: &mut u32, steps: u32, filter: &Filter, now: Millis) -> usize {
        let flows: Vec<FlowId> = self.table.list(from, steps).collect();
        let before = self.table.len();
        self.table.fetch_removal(&flows);
        for flow in flows {
            if filter.is_all() || filter.chooses(&self.connection(flow, now)) {
                self.end(flow, Why::Flushed, now);
            }
        }
        (before - self.table.len()) as usize
    }

    /// Places that lists have to go through.
    pub fn places(&self) -> u32 {
        self.table.used()
    }

    /// A connection as it is shown.
    pub fn connection(&self, flow: FlowId, now: Millis) -> Connection {
        let (key, second) = self.table.keys(flow);
        let left = match self.table.is_expired(flow, now) {
            true => 0,
            false => self.table.expiry(flow).wrapping_sub(now),
        };
        let value = self.table.get(flow);
        Connection::new(key, second, value, self.label(flow), (left, now), flow)
    }

    /// The mark of a connection.
    #[inline]
    pub fn mark(&self, flow: FlowId) -> u32 {
        entry::mark(self.table.get(flow))
    }

    /// The label of a connection.
    #[inline]
    pub fn label(&self, flow: FlowId) -> u128 {
        if self.has_labels { label(&self.labels, flow) } else { 0 }
    }

    /// The tuple that a connection was opened with, before translation.
    pub fn original(&self, flow: FlowId) -> Tuple {
        let swapped = entry::has(self.table.get(flow), flag::SWAPPED);
        Tuple::of_key(self.table.keys(flow).0, swapped)
    }

    /// What packets of a direction are to be rewritten to, if the connection is translated.
    pub fn translation(&self, flow: FlowId, reply: bool) -> Option<Tuple> {
        let (_, second) = self.table.keys(flow);
        let second = second?;
        if reply {
            return Some(self.original(flow).reversed());
        }
        let swapped = entry::has(self.table.get(flow), flag::REPLY_SWAPPED);
        Some(Tuple::of_key(second, swapped).reversed())
    }

    /// Whether replies of this tuple are taken by a connection of the zone.
    pub fn is_taken(&self, reply: &Tuple, zone: u16) -> bool {
        let Some((key, _)) = reply.key::<W>(zone) else { return true };
        self.table.find(&key, self.table.hash(&key)).is_some()
    }

    /// Counts a connection for which no translation was free.
    pub fn count_taken(&mut self) {
        self.counts.taken += 1;
    }

    /// Which flags the translation of a connection adds to its packets of a direction.
    #[inline]
    pub fn translated(&self, flow: FlowId, reply: bool) -> State {
        let entry = self.table.get(flow);
        let (snat, dnat) = (entry::has(entry, flag::SNAT), entry::has(entry, flag::DNAT));
        let (snat, dnat) = if reply { (dnat, snat) } else { (snat, dnat) };
        let one = |has: bool, state| if has { state } else { State::NONE };
        one(snat, State::SNAT) | one(dnat, State::DNAT)
    }
}

/// What a packet did to its connection.
enum Moved {
    /// It goes on, with this timer, or the one that runs; whether it is still new.
    On(Option<Timeout>, bool),
    /// It is as it was: the packet is invalid.
    Nowhere,
    /// It is over.
    Away,
}

#[inline]
fn known(flow: FlowId, reply: bool) -> Tracked {
    let state = State::TRACKED | State::ESTABLISHED;
    let state = if reply { state | State::REPLY } else { state };
    Tracked { state, flow: Some(flow), reply }
}

#[inline]
fn label(labels: &PagedTable<[u64; 2]>, flow: FlowId) -> u128 {
    let [low, high] = labels.as_slice()[flow.index() as usize];
    u128::from(high) << 64 | u128::from(low)
}

/// Whether a packet is a reply of the connection that was found; nothing if a translation makes it
/// none of its packets.
#[inline]
fn direction(entry: &Entry, found: Found, swapped: bool) -> Option<bool> {
    let first = entry::has(entry, flag::SWAPPED);
    if !entry::has(entry, flag::TRANSLATED) {
        return Some(swapped != first);
    }
    let expected = if found.by_second() { entry::has(entry, flag::REPLY_SWAPPED) } else { first };
    (swapped == expected).then_some(found.by_second())
}
