//! First fragments, whose connection and state those behind them have as well.

use thalweg_tables::flow::Millis;

use super::{Tracked, Tracker};
use crate::batch::Batch;
use crate::entry;
use crate::state::State;
use crate::tuple::Key;

/// What the tracker has said about a first fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstPart<const W: usize> {
    key: Key<W>,
    state: State,
    reply: bool,
}

impl<const W: usize> FirstPart<W> {
    /// What it has said about packet `i`.
    ///
    /// # Panics
    /// If the batch has no packet `i`.
    pub fn of(batch: &Batch<W>, i: usize, tracked: Tracked) -> FirstPart<W> {
        FirstPart { key: batch.keys[..batch.len][i], state: tracked.state, reply: tracked.reply }
    }
}

impl<const W: usize> Tracker<W> {
    /// What a fragment is whose first was this: the same, and one more packet of the connection that there is
    /// by now.
    pub fn follow(&mut self, first: &FirstPart<W>, bytes: u32, now: Millis) -> Tracked {
        if first.state.contains(State::INVALID) {
            return self.stray_fragment();
        }
        let found = self.table.find(&first.key, self.table.hash(&first.key));
        let flow =
            found.map(|found| found.flow()).filter(|flow| !self.table.is_expired(*flow, now));
        let related = first.state.contains(State::RELATED);
        match flow {
            _ if related => self.counts.related += 1,
            _ if first.state.contains(State::NEW) => self.counts.new += 1,
            _ => self.counts.established += 1,
        }
        if let Some(flow) = flow.filter(|_| !related) {
            entry::count(self.table.get_mut(flow), first.reply, bytes);
        }
        Tracked { state: first.state, flow, reply: first.reply }
    }

    /// What a fragment is whose first was not tracked.
    pub fn stray_fragment(&mut self) -> Tracked {
        self.counts.invalid_headers += 1;
        self.invalid(None, false)
    }
}
