//! First fragments, whose connection and state the later ones share.

use thalweg_tables::flow::Millis;

use super::{Parts, Tracked, Tracker};
use crate::batch::Batch;
use crate::entry;
use crate::state::State;
use crate::tuple::{Key, Tuple};

/// The tracking result of a first fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstFragment<const W: usize> {
    key: Key<W>,
    state: State,
    reply: bool,
    /// True if its sender is the higher endpoint of the key.
    swapped: bool,
}

impl<const W: usize> FirstFragment<W> {
    /// The result for packet `i` of a batch.
    ///
    /// # Panics
    /// If the batch has no packet `i`.
    pub fn of(batch: &Batch<W>, i: usize, tracked: Tracked) -> FirstFragment<W> {
        FirstFragment {
            key: batch.keys[..batch.len][i],
            state: tracked.state,
            reply: tracked.reply,
            swapped: batch.headers[..batch.len][i].swapped,
        }
    }

    /// The tuple of the datagram; of an ICMP error, that of the connection it is about.
    pub fn tuple(&self) -> Tuple {
        Tuple::of_key(&self.key, self.swapped)
    }
}

impl Tracker {
    /// Tracks a fragment that follows `first`: it has the same state, and counts for the connection
    /// if that exists by now.
    pub fn follow<const W: usize>(
        &mut self,
        first: &FirstFragment<W>,
        bytes: u32,
        now: Millis,
    ) -> Tracked
    where
        Self: Parts<W>,
    {
        if first.state.contains(State::INVALID) {
            return self.stray_fragment();
        }
        let table = &self.part().table;
        let found = table.find(&first.key, table.hash(&first.key));
        let flow = found.map(|found| found.flow()).filter(|flow| !table.is_expired(*flow, now));
        let related = first.state.contains(State::RELATED);
        match flow {
            _ if related => self.common.counts.related += 1,
            _ if first.state.contains(State::NEW) => self.common.counts.new += 1,
            _ => self.common.counts.established += 1,
        }
        if let Some(flow) = flow.filter(|_| !related) {
            entry::count(self.part_mut().table.get_mut(flow), first.reply, bytes);
        }
        Tracked { state: first.state, flow, reply: first.reply }
    }

    /// Tracks a fragment whose first one was not tracked: it is invalid.
    pub fn stray_fragment(&mut self) -> Tracked {
        self.common.counts.invalid_headers += 1;
        self.invalid(None, false)
    }
}
