//! Immutable values that one writer replaces whole and workers read through one pointer load.
//!
//! ```
//! use thalweg_tables::{qsbr::Domain, snapshot};
//!
//! let domain = Domain::new();
//! let (mut writer, shared) = snapshot::channel(vec![1, 2]);
//! let mut reader = domain.register().unwrap();
//! let guard = reader.enter();
//! let seen = shared.load(&guard);
//! writer.update(&domain, |old| old.iter().map(|n| n + 1).collect());
//! assert_eq!(seen, &[1, 2]); // still there: the reader has not entered again
//! let guard = reader.enter();
//! assert_eq!(shared.load(&guard), &[2, 3]);
//! assert_eq!(domain.reclaim(), 1);
//! ```

use std::marker::PhantomData;
use std::sync::Arc;

use crate::qsbr::{Domain, Guard};
use crate::sync::{AtomicPtr, AtomicU64, Ordering};

/// The value of [`Snapshot::domain`] before the first use.
const UNBOUND: u64 = 0;

/// Creates a snapshot cell: the half that publishes and the half that workers share.
///
/// The cell belongs to the first domain that it is read or published under.
pub fn channel<T: Send + Sync + 'static>(value: T) -> (Writer<T>, Arc<Snapshot<T>>) {
    let shared = Arc::new(Snapshot::new(value));
    (Writer { shared: Arc::clone(&shared) }, shared)
}

/// The readers' half of a cell that holds one immutable `T` at a time.
pub struct Snapshot<T: Send + Sync + 'static> {
    /// Pointer to a `Box<T>` that is always live.
    value: AtomicPtr<T>,
    /// Domain that guards the value: a guard of another domain would protect nothing.
    domain: AtomicU64,
    _owns: PhantomData<T>,
}

impl<T: Send + Sync + 'static> Snapshot<T> {
    fn new(value: T) -> Self {
        Snapshot {
            value: AtomicPtr::new(Box::into_raw(Box::new(value))),
            domain: AtomicU64::new(UNBOUND),
            _owns: PhantomData,
        }
    }

    /// Returns the current value, for as long as the guard lives.
    ///
    /// # Panics
    ///
    /// If the cell was used under another domain before.
    #[inline]
    pub fn load<'g>(&'g self, guard: &'g Guard<'_>) -> &'g T {
        if self.domain.load(Ordering::Relaxed) != guard.domain() {
            self.bind(guard.domain());
        }
        // SAFETY: the pointer is a live box. `Writer::publish` retires a replaced box with the
        // domain that `bind` fixed, so it outlives the guard, which is of that domain; the last
        // box lives as long as `self`, which is borrowed too.
        unsafe { &*self.value.load(Ordering::Acquire) }
    }

    #[cold]
    #[inline(never)]
    fn bind(&self, domain: u64) {
        let bound =
            self.domain.compare_exchange(UNBOUND, domain, Ordering::Relaxed, Ordering::Relaxed);
        assert!(
            bound.is_ok() || bound == Err(domain),
            "a snapshot is read and published under one domain only"
        );
    }
}

impl<T: Send + Sync + 'static> Drop for Snapshot<T> {
    fn drop(&mut self) {
        // SAFETY: the pointer is a live box that nothing else can reach any more.
        drop(unsafe { Box::from_raw(self.value.load(Ordering::Acquire)) });
    }
}

impl<T: Send + Sync + std::fmt::Debug + 'static> std::fmt::Debug for Snapshot<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without a guard the value must not be read.
        f.debug_struct("Snapshot").finish_non_exhaustive()
    }
}

/// The only half that publishes; it reads its own value without a guard.
#[derive(Debug)]
pub struct Writer<T: Send + Sync + 'static> {
    shared: Arc<Snapshot<T>>,
}

impl<T: Send + Sync + 'static> Writer<T> {
    /// Returns the current value.
    pub fn get(&self) -> &T {
        // SAFETY: the pointer is a live box, and only `publish` on this writer, which cannot be
        // called while the result is borrowed, ever replaces it.
        unsafe { &*self.shared.value.load(Ordering::Relaxed) }
    }

    /// Replaces the value; the old one is dropped after a grace period, in [`Domain::reclaim`].
    ///
    /// # Panics
    ///
    /// If the cell was used under another domain before.
    pub fn publish(&mut self, domain: &Domain, value: T) {
        if self.shared.domain.load(Ordering::Relaxed) != domain.id() {
            self.shared.bind(domain.id());
        }
        let new = Box::into_raw(Box::new(value));
        let old = self.shared.value.swap(new, Ordering::AcqRel);
        // SAFETY: `old` came from a box, and no cell holds it any more.
        domain.retire_box(unsafe { Box::from_raw(old) });
    }

    /// Publishes the result of `next` on the current value.
    pub fn update(&mut self, domain: &Domain, next: impl FnOnce(&T) -> T) {
        let value = next(self.get());
        self.publish(domain, value);
    }

    /// Returns the readers' half.
    pub fn snapshot(&self) -> Arc<Snapshot<T>> {
        Arc::clone(&self.shared)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};
    use std::time::{Duration, Instant};

    /// Overwrites itself when dropped, so that a use after free is detected even if the allocator
    /// leaves the memory alone.
    struct Poisoned {
        words: [AtomicU32; 16],
        drops: Arc<AtomicUsize>,
    }

    impl Poisoned {
        fn new(n: u32, drops: &Arc<AtomicUsize>) -> Self {
            Self { words: std::array::from_fn(|_| n.into()), drops: Arc::clone(drops) }
        }

        fn check(&self) -> u32 {
            let first = self.words[0].load(Ordering::Relaxed);
            assert_ne!(first, u32::MAX, "read after free");
            assert!(self.words.iter().all(|w| w.load(Ordering::Relaxed) == first));
            first
        }
    }

    impl Drop for Poisoned {
        fn drop(&mut self) {
            self.words.iter().for_each(|w| w.store(u32::MAX, Ordering::Relaxed));
            self.drops.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn publishes_and_frees_each_value_once() {
        let drops = Arc::new(AtomicUsize::new(0));
        let dropped = || drops.load(Ordering::Relaxed);
        let domain = Domain::new();
        let (mut writer, shared) = channel(Poisoned::new(1, &drops));
        let mut reader = domain.register().unwrap();
        let guard = reader.enter();
        let old = shared.load(&guard);
        writer.update(&domain, |old| Poisoned::new(old.check() + 1, &drops));
        assert_eq!((writer.get().check(), domain.reclaim(), old.check()), (2, 0, 1));
        let guard = reader.enter();
        assert_eq!((shared.load(&guard).check(), domain.reclaim(), dropped()), (2, 1, 1));
        drop(shared);
        assert_eq!(writer.snapshot().load(&guard).check(), 2);
        drop(writer);
        assert_eq!(dropped(), 2);
    }

    #[test]
    #[should_panic(expected = "under one domain only")]
    fn refuses_a_second_domain() {
        let (mut writer, shared) = channel(1);
        writer.publish(&Domain::new(), 2);
        shared.load(&Domain::new().register().unwrap().enter());
    }

    #[test]
    fn readers_on_threads_never_see_freed_values() {
        let drops = Arc::new(AtomicUsize::new(0));
        let domain = Domain::new();
        let (mut writer, shared) = channel(Poisoned::new(0, &drops));
        let stop = Arc::new(AtomicBool::new(false));
        let readers: Vec<_> = (0..2)
            .map(|id| {
                let (mut reader, shared) = (domain.register().unwrap(), Arc::clone(&shared));
                let stop = Arc::clone(&stop);
                std::thread::spawn(move || {
                    let mut last = 0;
                    for turn in 0usize.. {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let guard = reader.enter();
                        let value = shared.load(&guard);
                        for _ in 0..20 {
                            let now = value.check();
                            assert!(now >= last, "time went backwards");
                            last = now;
                        }
                        if turn.is_multiple_of(1 + 2 * id) {
                            reader.offline();
                        }
                    }
                })
            })
            .collect();
        let until = Instant::now() + Duration::from_millis(400);
        let mut published = 0;
        while Instant::now() < until {
            published += 1;
            writer.publish(&domain, Poisoned::new(published, &drops));
            domain.reclaim();
            if domain.pending() > 1000 {
                std::thread::yield_now();
            }
        }
        stop.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|r| r.join().unwrap());
        domain.reclaim();
        assert_eq!((domain.pending(), drops.load(Ordering::Relaxed)), (0, published as usize));
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::cell::UnsafeCell;

    /// Its drop writes a cell that readers read: loom reports it if one of them still may.
    struct Cell(Arc<UnsafeCell<u32>>);

    // SAFETY: loom reports unsynchronised access, which is what the model looks for.
    unsafe impl Send for Cell {}
    // SAFETY: as above.
    unsafe impl Sync for Cell {}

    impl Cell {
        fn new(n: u32) -> Self {
            #[allow(clippy::arc_with_non_send_sync)]
            Cell(Arc::new(UnsafeCell::new(n)))
        }
    }

    impl Drop for Cell {
        fn drop(&mut self) {
            // SAFETY: races only if the domain is wrong, which loom reports.
            self.0.with_mut(|p| unsafe { *p = 0 });
        }
    }

    #[test]
    fn loom_publish_while_reading() {
        loom::model(|| {
            let domain = Domain::new();
            let (mut writer, shared) = channel(Cell::new(1));
            let mut reader = domain.register().unwrap();
            let thread = loom::thread::spawn(move || {
                for _ in 0..2 {
                    let guard = reader.enter();
                    // SAFETY: as in `drop`.
                    shared.load(&guard).0.with(|p| assert_ne!(unsafe { *p }, 0));
                }
            });
            writer.publish(&domain, Cell::new(2));
            domain.reclaim();
            thread.join().unwrap();
            drop(writer);
        });
    }
}
