//! The way of samples from a worker to the service: a bounded ring of cache lines.
//!
//! A sample is one line of facts and as many lines of header as it needs, put in with one store
//! that makes them visible together. Nothing waits: if there is no room, the sample is lost and
//! its producer counts it.

use rtrb::{Consumer, Producer, RingBuffer};

/// Samples that fit, whatever their headers' length.
pub const RING_SAMPLES: usize = 4096;
/// Most bytes of a sampled header.
pub const MAX_HEADER: usize = 256;

const LINE: usize = 64;
const MAX_LINES: usize = 1 + MAX_HEADER / LINE;

/// One cache line of a sample.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u8; LINE]);

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

impl SampleMeta {
    #[inline]
    fn write(&self, line: &mut Line) {
        let line = &mut line.0;
        line[0..4].copy_from_slice(&self.sw_if.to_ne_bytes());
        line[4..8].copy_from_slice(&self.generation.to_ne_bytes());
        line[8..12].copy_from_slice(&self.rate.to_ne_bytes());
        line[12..16].copy_from_slice(&self.frame_length.to_ne_bytes());
        line[16..24].copy_from_slice(&self.pool.to_ne_bytes());
        line[24..32].copy_from_slice(&self.at.to_ne_bytes());
        line[32..34].copy_from_slice(&self.header_len.to_ne_bytes());
    }

    fn from_line(line: &Line) -> SampleMeta {
        fn field<const N: usize>(line: &Line, at: usize) -> [u8; N] {
            std::array::from_fn(|i| line.0[at + i])
        }
        SampleMeta {
            sw_if: u32::from_ne_bytes(field(line, 0)),
            generation: u32::from_ne_bytes(field(line, 4)),
            rate: u32::from_ne_bytes(field(line, 8)),
            frame_length: u32::from_ne_bytes(field(line, 12)),
            pool: u64::from_ne_bytes(field(line, 16)),
            at: u64::from_ne_bytes(field(line, 24)),
            header_len: u16::from_ne_bytes(field(line, 32)),
        }
    }
}

/// Makes a ring for [`RING_SAMPLES`].
#[must_use]
pub fn channel() -> (SampleWriter, SampleReader) {
    let (producer, consumer) = RingBuffer::new(RING_SAMPLES * MAX_LINES);
    (
        SampleWriter { ring: producer, lines: [Line([0; LINE]); MAX_LINES] },
        SampleReader { ring: consumer },
    )
}

/// The worker's end.
#[derive(Debug)]
pub struct SampleWriter {
    ring: Producer<Line>,
    /// Where a sample is put together.
    lines: [Line; MAX_LINES],
}

impl SampleWriter {
    /// Puts a sample in with the first [`MAX_HEADER`] bytes of `header`; false if there is no room.
    #[inline]
    pub fn push(&mut self, mut meta: SampleMeta, header: &[u8]) -> bool {
        let header = &header[..header.len().min(MAX_HEADER)];
        meta.header_len = header.len() as u16;
        let lines = 1 + header.len().div_ceil(LINE);
        meta.write(&mut self.lines[0]);
        let mut rest = header;
        for line in &mut self.lines[1..lines] {
            *line = next_line(&mut rest);
        }
        // Two copies, but of whole lines: faster than filling the ring's slots one by one.
        self.ring.push_entire_slice(&self.lines[..lines]).is_ok()
    }
}

/// Cuts a line's worth off the front.
#[inline]
fn next_line(rest: &mut &[u8]) -> Line {
    if let Some((line, more)) = rest.split_first_chunk() {
        *rest = more;
        return Line(*line);
    }
    let mut line = [0; LINE];
    line[..rest.len()].copy_from_slice(rest);
    *rest = &[];
    Line(line)
}

/// The service's end.
#[derive(Debug)]
pub struct SampleReader {
    ring: Consumer<Line>,
}

impl SampleReader {
    /// Takes the oldest sample; its header is written to the front of `header`.
    pub fn pop(&mut self, header: &mut [u8; MAX_HEADER]) -> Option<SampleMeta> {
        let meta = SampleMeta::from_line(self.ring.peek().ok()?);
        let lines = 1 + usize::from(meta.header_len).div_ceil(LINE);
        let chunk = self.ring.read_chunk(lines).ok()?;
        let (front, back) = chunk.as_slices();
        for (line, to) in front.iter().chain(back).skip(1).zip(header.chunks_exact_mut(LINE)) {
            to.copy_from_slice(&line.0);
        }
        chunk.commit_all();
        Some(meta)
    }

    /// True if there is nothing to take.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
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
                for _ in 0..times {
                    n += 1;
                    if writer.push(meta(n), &header) {
                        let kept = header[..length.min(MAX_HEADER)].to_vec();
                        let header_len = kept.len() as u16;
                        model.push_back((SampleMeta { header_len, ..meta(n) }, kept));
                    } else {
                        prop_assert!(model.len() >= RING_SAMPLES);
                    }
                }
                for _ in 0..times / 2 {
                    let got = reader.pop(&mut buf);
                    let got = got.map(|m| (m, buf[..m.header_len.into()].to_vec()));
                    prop_assert_eq!(got, model.pop_front());
                }
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
        let taken = (0..100_000).take_while(|n| writer.push(meta(*n), &[7; 256])).count();
        assert_eq!(taken, RING_SAMPLES);
        assert!(!writer.push(meta(0), &[7; 256]));
        let mut buf = [0; MAX_HEADER];
        assert_eq!(reader.pop(&mut buf).map(|m| m.sw_if), Some(0));
        assert!(writer.push(meta(4), &[7; 256]));
        assert!(!writer.push(meta(5), &[7; 256]));
    }

    #[test]
    fn samples_cross_threads_whole() {
        let (mut writer, mut reader) = channel();
        let producer = std::thread::spawn(move || {
            let mut sent = 0u64;
            for n in 0..200_000u64 {
                let header = [n as u8; 200];
                sent += u64::from(writer.push(meta(n), &header[..(n % 200) as usize]));
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
            }
            if done {
                break;
            }
        }
        assert_eq!(producer.join().unwrap(), got);
    }
}
