//! Prefetch hints for safe code.

use std::ptr::NonNull;

/// Prefetches the cache line of `at` for writing: another core has read it, and a store would wait
/// for that core to give it up. A hint; without the instruction nothing is done.
#[inline]
pub fn for_write<T>(at: &T) {
    address_for_write(std::ptr::from_ref(at).cast());
}

/// Like [`for_write`], of an address, which need not be mapped.
#[inline]
pub(crate) fn address_for_write(at: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch never faults and changes no register, flag or memory. Processors without
    // the instruction treat it as a no-op.
    unsafe {
        std::arch::asm!(
            "prefetchw byte ptr [{}]",
            in(reg) at,
            options(nostack, preserves_flags, readonly),
        );
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: a prefetch never faults and changes no register, flag or memory.
    unsafe {
        std::arch::asm!(
            "prfm pstl1keep, [{}]",
            in(reg) at,
            options(nostack, preserves_flags, readonly),
        );
    }
    #[cfg(any(not(any(target_arch = "x86_64", target_arch = "aarch64")), miri))]
    let _ = at;
}

/// Prefetches the cache line of `at`. A hint.
#[inline]
pub fn for_read<T>(at: &T) {
    read_line(std::ptr::from_ref(at).cast());
}

/// Prefetches all cache lines of `at`. A hint.
#[inline]
pub fn lines_for_read<T>(at: &T) {
    first_for_read(at, size_of::<T>());
}

/// Prefetches the cache lines of the first `bytes` of `at`, at least one. A hint.
#[inline]
pub fn first_for_read<T>(at: &T, bytes: usize) {
    let first = std::ptr::from_ref(at).cast::<u8>();
    for offset in (0..bytes).step_by(LINE) {
        read_line(first.wrapping_add(offset));
    }
    // A type that is not aligned to a line may reach into one more.
    if bytes > 1 && align_of::<T>() < LINE {
        read_line(first.wrapping_add(bytes - 1));
    }
}

/// The cache line of a value that will be needed, for a caller that knows when, but not its type.
/// The line keeps nothing alive: the value may be gone, and the hint useless.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line(usize);

// SAFETY: an address that is only prefetched, which never faults.
unsafe impl crate::AllZeroValid for Line {}

impl Line {
    /// Returns the line of `at`, or its first one.
    #[inline]
    pub fn of<T: ?Sized>(at: &T) -> Line {
        Line(NonNull::from_ref(at).cast::<u8>().addr().get())
    }

    /// Prefetches the line. A hint.
    #[inline]
    pub fn fetch(self) {
        read_line(std::ptr::without_provenance(self.0));
    }
}

/// Bytes of a cache line.
const LINE: usize = 64;

#[inline]
fn read_line(at: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: a prefetch is a hint and never faults.
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{}]",
            in(reg) at,
            options(nostack, preserves_flags, readonly),
        );
    }
    #[cfg(any(not(any(target_arch = "x86_64", target_arch = "aarch64")), miri))]
    let _ = at;
}

#[cfg(test)]
mod tests {
    #[test]
    fn prefetched_values_are_unchanged() {
        let values: Vec<u64> = (0..1000).collect();
        values.iter().for_each(super::for_write);
        values.iter().for_each(super::for_read);
        super::lines_for_read(&[7u64; 40]);
        super::first_for_read(&[7u64; 40], 70);
        super::lines_for_read(&());
        super::for_write(&());
        let line = super::Line::of(&values[..]);
        line.fetch();
        assert!(values.iter().copied().eq(0..1000));
        drop(values);
        line.fetch();
    }
}
