//! The sample ring from a worker to the sFlow thread: a bounded SPSC ring of cache lines.
//!
//! A sample takes one line for its record and as many lines as its header needs. Nothing blocks: if
//! the ring is full, the sample is lost and the worker counts it. A sample is in the ring before it
//! is published to the sFlow thread: its packet is still in the router, and its disposition is
//! written into the record later.

use crate::record::{Cause, Disposition, RECORD_WORDS, SampleRecord};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use thalweg_buffer::PacketKey;
use thalweg_tables::MapError;
use thalweg_tables::record_ring::{self, LINE, Position, RecordReader, RecordWriter};

/// Maximum length of a sampled header in bytes.
pub const MAX_HEADER: usize = 256;
/// Number of lines: 65,536 samples of 64 bytes, 8 MiB. A worker samples four million a second at
/// 1:100. The service sleeps a millisecond, or is woken when 8,192 have come, and waits for another
/// thread on its processor to end its turn, which a tick does: 4 ms later at 250 Hz. In 6 ms 24,000
/// come; but a guest's processor may be away for 10 ms more.
const LINES: usize = 1 << 17;
/// Number of samples that fit at the maximum header length.
pub const RING_SAMPLES: usize = LINES / MAX_LINES;

const MAX_LINES: usize = 1 + MAX_HEADER / LINE;

/// Lines that may wait before the service is woken. The service sleeps longer than they take to
/// come only where samples had been rare.
const MANY: u64 = LINES as u64 / 8;

/// Wakes the service. To ring it costs a system call if the service sleeps, and little if not.
#[derive(Clone, Debug, Default)]
pub struct Bell(Arc<OnceLock<Thread>>);

impl Bell {
    /// Sets the thread to wake, once. Until then ringing does nothing.
    pub fn wakes(&self, thread: Thread) {
        let _ = self.0.set(thread);
    }

    fn ring(&self) {
        if let Some(thread) = self.0.get() {
            thread.unpark();
        }
    }
}

/// Makes a ring for at least [`RING_SAMPLES`]. The bell is rung when many samples wait in it.
///
/// # Errors
/// If there is no memory for it.
pub fn channel(bell: Bell) -> Result<(SampleWriter, SampleReader), MapError> {
    let (lines, reader) = record_ring::channel(LINES)?;
    Ok((SampleWriter { lines, bell, looked: 0 }, SampleReader(reader)))
}

/// Position of a sample in the ring that is not published yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(Position);

/// The worker's end. Fields that each sample needs come first.
#[derive(Debug)]
#[repr(C)]
pub struct SampleWriter {
    lines: RecordWriter,
    bell: Bell,
    /// Lines that had been published when this end last looked how many wait.
    looked: u64,
}

impl SampleWriter {
    /// Puts a sample in with the first [`MAX_HEADER`] bytes of `header`; `None` if there is no
    /// room.
    pub fn push(&mut self, record: &SampleRecord, header: &[u8]) -> Option<Ticket> {
        self.push_here(record, &header[..header.len().min(MAX_HEADER)])
    }

    /// The same without a call, for no more bytes than that: record become words where they are
    /// found.
    #[inline(always)]
    pub(crate) fn push_here(&mut self, record: &SampleRecord, header: &[u8]) -> Option<Ticket> {
        debug_assert!(header.len() <= MAX_HEADER);
        self.lines.push(&record.words(header.len() as u16), header).map(Ticket)
    }

    /// The first sample that the service may not see yet, should there be one.
    #[inline]
    pub(crate) fn unpublished(&self) -> Ticket {
        Ticket(self.lines.unpublished())
    }

    /// The position after the last sample.
    #[inline]
    pub(crate) fn end(&self) -> Ticket {
        Ticket(self.lines.end())
    }

    /// Returns key and row of the packet that a sample waits for, if it does, and the position of
    /// the next sample. `None` if there is no such sample or it is already published.
    #[inline]
    pub(crate) fn pending_packet(&self, at: Ticket) -> Option<(Option<(PacketKey, u8)>, Ticket)> {
        let words = self.lines.words(at.0)?;
        let next = at.0.next(record_ring::lines_of(SampleRecord::header_of(&words)));
        Some((Disposition::pending_packet(&words), Ticket(next)))
    }

    /// Sets the disposition of a sample; does nothing if it is already published.
    #[inline]
    pub fn complete(&mut self, ticket: Ticket, disposition: Disposition) {
        self.lines.amend(ticket.0, Disposition::AT, disposition.words());
    }

    /// Number of unpublished lines.
    #[inline]
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.lines.pending()
    }

    /// Publishes all samples to the sFlow thread.
    #[inline]
    pub fn publish(&mut self) {
        self.lines.publish();
        if self.lines.published() - self.looked >= MANY {
            self.look();
        }
    }

    /// Wakes the service if many samples wait.
    #[cold]
    fn look(&mut self) {
        self.looked = self.lines.published();
        if self.lines.waiting() >= MANY {
            self.bell.ring();
        }
    }
}

/// The service's end.
#[derive(Debug)]
pub struct SampleReader(RecordReader);

impl SampleReader {
    /// Takes the oldest sample; its header is written to the front of `header`. Its room is free
    /// again after [`release`](Self::release).
    pub fn pop(&mut self, header: &mut [u8; MAX_HEADER]) -> Option<(SampleRecord, usize)> {
        self.pop_words(header).map(|words| SampleRecord::from_words(&words))
    }

    /// The same as it lies in the ring.
    #[inline]
    pub(crate) fn pop_words(
        &mut self,
        header: &mut [u8; MAX_HEADER],
    ) -> Option<[u64; RECORD_WORDS]> {
        let words = self.0.words()?;
        let lines = record_ring::lines_of(SampleRecord::header_of(&words));
        self.0.take(&mut header.as_chunks_mut().0[..lines]);
        Some(words)
    }

    /// Leaves out the oldest sample; returns why it was taken.
    pub fn skip(&mut self) -> Option<Cause> {
        let words = self.0.words()?;
        self.0.skip(record_ring::lines_of(SampleRecord::header_of(&words)));
        Some(SampleRecord::from_words(&words).0.cause)
    }

    /// Lets the worker have the room of all samples that were taken.
    pub fn release(&mut self) {
        self.0.release();
    }

    /// True if there is nothing to take.
    pub fn is_empty(&mut self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Headers;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use thalweg_device::SwIfIndex;

    fn record(n: u64) -> SampleRecord {
        SampleRecord {
            sw_if: SwIfIndex(n as u32 & 0xffff),
            generation: 3,
            rate: u32::MAX,
            frame_length: 9000,
            pool: n << 33,
            at: !n,
            ..SampleRecord::default()
        }
    }

    /// A sample in the model's queue.
    type Sample = (SampleRecord, Vec<u8>);

    fn pop(reader: &mut SampleReader) -> Option<Sample> {
        let mut buf = [0; MAX_HEADER];
        let (record, length) = reader.pop(&mut buf)?;
        Some((record, buf[..length].to_vec()))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// The memory behaves like a queue: what goes in comes out, in order, whole, with what was
        /// noted of it before it was published.
        #[test]
        fn behaves_as_a_queue(
            turns in prop::collection::vec((0usize..300, 0usize..300, any::<bool>()), 1..60),
        ) {
            let (mut writer, mut reader) = channel(Bell::default()).unwrap();
            let mut model: VecDeque<Sample> = VecDeque::new();
            let mut waiting: Vec<(Ticket, Sample)> = Vec::new();
            let mut n = 0u64;
            for (length, times, publish) in turns {
                let header: Vec<u8> = (0..length).map(|i| (i + times) as u8).collect();
                for _ in 0..times {
                    n += 1;
                    match writer.push(&record(n), &header) {
                        Some(ticket) => {
                            let kept = header[..length.min(MAX_HEADER)].to_vec();
                            waiting.push((ticket, (record(n), kept)));
                        }
                        None => prop_assert!(model.len() + waiting.len() >= RING_SAMPLES),
                    }
                }
                for (ticket, (record, _)) in waiting.iter_mut().skip(times % 3).step_by(3) {
                    let headers = Headers { tag: Some(length as u16), tuple: None };
                    record.disposition = Disposition::Out { tx_if: SwIfIndex(times as u32), entry: 7, headers: Some(headers) };
                    writer.complete(*ticket, record.disposition);
                }
                if publish {
                    writer.publish();
                    prop_assert_eq!(writer.pending(), 0);
                    for (ticket, sample) in waiting.drain(..) {
                        writer.complete(ticket, Disposition::Dropped(1));
                        model.push_back(sample);
                    }
                }
                for i in 0..times / 2 {
                    if (i + length) % 5 == 0 {
                        let cause = model.pop_front().map(|(record, _)| record.cause);
                        prop_assert_eq!(reader.skip(), cause);
                    } else {
                        prop_assert_eq!(pop(&mut reader), model.pop_front());
                    }
                }
                reader.release();
            }
            while let Some(expected) = model.pop_front() {
                prop_assert_eq!(pop(&mut reader), Some(expected));
            }
            prop_assert!(reader.is_empty() && pop(&mut reader).is_none());
        }
    }

    #[test]
    fn a_full_ring_refuses_and_recovers() {
        let (mut writer, mut reader) = channel(Bell::default()).unwrap();
        let push = |writer: &mut SampleWriter, n| writer.push(&record(n), &[7; 256]).is_some();
        let taken = (0..100_000).take_while(|n| push(&mut writer, *n)).count();
        assert_eq!(taken, RING_SAMPLES);
        assert!(reader.is_empty(), "nothing was published");
        writer.publish();
        assert_eq!(pop(&mut reader).map(|(m, _)| m.sw_if), Some(SwIfIndex(0)));
        assert!(!push(&mut writer, 3), "nothing was released");
        reader.release();
        writer.publish();
        assert!(push(&mut writer, 4));
        assert!(!push(&mut writer, 5));
    }

    #[test]
    fn samples_cross_threads_whole() {
        let (mut writer, mut reader) = channel(Bell::default()).unwrap();
        let producer = std::thread::spawn(move || {
            let mut sent = 0u64;
            for n in 0..20_000u64 {
                for n in n * 10..(n + 1) * 10 {
                    let header = [n as u8; 200];
                    if let Some(t) = writer.push(&record(n), &header[..(n % 200) as usize]) {
                        writer.complete(t, Disposition::Dropped(n as u32));
                        sent += 1;
                    }
                }
                writer.publish();
            }
            sent
        });
        let (mut got, mut last) = (0u64, None);
        loop {
            let done = producer.is_finished();
            while let Some((record, header)) = pop(&mut reader) {
                let n = !record.at;
                assert!(last < Some(n), "{last:?} before {n}");
                assert_eq!(record.disposition, Disposition::Dropped(n as u32));
                assert_eq!(header.len() as u64, n % 200);
                assert!(header.iter().all(|b| *b == n as u8));
                (last, got) = (Some(n), got + 1);
                if n % 32 == 0 {
                    reader.release();
                }
            }
            reader.release();
            if done {
                break;
            }
        }
        assert_eq!(producer.join().unwrap(), got);
    }
}
