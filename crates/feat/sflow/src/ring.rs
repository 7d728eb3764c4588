//! The way of samples from a worker to the service: a bounded ring of cache lines.
//!
//! A sample is one line of facts and as many lines of header as it needs. Nothing waits: if there is
//! no room, the sample is lost and its producer counts it.
//!
//! The two ends share two words, and write each of them rarely: the worker says once per frame how
//! far it has written, the service once per batch how far it has read, and the worker asks for that
//! only when its last answer leaves no room. The lines are words with relaxed order, which are plain
//! stores and loads; the release of a position and its acquisition order them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use thalweg_tables::prefetch;

/// Samples that fit, whatever their headers' length.
pub const RING_SAMPLES: usize = 4096;
/// Most bytes of a sampled header.
pub const MAX_HEADER: usize = 256;

const WORD: usize = size_of::<u64>();
const WORDS: usize = 8;
const LINE: usize = WORD * WORDS;
const MAX_LINES: usize = 1 + MAX_HEADER / LINE;
/// Lines that may be in use.
const ROOM: u64 = (RING_SAMPLES * MAX_LINES) as u64;
/// Lines that there are: a power of two, so that a position's low bits name its line.
const LINES: usize = (ROOM as usize).next_power_of_two();
/// Lines that are fetched ahead of the next batch. The service's core has read them: to store to
/// them at once would make the worker's later stores wait for that core.
const AHEAD: u64 = 6;

/// One cache line of a sample.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line([AtomicU64; WORDS]);

impl Line {
    #[inline]
    fn put(&self, word: usize, value: u64) {
        self.0[word].store(value, Ordering::Relaxed);
    }
    #[inline]
    fn get(&self, word: usize) -> u64 {
        self.0[word].load(Ordering::Relaxed)
    }
}

/// A position that one end writes and the other reads; away from what else is written. Two lines,
/// since processors fetch them by pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Position(AtomicU64);

/// Positions are lines since the ring was made.
#[derive(Debug)]
struct Ring {
    written: Position,
    read: Position,
    lines: Box<[Line]>,
}

impl Ring {
    #[inline]
    fn line(&self, position: u64) -> &Line {
        &self.lines[position as usize % LINES]
    }
}

/// What is known of a sampled packet besides its header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleMeta {
    /// Interface that it came from.
    pub sw_if: u32,
    /// Which interface of that number: it differs once the number has been given to another.
    pub generation: u32,
    /// One packet in so many was sampled.
    pub rate: u32,
    /// Bytes of the packet without FCS, all segments counted.
    pub frame_length: u32,
    /// Packets of the interface that this worker has seen, this one included.
    pub pool: u64,
    /// When, in ticks.
    pub at: u64,
    /// Bytes of header that were kept.
    pub header_len: u16,
}

const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

const fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

impl SampleMeta {
    #[inline]
    fn write(&self, line: &Line) {
        line.put(0, pair(self.sw_if, self.generation));
        line.put(1, pair(self.rate, self.frame_length));
        line.put(2, self.pool);
        line.put(3, self.at);
        line.put(4, u64::from(self.header_len));
    }

    fn read(line: &Line) -> SampleMeta {
        let (sw_if, generation) = halves(line.get(0));
        let (rate, frame_length) = halves(line.get(1));
        let (pool, at, header_len) = (line.get(2), line.get(3), line.get(4) as u16);
        SampleMeta { sw_if, generation, rate, frame_length, pool, at, header_len }
    }
}

/// Makes a ring for [`RING_SAMPLES`].
#[must_use]
pub fn channel() -> (SampleWriter, SampleReader) {
    let lines: Vec<Line> = (0..LINES).map(|_| Line::default()).collect();
    let ring = Arc::new(Ring {
        written: Position::default(),
        read: Position::default(),
        lines: lines.into_boxed_slice(),
    });
    let writer = SampleWriter { ring: ring.clone(), written: 0, limit: ROOM };
    (writer, SampleReader { ring, read: 0, released: 0, limit: 0 })
}

/// The worker's end.
#[derive(Debug)]
pub struct SampleWriter {
    ring: Arc<Ring>,
    written: u64,
    /// Up to where may be written, for all that is known.
    limit: u64,
}

impl SampleWriter {
    /// Begins to put samples in; the service sees them once the batch is dropped.
    #[inline]
    pub fn batch(&mut self) -> Batch<'_> {
        Batch { writer: self, asked: false }
    }
}

/// Samples of one frame.
#[derive(Debug)]
pub struct Batch<'w> {
    writer: &'w mut SampleWriter,
    /// The service was asked how far it is: once is enough, since the answer is another core's.
    asked: bool,
}

impl Batch<'_> {
    /// Puts a sample in with the first [`MAX_HEADER`] bytes of `header`; false if there is no room.
    #[inline]
    pub fn push(&mut self, meta: SampleMeta, header: &[u8]) -> bool {
        let header = &header[..header.len().min(MAX_HEADER)];
        let end = self.writer.written + 1 + header.len().div_ceil(LINE) as u64;
        if end > self.writer.limit && !self.ask(end) {
            return false;
        }
        let ring = &*self.writer.ring;
        let mut at = self.writer.written;
        SampleMeta { header_len: header.len() as u16, ..meta }.write(ring.line(at));
        let (whole, rest) = header.as_chunks::<LINE>();
        for bytes in whole {
            at += 1;
            put_words(ring.line(at), bytes.as_chunks().0);
        }
        if !rest.is_empty() {
            let (words, tail) = rest.as_chunks();
            let line = ring.line(at + 1);
            put_words(line, words);
            if !tail.is_empty() {
                line.put(words.len(), last_word(header, tail));
            }
        }
        self.writer.written = end;
        true
    }

    /// Asks how far the service has read; true if that leaves room up to `end`.
    #[cold]
    fn ask(&mut self, end: u64) -> bool {
        if !self.asked {
            self.asked = true;
            self.writer.limit = self.writer.ring.read.0.load(Ordering::Acquire) + ROOM;
        }
        end <= self.writer.limit
    }
}

impl Drop for Batch<'_> {
    #[inline]
    fn drop(&mut self) {
        let SampleWriter { ring, written, .. } = &*self.writer;
        ring.written.0.store(*written, Ordering::Release);
        (*written..written + AHEAD).for_each(|at| prefetch::for_write(ring.line(at)));
    }
}

#[inline]
fn put_words(line: &Line, words: &[[u8; WORD]]) {
    for (i, word) in words.iter().enumerate() {
        line.put(i, u64::from_le_bytes(*word));
    }
}

/// The word that begins with `tail`, the last bytes of `header`.
#[inline]
fn last_word(header: &[u8], tail: &[u8]) -> u64 {
    match header.last_chunk() {
        // Read with what comes before it, and shifted out again.
        Some(word) => u64::from_le_bytes(*word) >> (8 * (WORD - tail.len())),
        None => tail.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// The service's end.
#[derive(Debug)]
pub struct SampleReader {
    ring: Arc<Ring>,
    read: u64,
    /// What the worker was told of `read`.
    released: u64,
    /// Up to where there is something to read, for all that is known.
    limit: u64,
}

impl SampleReader {
    /// Takes the oldest sample; its header is written to the front of `header`. Its room is free
    /// again after [`release`](Self::release).
    pub fn pop(&mut self, header: &mut [u8; MAX_HEADER]) -> Option<SampleMeta> {
        if self.is_empty() {
            return None;
        }
        let meta = SampleMeta::read(self.ring.line(self.read));
        let lines = usize::from(meta.header_len).div_ceil(LINE);
        for bytes in header.as_chunks_mut::<LINE>().0.iter_mut().take(lines) {
            self.read += 1;
            let line = self.ring.line(self.read);
            for (i, word) in bytes.as_chunks_mut().0.iter_mut().enumerate() {
                *word = line.get(i).to_le_bytes();
            }
        }
        self.read += 1;
        Some(meta)
    }

    /// Lets the worker have the room of all samples that were taken.
    pub fn release(&mut self) {
        if self.released != self.read {
            self.released = self.read;
            self.ring.read.0.store(self.read, Ordering::Release);
        }
    }

    /// True if there is nothing to take.
    pub fn is_empty(&mut self) -> bool {
        if self.read == self.limit {
            self.limit = self.ring.written.0.load(Ordering::Acquire);
        }
        self.read == self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn meta(n: u64) -> SampleMeta {
        SampleMeta {
            sw_if: n as u32,
            generation: 3,
            rate: u32::MAX,
            frame_length: 9000,
            pool: n << 33,
            at: !n,
            header_len: 0,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// Against a queue: what goes in comes out, in order, whole.
        #[test]
        fn behaves_as_a_queue(turns in prop::collection::vec((0usize..300, 0usize..300), 1..60)) {
            let (mut writer, mut reader) = channel();
            let mut model: VecDeque<(SampleMeta, Vec<u8>)> = VecDeque::new();
            let mut n = 0u64;
            let mut buf = [0; MAX_HEADER];
            for (length, times) in turns {
                let header: Vec<u8> = (0..length).map(|i| (i + times) as u8).collect();
                let mut batch = writer.batch();
                for _ in 0..times {
                    n += 1;
                    if batch.push(meta(n), &header) {
                        let kept = header[..length.min(MAX_HEADER)].to_vec();
                        let header_len = kept.len() as u16;
                        model.push_back((SampleMeta { header_len, ..meta(n) }, kept));
                    } else {
                        prop_assert!(model.len() >= RING_SAMPLES);
                    }
                }
                drop(batch);
                for _ in 0..times / 2 {
                    let got = reader.pop(&mut buf);
                    let got = got.map(|m| (m, buf[..m.header_len.into()].to_vec()));
                    prop_assert_eq!(got, model.pop_front());
                }
                reader.release();
            }
            while let Some(expected) = model.pop_front() {
                let got = reader.pop(&mut buf).map(|m| (m, buf[..m.header_len.into()].to_vec()));
                prop_assert_eq!(got, Some(expected));
            }
            prop_assert!(reader.is_empty() && reader.pop(&mut buf).is_none());
        }
    }

    #[test]
    fn a_full_ring_refuses_and_recovers() {
        let (mut writer, mut reader) = channel();
        let mut batch = writer.batch();
        let taken = (0..100_000).take_while(|n| batch.push(meta(*n), &[7; 256])).count();
        assert_eq!(taken, RING_SAMPLES);
        let mut buf = [0; MAX_HEADER];
        assert!(reader.is_empty(), "the batch has not ended");
        drop(batch);
        assert_eq!(reader.pop(&mut buf).map(|m| m.sw_if), Some(0));
        assert!(!writer.batch().push(meta(3), &[7; 256]), "nothing was released");
        reader.release();
        let mut batch = writer.batch();
        assert!(batch.push(meta(4), &[7; 256]));
        assert!(!batch.push(meta(5), &[7; 256]));
    }

    #[test]
    fn samples_cross_threads_whole() {
        let (mut writer, mut reader) = channel();
        let producer = std::thread::spawn(move || {
            let mut sent = 0u64;
            for n in 0..20_000u64 {
                let mut batch = writer.batch();
                for n in n * 10..(n + 1) * 10 {
                    let header = [n as u8; 200];
                    sent += u64::from(batch.push(meta(n), &header[..(n % 200) as usize]));
                }
            }
            sent
        });
        let (mut buf, mut got, mut last) = ([0; MAX_HEADER], 0u64, None);
        loop {
            let done = producer.is_finished();
            while let Some(m) = reader.pop(&mut buf) {
                let n = !m.at;
                assert!(last < Some(n), "{last:?} before {n}");
                assert_eq!(u64::from(m.header_len), n % 200);
                assert!(buf[..m.header_len.into()].iter().all(|b| *b == n as u8));
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
