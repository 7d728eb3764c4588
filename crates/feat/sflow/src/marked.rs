//! Packets of this worker whose samples are not published yet.

use crate::ring::Ticket;
use thalweg_buffer::{Frame, PacketKey, Rows};

#[derive(Debug, Clone, Copy)]
struct Mark {
    key: PacketKey,
    ticket: Ticket,
    /// Its row in the frame in which it came.
    row: u8,
}

/// Samples in the order in which they were taken, which mostly is the order in which their packets
/// leave. A packet may have several: one for each sampled segment of it.
#[derive(Debug)]
pub(crate) struct Marked {
    all: Vec<Mark>,
    /// Behind the one that was found last.
    next: usize,
    /// Some packet has more than one.
    several: bool,
}

/// Samples that it has room for from the start: those of a turn with several frames of which every packet
/// is sampled, since they are published after fewer.
const ROOM: usize = 1024;

impl Default for Marked {
    fn default() -> Marked {
        Marked { all: Vec::with_capacity(ROOM), next: 0, several: false }
    }
}

impl Marked {
    /// Remembers a sample of a packet, which is in row `row` of its frame.
    #[inline]
    pub(crate) fn add(&mut self, key: PacketKey, row: u8, ticket: Ticket) {
        self.all.push(Mark { key, ticket, row });
    }

    /// Remembers a sample of a packet that may have others.
    pub(crate) fn add_another(&mut self, key: PacketKey, row: u8, ticket: Ticket) {
        self.add(key, row, ticket);
        self.several = true;
    }

    /// Forgets all: they are published.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.all.clear();
        (self.next, self.several) = (0, false);
    }

    /// Calls `what` with each sample and the row of each sampled packet of a frame.
    #[inline]
    pub(crate) fn of_frame(&mut self, frame: &Frame, mut what: impl FnMut(Ticket, u8)) {
        let mut rest = frame.sampled();
        if !self.several {
            // A frame mostly leaves as it came: then nothing need be searched.
            while let Some(mark) = self.all.get(self.next)
                && frame.holds(mark.row, mark.key)
            {
                what(mark.ticket, mark.row);
                rest = rest.without(mark.row);
                self.next += 1;
            }
        }
        if !rest.is_empty() {
            self.of_rows(frame, rest, &mut what);
        }
    }

    #[cold]
    #[inline(never)]
    fn of_rows(&mut self, frame: &Frame, rows: Rows, what: &mut dyn FnMut(Ticket, u8)) {
        for row in rows.iter() {
            self.each(frame.key(row), |ticket| what(ticket, row));
        }
    }

    /// Calls `what` with each sample of a packet.
    pub(crate) fn each(&mut self, key: PacketKey, mut what: impl FnMut(Ticket)) {
        let at = match self.all.get(self.next) {
            Some(next) if next.key == key => self.next,
            _ => match self.search(key) {
                Some(at) => at,
                None => return,
            },
        };
        let mut end = at;
        for mark in self.all[at..].iter().take_while(|m| m.key == key) {
            what(mark.ticket);
            end += 1;
        }
        self.next = end;
    }

    /// The first sample of the latest packet of that key: an earlier one has left the router.
    #[cold]
    fn search(&self, key: PacketKey) -> Option<usize> {
        let last = self.all.iter().rposition(|m| m.key == key)?;
        let before = self.all[..last].iter().rev().take_while(|m| m.key == key).count();
        Some(last - before)
    }

    /// Forgets the samples of a packet: what becomes of it from here on is not of interest.
    #[cold]
    pub(crate) fn forget(&mut self, key: PacketKey) {
        if let Some(at) = self.search(key) {
            let mut end = at;
            while self.all.get(end).is_some_and(|m| m.key == key) {
                end += 1;
            }
            self.all.drain(at..end);
            self.next = self.next.min(at);
        }
    }

    /// A packet lives on as another one.
    pub(crate) fn rename(&mut self, old: PacketKey, new: PacketKey) {
        if let Some(at) = self.search(old) {
            self.all[at..].iter_mut().take_while(|m| m.key == old).for_each(|m| m.key = new);
        }
    }
}
