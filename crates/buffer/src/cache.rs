//! A worker's cache of free buffers.

use crate::frame::Frame;
use crate::meta::{Flags, Meta};
use crate::packet::Packet;
use crate::pool::{BATCH, BufHdr, Pool, Published};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Free buffers, last in, first out, so that they are still in the processor's cache. Trades
/// batches with the pool's depot. One thread owns it.
pub struct Cache {
    pool: Pool,
    stack: Vec<NonNull<BufHdr>>,
    published: Arc<Published>,
    /// Number of free buffers above which some go back to the depot.
    high: usize,
    misses: u64,
}

// SAFETY: free buffers in a cache belong to it alone.
unsafe impl Send for Cache {}

/// Maximum number of free buffers that a cache of a large pool keeps. The buffers that a worker has
/// in flight in a loop should fit: buffers that pass through the depot come back from other
/// workers, whose cores own their cache lines.
const HIGH: usize = 8192;

/// Minimum number of free buffers that an empty cache of a large pool takes. They are adjacent, so
/// that those in use here, which are the last of them, have unused ones before and after them: a
/// core that iterates over a frame's buffers prefetches beyond their last, and if that were another
/// worker's, its core would have to get the cache line back.
const RUN: usize = 1024;

impl Cache {
    /// Creates an empty cache of `pool`, its only one.
    pub fn new(pool: Pool) -> Cache {
        Cache::one_of(pool, 1)
    }

    /// Creates an empty cache, one of `caches` of `pool`: together they keep half of its buffers at
    /// most, except for 64 each of a small one.
    pub fn one_of(pool: Pool, caches: usize) -> Cache {
        let published = pool.inner.register_cache();
        let high = (pool.audit().total / 2 / caches.max(1)).clamp(BATCH, HIGH);
        Cache { pool, stack: Vec::with_capacity(2 * HIGH), published, high, misses: 0 }
    }

    /// Moves the list of buffers into memory that this thread has allocated.
    pub fn unshare(&mut self) {
        let mut own = Vec::with_capacity(self.stack.capacity());
        own.append(&mut self.stack);
        self.stack = own;
    }

    /// Returns its pool.
    pub fn pool(&self) -> Pool {
        self.pool
    }

    /// Returns the number of failed allocations.
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// Publishes the number of buffers for the audit: one store, once per loop.
    #[inline]
    pub fn publish(&self) {
        self.published.0.store(self.stack.len(), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn take_buf(&mut self) -> Option<NonNull<BufHdr>> {
        if let Some(b) = self.stack.pop() {
            return Some(b);
        }
        self.refill(1);
        self.stack.pop()
    }

    #[cold]
    fn refill(&mut self, want: usize) {
        let run = want.max(RUN.min(self.high));
        while self.stack.len() < run && self.pool.inner.pop_batch(&mut self.stack) {}
        self.misses += u64::from(self.stack.len() < want);
    }

    /// Allocates a packet: empty, with headroom. `None` if the pool is exhausted.
    #[inline]
    pub fn alloc(&mut self) -> Option<Packet> {
        self.take_buf().map(Packet::fresh)
    }

    /// Appends up to `want` packets of `len` bytes each (of undefined contents) to `frame`; returns
    /// their number. For devices that fill frames in bulk.
    ///
    /// # Panics
    /// If `len` exceeds the pool's data size.
    pub fn alloc_into(&mut self, frame: &mut Frame, want: usize, len: usize) -> usize {
        assert!(len <= self.pool.data_size());
        let want = want.min(frame.room());
        if self.stack.len() < want {
            self.refill(want);
        }
        let n = want.min(self.stack.len());
        let from = self.stack.len() - n;
        frame.append_fresh(&self.stack[from..], len);
        self.stack.truncate(from);
        n
    }

    /// Frees a packet with all its segments.
    #[inline]
    pub fn free(&mut self, packet: Packet) {
        let (buf, _) = packet.into_parts();
        self.free_chain(buf);
        self.spill();
    }

    pub(crate) fn free_chain(&mut self, mut buf: NonNull<BufHdr>) {
        loop {
            // SAFETY: the caller gives the chain up; free buffers have default meta.
            let next = unsafe {
                let hdr = buf.as_mut();
                hdr.meta = Meta::default();
                hdr.next.take()
            };
            self.stack.push(buf);
            match next {
                Some(n) => buf = n,
                None => return,
            }
        }
    }

    /// Frees all packets of a frame.
    #[inline]
    pub fn free_frame(&mut self, frame: &mut Frame) {
        frame.compact(());
        // The mark of sampled packets is in the frame only.
        let mut marks = frame.flags();
        marks.remove(Flags::SAMPLED);
        if !marks.is_empty() {
            for buf in frame.written_bufs() {
                // SAFETY: the caller gives the packets up; free buffers have default meta.
                let rest = unsafe {
                    let hdr = &mut *buf.as_ptr();
                    hdr.meta = Meta::default();
                    hdr.next.take()
                };
                if let Some(rest) = rest {
                    self.free_chain(rest);
                }
            }
        }
        // No other meta was touched, and no other packet has a chain.
        match frame.bufs() {
            // No call to copy eight bytes.
            [one] => self.stack.push(*one),
            all => self.stack.extend_from_slice(all),
        }
        frame.clear_all();
        self.spill();
    }

    #[inline]
    fn spill(&mut self) {
        if self.stack.len() > self.high {
            self.spill_some();
        }
    }

    /// Returns enough buffers to get well below its share, so that this is rare.
    #[cold]
    fn spill_some(&mut self) {
        let beyond = self.stack.len() - self.high + self.high / 8;
        // The oldest go: the newest are in the processor's cache.
        let n = beyond.next_multiple_of(BATCH).min(self.stack.len());
        self.stack[..n].chunks(BATCH).for_each(|batch| self.pool.inner.push_batch(batch));
        self.stack.drain(..n);
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        for batch in self.stack.chunks(BATCH) {
            self.pool.inner.push_batch(batch);
        }
        self.pool.inner.unregister_cache(&self.published);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::PoolConfig;

    #[test]
    fn buffers_in_use_by_two_are_far_apart() {
        let pool = Pool::new(&PoolConfig { buffers: 4096, ..PoolConfig::default() }).unwrap();
        let mut caches = [Cache::one_of(pool, 2), Cache::one_of(pool, 2)];
        let mut frames = [Frame::new(), Frame::new()];
        // Both start at once, and take a few at a time.
        for _ in 0..4 {
            for (cache, frame) in caches.iter_mut().zip(&mut frames) {
                assert_eq!(cache.alloc_into(frame, 64, 60), 64);
            }
        }
        let ends = frames.each_ref().map(|frame| {
            let places = || frame.bufs().iter().map(|buf| buf.addr().get() / pool.stride());
            (places().min().unwrap(), places().max().unwrap())
        });
        let between = ends[0].0.max(ends[1].0).saturating_sub(ends[0].1.min(ends[1].1));
        assert!(between > 256, "{ends:?}");
        for (cache, frame) in caches.iter_mut().zip(&mut frames) {
            cache.free_frame(frame);
        }
    }

    #[test]
    fn a_small_pool_is_shared_and_a_missing_buffer_is_counted_once() {
        let pool = Pool::new(&PoolConfig { buffers: 256, ..PoolConfig::default() }).unwrap();
        let mut caches = [Cache::one_of(pool, 2), Cache::one_of(pool, 2)];
        let packets: Vec<_> = caches.iter_mut().map(|cache| cache.alloc().unwrap()).collect();
        assert_eq!(
            caches.each_ref().map(|cache| (cache.stack.len(), cache.misses())),
            [(63, 0); 2]
        );
        let mut frame = Frame::new();
        assert_eq!(caches[0].alloc_into(&mut frame, 255, 60), 191);
        assert_eq!((caches[0].misses(), caches[1].misses()), (1, 0));
        caches[0].free_frame(&mut frame);
        for (cache, packet) in caches.iter_mut().zip(packets) {
            cache.free(packet);
        }
    }
}
