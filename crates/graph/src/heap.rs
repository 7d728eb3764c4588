//! Allocator tuning, what is allocated, and an allocator for tests that counts allocations.

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::sync::Once;

/// Disables glibc's fastbins (`M_MXFAST` = 0), so that small freed chunks coalesce immediately.
///
/// With fastbins, glibc puts that off and then coalesces some hundred thousand chunks in one pass:
/// milliseconds for the thread that next frees or requests a larger chunk, which may be the main
/// thread after another thread has dropped a large plan.
pub(crate) fn disable_fastbins() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        // SAFETY: mallopt(3) may be called at any time by any thread (it takes the allocator's
        // lock), and this parameter changes no memory that is in use.
        let _ = unsafe { libc::mallopt(libc::M_MXFAST, 0) };
    });
}

/// Returns the bytes that the process has allocated and not freed, with what the allocator adds to
/// each block; `None` if the C library does not say (glibc does from 2.33 on).
///
/// Blocks that glibc keeps for a thread's next allocation count as allocated, some hundred KiB of
/// each thread at most; `GLIBC_TUNABLES=glibc.malloc.tcache_count=0` makes it keep none.
#[must_use]
pub fn in_use() -> Option<u64> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // Looked up, so that the program starts with an older library too.
        // SAFETY: the name is a string that ends with a zero byte.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"mallinfo2".as_ptr()) };
        if found.is_null() {
            return None;
        }
        // SAFETY: mallinfo2(3) is a function of this type wherever there is one.
        let mallinfo2: unsafe extern "C" fn() -> libc::mallinfo2 =
            unsafe { std::mem::transmute(found) };
        // SAFETY: any thread may call it at any time; it takes the allocator's locks.
        let info = unsafe { mallinfo2() };
        Some((info.uordblks + info.hblkhd) as u64)
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    None
}

/// The system's allocator with a counter of allocations per thread: as the `#[global_allocator]` of
/// a test it shows whether a worker allocates where it must not.
///
/// ```
/// use thalweg_graph::heap::Counting;
///
/// #[global_allocator]
/// static HEAP: Counting = Counting;
///
/// let before = Counting::allocations();
/// drop(vec![1, 2, 3]);
/// assert_eq!(Counting::allocations() - before, 1);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting;

thread_local! {
    // No lazy initialization and no destructor: what the allocator itself does must not allocate.
    static ASKED: Cell<u64> = const { Cell::new(0) };
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    // Touched only while a thread is watched.
    static SEEN: RefCell<Option<Backtrace>> = const { RefCell::new(None) };
}

impl Counting {
    /// Returns this thread's number of allocations; 0 if this is not the program's allocator.
    pub fn allocations() -> u64 {
        ASKED.get()
    }

    /// Records the next allocation on this thread, for [`backtrace`](Self::backtrace).
    pub fn watch() {
        SEEN.take();
        WATCHED.set(true);
    }

    /// Returns the backtrace of the first allocation since [`watch`](Self::watch). Ends watching.
    ///
    /// Printing it resolves its names, which takes seconds on a slow machine: not on a worker.
    pub fn backtrace() -> Option<Backtrace> {
        WATCHED.set(false);
        SEEN.take()
    }

    #[inline]
    fn note() {
        let asked = ASKED.get() + 1;
        // Run it only once: capturing a backtrace allocates, too, which does not count.
        if WATCHED.replace(false) {
            SEEN.set(Some(Backtrace::force_capture()));
        }
        ASKED.set(asked);
    }
}

// SAFETY: the system's allocator does all of it; counting allocates nothing, and capturing a
// backtrace does only after it has stopped watching.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Counting::note();
        // SAFETY: by the contract of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Counting::note();
        // SAFETY: by the contract of this function.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Counting::note();
        // SAFETY: by the contract of this function.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: by the contract of this function.
        unsafe { System.dealloc(at, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_counts() {
        // More than other tests hold; none of it is touched.
        const SIZE: u64 = 1 << 30;
        let Some(before) = in_use() else { return };
        let block = std::hint::black_box(Vec::<u8>::with_capacity(SIZE as usize));
        assert!(in_use().is_some_and(|now| now >= before + SIZE / 2));
        drop(block);
        assert!(in_use().is_some_and(|now| now < before + SIZE / 2));
    }
}
