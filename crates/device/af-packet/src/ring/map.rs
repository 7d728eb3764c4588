//! Memory shared with the kernel.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;

/// A mapping of the rings of one socket.
#[derive(Debug)]
pub(super) struct Region {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the region is only an address range; who may touch which bytes of it,
// from whichever thread, is settled by the status words and the contracts of
// `slice` and `slice_mut`.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Maps `len` bytes of ring memory of a packet socket.
    ///
    /// The pages belong to the socket and are not swapped anyway, so they are not
    /// locked here: that would count against `RLIMIT_MEMLOCK`.
    pub(super) fn map(fd: BorrowedFd<'_>, len: usize) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let how = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe { libc::mmap(ptr::null_mut(), len, access, how, fd.as_raw_fd(), 0) };
        match NonNull::new(base.cast::<u8>()) {
            Some(start) if base != libc::MAP_FAILED => Ok(Self { base: start, len }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The shared 32-bit word at byte `at`, which must be a multiple of 4.
    #[inline]
    pub(super) fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.len);
        // SAFETY: inside of the mapping, aligned (the base is a page), alive as
        // long as `self`; any bits are a valid u32, and both sides write it whole.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    /// Bytes of the ring.
    ///
    /// # Safety
    /// The kernel must have handed over these bytes (status USER, read with Acquire), and they must
    /// be neither returned nor written while the slice lives.
    #[inline]
    pub(super) unsafe fn slice(&self, at: usize, len: usize) -> &[u8] {
        assert!(at.checked_add(len).is_some_and(|end| end <= self.len));
        // SAFETY: inside of the mapping; unshared by the caller's promise.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(at), len) }
    }

    /// Bytes of the ring, to be written.
    ///
    /// # Safety
    /// The promises of [`Region::slice`] hold, with status AVAILABLE, and no other slice of these
    /// bytes may exist.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "shared memory: exclusive by the caller's promise")]
    pub(super) unsafe fn slice_mut(&self, at: usize, len: usize) -> &mut [u8] {
        assert!(at.checked_add(len).is_some_and(|end| end <= self.len));
        // SAFETY: inside of the mapping; unshared by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().add(at), len) }
    }

    /// Prefetches the two cache lines at byte `at`.
    #[inline]
    pub(super) fn prefetch(&self, at: usize) {
        #[cfg(target_arch = "x86_64")]
        if at + 128 <= self.len {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: the address is inside of the mapping; prefetching reads nothing.
            unsafe {
                let line = self.base.as_ptr().add(at);
                _mm_prefetch::<_MM_HINT_T0>(line.cast());
                _mm_prefetch::<_MM_HINT_T0>(line.add(64).cast());
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = at;
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the range is exactly what `map` got, and no slice outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}
