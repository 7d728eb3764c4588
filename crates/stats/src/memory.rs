//! Blocks of the segment's words.

use crate::SegmentError;
use crate::layout::header;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use thalweg_tables::shared::SharedWords;

/// Words after the last block: clients consider a vector that ends with the file torn.
const SLACK: usize = 64;

/// Time that a freed block keeps its contents. A client that looks up the directory, and then waits
/// for a change to end before it reads, may still follow it and consider the result valid.
const REST: Duration = Duration::from_millis(200);

/// The words, and which of them are in use.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) shared: SharedWords,
    /// Words from here on were never used.
    fresh: usize,
    /// Free blocks by the power of two of their size, and since when they are free.
    free: Vec<VecDeque<(Instant, usize)>>,
}

/// A vector: the number of its elements, then the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Word of its first element.
    pub(crate) word: usize,
    /// Size as a power of two, including the word in front.
    power: u32,
}

impl Block {
    /// Returns the number of words that fit.
    pub(crate) fn room(self) -> usize {
        (1 << self.power) - 1
    }
}

impl Memory {
    pub(crate) fn new(shared: SharedWords) -> Memory {
        Memory { shared, fresh: header::WORDS, free: Vec::new() }
    }

    #[inline]
    pub(crate) fn get(&self, word: usize) -> u64 {
        self.shared.words()[word].load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set(&self, word: usize, value: u64) {
        self.shared.words()[word].store(value, Ordering::Relaxed);
    }

    /// Allocates a vector of `count` elements, with room for `words` words, all zero.
    pub(crate) fn vector(&mut self, count: usize, words: usize) -> Result<Block, SegmentError> {
        let power = (words.max(1) + 1).next_power_of_two().trailing_zeros();
        let free = self.free.get_mut(power as usize);
        let rested = free.filter(|f| f.front().is_some_and(|(since, _)| since.elapsed() >= REST));
        let first = match rested.and_then(VecDeque::pop_front) {
            Some((_, first)) => first,
            None => {
                let end = self.fresh + (1 << power);
                if end + SLACK > self.shared.words().len() {
                    return Err(SegmentError::Full(self.shared.words().len() * 8));
                }
                std::mem::replace(&mut self.fresh, end)
            }
        };
        for word in first..first + (1 << power) {
            self.set(word, 0);
        }
        let block = Block { word: first + 1, power };
        self.count(block, count);
        Ok(block)
    }

    /// Sets the number of a vector's elements.
    pub(crate) fn count(&self, block: Block, count: usize) {
        self.set(block.word - 1, count as u64);
    }

    /// Frees a vector. Its contents stay for a while: see [`REST`].
    pub(crate) fn release(&mut self, block: Block) {
        let power = block.power as usize;
        if self.free.len() <= power {
            self.free.resize_with(power + 1, VecDeque::new);
        }
        self.free[power].push_back((Instant::now(), block.word - 1));
    }

    /// Returns a larger vector with the same contents and number of elements.
    pub(crate) fn grow(&mut self, block: Block, words: usize) -> Result<Block, SegmentError> {
        if words <= block.room() {
            return Ok(block);
        }
        let count = self.get(block.word - 1) as usize;
        let new = self.vector(count, words.max(2 * block.room()))?;
        for i in 0..block.room() {
            self.set(new.word + i, self.get(block.word + i));
        }
        self.release(block);
        Ok(new)
    }
}
