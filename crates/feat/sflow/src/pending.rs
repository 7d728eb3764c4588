//! Samples of this worker whose disposition is still open.

use crate::record::Disposition;
use crate::ring::{SampleWriter, Ticket};
use thalweg_buffer::{Frame, PacketKey, Rows};

/// The unpublished samples in the ring that wait for their packet's disposition. Each holds the
/// packet's key in its place. They are in the order in which they were taken, which mostly is the
/// order in which the packets leave. A packet may have several consecutive samples, one per sampled
/// segment.
#[derive(Debug)]
pub(crate) struct PendingSamples {
    /// The position after the sample that was found last.
    next: Ticket,
    /// The sample at `next` is known to be the only pending one. An `Option` would not fit half a
    /// line.
    is_single: bool,
    /// If so, the row and key of its packet.
    row: u8,
    key: PacketKey,
    /// If so, the position after it.
    behind: Ticket,
    /// Some packet has more than one sample.
    several: bool,
}

impl PendingSamples {
    /// Makes the state of an empty ring.
    pub(crate) fn new(ring: &SampleWriter) -> PendingSamples {
        const { assert!(size_of::<PendingSamples>() == 32) };
        let next = ring.unpublished();
        let key = PacketKey::from_bits(0);
        PendingSamples { next, is_single: false, row: 0, key, behind: next, several: false }
    }

    /// Records that a packet may have more than one sample from here on.
    pub(crate) fn several(&mut self) {
        self.several = true;
    }

    /// Adds a sample that waits for the packet in that row.
    #[inline]
    pub(crate) fn waits(&mut self, ring: &SampleWriter, at: Ticket, (key, row): (PacketKey, u8)) {
        self.is_single = at == self.next;
        (self.behind, self.key, self.row) = (ring.end(), key, row);
    }

    /// Starts over after all samples were published.
    #[inline]
    pub(crate) fn clear(&mut self, ring: &SampleWriter) {
        *self = PendingSamples::new(ring);
    }

    /// Completes the sample of a frame's only sampled packet with the disposition of its row, if it
    /// is the only pending sample. Returns false and does nothing if that is not known. At low
    /// rates this is the common case, and the ring need not be read.
    #[inline]
    pub(crate) fn complete_single(
        &mut self,
        ring: &mut SampleWriter,
        frame: &Frame,
        disposition: impl FnOnce(u8) -> Disposition,
    ) -> bool {
        let is = self.is_single && frame.sampled_packets() == 1 && frame.holds(self.row, self.key);
        if is {
            ring.complete(self.next, disposition(self.row));
            (self.next, self.is_single) = (self.behind, false);
        }
        is
    }

    /// Completes the samples of a frame's packets with the dispositions of their rows.
    pub(crate) fn complete_frame(
        &mut self,
        ring: &mut SampleWriter,
        frame: &Frame,
        mut disposition: impl FnMut(u8) -> Disposition,
    ) {
        self.is_single = false;
        let (mut left, mut reported) = (frame.sampled_packets(), Rows::NONE);
        if !self.several {
            // A frame mostly leaves as it came; then no search is needed.
            while left > 0
                && let Some((mark, behind)) = ring.pending_packet(self.next)
            {
                if let Some((key, row)) = mark {
                    if !frame.holds(row, key) {
                        break;
                    }
                    ring.complete(self.next, disposition(row));
                    reported.insert(row);
                    left -= 1;
                }
                self.next = behind;
            }
        }
        if left > 0 {
            self.complete_rows(ring, (frame, &reported), &mut disposition);
        }
    }

    /// Completes the samples of the rows not yet reported.
    #[cold]
    #[inline(never)]
    fn complete_rows(
        &mut self,
        ring: &mut SampleWriter,
        (frame, reported): (&Frame, &Rows),
        disposition: &mut dyn FnMut(u8) -> Disposition,
    ) {
        for row in frame.sampled().iter().filter(|row| !reported.contains(*row)) {
            self.complete(ring, frame.key(row), disposition(row));
        }
    }

    /// Completes the samples of a packet.
    pub(crate) fn complete(
        &mut self,
        ring: &mut SampleWriter,
        key: PacketKey,
        disposition: Disposition,
    ) {
        self.each(ring, key, |_| disposition);
    }

    /// Moves the samples of a packet to the packet that replaces it.
    pub(crate) fn rename(&mut self, ring: &mut SampleWriter, old: PacketKey, new: PacketKey) {
        let next = self.next;
        self.each(ring, old, |row| Disposition::Pending { key: new, row });
        // Samples are still pending.
        self.next = next;
    }

    /// Sets the disposition of each sample of a packet.
    fn each(
        &mut self,
        ring: &mut SampleWriter,
        key: PacketKey,
        disposition: impl Fn(u8) -> Disposition,
    ) {
        self.is_single = false;
        let is_next = matches!(ring.pending_packet(self.next), Some((Some((k, _)), _)) if k == key);
        let found = if is_next { Some(self.next) } else { search(ring, key) };
        let Some(mut at) = found else { return };
        while let Some((Some((k, row)), behind)) = ring.pending_packet(at)
            && k == key
        {
            ring.complete(at, disposition(row));
            at = behind;
        }
        self.next = at;
    }
}

/// Finds the first sample of the latest packet with that key; an earlier one has left the router.
#[cold]
fn search(ring: &SampleWriter, key: PacketKey) -> Option<Ticket> {
    let (mut found, mut at, mut before) = (None, ring.unpublished(), false);
    while let Some((mark, behind)) = ring.pending_packet(at) {
        let is = mark.is_some_and(|(k, _)| k == key);
        if is && !before {
            found = Some(at);
        }
        (at, before) = (behind, is);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Cause, SampleRecord};
    use crate::ring::{self, Bell, MAX_HEADER, SampleReader};
    use proptest::prelude::*;
    use std::collections::HashMap;
    use thalweg_buffer::{Cache, Pool, PoolConfig};
    use thalweg_device::SwIfIndex;

    /// The fate of a frame.
    #[derive(Clone, Copy, Debug)]
    enum End {
        /// The frame leaves as it came.
        Leaves,
        /// Its packets leave in the other order.
        Turned,
        /// Each is delivered by itself.
        Delivered,
        /// Another packet stands for the first one, then all leave.
        Replaced,
        /// Its packets are consumed.
        Consumed,
    }

    const ENDS: [End; 5] = [End::Leaves, End::Turned, End::Delivered, End::Replaced, End::Consumed];

    struct Lab {
        cache: Cache,
        pending: PendingSamples,
        ring: SampleWriter,
        reader: SampleReader,
        /// The expected disposition of each sample.
        expected: Vec<Disposition>,
        /// The samples of packets that are under way.
        live: HashMap<u64, Vec<usize>>,
    }

    impl Lab {
        fn new() -> Lab {
            let config = PoolConfig { buffers: 256, data_size: 256, page_size: None };
            let (ring, reader) = ring::channel(Bell::default()).unwrap();
            Lab {
                cache: Cache::new(Pool::new(&config).unwrap()),
                pending: PendingSamples::new(&ring),
                ring,
                reader,
                expected: Vec::new(),
                live: HashMap::new(),
            }
        }

        fn push(&mut self, cause: Cause, disposition: Disposition) {
            let record = SampleRecord {
                cause,
                pool: self.expected.len() as u64,
                disposition,
                ..SampleRecord::default()
            };
            let ticket = self.ring.push(&record, &[7; 70]).unwrap();
            if let Disposition::Pending { key, row } = disposition {
                self.pending.waits(&self.ring, ticket, (key, row));
            }
            self.expected.push(if cause == Cause::Received {
                Disposition::Unknown
            } else {
                disposition
            });
        }

        /// A frame whose packets have these numbers of samples.
        fn arrives(&mut self, samples: &[u8]) -> Box<Frame> {
            let mut frame = Frame::new();
            self.cache.alloc_into(&mut frame, samples.len(), 60);
            for (row, n) in samples.iter().enumerate().filter(|(_, n)| **n > 0) {
                let key = frame.key(row as u8);
                if *n > 1 {
                    self.pending.several();
                }
                self.live.insert(key.bits(), Vec::new());
                for _ in 0..*n {
                    self.live.get_mut(&key.bits()).unwrap().push(self.expected.len());
                    self.push(Cause::Received, Disposition::Pending { key, row: row as u8 });
                    frame.mark_sampled(row as u8);
                }
            }
            frame
        }

        fn expect(&mut self, key: PacketKey, disposition: Disposition) {
            for at in self.live.remove(&key.bits()).unwrap_or_default() {
                self.expected[at] = disposition;
            }
        }

        fn leaves(&mut self, frame: &Frame) {
            let tx_if = self.expected.len() as u32;
            let disposition = |row: u8| Disposition::Out {
                tx_if: SwIfIndex(tx_if),
                entry: row.into(),
                headers: None,
            };
            if !self.pending.complete_single(&mut self.ring, frame, disposition) {
                self.pending.complete_frame(&mut self.ring, frame, disposition);
            }
            frame.sampled().iter().for_each(|row| self.expect(frame.key(row), disposition(row)));
        }

        fn ends(&mut self, mut frame: Box<Frame>, end: End) {
            match end {
                End::Leaves => self.leaves(&frame),
                End::Turned => {
                    let mut turned = Frame::new();
                    while let Some(packet) = frame.pop() {
                        assert!(turned.push(packet).is_ok());
                    }
                    self.leaves(&turned);
                    frame = turned;
                }
                End::Delivered => {
                    for row in frame.sampled().iter() {
                        let key = frame.key(row);
                        self.pending.complete(&mut self.ring, key, Disposition::Delivered);
                        self.expect(key, Disposition::Delivered);
                    }
                }
                End::Replaced => {
                    let (old, mut others) = (frame.key(0), Frame::new());
                    self.cache.alloc_into(&mut others, 1, 60);
                    let new = others.key(0);
                    if let Some(samples) = self.live.remove(&old.bits()) {
                        self.pending.rename(&mut self.ring, old, new);
                        self.live.insert(new.bits(), samples);
                        others.mark_sampled(0);
                        frame.pkt(0).unmark(thalweg_buffer::Flags::SAMPLED);
                    }
                    self.leaves(&frame);
                    self.leaves(&others);
                    self.cache.free_frame(&mut others);
                }
                End::Consumed => {
                    for row in frame.sampled().iter() {
                        let key = frame.key(row);
                        self.pending.complete(&mut self.ring, key, Disposition::Unknown);
                        self.expect(key, Disposition::Unknown);
                    }
                }
            }
            self.cache.free_frame(&mut frame);
        }

        /// Publishes all samples, as the service finds them.
        fn publish(&mut self) -> Vec<Disposition> {
            self.ring.publish();
            self.pending.clear(&self.ring);
            let mut header = [0; MAX_HEADER];
            let dispositions =
                std::iter::from_fn(|| self.reader.pop(&mut header)).map(|(f, _)| f.disposition);
            let dispositions = dispositions.collect();
            self.reader.release();
            dispositions
        }
    }

    proptest! {
        /// Each sample gets its packet's disposition, in whatever order packets leave, alone or in
        /// frames.
        #[test]
        fn samples_find_their_packets(
            turns in prop::collection::vec(
                prop::collection::vec(
                    (
                        prop::collection::vec(prop_oneof![9 => 0u8..=1, 1 => 2u8..4], 1..20),
                        prop::sample::select(ENDS.as_slice()),
                        any::<bool>(),
                    ),
                    1..8,
                ),
                1..8,
            ),
        ) {
            let mut lab = Lab::new();
            for turn in turns {
                let (mut waiting, begin) = (Vec::new(), lab.expected.len());
                for (samples, end, at_once) in turn {
                    let frame = lab.arrives(&samples);
                    if at_once {
                        lab.ends(frame, end);
                    } else {
                        // Sampled on the way out as well: that waits for nothing.
                        lab.push(Cause::Sent, Disposition::Delivered);
                        waiting.push((frame, end));
                    }
                }
                for (frame, end) in waiting {
                    lab.ends(frame, end);
                }
                let found = lab.publish();
                prop_assert_eq!(&found, &lab.expected[begin..]);
            }
        }
    }

    #[test]
    fn what_the_service_may_have_seen_is_left_alone() {
        let mut lab = Lab::new();
        let frame = lab.arrives(&[1, 0, 1]);
        assert_eq!(lab.publish(), [Disposition::Unknown; 2]);
        lab.leaves(&frame);
        let again = lab.arrives(&[1]);
        lab.leaves(&again);
        lab.ends(frame, End::Delivered);
        lab.ends(again, End::Consumed);
        let found = lab.publish();
        assert!(matches!(found[..], [Disposition::Out { entry: 0, .. }]), "{found:?}");
    }
}
