//! Quiescent-state-based reclamation: the writer unlinks something, and reuses it only after every
//! reader that could have seen it has announced that it holds no reference any more.
//!
//! The domain counts epochs. Unlinking something and then asking for a [`Tag`] opens a new epoch.
//! A reader announces the epoch it has seen once per loop ([`Reader::enter`]), at a point where it
//! holds no reference. A tag has *passed* when each reader is either offline or has announced an
//! epoch at least as new as the tag.
//!
//! # Why it is correct
//!
//! * **Online reader.** The reader loads the epoch with Acquire; the writer opened the epoch with a
//!   Release operation after it unlinked. A reader that has seen epoch *e* therefore cannot find
//!   what was unlinked before *e*. The reader announces *e* with a Release store, which the
//!   writer's Acquire load pairs with: all reads of the former loop happen before the reuse. No
//!   fence is needed.
//! * **Reader coming online.** The writer may look at the slot just before the announcement gets
//!   there and conclude that the reader sleeps. Both sides therefore put a SeqCst fence between
//!   their store and their loads: either the writer sees the announcement, or the reader sees what
//!   the writer published before it looked.
//! * **Reader going offline** stores its slot with Release, as above.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64 as PlainU64, Ordering as PlainOrdering};
use std::sync::{Arc, PoisonError};

use crate::sync::{AtomicU64, Mutex, Ordering, Padded, fence};

/// Maximum number of readers in a domain.
#[cfg(not(loom))]
pub const MAX_READERS: usize = 256;
/// Maximum number of readers in a domain (few, so that the model stays explorable).
#[cfg(loom)]
pub const MAX_READERS: usize = 2;

/// Bits of a word of [`Domain::claimed`].
const BITS: usize = u64::BITS as usize;

/// The slot value of an offline reader, and of a slot without a reader.
const OFFLINE: u64 = 0;
const FIRST_EPOCH: u64 = 1;

static NEXT_DOMAIN: PlainU64 = PlainU64::new(1);

type Retired = Box<dyn FnOnce() + Send>;

/// Errors of a [`Domain`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QsbrError {
    /// All reader slots are taken.
    #[error("all {limit} reader slots are taken: run fewer workers")]
    TooManyReaders {
        /// The number of slots.
        limit: usize,
    },
}

/// A point in time of a [`Domain`]. Memory unlinked before the tag was taken may be reused once
/// [`Domain::passed`] returns true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag(u64);

/// One writer side and up to [`MAX_READERS`] readers that agree on grace periods.
pub struct Domain {
    id: u64,
    epoch: Padded<AtomicU64>,
    /// One bit per slot that a [`Reader`] owns.
    claimed: Padded<[AtomicU64; MAX_READERS.div_ceil(BITS)]>,
    /// The newest epoch known to have passed. Older tags need no scan.
    safe: AtomicU64,
    slots: [Padded<AtomicU64>; MAX_READERS],
    /// Readers never take this lock.
    retired: Mutex<VecDeque<(Tag, Retired)>>,
}

impl Domain {
    /// Creates a domain without readers.
    pub fn new() -> Arc<Domain> {
        Arc::new(Domain {
            id: NEXT_DOMAIN.fetch_add(1, PlainOrdering::Relaxed),
            epoch: Padded(AtomicU64::new(FIRST_EPOCH)),
            claimed: Padded(std::array::from_fn(|_| AtomicU64::new(0))),
            safe: AtomicU64::new(0),
            slots: std::array::from_fn(|_| Padded(AtomicU64::new(OFFLINE))),
            retired: Mutex::new(VecDeque::new()),
        })
    }

    /// Registers a reader, offline until its first [`Reader::enter`]. Its slot is free again when
    /// it is dropped.
    ///
    /// # Errors
    ///
    /// [`QsbrError::TooManyReaders`] if there are [`MAX_READERS`] readers already.
    pub fn register(self: &Arc<Self>) -> Result<Reader, QsbrError> {
        for (word, claimed) in self.claimed.0.iter().enumerate() {
            loop {
                let free = (!claimed.load(Ordering::Relaxed)).trailing_zeros() as usize;
                let slot = word * BITS + free;
                if free >= BITS || slot >= MAX_READERS {
                    break;
                }
                let bit = 1 << free;
                // AcqRel: pairs with the drop of the slot's former owner.
                if claimed.fetch_or(bit, Ordering::AcqRel) & bit == 0 {
                    return Ok(Reader { domain: Arc::clone(self), slot, seen: OFFLINE });
                }
            }
        }
        Err(QsbrError::TooManyReaders { limit: MAX_READERS })
    }

    /// Opens a new epoch. To be called *after* unlinking the memory for reuse.
    pub fn tag(&self) -> Tag {
        Tag(self.epoch.0.fetch_add(1, Ordering::AcqRel) + 1)
    }

    /// Returns true if no reader can see any more what was unlinked before `tag` was taken. Never
    /// blocks; once true, it stays true.
    pub fn passed(&self, tag: Tag) -> bool {
        tag.0 <= self.safe.load(Ordering::Acquire) || tag.0 <= self.scan()
    }

    /// Runs `free` in a later [`Domain::reclaim`], when no reader can see any more what the caller
    /// unlinked before this call.
    pub fn retire(&self, free: impl FnOnce() + Send + 'static) {
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        // Take the tag under the lock, so that the queue is in the order of its tags.
        let tag = self.tag();
        retired.push_back((tag, Box::new(free)));
    }

    /// Drops `value` in a later [`Domain::reclaim`], as [`Domain::retire`] does.
    pub fn retire_box<T: Send + 'static>(&self, value: Box<T>) {
        self.retire(move || drop(value));
    }

    /// Runs retired items that are safe by now; returns their number. Never waits for a reader nor
    /// for another caller.
    pub fn reclaim(&self) -> usize {
        let ready: Vec<Retired> = {
            let Ok(mut retired) = self.retired.try_lock() else { return 0 };
            let Some(&(oldest, _)) = retired.front() else { return 0 };
            if !self.passed(oldest) {
                return 0;
            }
            let safe = Tag(self.safe.load(Ordering::Acquire));
            let count = retired.partition_point(|&(tag, _)| tag <= safe);
            retired.drain(..count).map(|(_, free)| free).collect()
        };
        // Outside the lock: freeing an item may retire another.
        let count = ready.len();
        ready.into_iter().for_each(|free| free());
        count
    }

    /// Returns the number of retired items that wait for their grace period.
    pub fn pending(&self) -> usize {
        self.retired.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns the number of registered readers.
    pub fn readers(&self) -> usize {
        let ones = |word: &AtomicU64| word.load(Ordering::Relaxed).count_ones() as usize;
        self.claimed.0.iter().map(ones).sum()
    }

    /// Returns a number that identifies the domain within the process.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Returns the newest epoch that every reader has passed, also remembered in `safe`.
    fn scan(&self) -> u64 {
        // The epoch comes before the slots: a reader that comes online later announces this epoch
        // or a newer one, or cannot see what was unlinked (the fence).
        let mut safe = self.epoch.0.load(Ordering::Acquire);
        fence(Ordering::SeqCst);
        for (claimed, slots) in self.claimed.0.iter().zip(self.slots.chunks(BITS)) {
            let mut claimed = claimed.load(Ordering::Acquire);
            while claimed != 0 {
                let slot = claimed.trailing_zeros() as usize;
                claimed &= claimed - 1;
                match slots[slot].0.load(Ordering::Acquire) {
                    OFFLINE => {}
                    seen => safe = safe.min(seen),
                }
            }
        }
        // A reader that has just come online may announce an old epoch; what has passed stays
        // passed.
        self.safe.fetch_max(safe, Ordering::AcqRel).max(safe)
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // Readers hold the domain alive: there is none left.
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        let rest = std::mem::take(&mut *retired);
        drop(retired);
        rest.into_iter().for_each(|(_, free)| free());
    }
}

impl std::fmt::Debug for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Domain")
            .field("epoch", &self.epoch.0.load(Ordering::Relaxed))
            .field("safe", &self.safe.load(Ordering::Relaxed))
            .field("readers", &self.readers())
            .field("pending", &self.pending())
            .finish()
    }
}

/// A thread's membership in a [`Domain`]. The value may move to another thread between two guards.
#[derive(Debug)]
pub struct Reader {
    domain: Arc<Domain>,
    slot: usize,
    /// Copy of the slot, which is only ever written here.
    seen: u64,
}

impl Reader {
    /// Announces that the thread holds no older reference (the former guard is gone: it borrowed
    /// the reader), and comes online if it was not. To be called once per loop: a load and a
    /// compare while nothing was retired, and a store when something was.
    #[inline]
    pub fn enter(&mut self) -> Guard<'_> {
        let epoch = self.domain.epoch.0.load(Ordering::Acquire);
        if epoch != self.seen {
            self.announce(epoch);
        }
        Guard { domain: self.domain.id, _reader: PhantomData }
    }

    /// Takes the reader offline, so that the writer does not wait for it: before it sleeps or works
    /// for long.
    pub fn offline(&mut self) {
        self.domain.slots[self.slot].0.store(OFFLINE, Ordering::Release);
        self.seen = OFFLINE;
    }

    /// Returns true if the writer waits for this reader.
    pub fn is_online(&self) -> bool {
        self.seen != OFFLINE
    }

    /// Returns the domain it belongs to.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    #[cold]
    #[inline(never)]
    fn announce(&mut self, epoch: u64) {
        self.domain.slots[self.slot].0.store(epoch, Ordering::Release);
        if self.seen == OFFLINE {
            // The fence pairs with the writer's in `scan`.
            fence(Ordering::SeqCst);
        }
        self.seen = epoch;
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.offline();
        // Release: the slot's next owner must not be overtaken by the store above.
        let claimed = &self.domain.claimed.0[self.slot / BITS];
        claimed.fetch_and(!(1 << (self.slot % BITS)), Ordering::Release);
    }
}

/// Permission to read what a domain protects, until the next [`Reader::enter`] or
/// [`Reader::offline`]. The guard belongs to the thread that made it.
#[derive(Debug)]
pub struct Guard<'r> {
    domain: u64,
    /// Borrows the reader; the raw pointer keeps it on its thread.
    _reader: PhantomData<(&'r mut Reader, *const ())>,
}

impl Guard<'_> {
    /// Returns the [`Domain::id`] it protects against.
    #[inline]
    pub(crate) fn domain(&self) -> u64 {
        self.domain
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize};
    use std::time::{Duration, Instant};

    #[test]
    fn a_tag_waits_for_online_readers_only() {
        let domain = Domain::new();
        let (mut a, mut b) = (domain.register().unwrap(), domain.register().unwrap());
        assert!(domain.passed(domain.tag()), "readers start offline");
        a.enter();
        let tag = domain.tag();
        assert!(!domain.passed(tag));
        b.enter();
        assert!(!domain.passed(tag), "a has not entered");
        a.enter();
        assert!(domain.passed(tag));
        let later = domain.tag();
        a.offline();
        assert!(!domain.passed(later), "b is online");
        drop(b);
        assert!(domain.passed(later) && domain.passed(tag));
        assert!(!a.is_online());
    }

    #[test]
    fn each_of_the_readers_is_waited_for_and_its_place_returns() {
        let domain = Domain::new();
        let mut readers: Vec<_> = (0..MAX_READERS).map(|_| domain.register().unwrap()).collect();
        assert_eq!(readers.iter().map(|r| r.slot).collect::<Vec<_>>(), Vec::from_iter(0..256));
        let error = domain.register().expect_err("one too many");
        assert_eq!(error.to_string(), "all 256 reader slots are taken: run fewer workers");
        for at in [0, 63, 64, 191, 255] {
            readers[at].enter();
            let tag = domain.tag();
            assert!(!domain.passed(tag), "reader {at}");
            readers[at].offline();
            assert!(domain.passed(tag), "reader {at}");
        }
        drop(readers.remove(130));
        assert_eq!((domain.readers(), domain.register().unwrap().slot), (MAX_READERS - 1, 130));
    }

    #[test]
    fn reclaims_in_order_and_only_safe_items() {
        let domain = Domain::new();
        let mut reader = domain.register().unwrap();
        let log = Arc::new(std::sync::Mutex::new(Vec::new()));
        let push = |n| {
            let log = Arc::clone(&log);
            move || log.lock().unwrap().push(n)
        };
        reader.enter();
        domain.retire(push(1));
        reader.enter();
        domain.retire(push(2));
        assert_eq!((domain.pending(), domain.reclaim()), (2, 1));
        assert_eq!((domain.pending(), domain.reclaim()), (1, 0));
        reader.enter();
        domain.retire_box(Box::new(7));
        assert_eq!(domain.reclaim(), 1);
        drop(reader);
        domain.retire(push(3));
        assert_eq!(domain.reclaim(), 2);
        domain.retire(push(4));
        drop(domain);
        assert_eq!(*log.lock().unwrap(), [1, 2, 3, 4], "the last one when the domain went");
    }

    #[test]
    fn freed_items_may_retire_more() {
        let domain = Domain::new();
        let inner = Arc::downgrade(&domain);
        domain.retire(move || inner.upgrade().unwrap().retire(|| ()));
        assert_eq!((domain.reclaim(), domain.pending()), (1, 1));
        assert_eq!((domain.reclaim(), domain.pending()), (1, 0));
    }

    #[test]
    fn slots_do_not_share_lines() {
        assert_eq!(size_of::<Padded<AtomicU64>>(), 128);
        assert_eq!(align_of::<Domain>(), 128);
    }

    /// Indices are poisoned as soon as their tag passed; no reader may ever meet poison.
    #[test]
    fn readers_never_see_reclaimed_items() {
        const CELLS: usize = 8;
        const POISON: usize = usize::MAX;
        let domain = Domain::new();
        let cells: Arc<[AtomicUsize; CELLS]> = Arc::new(std::array::from_fn(AtomicUsize::new));
        let current = Arc::new(AtomicUsize::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let readers: Vec<_> = (0..2)
            .map(|id| {
                let (mut reader, cells) = (domain.register().unwrap(), Arc::clone(&cells));
                let (current, stop) = (Arc::clone(&current), Arc::clone(&stop));
                std::thread::spawn(move || {
                    let mut loops = 0usize;
                    while !stop.load(PlainOrdering::Relaxed) {
                        let _guard = reader.enter();
                        let at = current.load(PlainOrdering::Acquire);
                        for _ in 0..50 {
                            assert_eq!(cells[at].load(PlainOrdering::Relaxed), at);
                        }
                        loops += 1;
                        if loops.is_multiple_of(id + 1) {
                            reader.offline();
                        }
                    }
                })
            })
            .collect();
        let mut free: Vec<usize> = (1..CELLS).collect();
        let mut limbo: VecDeque<(Tag, usize)> = VecDeque::new();
        // Bound the time: each grace period costs a time slice if cores are fewer than threads.
        let until = Instant::now() + Duration::from_millis(400);
        while Instant::now() < until {
            while let Some(&(tag, cell)) = limbo.front()
                && domain.passed(tag)
            {
                limbo.pop_front();
                cells[cell].store(POISON, PlainOrdering::Relaxed);
                free.push(cell);
            }
            let Some(cell) = free.pop() else {
                std::thread::yield_now();
                continue;
            };
            cells[cell].store(cell, PlainOrdering::Relaxed);
            let old = current.swap(cell, PlainOrdering::AcqRel);
            limbo.push_back((domain.tag(), old));
        }
        stop.store(true, PlainOrdering::Relaxed);
        readers.into_iter().for_each(|r| r.join().unwrap());
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::atomic::AtomicUsize;

    /// Two cells, one of them current. Loom reports it when the writer touches a cell that a
    /// reader still reads.
    struct World {
        domain: Arc<Domain>,
        current: AtomicUsize,
        cells: [UnsafeCell<u32>; 2],
    }

    // SAFETY: the cells are what the model checks; loom reports unsynchronised access.
    unsafe impl Sync for World {}
    // SAFETY: as above.
    unsafe impl Send for World {}

    impl World {
        fn new() -> Arc<World> {
            Arc::new(World {
                domain: Domain::new(),
                current: AtomicUsize::new(0),
                cells: [UnsafeCell::new(10), UnsafeCell::new(11)],
            })
        }

        fn read(&self, _guard: &Guard<'_>) {
            let at = self.current.load(Ordering::Acquire);
            // SAFETY: reads race only if the domain is wrong, which loom reports.
            self.cells[at].with(|p| assert_eq!(unsafe { *p }, 10 + at as u32));
        }

        fn replace_and_poison(&self) -> bool {
            self.current.store(1, Ordering::Release);
            let tag = self.domain.tag();
            let passed = (0..2).any(|_| {
                loom::thread::yield_now();
                self.domain.passed(tag)
            });
            if passed {
                // SAFETY: as in `read`.
                self.cells[0].with_mut(|p| unsafe { *p = 0 });
            }
            passed
        }
    }

    #[test]
    fn loom_online_and_back() {
        loom::model(|| {
            let world = World::new();
            let mut reader = world.domain.register().unwrap();
            let shared = Arc::clone(&world);
            let thread = loom::thread::spawn(move || {
                for _ in 0..2 {
                    shared.read(&reader.enter());
                }
                reader.offline();
            });
            world.replace_and_poison();
            thread.join().unwrap();
        });
    }

    #[test]
    fn loom_sleep_and_wake() {
        loom::model(|| {
            let world = World::new();
            let mut reader = world.domain.register().unwrap();
            let shared = Arc::clone(&world);
            let thread = loom::thread::spawn(move || {
                shared.read(&reader.enter());
                reader.offline();
                shared.read(&reader.enter());
            });
            world.replace_and_poison();
            thread.join().unwrap();
        });
    }

    #[test]
    fn loom_register_late() {
        loom::model(|| {
            let world = World::new();
            let shared = Arc::clone(&world);
            let thread = loom::thread::spawn(move || {
                let mut reader = shared.domain.register().unwrap();
                shared.read(&reader.enter());
            });
            world.replace_and_poison();
            thread.join().unwrap();
        });
    }
}
