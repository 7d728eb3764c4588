//! Arrays of fixed capacity whose memory is committed page by page, when it is first written.
//!
//! A table can thus have a generous limit from the start and never move: readers keep plain
//! references, and nothing has to be reallocated under them.

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Transparent huge pages come in this size on x86-64 and on most arm64 kernels.
pub(crate) const HUGE_PAGE: usize = 2 << 20;
/// Maximum alignment of a type in a mapping.
const PAGE: usize = 4096;

/// The kernel refused to reserve address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot reserve {bytes} bytes of address space: {source}; configure a smaller table or raise \
     the limit (ulimit -v)"
)]
pub struct MapError {
    /// Size requested.
    pub bytes: usize,
    /// The kernel's error.
    pub source: rustix::io::Errno,
}

/// Types of which a run of zero bytes is a valid value.
///
/// # Safety
///
/// All bytes zero must be a valid, initialised value, and its alignment at most 4096 bytes.
pub unsafe trait AllZeroValid: Send + Sync {}

macro_rules! all_zero_valid {
    ($($type:ty),*) => {
        // SAFETY: plain integers and their atomic twins, for which zero is a value.
        $(unsafe impl AllZeroValid for $type {})*
    };
}
all_zero_valid!(u8, u16, u32, u64, bool, AtomicU8, AtomicU16, AtomicU32, AtomicU64);

// SAFETY: it has no bytes.
unsafe impl AllZeroValid for () {}

// SAFETY: an array has no bytes of its own.
unsafe impl<T: AllZeroValid, const N: usize> AllZeroValid for [T; N] {}

/// Declares a struct of [`AllZeroValid`] fields, which is [`AllZeroValid`] itself.
#[macro_export]
macro_rules! zeroable {
    ($(#[$doc:meta])* $vis:vis struct $name:ident {
        $($(#[$field_doc:meta])* $field_vis:vis $field:ident: $type:ty),* $(,)?
    }) => {
        $(#[$doc])*
        $vis struct $name { $($(#[$field_doc])* $field_vis $field: $type),* }

        const _: () = {
            const fn zero_is_valid<T: $crate::AllZeroValid>() {}
            $(zero_is_valid::<$type>();)*
        };

        // SAFETY: zero is a value of each field, as was just checked, and there is nothing else but
        // padding.
        unsafe impl $crate::AllZeroValid for $name {}
    };
}

/// Page size hint: transparent huge pages cause fewer TLB misses under random access, for 2 MiB of
/// memory with the first entry touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// The kernel's default size.
    Normal,
    /// Huge pages where the kernel has them. The choice is never an error.
    Huge,
}

/// A zero-initialised array of `T` in an address range of its own. Share it in an `Arc`; `T` is
/// usually a struct of atomics.
#[derive(Debug)]
pub struct PagedTable<T: AllZeroValid> {
    first: NonNull<T>,
    capacity: usize,
    map: Arc<Map>,
    _owns: PhantomData<T>,
}

/// The mapping; it starts before the first entry if that was aligned.
#[derive(Debug)]
struct Map {
    first: NonNull<u8>,
    bytes: usize,
}

// SAFETY: an address and a length, of which nothing is read or written here.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and every reference into it holds this.
        let unmapped = unsafe { munmap(self.first.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "munmap of an own mapping: {unmapped:?}");
    }
}

/// The memory of a table, for other threads to prepare.
#[derive(Debug)]
pub(crate) struct Region {
    /// Offset in the mapping, and length.
    offset: usize,
    bytes: usize,
    map: Arc<Map>,
}

impl Region {
    /// Returns its length in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Faults in a part, as writing to it would, without changing it. The part begins with a page.
    ///
    /// # Errors
    ///
    /// The kernel's error: it may not support this (before Linux 5.14), or have no memory.
    pub(crate) fn populate(&self, part: Range<usize>) -> rustix::io::Result<()> {
        let (start, end) = (part.start, part.end.min(self.bytes));
        if start >= end {
            return Ok(());
        }
        // SAFETY: within the mapping, as `region` saw to.
        let first = unsafe { self.map.first.add(self.offset + start) };
        // SAFETY: the range is mapped as long as `map` lives, and its content stays as it is.
        unsafe { madvise(first.as_ptr().cast(), end - start, Advice::LinuxPopulateWrite) }
    }
}

// SAFETY: it is a box of `T` in all but name, and `T` is Send.
unsafe impl<T: AllZeroValid> Send for PagedTable<T> {}
// SAFETY: as above; shared access gives out `&T` only, and `T` is Sync.
unsafe impl<T: AllZeroValid> Sync for PagedTable<T> {}

impl<T: AllZeroValid> PagedTable<T> {
    const FITS: () = {
        assert!(size_of::<T>() > 0, "a table of zero-sized entries");
        assert!(align_of::<T>() <= PAGE, "mappings are aligned to pages only");
        assert!(!std::mem::needs_drop::<T>(), "entries are unmapped, never dropped");
    };

    /// Reserves address space for `capacity` entries, all bytes zero.
    ///
    /// # Errors
    ///
    /// [`MapError`] if the kernel refuses.
    pub fn new(capacity: usize) -> Result<Self, MapError> {
        Self::with_pages(capacity, Pages::Normal)
    }

    /// Like [`PagedTable::new`], with a choice of the page size.
    ///
    /// # Errors
    ///
    /// [`MapError`] if the kernel refuses.
    pub fn with_pages(capacity: usize, pages: Pages) -> Result<Self, MapError> {
        const { Self::FITS };
        let too_large = MapError { bytes: usize::MAX, source: rustix::io::Errno::NOMEM };
        let bytes = capacity.checked_mul(size_of::<T>()).ok_or(too_large)?.max(PAGE);
        // A huge page is used only where it is aligned: reserve one more to align manually.
        let spare = if pages == Pages::Huge { HUGE_PAGE } else { 0 };
        let map_bytes = bytes.checked_add(spare).ok_or(too_large)?;
        let map = reserve(map_bytes)?;
        let offset = if spare > 0 { map.align_offset(spare) } else { 0 };
        // SAFETY: the offset is below `spare`, which was added to the length.
        let first = unsafe { map.add(offset) };
        if pages == Pages::Huge {
            // SAFETY: the range is within our own fresh mapping.
            let advised = unsafe { madvise(first.as_ptr().cast(), bytes, Advice::LinuxHugepage) };
            // Kernels without transparent huge pages return EINVAL, and small pages do as well.
            let _ = advised;
        }
        let map = Arc::new(Map { first: map, bytes: map_bytes });
        Ok(Self { first: first.cast(), capacity, map, _owns: PhantomData })
    }

    /// Returns its memory, which stays mapped as long as this is held.
    pub(crate) fn region(&self) -> Region {
        let offset = self.first.addr().get() - self.map.first.addr().get();
        Region { offset, bytes: self.capacity * size_of::<T>(), map: Arc::clone(&self.map) }
    }

    /// Faults in the memory of some entries before they are written, without changing them: the
    /// first writer would have to wait for it. If the kernel cannot (before Linux 5.14, or for lack
    /// of memory), it is faulted in when it is needed.
    pub fn make_ready(&self, entries: Range<usize>) {
        let from = entries.start * size_of::<T>() / PAGE * PAGE;
        // Best effort, as described.
        let _ = self.region().populate(from..entries.end * size_of::<T>());
    }

    /// Returns the entry `index`, or `None` at and beyond the capacity.
    #[inline]
    pub fn get(&self, index: u32) -> Option<&T> {
        self.as_slice().get(index as usize)
    }

    /// Returns the entry `index`.
    ///
    /// # Safety
    ///
    /// `index` must be below the capacity.
    #[inline]
    pub unsafe fn get_unchecked(&self, index: usize) -> &T {
        debug_assert!(index < self.capacity);
        // SAFETY: in bounds as the caller promises; mapped, zeroed and valid as in `as_slice`.
        unsafe { self.first.add(index).as_ref() }
    }

    /// Returns the number of entries.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns all entries. Walking over those never written commits no memory, but maps zero
    /// pages.
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        // SAFETY: the mapping holds `capacity` entries, lives as long as `self`, and was all zero,
        // which is a valid `T`, at the start.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.capacity) }
    }

    /// Returns all entries, to their only owner.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as in `as_slice`, and `&mut self` excludes other references.
        unsafe { std::slice::from_raw_parts_mut(self.first.as_ptr(), self.capacity) }
    }
}

/// `N` entries, all zero at first, of which only those that are touched cost memory: a row for each
/// object that there may be, found without a check of bounds. `N` is a power of two.
#[derive(Debug)]
pub struct SparseArray<T: AllZeroValid, const N: usize> {
    first: NonNull<T>,
    _owns: PhantomData<T>,
}

// SAFETY: it is a box of `T` in all but name, and `T` is Send.
unsafe impl<T: AllZeroValid, const N: usize> Send for SparseArray<T, N> {}
// SAFETY: as above; shared access gives out `&T` only, and `T` is Sync.
unsafe impl<T: AllZeroValid, const N: usize> Sync for SparseArray<T, N> {}

impl<T: AllZeroValid, const N: usize> SparseArray<T, N> {
    const FITS: () = assert!(N.is_power_of_two(), "indices are masked");
    const BYTES: usize = N * size_of::<T>();
}

impl<T: AllZeroValid, const N: usize> Default for SparseArray<T, N> {
    /// Reserves the address space. Without it the process ends, as it does when memory for a `Vec`
    /// cannot be allocated.
    fn default() -> Self {
        const { (Self::FITS, PagedTable::<T>::FITS) };
        let Ok(first) = reserve(Self::BYTES) else {
            let layout = std::alloc::Layout::array::<T>(N);
            std::alloc::handle_alloc_error(layout.unwrap_or(std::alloc::Layout::new::<T>()))
        };
        Self { first: first.cast(), _owns: PhantomData }
    }
}

impl<T: AllZeroValid, const N: usize> Drop for SparseArray<T, N> {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference outlives this.
        let unmapped = unsafe { munmap(self.first.as_ptr().cast(), Self::BYTES) };
        debug_assert!(unmapped.is_ok(), "munmap of an own mapping: {unmapped:?}");
    }
}

impl<T: AllZeroValid, const N: usize> SparseArray<T, N> {
    /// Returns an entry. Indices from `N` on wrap around.
    #[inline(always)]
    pub fn at(&self, index: impl Into<u32>) -> &T {
        // SAFETY: the mapping holds `N` entries, and was all zero, which is a valid `T`.
        unsafe { self.first.add(index.into() as usize % N).as_ref() }
    }

    /// Returns an entry, to its only owner. Indices from `N` on wrap around.
    #[inline(always)]
    pub fn at_mut(&mut self, index: impl Into<u32>) -> &mut T {
        // SAFETY: as in `at`, and `&mut self` excludes other references.
        unsafe { self.first.add(index.into() as usize % N).as_mut() }
    }

    /// Returns all entries. Walking over them maps page tables for all.
    pub fn as_slice(&self) -> &[T] {
        // SAFETY: as in `at`.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), N) }
    }

    /// Returns a handle to its memory, for other threads.
    pub fn memory(&self) -> SparseMemory {
        SparseMemory { first: self.first.addr().get(), entry: size_of::<T>(), entries: N }
    }
}

/// Address of a [`SparseArray`], which keeps nothing alive.
#[derive(Clone, Copy, Debug)]
pub struct SparseMemory {
    first: usize,
    entry: usize,
    entries: usize,
}

impl SparseMemory {
    /// Faults in the memory of an entry before its owner touches it: the owner would have to wait.
    /// If the kernel cannot (before Linux 5.14, or for lack of memory), that happens later.
    pub fn make_ready(&self, index: impl Into<u32>) {
        let at = self.first + index.into() as usize % self.entries * self.entry;
        let from = at / PAGE * PAGE;
        // SAFETY: faulting pages in changes no contents, even if the range has another owner by
        // now, and fails where nothing is mapped.
        let _ = unsafe {
            let first = std::ptr::without_provenance_mut(from);
            madvise(first, at + self.entry - from, Advice::LinuxPopulateWrite)
        };
    }
}

fn reserve(bytes: usize) -> Result<NonNull<u8>, MapError> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new anonymous mapping at an address of the kernel's choice touches nothing else.
    let map = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags) }
        .map_err(|source| MapError { bytes, source })?;
    // The kernel never maps page zero by itself, so the error is not reached.
    NonNull::new(map.cast()).ok_or(MapError { bytes, source: rustix::io::Errno::NOMEM })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    #[repr(C, align(64))]
    struct Entry {
        packets: AtomicU64,
        bytes: AtomicU64,
    }
    // SAFETY: atomics, for which zero is a value.
    unsafe impl AllZeroValid for Entry {}

    #[test]
    fn starts_at_zero_and_is_shared() {
        let table = Arc::new(PagedTable::<Entry>::new(1000).unwrap());
        assert_eq!((table.capacity(), table.as_slice().len()), (1000, 1000));
        assert!(table.get(1000).is_none() && table.get(u32::MAX).is_none());
        assert_eq!(table.get(999).unwrap().bytes.load(Ordering::Relaxed), 0);
        let other = Arc::clone(&table);
        std::thread::spawn(move || {
            other.get(7).unwrap().packets.store(3, Ordering::Relaxed);
        })
        .join()
        .unwrap();
        assert_eq!(table.get(7).unwrap().packets.load(Ordering::Relaxed), 3);
        assert_eq!(std::ptr::from_ref(table.get(1).unwrap()).addr() % 64, 0);
    }

    #[test]
    fn a_reservation_costs_no_memory_until_it_is_used() {
        // 64 GiB, of which two pages are touched.
        let table = PagedTable::<AtomicU64>::new(1 << 33).unwrap();
        table.get(u32::MAX).unwrap().store(1, Ordering::Relaxed);
        assert_eq!(table.get(0).unwrap().load(Ordering::Relaxed), 0);
    }

    #[test]
    fn memory_is_made_ready_and_stays_as_it_is() {
        let mut table = PagedTable::<u8>::with_pages((5 << 20) + 1, Pages::Huge).unwrap();
        table.as_mut_slice()[7] = 9;
        let region = table.region();
        // Kernels before 5.14 refuse; the rest holds nevertheless.
        let _ = region.populate(0..HUGE_PAGE);
        let _ = region.populate(2 * HUGE_PAGE..4 * HUGE_PAGE);
        assert!(region.populate(9 * HUGE_PAGE..10 * HUGE_PAGE).is_ok());
        assert_eq!(
            (table.get(7), table.get(8), table.get(5 << 20)),
            (Some(&9), Some(&0), Some(&0))
        );
        drop(table);
        assert_eq!(region.bytes(), (5 << 20) + 1);
        let _ = region.populate(0..1);
    }

    #[test]
    fn entries_are_made_ready_before_they_are_written() {
        let table = PagedTable::<AtomicU64>::new(1 << 20).unwrap();
        table.get(70_000).unwrap().store(3, Ordering::Relaxed);
        table.make_ready(69_999..200_001);
        let faults = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            let rest = stat.rsplit(')').next().unwrap();
            rest.split_whitespace().nth(7).unwrap().parse::<u64>().unwrap()
        };
        let before = faults();
        (70_001..200_001).for_each(|n| table.get(n).unwrap().store(9, Ordering::Relaxed));
        let found = faults() - before;
        assert_eq!(table.get(70_000).unwrap().load(Ordering::Relaxed), 3);
        let kernel_can = table.region().populate(0..1).is_ok();
        // 254 pages, and what the test itself needs.
        assert!(!kernel_can || found < 30, "{found} page faults");
    }

    #[test]
    fn huge_pages_are_aligned() {
        let mut table = PagedTable::<u8>::with_pages(3 << 20, Pages::Huge).unwrap();
        assert_eq!(table.as_slice().as_ptr().addr() % HUGE_PAGE, 0);
        table.as_mut_slice().fill(9);
        assert_eq!(table.get((3 << 20) - 1), Some(&9));
    }

    zeroable! {
        /// Declared as features declare theirs.
        #[derive(Debug, PartialEq)]
        #[repr(align(64))]
        struct Row {
            packets: u64,
            marked: bool,
            lines: [u32; 3],
        }
    }

    #[test]
    fn sparse_arrays_cost_what_is_touched() {
        let mut rows = SparseArray::<Row, 65_536>::default();
        let memory = rows.memory();
        memory.make_ready(65_535_u32);
        memory.make_ready(65_536_u32);
        assert_eq!(rows.at(7_u32), &Row { packets: 0, marked: false, lines: [0; 3] });
        rows.at_mut(65_535_u32).packets = 9;
        rows.at_mut(65_536_u32 + 3).marked = true;
        assert_eq!((rows.at(65_535_u32).packets, rows.at(3_u32).marked), (9, true));
        assert_eq!(rows.as_slice().iter().filter(|r| r.marked || r.packets > 0).count(), 2);
        assert_eq!(std::ptr::from_ref(rows.at(1_u32)).addr() % 64, 0);
        drop(rows);
        memory.make_ready(0_u32);
    }

    #[test]
    fn impossible_sizes_are_readable_errors() {
        let error = PagedTable::<AtomicU64>::new(1 << 60).unwrap_err();
        assert!(error.to_string().contains("smaller table"), "{error}");
        assert!(PagedTable::<AtomicU64>::new(1 << 50).is_err());
        assert_eq!(PagedTable::<AtomicU64>::new(0).unwrap().capacity(), 0);
    }
}
