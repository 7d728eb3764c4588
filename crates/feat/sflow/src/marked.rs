//! Packets of this worker whose samples are not published yet.

use crate::facts::Way;
use crate::ring::{SampleWriter, Ticket};
use thalweg_buffer::{Frame, PacketKey, Rows};

/// Samples wait in the ring for what becomes of their packets, each with the packet's key in the place of it: in the
/// order in which they were taken, which mostly is the order in which the packets leave. A packet may have several,
/// one behind the other: one for each sampled segment of it.
#[derive(Debug)]
pub(crate) struct Marked {
    /// Behind the one that was found last.
    next: Ticket,
    /// Some packet has more than one.
    several: bool,
}

impl Marked {
    /// Of a ring with nothing in it.
    pub(crate) fn new(ring: &SampleWriter) -> Marked {
        Marked { next: ring.unpublished(), several: false }
    }

    /// A packet may have more than one sample from here on.
    pub(crate) fn several(&mut self) {
        self.several = true;
    }

    /// Begins anew: all were published.
    #[inline]
    pub(crate) fn clear(&mut self, ring: &SampleWriter) {
        (self.next, self.several) = (ring.unpublished(), false);
    }

    /// Completes the samples of a frame's packets by what `way` says of their rows.
    #[inline]
    pub(crate) fn of_frame(
        &mut self,
        ring: &mut SampleWriter,
        frame: &Frame,
        mut way: impl FnMut(u8) -> Way,
    ) {
        let (mut left, mut told) = (frame.sampled_packets(), Rows::NONE);
        if !self.several {
            // A frame mostly leaves as it came: then nothing need be searched.
            while left > 0
                && let Some((mark, behind)) = ring.marked(self.next)
            {
                if let Some((key, row)) = mark {
                    if !frame.holds(row, key) {
                        break;
                    }
                    ring.complete(self.next, way(row));
                    told.insert(row);
                    left -= 1;
                }
                self.next = behind;
            }
        }
        if left > 0 {
            self.of_rows(ring, (frame, &told), &mut way);
        }
    }

    /// The same for those rows of which nothing was told yet.
    #[cold]
    #[inline(never)]
    fn of_rows(
        &mut self,
        ring: &mut SampleWriter,
        (frame, told): (&Frame, &Rows),
        way: &mut dyn FnMut(u8) -> Way,
    ) {
        for row in frame.sampled().iter().filter(|row| !told.contains(*row)) {
            self.complete(ring, frame.key(row), way(row));
        }
    }

    /// Completes the samples of a packet.
    pub(crate) fn complete(&mut self, ring: &mut SampleWriter, key: PacketKey, way: Way) {
        self.each(ring, key, |_| way);
    }

    /// A packet lives on as another one.
    pub(crate) fn rename(&mut self, ring: &mut SampleWriter, old: PacketKey, new: PacketKey) {
        let next = self.next;
        self.each(ring, old, |row| Way::Marked { key: new, row });
        // They are waited for still.
        self.next = next;
    }

    /// Says of each sample of a packet what `way` says.
    fn each(&mut self, ring: &mut SampleWriter, key: PacketKey, way: impl Fn(u8) -> Way) {
        let is_next = matches!(ring.marked(self.next), Some((Some((k, _)), _)) if k == key);
        let found = if is_next { Some(self.next) } else { search(ring, key) };
        let Some(mut at) = found else { return };
        while let Some((Some((k, row)), behind)) = ring.marked(at)
            && k == key
        {
            ring.complete(at, way(row));
            at = behind;
        }
        self.next = at;
    }
}

/// The first sample of the latest packet of that key: an earlier one has left the router.
#[cold]
fn search(ring: &SampleWriter, key: PacketKey) -> Option<Ticket> {
    let (mut found, mut at, mut before) = (None, ring.unpublished(), false);
    while let Some((mark, behind)) = ring.marked(at) {
        let is = mark.is_some_and(|(k, _)| k == key);
        if is && !before {
            found = Some(at);
        }
        (at, before) = (behind, is);
    }
    found
}
