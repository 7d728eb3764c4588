//! The tracker: looks up, updates, commits and expires connections.

mod accessors;
mod events;
mod fragment;
#[cfg(test)]
mod model;
mod new_entry;
mod parts;
mod stats;
#[cfg(test)]
mod tests;
mod walk;
mod zones;

use std::ops::Range;

use thalweg_tables::flow::{AHEAD, AddError, FlowHash, FlowId, Found, Guess, Millis, is_due};
use thalweg_tables::{MapError, PagedTable};

use crate::batch::{Batch, Headers, Kind};
use crate::connection::Connection;
use crate::entry::{self, Entry, Seen, flag};
use crate::state::State;
use crate::tcp::Outcome;
use crate::timeout::Timeout;
use crate::tuple::{Key, Tuple, protocol_of, zone_of};
use crate::{IPV4, IPV6};
pub use events::{EndReason, Event, EventKind, ROOM as EVENTS};
pub use fragment::FirstFragment;
use new_entry::{new_entry, with_translation};
use parts::Common;
pub use parts::{Part, Parts};
pub use stats::{Counts, Live};

/// Handling of a new connection when the table is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// The new connection is refused.
    #[default]
    Refuse,
    /// The oldest unanswered connection makes room.
    Recycle,
}

/// The tracking result of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tracked {
    /// The state that rules match.
    pub state: State,
    /// Its connection, if one exists.
    pub flow: Option<FlowId>,
    /// True in the reply direction.
    pub reply: bool,
}

/// Parameters of a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    /// Make this packet's direction the original one, replacing a connection of the opposite
    /// direction.
    pub force: bool,
    /// Value and mask of the mark.
    pub mark: Option<(u32, u32)>,
    /// Value and mask of the label.
    pub label: Option<(u128, u128)>,
    /// Tuple of replies, if the connection is translated.
    pub reply: Option<Tuple>,
}

/// A connection, and whether the packet is a reply.
type Place = (FlowId, bool);

/// Connections of one worker.
///
/// The connections of each family have a table of their own, so that those of IPv4 stay small. They
/// share limits, zones, timeouts and counters.
#[derive(Debug)]
pub struct Tracker {
    v4: Part<IPV4>,
    v6: Part<IPV6>,
    common: Common,
}

impl Tracker {
    /// A tracker for `capacity` connections, or for fewer if more than a quarter of them is
    /// translated: those take the room of up to two. Memory is used as connections are created: 128
    /// bytes each for IPv4, 176 for IPv6.
    ///
    /// # Errors
    /// [`MapError`] if there is not enough address space.
    pub fn new(capacity: u32, now: Millis) -> Result<Self, MapError> {
        Self::with_keys(capacity, 1, now)
    }

    /// A tracker for `capacity` connections, translated or not: 8 bytes more each.
    ///
    /// # Errors
    /// [`MapError`] if there is not enough address space.
    pub fn for_translated(capacity: u32, now: Millis) -> Result<Self, MapError> {
        Self::with_keys(capacity, 2, now)
    }

    fn with_keys(capacity: u32, keys: usize, now: Millis) -> Result<Self, MapError> {
        Ok(Tracker {
            v4: Part::new(capacity, keys, now)?,
            v6: Part::new(capacity, keys, now)?,
            common: Common::new(capacity),
        })
    }

    /// Starts a thread that clears memory ahead of new connections of IPv4; the first part is
    /// cleared at once, which takes milliseconds. Connections that are created faster than memory
    /// is cleared are refused. With `labels`, the memory of labels is cleared as well.
    ///
    /// # Errors
    /// Fails if the thread cannot be started. The tracker is usable nevertheless.
    pub fn prepare(&mut self, labels: bool) -> std::io::Result<()> {
        self.v4.prepare("flow-memory", labels)
    }

    /// The same for connections of IPv6.
    ///
    /// # Errors
    /// Fails if the thread cannot be started. The tracker is usable nevertheless.
    pub fn prepare_ipv6(&mut self, labels: bool) -> std::io::Result<()> {
        self.v6.prepare("flow6-memory", labels)
    }

    /// Returns whether memory is cleared ahead of connections of IPv6.
    pub fn is_prepared_for_ipv6(&self) -> bool {
        self.v6.table.is_prepared()
    }

    /// Exchanges what the tracker has for connections of IPv6 with that of another one, which has
    /// been prepared, unless it has such connections. The limit stays as it is.
    pub fn take_ipv6(&mut self, other: &mut Tracker) {
        if self.v6.table.is_empty() {
            std::mem::swap(&mut self.v6, &mut other.v6);
        }
    }

    /// Returns whether label memory has been cleared for all existing connections, or needs no
    /// clearing.
    pub fn has_room_for_labels(&self) -> bool {
        self.v4.table.has_side_memory() && self.v6.table.has_side_memory()
    }

    /// Requests label memory. Until it is [ready](Self::has_room_for_labels) for all existing
    /// connections, new connections with a label are refused; others are not affected.
    pub fn want_labels(&self) {
        self.v4.table.want_side_memory();
        self.v6.table.want_side_memory();
    }

    /// Hashes the packets of a batch and prefetches the first connections.
    #[inline]
    pub fn look_up<const W: usize>(&self, batch: &mut Batch<W>)
    where
        Self: Parts<W>,
    {
        let n = batch.len;
        let (hashes, guesses) = (&mut batch.hashes[..n], &mut batch.guesses[..n]);
        self.part().table.hash_all(&batch.keys[..n], hashes, guesses);
        batch.ahead = 0;
    }

    /// Prefetches the connections of the packets that follow packet `i`. The function is not
    /// inlined, like everything that most packets do not need: the fast path gets the registers.
    #[inline(never)]
    fn fetch_ahead<const W: usize>(&self, batch: &mut Batch<W>, i: usize)
    where
        Self: Parts<W>,
    {
        let n = batch.len;
        self.part().table.fetch_ahead(&batch.hashes[..n], &mut batch.guesses[..n], i);
        batch.ahead = i + AHEAD;
    }

    /// Updates the connection of packet `i` and returns its state. The batch must have been [looked
    /// up](Self::look_up), and packets must be tracked in order.
    ///
    /// # Panics
    /// If the batch has no packet `i`.
    #[inline]
    pub fn track<const W: usize>(&mut self, batch: &mut Batch<W>, i: usize, now: Millis) -> Tracked
    where
        Self: Parts<W>,
    {
        if i >= batch.ahead {
            self.fetch_ahead(batch, i);
        }
        match self.track_fast(batch, i, batch.guesses[i], now) {
            Ok(tracked) => tracked,
            Err(place) => self.track_slow(batch, i, place, now),
        }
    }

    /// Tracks a packet of the common kind whose connection is at the guessed place. For any other
    /// packet, changes nothing and returns the connection if it was there.
    #[inline(always)]
    fn track_fast<const W: usize>(
        &mut self,
        batch: &Batch<W>,
        i: usize,
        guess: Guess,
        now: Millis,
    ) -> Result<Tracked, Option<Place>>
    where
        Self: Parts<W>,
    {
        let (headers, key) = (&batch.headers[..batch.len][i], &batch.keys[i]);
        let (part, common) = self.split();
        let guessed = part.table.guessed(key, guess);
        let Some((found, end, value)) = guessed else { return Err(None) };
        if is_due(*end, now) {
            return Err(None);
        }
        let Some(reply) = direction(value, found, headers.swapped) else { return Err(None) };
        let flow = found.flow();
        if headers.kind != Kind::Tcp {
            return Err(headers.kind.is_tracked().then_some((flow, reply)));
        }
        let settled = entry::is_between_established(value, &headers.segment);
        let fits = match settled {
            true => entry::slide_established(value, reply, &headers.segment),
            false => entry::slide_tcp(value, reply, &headers.segment),
        };
        if !fits {
            return Err(Some((flow, reply)));
        }
        entry::count(value, reply, headers.bytes);
        common.counts.established += 1;
        let (timeout, becomes) = match settled {
            true => (Timeout::TcpEstablished, false),
            false => (entry::timeout(value), entry::is_newly_established(value)),
        };
        let later = now.wrapping_add(common.zones.policy(zone_of(key)).millis(timeout));
        if is_due(*end, later) {
            *end = later;
        } else {
            self.shorten::<W>(flow, later);
        }
        if becomes {
            self.set_established::<W>(flow);
        }
        Ok(known(flow, reply))
    }

    #[inline(never)]
    fn shorten<const W: usize>(&mut self, flow: FlowId, end: Millis)
    where
        Self: Parts<W>,
    {
        self.part_mut().table.set_expiry(flow, end);
    }

    /// Tracks a packet that the fast path did not handle; `place` is its connection, if known.
    #[inline]
    fn track_slow<const W: usize>(
        &mut self,
        batch: &Batch<W>,
        i: usize,
        place: Option<Place>,
        now: Millis,
    ) -> Tracked
    where
        Self: Parts<W>,
    {
        match place {
            Some((flow, reply)) => self.update(batch, i, flow, reply, now),
            None => self.track_unguessed(batch, i, now),
        }
    }

    /// Tracks a packet whose connection is not at the guessed place, or does not exist.
    #[inline(never)]
    fn track_unguessed<const W: usize>(
        &mut self,
        batch: &Batch<W>,
        i: usize,
        now: Millis,
    ) -> Tracked
    where
        Self: Parts<W>,
    {
        let headers = &batch.headers[i];
        if !headers.kind.is_tracked() {
            self.common.counts.invalid_headers += 1;
            return self.invalid(None, false);
        }
        let found = self.part().table.find(&batch.keys[i], batch.hashes[i]);
        match found {
            Some(found) => self.track_found(batch, i, found, now),
            None => self.no_connection(headers),
        }
    }

    /// Tracks a packet whose connection was found at another place than guessed.
    #[inline(never)]
    fn track_found<const W: usize>(
        &mut self,
        batch: &Batch<W>,
        i: usize,
        found: Found,
        now: Millis,
    ) -> Tracked
    where
        Self: Parts<W>,
    {
        match self.track_fast(batch, i, found.into(), now) {
            Ok(tracked) => tracked,
            Err(Some((flow, reply))) => self.update(batch, i, flow, reply, now),
            Err(None) => self.no_connection(&batch.headers[i]),
        }
    }

    /// Tracks all packets and, with `commit`, commits the new ones. Writes as many states as
    /// `states` has room for.
    pub fn track_all<const W: usize>(
        &mut self,
        batch: &mut Batch<W>,
        commit: Option<&Commit>,
        now: Millis,
        states: &mut [State],
    ) where
        Self: Parts<W>,
    {
        self.look_up(batch);
        let n = batch.len.min(states.len());
        if let Some(commit) = commit.filter(|commit| **commit != Commit::default()) {
            // Each packet has to be committed.
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
                    false => match self.track_fast_run(batch, &mut rows, now, states) {
                        Some(place) => place,
                        None => break,
                    },
                };
                let i = rows.start;
                let tracked = self.track_slow(batch, i, place, now);
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

    /// Tracks packets as long as the fast path handles them. Returns the connection of the first
    /// packet left, if found at the guessed place; the outer `None` means that no packet is left. A
    /// separate function, so that the loop gets the registers.
    #[inline(never)]
    fn track_fast_run<const W: usize>(
        &mut self,
        batch: &Batch<W>,
        rows: &mut Range<usize>,
        now: Millis,
        states: &mut [State],
    ) -> Option<Option<Place>>
    where
        Self: Parts<W>,
    {
        let end = rows.end.min(batch.len).min(states.len());
        let (mut i, states) = (rows.start, &mut states[..end]);
        while i < end {
            match self.track_fast(batch, i, batch.guesses[i], now) {
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
        self.common.counts.invalid += 1;
        Tracked { state: State::TRACKED | State::INVALID, flow, reply }
    }

    /// Classifies a packet without a connection: new if it may open one.
    fn no_connection(&mut self, headers: &Headers) -> Tracked {
        let may_open = match headers.kind {
            Kind::Tcp => headers.segment.may_open(),
            Kind::Datagram => true,
            Kind::Query => !headers.swapped,
            Kind::Related | Kind::Fragment | Kind::Invalid => false,
        };
        if !may_open {
            match headers.kind {
                Kind::Tcp if !headers.segment.flags_are_valid() => {
                    self.common.counts.invalid_flags += 1
                }
                _ => self.common.counts.unexpected += 1,
            }
            return self.invalid(None, false);
        }
        self.common.counts.new += 1;
        Tracked { state: State::TRACKED | State::NEW, flow: None, reply: false }
    }

    /// Tracks a packet that needs the general rule, or is not TCP.
    #[inline(never)]
    fn update<const W: usize>(
        &mut self,
        batch: &Batch<W>,
        i: usize,
        flow: FlowId,
        reply: bool,
        now: Millis,
    ) -> Tracked
    where
        Self: Parts<W>,
    {
        let (headers, key) = (&batch.headers[i], &batch.keys[i]);
        let outcome = match headers.kind {
            Kind::Tcp => self.update_tcp::<W>(flow, reply, headers),
            Kind::Related => {
                self.common.counts.related += 1;
                let state = State::TRACKED | State::RELATED;
                let state = if reply { state | State::REPLY } else { state };
                return Tracked { state, flow: Some(flow), reply };
            }
            kind => self.update_datagram::<W>(flow, reply, kind == Kind::Query),
        };
        let (timeout, is_new) = match outcome {
            Updated::Valid(timeout, is_new) => (timeout, is_new),
            Updated::Invalid => return self.invalid(Some(flow), reply),
            Updated::Reopened => {
                self.end::<W>(flow, EndReason::Replaced, now);
                return self.no_connection(headers);
            }
        };
        let value = self.part_mut().table.get_mut(flow);
        entry::count(value, reply, headers.bytes);
        if let Some(timeout) = timeout {
            self.restart_timer::<W>(flow, zone_of(key), timeout, now);
        }
        if is_new {
            self.common.counts.new += 1;
            return Tracked { state: State::TRACKED | State::NEW, flow: Some(flow), reply };
        }
        self.common.counts.established += 1;
        known(flow, reply)
    }

    fn update_tcp<const W: usize>(
        &mut self,
        flow: FlowId,
        reply: bool,
        headers: &Headers,
    ) -> Updated
    where
        Self: Parts<W>,
    {
        let (part, common) = self.split();
        let value = part.table.get_mut(flow);
        let mut pair = entry::pair(value);
        let outcome = pair.update(reply, &headers.segment, common.check_windows);
        match outcome {
            Outcome::BadFlags => {
                common.counts.invalid_flags += 1;
                return Updated::Invalid;
            }
            Outcome::OutOfWindow => {
                common.counts.out_of_window += 1;
                return Updated::Invalid;
            }
            Outcome::Reopens => return Updated::Reopened,
            Outcome::Unchecked => common.counts.unchecked += 1,
            Outcome::Valid | Outcome::Stray | Outcome::Repeated => {}
        }
        entry::put_pair(value, &pair);
        if entry::is_newly_established(value) {
            self.set_established::<W>(flow);
        }
        match outcome {
            Outcome::Repeated => Updated::Valid(Some(Timeout::TcpSynSent), true),
            Outcome::Stray => Updated::Valid(None, false),
            _ => Updated::Valid(Some(pair.timeout()), false),
        }
    }

    fn update_datagram<const W: usize>(&mut self, flow: FlowId, reply: bool, query: bool) -> Updated
    where
        Self: Parts<W>,
    {
        let value = self.part_mut().table.get_mut(flow);
        let before = entry::seen(value);
        let seen = match before {
            _ if reply => Seen::Both,
            Seen::First if !query => Seen::Single,
            before => before,
        };
        if seen != before {
            entry::put_seen(value, seen);
            if seen == Seen::Both {
                self.set_established::<W>(flow);
            }
        }
        let timeout = match (query, seen) {
            (true, Seen::Both) => Timeout::IcmpReply,
            (true, _) => Timeout::IcmpFirst,
            (false, Seen::First) => Timeout::UdpFirst,
            (false, Seen::Single) => Timeout::UdpSingle,
            (false, Seen::Both) => Timeout::UdpMultiple,
        };
        Updated::Valid(Some(timeout), seen != Seen::Both)
    }

    #[inline(never)]
    fn set_established<const W: usize>(&mut self, flow: FlowId)
    where
        Self: Parts<W>,
    {
        entry::set(self.part_mut().table.get_mut(flow), flag::ESTABLISHED);
        self.part_mut().table.promote(flow);
        self.notify::<W>(EventKind::Established, flow);
    }

    #[inline]
    fn restart_timer<const W: usize>(
        &mut self,
        flow: FlowId,
        zone: u16,
        timeout: Timeout,
        now: Millis,
    ) where
        Self: Parts<W>,
    {
        let end = now.wrapping_add(self.common.zones.policy(zone).millis(timeout));
        if end.wrapping_sub(self.part().table.expiry(flow)) < 1 << 31 {
            self.part_mut().table.extend(flow, end);
        } else {
            self.part_mut().table.set_expiry(flow, end);
        }
    }

    /// Commits packet `i`, whose [`track`](Self::track) result is `tracked`: creates the connection
    /// if it is new, and sets mark and label. Returns the result. No connection is created if there
    /// is no room, or for packets that are invalid or related.
    ///
    /// # Panics
    /// If the batch has no packet `i`.
    pub fn commit<const W: usize>(
        &mut self,
        batch: &Batch<W>,
        i: usize,
        tracked: Tracked,
        how: &Commit,
        now: Millis,
    ) -> Tracked
    where
        Self: Parts<W>,
    {
        self.commit_here(batch, i, tracked, how, now)
    }

    /// Does the same as [`commit`](Self::commit), inlined.
    #[inline(always)]
    fn commit_here<const W: usize>(
        &mut self,
        batch: &Batch<W>,
        i: usize,
        tracked: Tracked,
        how: &Commit,
        now: Millis,
    ) -> Tracked
    where
        Self: Parts<W>,
    {
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
            self.end::<W>(flow, EndReason::Replaced, now);
            result = Tracked { state: State::TRACKED | State::NEW, flow: None, reply: false };
        }
        if result.flow.is_none() && headers.kind != Kind::Related {
            result.flow = self.create((batch.keys[i], batch.hashes[i]), headers, how, now);
        }
        if let Some(flow) = result.flow {
            self.set_marks::<W>(flow, how);
        }
        result
    }

    fn create<const W: usize>(
        &mut self,
        key: (Key<W>, FlowHash),
        headers: &Headers,
        how: &Commit,
        now: Millis,
    ) -> Option<FlowId>
    where
        Self: Parts<W>,
    {
        let zone = zone_of(&key.0);
        if self.common.zones.is_full(zone) {
            self.common.counts.zone_full += 1;
            return None;
        }
        // Once labels are in use, each new connection's label is initialised.
        if (how.label.is_some() || self.common.has_labels) && !self.has_room_for_labels() {
            self.want_labels();
            self.common.counts.unready += 1;
            return None;
        }
        if self.len() >= self.common.limit && !(self.recycles() && self.recycle_any::<W>(now)) {
            self.common.counts.full += 1;
            return None;
        }
        let (value, timeout) = new_entry(headers);
        let (value, second) = with_translation(value, &key.0, headers, how);
        let second = second.map(|key| (key, self.part().table.hash(&key)));
        let end = now.wrapping_add(self.common.zones.policy(zone).millis(timeout));
        let mut value = value;
        entry::set_since(&mut value, now);
        let flow = loop {
            match self.part_mut().table.add(key, second, end, (value, ())) {
                Ok(flow) => break flow,
                // Two keys may need the room of two connections.
                Err(AddError::Full) if self.recycles() && self.recycle::<W>(now) => {}
                Err(AddError::Full) => {
                    self.common.counts.full += 1;
                    return None;
                }
                // The table counts these.
                Err(AddError::Unready) => return None,
                Err(AddError::Taken(found)) if self.part().table.is_expired(found.flow(), now) => {
                    self.end::<W>(found.flow(), EndReason::Expired, now);
                }
                Err(AddError::Taken(_)) => {
                    self.common.counts.taken += 1;
                    return None;
                }
            }
        };
        if self.common.has_labels {
            self.part_mut().labels.as_mut_slice()[flow.index() as usize] = [0; 2];
        }
        self.common.counts.created += 1;
        self.common.zones.add(zone);
        self.common.live.add(protocol_of(&key.0), W == IPV6);
        self.notify::<W>(EventKind::New, flow);
        Some(flow)
    }

    /// Removes the oldest unanswered connection of the family or, if it has none, of the other.
    fn recycle_any<const W: usize>(&mut self, now: Millis) -> bool
    where
        Self: Parts<W>,
    {
        self.recycle::<W>(now) || self.recycle::<IPV4>(now) || self.recycle::<IPV6>(now)
    }

    fn recycles(&self) -> bool {
        self.common.when_full == WhenFull::Recycle
    }

    /// Sets mark and label.
    #[inline]
    fn set_marks<const W: usize>(&mut self, flow: FlowId, how: &Commit)
    where
        Self: Parts<W>,
    {
        if let Some((value, mask)) = how.mark {
            let entry = self.part_mut().table.get_mut(flow);
            entry::set_mark(entry, entry::mark(entry) & !mask | value & mask);
        }
        if let Some((value, mask)) = how.label {
            if !self.common.has_labels {
                self.common.has_labels = true;
                self.want_labels();
            }
            let label = self.label::<W>(flow) & !mask | value & mask;
            let at = flow.index() as usize;
            self.part_mut().labels.as_mut_slice()[at] = [label as u64, (label >> 64) as u64];
        }
    }

    /// Ends a connection.
    fn end<const W: usize>(&mut self, flow: FlowId, why: EndReason, now: Millis)
    where
        Self: Parts<W>,
    {
        let key = *self.part().table.keys(flow).0;
        if self.common.events.wanted {
            self.common.events.push(EventKind::Ended(why), self.connection::<W>(flow, now));
        }
        self.part_mut().table.remove(flow);
        self.removed(&key, why);
    }

    fn removed<const W: usize>(&mut self, key: &Key<W>, why: EndReason)
    where
        Self: Parts<W>,
    {
        self.common.zones.remove(zone_of(key));
        self.common.live.remove(protocol_of(key), W == IPV6);
        self.common.counts.ended(why);
    }

    #[inline]
    fn notify<const W: usize>(&mut self, what: EventKind, flow: FlowId)
    where
        Self: Parts<W>,
    {
        if self.common.events.wanted {
            let now = entry::since(self.part().table.get(flow));
            self.common.events.push(what, self.connection::<W>(flow, now));
        }
    }

    /// Removes the oldest unanswered connection.
    fn recycle<const W: usize>(&mut self, now: Millis) -> bool
    where
        Self: Parts<W>,
    {
        let mut oldest = None;
        let done = self.part_mut().table.recycle(|table, flow| {
            let (first, second) = table.keys(flow);
            oldest = Some((*first, second.copied(), *table.get(flow), table.expiry(flow), flow));
        });
        if let Some((key, second, value, end, flow)) = oldest {
            if self.common.events.wanted {
                let label = self.label::<W>(flow);
                let left = end.wrapping_sub(now);
                let gone = Connection::new(&key, second.as_ref(), &value, label, (left, now), flow);
                self.common.events.push(EventKind::Ended(EndReason::Recycled), gone);
            }
            self.removed(&key, EndReason::Recycled);
        }
        done
    }
}

/// Result of updating a connection.
enum Updated {
    /// Valid: the timer to start, or `None` to leave it running; whether the connection is still
    /// new.
    Valid(Option<Timeout>, bool),
    /// The packet is invalid and the connection unchanged.
    Invalid,
    /// The packet opens a new connection in place of this one.
    Reopened,
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

/// Returns whether a packet is in the reply direction of the connection found; `None` if, because
/// of a translation, it does not belong to it.
#[inline]
fn direction(entry: &Entry, found: Found, swapped: bool) -> Option<bool> {
    let first = entry::has(entry, flag::SWAPPED);
    if !entry::has(entry, flag::TRANSLATED) {
        return Some(swapped != first);
    }
    let expected = if found.by_second() { entry::has(entry, flag::REPLY_SWAPPED) } else { first };
    (swapped == expected).then_some(found.by_second())
}
