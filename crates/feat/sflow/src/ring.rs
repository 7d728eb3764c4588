//! The way of samples from a worker to the service: a bounded ring of cache lines.
//!
//! A sample is one line of facts and as many lines of header as it needs. Nothing waits: if there is
//! no room, the sample is lost and its producer counts it.
//!
//! A sample lies in the ring before the service may see it: its packet is still on its way through
//! the router, and where that leads is written into the same line. The worker then publishes many
//! samples at once. So the two ends share two words, and write each of them rarely; the worker asks
//! how far the service is only when its last answer leaves no room. The lines are words with relaxed
//! order, which are plain stores and loads; the release of a position and its acquisition order them.

use crate::facts::{FACTS, Facts, Way};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use thalweg_tables::prefetch;

/// Most bytes of a sampled header.
pub const MAX_HEADER: usize = 256;
/// Lines that there are: a power of two, so that a position's low bits name its line. Enough for
/// what comes in two milliseconds at ten million samples of 64 bytes a second.
const LINES: usize = 1 << 15;
/// Samples that fit, whatever their headers' length.
pub const RING_SAMPLES: usize = LINES / MAX_LINES;

const WORD: usize = size_of::<u64>();
const WORDS: usize = 8;
const LINE: usize = WORD * WORDS;
const MAX_LINES: usize = 1 + MAX_HEADER / LINE;
/// Lines that are fetched ahead of the next sample. The service's core has read them: to store to
/// them at once would make the worker's later stores wait for that core.
const AHEAD: u64 = 12;

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
    lines: Box<[Line; LINES]>,
}

impl Ring {
    #[inline]
    fn line(&self, position: u64) -> &Line {
        &self.lines[position as usize % LINES]
    }
}

/// Makes a ring for [`RING_SAMPLES`] at least.
#[must_use]
pub fn channel() -> (SampleWriter, SampleReader) {
    let lines: Box<[Line]> = (0..LINES).map(|_| Line::default()).collect();
    let ring = Arc::new(Ring {
        written: Position::default(),
        read: Position::default(),
        lines: lines.try_into().unwrap_or_else(|_| unreachable!("as many as asked for")),
    });
    let limit = LINES as u64;
    let writer = SampleWriter {
        ring: ring.clone(),
        written: 0,
        published: 0,
        limit,
        fetched: 0,
        asked: false,
    };
    (writer, SampleReader { ring, read: 0, released: 0, limit: 0 })
}

/// A sample that is in the ring and not published yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u64);

/// The worker's end.
#[derive(Debug)]
pub struct SampleWriter {
    ring: Arc<Ring>,
    written: u64,
    /// Up to where the service may read.
    published: u64,
    /// Up to where may be written, for all that is known.
    limit: u64,
    /// Up to where lines were fetched.
    fetched: u64,
    /// The service was asked how far it is since something was published: once is enough, since the
    /// answer is another core's.
    asked: bool,
}

impl SampleWriter {
    /// Puts a sample in with the first [`MAX_HEADER`] bytes of `header`; `None` if there is no room.
    #[inline]
    pub fn push(&mut self, facts: &Facts, header: &[u8]) -> Option<Ticket> {
        let header = &header[..header.len().min(MAX_HEADER)];
        let end = self.written + 1 + header.len().div_ceil(LINE) as u64;
        if end > self.limit && !self.ask(end) {
            return None;
        }
        let ring = &*self.ring;
        let ahead = (end + AHEAD).min(self.limit);
        while self.fetched < ahead {
            prefetch::for_write(ring.line(self.fetched));
            self.fetched += 1;
        }
        let ticket = Ticket(self.written);
        let mut at = self.written;
        let line = ring.line(at);
        for (i, word) in facts.words(header.len() as u16).into_iter().enumerate() {
            line.put(i, word);
        }
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
        self.written = end;
        Some(ticket)
    }

    /// Says where a sample's packet has gone; nothing happens if the service may have seen it.
    #[inline]
    pub fn complete(&mut self, ticket: Ticket, way: Way) {
        if ticket.0 >= self.published {
            let line = self.ring.line(ticket.0);
            let [fate, place] = way.words();
            line.put(Way::AT, fate);
            line.put(Way::AT + 1, place);
        }
    }

    /// Lines that the service may not see yet.
    #[inline]
    #[must_use]
    pub fn pending(&self) -> u64 {
        self.written - self.published
    }

    /// Lets the service see all that there is.
    #[inline]
    pub fn publish(&mut self) {
        self.asked = false;
        if self.published != self.written {
            self.published = self.written;
            self.ring.written.0.store(self.written, Ordering::Release);
        }
    }

    /// Asks how far the service has read; true if that leaves room up to `end`.
    #[cold]
    fn ask(&mut self, end: u64) -> bool {
        if !self.asked {
            self.asked = true;
            self.limit = self.ring.read.0.load(Ordering::Acquire) + LINES as u64;
        }
        end <= self.limit
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
    pub fn pop(&mut self, header: &mut [u8; MAX_HEADER]) -> Option<(Facts, usize)> {
        if self.is_empty() {
            return None;
        }
        let line = self.ring.line(self.read);
        let words: [u64; FACTS] = std::array::from_fn(|i| line.get(i));
        let (facts, length) = Facts::from_words(&words);
        let lines = length.div_ceil(LINE);
        for bytes in header.as_chunks_mut::<LINE>().0.iter_mut().take(lines) {
            self.read += 1;
            let line = self.ring.line(self.read);
            for (i, word) in bytes.as_chunks_mut().0.iter_mut().enumerate() {
                *word = line.get(i).to_le_bytes();
            }
        }
        self.read += 1;
        Some((facts, length))
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

    fn facts(n: u64) -> Facts {
        Facts {
            sw_if: n as u32,
            generation: 3,
            rate: u32::MAX,
            frame_length: 9000,
            pool: n << 33,
            at: !n,
            ..Facts::default()
        }
    }

    /// A sample in the model's queue.
    type Sample = (Facts, Vec<u8>);

    fn pop(reader: &mut SampleReader) -> Option<Sample> {
        let mut buf = [0; MAX_HEADER];
        let (facts, length) = reader.pop(&mut buf)?;
        Some((facts, buf[..length].to_vec()))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// Against a queue: what goes in comes out, in order, whole, with what was said of it before
        /// it was published.
        #[test]
        fn behaves_as_a_queue(
            turns in prop::collection::vec((0usize..300, 0usize..300, any::<bool>()), 1..60),
        ) {
            let (mut writer, mut reader) = channel();
            let mut model: VecDeque<Sample> = VecDeque::new();
            let mut waiting: Vec<(Ticket, Sample)> = Vec::new();
            let mut n = 0u64;
            for (length, times, publish) in turns {
                let header: Vec<u8> = (0..length).map(|i| (i + times) as u8).collect();
                for _ in 0..times {
                    n += 1;
                    match writer.push(&facts(n), &header) {
                        Some(ticket) => {
                            let kept = header[..length.min(MAX_HEADER)].to_vec();
                            waiting.push((ticket, (facts(n), kept)));
                        }
                        None => prop_assert!(model.len() + waiting.len() >= RING_SAMPLES),
                    }
                }
                for (ticket, (facts, _)) in waiting.iter_mut().skip(times % 3).step_by(3) {
                    facts.way = Way::Out { tx_if: times as u32, entry: 7, tag: Some(length as u16) };
                    writer.complete(*ticket, facts.way);
                }
                if publish {
                    writer.publish();
                    prop_assert_eq!(writer.pending(), 0);
                    for (ticket, sample) in waiting.drain(..) {
                        writer.complete(ticket, Way::Dropped(1));
                        model.push_back(sample);
                    }
                }
                for _ in 0..times / 2 {
                    prop_assert_eq!(pop(&mut reader), model.pop_front());
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
        let (mut writer, mut reader) = channel();
        let push = |writer: &mut SampleWriter, n| writer.push(&facts(n), &[7; 256]).is_some();
        let taken = (0..100_000).take_while(|n| push(&mut writer, *n)).count();
        assert_eq!(taken, RING_SAMPLES);
        assert!(reader.is_empty(), "nothing was published");
        writer.publish();
        assert_eq!(pop(&mut reader).map(|(m, _)| m.sw_if), Some(0));
        assert!(!push(&mut writer, 3), "nothing was released");
        reader.release();
        writer.publish();
        assert!(push(&mut writer, 4));
        assert!(!push(&mut writer, 5));
    }

    #[test]
    fn samples_cross_threads_whole() {
        let (mut writer, mut reader) = channel();
        let producer = std::thread::spawn(move || {
            let mut sent = 0u64;
            for n in 0..20_000u64 {
                for n in n * 10..(n + 1) * 10 {
                    let header = [n as u8; 200];
                    if let Some(t) = writer.push(&facts(n), &header[..(n % 200) as usize]) {
                        writer.complete(t, Way::Dropped(n as u32));
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
            while let Some((facts, header)) = pop(&mut reader) {
                let n = !facts.at;
                assert!(last < Some(n), "{last:?} before {n}");
                assert_eq!(facts.way, Way::Dropped(n as u32));
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
