//! Packets of this worker whose samples are not published yet.

use crate::ring::Ticket;
use thalweg_buffer::PacketKey;

/// Samples in the order in which they were taken, which mostly is the order in which their packets
/// leave. A packet may have several: one for each sampled segment of it.
#[derive(Debug, Default)]
pub(crate) struct Marked {
    all: Vec<(PacketKey, Ticket)>,
    /// Behind the one that was found last.
    next: usize,
}

impl Marked {
    /// Remembers a sample of a packet.
    #[inline]
    pub(crate) fn add(&mut self, key: PacketKey, ticket: Ticket) {
        self.all.push((key, ticket));
    }

    /// Forgets all: they are published.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.all.clear();
        self.next = 0;
    }

    /// Calls `what` with each sample of a packet.
    #[inline]
    pub(crate) fn each(&mut self, key: PacketKey, mut what: impl FnMut(Ticket)) {
        let at = match self.all.get(self.next) {
            Some((next, _)) if *next == key => self.next,
            _ => match self.search(key) {
                Some(at) => at,
                None => return,
            },
        };
        let mut end = at;
        for (_, ticket) in self.all[at..].iter().take_while(|(k, _)| *k == key) {
            what(*ticket);
            end += 1;
        }
        self.next = end;
    }

    /// The first sample of the latest packet of that key: an earlier one has left the router.
    #[cold]
    fn search(&self, key: PacketKey) -> Option<usize> {
        let last = self.all.iter().rposition(|(k, _)| *k == key)?;
        let before = self.all[..last].iter().rev().take_while(|(k, _)| *k == key).count();
        Some(last - before)
    }

    /// A packet lives on as another one.
    pub(crate) fn rename(&mut self, old: PacketKey, new: PacketKey) {
        if let Some(at) = self.search(old) {
            self.all[at..].iter_mut().take_while(|(k, _)| *k == old).for_each(|(k, _)| *k = new);
        }
    }
}
