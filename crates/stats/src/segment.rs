//! The directory and the entries of the segment.

use crate::layout::{BASE, Type, VERSION, address, entry, header, words_of};
use crate::memory::{Block, Memory};
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{Ordering, fence};
use thalweg_tables::shared::SharedWords;

/// Error of adding an entry. The segment is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// The segment is full.
    #[error(
        "the statistics segment of {0} bytes is full; enlarge it with `statseg {{ size 128m }}'"
    )]
    Full(usize),
    /// Another entry has that name.
    #[error("statistics entry `{0}' exists already")]
    Exists(String),
    /// The name is too long or contains a NUL.
    #[error("`{0}' is not a valid name of a statistics entry: up to 127 bytes without NUL")]
    Name(String),
    /// The kernel has no memory.
    #[error("cannot create a statistics segment of {bytes} bytes: {source}")]
    Memory {
        /// Its size.
        bytes: usize,
        /// The system's error.
        source: io::Error,
    },
}

/// An entry of the directory, until it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot(u32);

#[derive(Debug)]
enum Entry {
    Empty,
    Number,
    /// `width` words per counter; a vector per row.
    Counters {
        width: usize,
        columns: usize,
        table: Block,
        rows: Vec<Block>,
    },
    Names {
        table: Block,
        names: Vec<Option<Block>>,
    },
    Link,
}

/// The segment. One thread writes it; others read without locks.
#[derive(Debug)]
pub struct Segment {
    memory: Memory,
    directory: Block,
    entries: Vec<Entry>,
    /// Names of entries.
    labels: Vec<String>,
    names: HashMap<String, Slot>,
    /// Empty entries; the last is used first.
    empty: Vec<u32>,
}

impl Segment {
    /// Creates a segment of `bytes` bytes with an empty directory.
    ///
    /// # Errors
    /// If the kernel has no memory, or the size is too small for a directory.
    pub fn new(bytes: usize) -> Result<Segment, SegmentError> {
        let shared = SharedWords::new("thalweg-stats", bytes / 8)
            .map_err(|source| SegmentError::Memory { bytes, source })?;
        let mut memory = Memory::new(shared);
        let directory = memory.vector(0, 64 * entry::WORDS)?;
        memory.set(header::BASE, BASE);
        memory.set(header::DIRECTORY, address(directory.word));
        memory.set(header::EPOCH, 1);
        memory.set(header::VERSION, VERSION);
        let (entries, labels) = (Vec::new(), Vec::new());
        let (names, empty) = (HashMap::new(), Vec::new());
        Ok(Segment { memory, directory, entries, labels, names, empty })
    }

    /// Returns a descriptor of the segment for a reader.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn reader(&self) -> io::Result<OwnedFd> {
        self.memory.shared.reader()
    }

    /// Changes the directory. Readers wait meanwhile, and read again what they were reading.
    pub fn change<R>(&mut self, what: impl FnOnce(&mut Change<'_>) -> R) -> R {
        self.memory.set(header::IN_PROGRESS, 1);
        // Readers must not see a change before this.
        fence(Ordering::SeqCst);
        let done = what(&mut Change { segment: self });
        fence(Ordering::Release);
        let epoch = self.memory.get(header::EPOCH).wrapping_add(1);
        self.memory.set(header::EPOCH, epoch);
        fence(Ordering::Release);
        self.memory.set(header::IN_PROGRESS, 0);
        done
    }

    /// Returns the entry of a name.
    pub fn find(&self, name: &str) -> Option<Slot> {
        self.names.get(name).copied()
    }

    fn entry_word(&self, slot: Slot) -> usize {
        self.directory.word + slot.0 as usize * entry::WORDS
    }

    /// Sets a scalar or gauge.
    pub fn set(&self, slot: Slot, value: u64) {
        if let Some(Entry::Number) = self.entries.get(slot.0 as usize) {
            self.memory.set(self.entry_word(slot) + entry::VALUE, value);
        }
    }

    /// Sets a counter: one number of a simple one, packets and bytes of a combined one. Rows and
    /// columns out of range are ignored.
    #[inline]
    pub fn count<const N: usize>(&self, slot: Slot, row: usize, column: usize, values: [u64; N]) {
        let Some(Entry::Counters { width, columns, rows, .. }) = self.entries.get(slot.0 as usize)
        else {
            return;
        };
        let Some(block) = rows.get(row).filter(|_| *width == N && column < *columns) else {
            return;
        };
        for (i, value) in values.into_iter().enumerate() {
            self.memory.set(block.word + column * N + i, value);
        }
    }
}

/// A change of the directory; see [`Segment::change`].
pub struct Change<'s> {
    segment: &'s mut Segment,
}

impl Change<'_> {
    /// Adds a scalar that only grows.
    ///
    /// # Errors
    /// [`SegmentError`], as for all additions.
    pub fn scalar(&mut self, name: &str) -> Result<Slot, SegmentError> {
        self.enter(name, Type::Scalar, 0, Entry::Number)
    }

    /// Adds a gauge.
    ///
    /// # Errors
    /// [`SegmentError`].
    pub fn gauge(&mut self, name: &str) -> Result<Slot, SegmentError> {
        self.enter(name, Type::Gauge, 0, Entry::Number)
    }

    /// Adds simple counters: a row per thread, a column per object.
    ///
    /// # Errors
    /// [`SegmentError`].
    pub fn simple(&mut self, name: &str, rows: usize) -> Result<Slot, SegmentError> {
        self.counters(name, Type::Simple, 1, rows)
    }

    /// Adds combined counters, of packets and bytes.
    ///
    /// # Errors
    /// [`SegmentError`].
    pub fn combined(&mut self, name: &str, rows: usize) -> Result<Slot, SegmentError> {
        self.counters(name, Type::Combined, 2, rows)
    }

    fn counters(
        &mut self,
        name: &str,
        kind: Type,
        width: usize,
        rows: usize,
    ) -> Result<Slot, SegmentError> {
        self.check(name)?;
        // A reader must not find a table without a row, nor a row without a column.
        let count = rows.max(1);
        let memory = &mut self.segment.memory;
        let table = memory.vector(count, count)?;
        let mut rows = Vec::new();
        for i in 0..count {
            let row = memory.vector(1, width)?;
            memory.set(table.word + i, address(row.word));
            rows.push(row);
        }
        let entry = Entry::Counters { width, columns: 1, table, rows };
        self.enter(name, kind, address(table.word), entry)
    }

    /// Adds a list of names, each of which may be missing.
    ///
    /// # Errors
    /// [`SegmentError`].
    pub fn names(&mut self, name: &str) -> Result<Slot, SegmentError> {
        self.check(name)?;
        let table = self.segment.memory.vector(1, 1)?;
        let entry = Entry::Names { table, names: vec![None] };
        self.enter(name, Type::Names, address(table.word), entry)
    }

    /// Adds a name for one column of counters.
    ///
    /// # Errors
    /// [`SegmentError`].
    pub fn link(&mut self, name: &str, to: Slot, column: u32) -> Result<Slot, SegmentError> {
        let value = words_of(&[to.0.to_ne_bytes(), column.to_ne_bytes()].concat()).sum();
        self.enter(name, Type::Link, value, Entry::Link)
    }

    fn check(&self, name: &str) -> Result<(), SegmentError> {
        if name.len() >= entry::NAME_BYTES || name.contains('\0') || name.is_empty() {
            return Err(SegmentError::Name(name.into()));
        }
        match self.segment.names.contains_key(name) {
            true => Err(SegmentError::Exists(name.into())),
            false => Ok(()),
        }
    }

    fn enter(
        &mut self,
        name: &str,
        kind: Type,
        value: u64,
        entry: Entry,
    ) -> Result<Slot, SegmentError> {
        self.check(name)?;
        let s = &mut *self.segment;
        let slot = match s.empty.pop() {
            Some(slot) => slot as usize,
            None => {
                let count = s.entries.len() + 1;
                s.directory = s.memory.grow(s.directory, count * entry::WORDS)?;
                s.memory.set(header::DIRECTORY, address(s.directory.word));
                s.memory.count(s.directory, count);
                s.entries.push(Entry::Empty);
                s.labels.push(String::new());
                count - 1
            }
        };
        s.entries[slot] = entry;
        s.labels[slot] = name.into();
        let slot = Slot(slot as u32);
        s.names.insert(name.into(), slot);
        self.describe(slot, name, kind, value);
        Ok(slot)
    }

    fn describe(&mut self, slot: Slot, name: &str, kind: Type, value: u64) {
        let (memory, word) = (&self.segment.memory, self.segment.entry_word(slot));
        memory.set(word + entry::TYPE, kind as u64);
        memory.set(word + entry::VALUE, value);
        let padding = std::iter::repeat(0);
        let text = words_of(name.as_bytes()).chain(padding);
        for (i, bytes) in text.take(entry::WORDS - entry::NAME).enumerate() {
            memory.set(word + entry::NAME + i, bytes);
        }
    }

    /// Removes an entry. Links to it must be removed, too.
    pub fn remove(&mut self, slot: Slot) {
        let s = &mut *self.segment;
        let Some(entry) = s.entries.get_mut(slot.0 as usize) else { return };
        let blocks: Vec<Block> = match std::mem::replace(entry, Entry::Empty) {
            Entry::Empty => return,
            Entry::Number | Entry::Link => Vec::new(),
            Entry::Counters { table, rows, .. } => rows.into_iter().chain([table]).collect(),
            Entry::Names { table, names } => names.into_iter().flatten().chain([table]).collect(),
        };
        blocks.into_iter().for_each(|block| s.memory.release(block));
        s.names.remove(&std::mem::take(&mut s.labels[slot.0 as usize]));
        let next = s.empty.last().map_or(u64::MAX, |next| u64::from(*next));
        s.empty.push(slot.0);
        self.describe(slot, "", Type::Empty, next);
    }

    /// Extends counters to at least this number of columns.
    ///
    /// # Errors
    /// [`SegmentError::Full`].
    pub fn widen(&mut self, slot: Slot, to: usize) -> Result<(), SegmentError> {
        let s = &mut *self.segment;
        let Some(Entry::Counters { width, columns, table, rows }) =
            s.entries.get_mut(slot.0 as usize)
        else {
            return Ok(());
        };
        if to <= *columns {
            return Ok(());
        }
        for (i, row) in rows.iter_mut().enumerate() {
            *row = s.memory.grow(*row, to * *width)?;
            s.memory.set(table.word + i, address(row.word));
        }
        rows.iter().for_each(|row| s.memory.count(*row, to));
        *columns = to;
        Ok(())
    }

    /// Sets a name of a list, or removes it with `None`.
    ///
    /// # Errors
    /// [`SegmentError::Full`].
    pub fn name(&mut self, slot: Slot, index: usize, to: Option<&str>) -> Result<(), SegmentError> {
        let s = &mut *self.segment;
        let Some(Entry::Names { table, names }) = s.entries.get_mut(slot.0 as usize) else {
            return Ok(());
        };
        if index >= names.len() {
            *table = s.memory.grow(*table, index + 1)?;
            s.memory.count(*table, index + 1);
            names.resize(index + 1, None);
        }
        let text = match to {
            Some(text) => {
                let words = text.len() / 8 + 1;
                // The NUL counts.
                let block = s.memory.vector(text.len() + 1, words)?;
                words_of(text.as_bytes())
                    .enumerate()
                    .for_each(|(i, w)| s.memory.set(block.word + i, w));
                Some(block)
            }
            None => None,
        };
        s.memory.set(table.word + index, text.map_or(0, |block| address(block.word)));
        if let Some(old) = std::mem::replace(&mut names[index], text) {
            s.memory.release(old);
        }
        let value = address(table.word);
        let word = s.entry_word(slot) + entry::VALUE;
        s.memory.set(word, value);
        Ok(())
    }
}
