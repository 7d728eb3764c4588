//! A bounded single-producer, single-consumer ring of variable-length records made of cache lines.
//!
//! A record is one line of words, followed by as many lines of bytes as it needs. Nothing waits:
//! without room, the record is refused. A record is in the ring before the reader can see it, and
//! its words can be amended until then; the writer publishes many records at once. The two ends
//! thus share two words and write each of them rarely; the writer reads the reader's position only
//! when the last value it read leaves no room.

use crate::paged::{AllZeroValid, HUGE_PAGE, MapError, PagedTable, Pages};
use crate::prefetch;
use crate::sync::{AtomicU64, Ordering, Padded};
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::Arc;

/// Bytes of a line.
pub const LINE: usize = 64;
/// Words of a record's first line.
pub const WORDS: usize = LINE / size_of::<u64>();

/// Number of lines after a record that are prefetched: as many as most records take.
const AHEAD: usize = 2;

#[repr(align(64))]
struct Line(UnsafeCell<[u8; LINE]>);

// SAFETY: a line is used by one thread at a time: by the writer while its position is not
// published, by the reader from then on, and by the writer again once it is released. Storing a
// position with release and loading it with acquire order the uses.
unsafe impl Sync for Line {}
// SAFETY: bytes, of which zero is a value.
unsafe impl AllZeroValid for Line {}

/// Positions are lines since the ring was made; their low bits name the line.
struct Ring {
    /// The lines from here on, up to `read` and once round, are the writer's.
    written: Padded<AtomicU64>,
    /// The lines from here to `written` are the reader's.
    read: Padded<AtomicU64>,
    lines: PagedTable<Line>,
}

/// Memory of the lines: a copy for each end, so that neither has to load it from the ring.
#[derive(Clone, Copy)]
struct Lines {
    first: NonNull<Line>,
    /// Bits of a position that select the line: their number is a power of two.
    mask: usize,
}

impl Lines {
    #[inline]
    fn line(self, position: u64) -> *mut u8 {
        // SAFETY: the index is one of a line, and the caller keeps the ring alive.
        unsafe { self.first.add(position as usize & self.mask).as_ref() }.0.get().cast()
    }

    /// Copies bytes into as many lines as they need, from position `at` on.
    ///
    /// # Safety
    /// No other thread uses these lines.
    #[inline(never)]
    unsafe fn copy(self, bytes: &[u8], at: u64) {
        let (whole, rest) = bytes.as_chunks::<LINE>();
        // SAFETY: by contract; the rest is shorter than a line.
        unsafe {
            for (line, at) in whole.iter().zip(at..) {
                self.line(at).cast::<[u8; LINE]>().write(*line);
            }
            if !rest.is_empty() {
                copy_less_than_a_line(rest, self.line(at + whole.len() as u64));
            }
        }
    }
}

/// Creates a ring of `lines` lines, rounded up to a power of two, with memory for all of them.
///
/// # Errors
/// If the memory cannot be allocated.
pub fn channel(lines: usize) -> Result<(RecordWriter, RecordReader), MapError> {
    let lines = lines.next_power_of_two();
    // A ring cycles through all of its memory, and would fault in small pages one after the other.
    let pages = if lines * LINE < HUGE_PAGE { Pages::Normal } else { Pages::Huge };
    let table = PagedTable::with_pages(lines, pages)?;
    table.make_ready(0..lines);
    let ring = Arc::new(Ring {
        written: Padded(AtomicU64::new(0)),
        read: Padded(AtomicU64::new(0)),
        lines: table,
    });
    let limit = lines as u64;
    let first = NonNull::from_ref(ring.lines.as_slice()).cast();
    let lines = Lines { first, mask: lines - 1 };
    let writer = ring.clone();
    let writer =
        RecordWriter { ring: writer, lines, written: 0, published: 0, limit, asked: false };
    Ok((writer, RecordReader { ring, lines, read: 0, released: 0, limit: 0 }))
}

/// Returns the number of lines that `bytes` bytes take.
#[inline]
#[must_use]
pub const fn lines_of(bytes: usize) -> usize {
    // `div_ceil` would handle an overflow that cannot happen.
    (bytes + (LINE - 1)) >> LINE.trailing_zeros()
}

/// Position of a record in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position(u64);

impl Position {
    /// Returns the position of the next record, after one with `lines` lines of bytes.
    #[inline]
    #[must_use]
    pub fn next(self, lines: usize) -> Position {
        Position(self.0 + 1 + lines as u64)
    }
}

/// The writing end.
pub struct RecordWriter {
    ring: Arc<Ring>,
    lines: Lines,
    written: u64,
    /// Position up to which the reader may read.
    published: u64,
    /// Position up to which may be written, as last read.
    limit: u64,
    /// The reader's position was read since something was published: once is enough, since the
    /// cache line is another core's.
    asked: bool,
}

// SAFETY: the lines belong to the ring, which both ends keep alive, and which may be used by two
// threads.
unsafe impl Send for RecordWriter {}
// SAFETY: as above.
unsafe impl Send for RecordReader {}

impl RecordWriter {
    /// Adds a record; `None` if there is no room.
    #[inline(always)]
    pub fn push(&mut self, words: &[u64; WORDS], bytes: &[u8]) -> Option<Position> {
        let end = self.written + 1 + lines_of(bytes.len()) as u64;
        if end > self.limit && !self.ask(end) {
            return None;
        }
        let (at, lines) = (self.written, self.lines);
        // SAFETY: lines from `written` to `end` are ours: none of them is published, and the reader
        // has released what they held, since `end` is at most `limit`.
        unsafe {
            lines.line(at).cast::<[u64; WORDS]>().write(*words);
            // The rest is out of line: what is here is small enough to stay in the instruction
            // cache.
            match <&[u8; LINE]>::try_from(bytes) {
                Ok(line) => lines.line(at + 1).cast::<[u8; LINE]>().write(*line),
                Err(_) => lines.copy(bytes, at + 1),
            }
        }
        self.written = end;
        // The reader's core had the next record's lines last: they will be here by the time they
        // are needed.
        let next = lines.line(end);
        (0..AHEAD).for_each(|n| prefetch::address_for_write(next.wrapping_add(n * LINE)));
        Some(Position(at))
    }

    /// Amends words of a record, from `word` on; does nothing if the record is published.
    ///
    /// # Panics
    /// If a record has no such words.
    #[inline]
    pub fn amend<const N: usize>(&mut self, at: Position, word: usize, values: [u64; N]) {
        assert!(word + N <= WORDS);
        if at.0 >= self.published && at.0 < self.written {
            // SAFETY: the line is not published, so it is ours; the words are within it.
            unsafe {
                self.lines.line(at.0).cast::<u64>().add(word).cast::<[u64; N]>().write(values)
            };
        }
    }

    /// Returns the position of the first unpublished record.
    #[inline]
    pub fn unpublished(&self) -> Position {
        Position(self.published)
    }

    /// Returns the position of the next record to be written.
    #[inline]
    pub fn end(&self) -> Position {
        Position(self.written)
    }

    /// Returns the words of an unpublished record; `None` if there is none at that position.
    #[inline]
    pub fn words(&self, at: Position) -> Option<[u64; WORDS]> {
        (at.0 >= self.published && at.0 < self.written)
            // SAFETY: the line is not published, so it is ours.
            .then(|| unsafe { self.lines.line(at.0).cast::<[u64; WORDS]>().read() })
    }

    /// Returns the number of unpublished lines.
    #[inline]
    pub fn pending(&self) -> u64 {
        self.written - self.published
    }

    /// Returns the number of lines published since the ring was created.
    #[inline]
    pub fn published(&self) -> u64 {
        self.published
    }

    /// Returns the number of lines that are published and not released. Reads a cache line of the
    /// other core's.
    pub fn waiting(&self) -> u64 {
        self.published - self.ring.read.0.load(Ordering::Relaxed)
    }

    /// Publishes all records to the reader.
    #[inline]
    pub fn publish(&mut self) {
        self.asked = false;
        if self.published != self.written {
            self.published = self.written;
            self.ring.written.0.store(self.written, Ordering::Release);
        }
    }

    /// Reads the reader's position; returns true if that leaves room up to `end`.
    #[cold]
    fn ask(&mut self, end: u64) -> bool {
        if !self.asked {
            self.asked = true;
            self.limit = self.ring.read.0.load(Ordering::Acquire) + self.lines.mask as u64 + 1;
        }
        end <= self.limit
    }
}

/// Copies 1 to 63 bytes, by two copies that may overlap: their number is seldom a constant.
///
/// # Safety
/// There is a line at `to`, which no other thread uses.
#[inline]
unsafe fn copy_less_than_a_line(from: &[u8], to: *mut u8) {
    /// Copies the first and the last `N` bytes.
    ///
    /// # Safety
    /// The rules above hold, and there are `N` bytes at least.
    #[inline]
    unsafe fn ends<const N: usize>(from: &[u8], to: *mut u8) {
        // SAFETY: by contract.
        unsafe {
            let (first, last) = (from.as_ptr(), from.as_ptr().add(from.len() - N));
            let bytes = last.cast::<[u8; N]>().read();
            to.cast::<[u8; N]>().write(first.cast::<[u8; N]>().read());
            to.add(from.len() - N).cast::<[u8; N]>().write(bytes);
        }
    }
    // SAFETY: each reads at most `from.len()` bytes, which is less than a line.
    unsafe {
        match from.len() {
            32..LINE => ends::<32>(from, to),
            16..32 => ends::<16>(from, to),
            8..16 => ends::<8>(from, to),
            n if n < 8 => std::ptr::copy_nonoverlapping(from.as_ptr(), to, n),
            _ => unreachable!("a whole line"),
        }
    }
}

/// The reading end.
pub struct RecordReader {
    ring: Arc<Ring>,
    lines: Lines,
    read: u64,
    /// Value of `read` that was published to the writer.
    released: u64,
    /// Position up to which there is something to read, as last read.
    limit: u64,
}

impl RecordReader {
    /// Returns the words of the oldest record, which stays where it is.
    #[inline]
    pub fn words(&mut self) -> Option<[u64; WORDS]> {
        if self.is_empty() {
            return None;
        }
        // SAFETY: the line is published and not released, so it is ours.
        Some(unsafe { self.lines.line(self.read).cast::<[u64; WORDS]>().read() })
    }

    /// Takes the oldest record: copies as many of its lines of bytes as `to` has. Its room is free
    /// again after [`release`](Self::release).
    ///
    /// # Panics
    /// If the record has fewer lines.
    #[inline]
    pub fn take(&mut self, to: &mut [[u8; LINE]]) {
        let end = self.read + 1 + to.len() as u64;
        assert!(end <= self.limit, "more lines than the record has");
        for (at, line) in (self.read + 1..).zip(to) {
            // SAFETY: as above.
            *line = unsafe { self.lines.line(at).cast::<[u8; LINE]>().read() };
        }
        self.read = end;
    }

    /// Takes the oldest record without copying its `lines` lines of bytes.
    ///
    /// # Panics
    /// If the record has fewer lines.
    pub fn skip(&mut self, lines: usize) {
        let end = self.read + 1 + lines as u64;
        assert!(end <= self.limit, "more lines than the record has");
        self.read = end;
    }

    /// Releases the room of all records that were taken to the writer.
    pub fn release(&mut self) {
        if self.released != self.read {
            self.released = self.read;
            self.ring.read.0.store(self.read, Ordering::Release);
        }
    }

    /// Returns true if there is no record.
    #[inline]
    pub fn is_empty(&mut self) -> bool {
        if self.read == self.limit {
            self.limit = self.ring.written.0.load(Ordering::Acquire);
        }
        self.read == self.limit
    }
}

impl std::fmt::Debug for RecordWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordWriter").field("written", &self.written).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for RecordReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordReader").field("read", &self.read).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(reader: &mut RecordReader, bytes: usize) -> Option<(u64, Vec<u8>)> {
        let words = reader.words()?;
        let mut lines = vec![[0; LINE]; bytes.div_ceil(LINE)];
        reader.take(&mut lines);
        Some((words[3], lines.as_flattened()[..bytes].to_vec()))
    }

    #[test]
    fn bytes_of_every_length_arrive() {
        let (mut writer, mut reader) = channel(16).unwrap();
        for n in 0..=4 * LINE {
            let bytes: Vec<u8> = (0..n).map(|i| (i + n) as u8 | 1).collect();
            let at = writer.push(&[n as u64; WORDS], &bytes).unwrap();
            writer.amend(at, 2, [7, 8]);
            assert!(reader.is_empty());
            writer.publish();
            writer.amend(at, 2, [9, 9]);
            assert_eq!(take(&mut reader, n), Some((8, bytes)));
            reader.release();
        }
    }

    #[test]
    fn a_full_ring_refuses_until_lines_are_released() {
        let (mut writer, mut reader) = channel(4).unwrap();
        assert!(writer.push(&[1; WORDS], &[1; 65]).is_some());
        assert!(writer.push(&[2; WORDS], &[2; 1]).is_none());
        assert!(writer.push(&[2; WORDS], &[]).is_some());
        assert_eq!(writer.pending(), 4);
        writer.publish();
        assert_eq!(take(&mut reader, 65).map(|r| r.0), Some(1));
        assert!(writer.push(&[3; WORDS], &[]).is_none(), "not released");
        reader.release();
        assert!(writer.push(&[3; WORDS], &[]).is_none(), "not asked again before it publishes");
        writer.publish();
        assert!(writer.push(&[3; WORDS], &[]).is_some());
    }

    #[test]
    #[should_panic(expected = "more lines than the record has")]
    fn missing_lines_are_not_read() {
        let (mut writer, mut reader) = channel(4).unwrap();
        writer.push(&[1; WORDS], &[]);
        writer.publish();
        reader.words();
        reader.take(&mut [[0; LINE]; 2]);
    }

    /// Two threads: records arrive whole, in order, with the last amendment.
    #[test]
    fn records_cross_threads() {
        const RECORDS: u64 = if cfg!(miri) { 300 } else { 100_000 };
        let (mut writer, mut reader) = channel(64).unwrap();
        let producer = std::thread::spawn(move || {
            let mut n = 0;
            while n < RECORDS {
                let bytes = [n as u8; 130];
                match writer.push(&[n; WORDS], &bytes[..(n % 131) as usize]) {
                    Some(at) => {
                        writer.amend(at, 6, [!n, n]);
                        n += 1;
                    }
                    None => {
                        // Only then is the other end's position read again.
                        writer.publish();
                        std::thread::yield_now();
                    }
                }
                if n % 5 == 0 {
                    writer.publish();
                }
            }
            writer.publish();
        });
        let mut n = 0;
        while n < RECORDS {
            let ended = producer.is_finished();
            let Some(words) = reader.words() else {
                assert!(!ended, "{n} of {RECORDS} came");
                std::thread::yield_now();
                continue;
            };
            assert_eq!(words, [n, n, n, n, n, n, !n, n]);
            let (_, bytes) = take(&mut reader, (n % 131) as usize).unwrap();
            assert!(bytes.iter().all(|b| *b == n as u8));
            n += 1;
            if n % 3 == 0 || reader.is_empty() {
                reader.release();
            }
        }
        producer.join().unwrap();
    }
}
