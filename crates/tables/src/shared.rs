//! Memory that other processes read.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Words of which this process is the only writer, and which other processes may map read-only.
///
/// Their memory is committed as it is written. No other process can shrink it, nor map it writable.
#[derive(Debug)]
pub struct SharedWords {
    first: NonNull<AtomicU64>,
    count: usize,
    file: OwnedFd,
}

// SAFETY: a mapping of atomics that belongs to this value alone in this process.
unsafe impl Send for SharedWords {}
// SAFETY: as above; all access is by atomics.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// Creates `count` words, all zero. `name` is for /proc only.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn new(name: &str, count: usize) -> io::Result<SharedWords> {
        let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let bytes = count.checked_mul(size_of::<u64>()).filter(|bytes| *bytes > 0);
        let bytes = bytes.ok_or(io::ErrorKind::InvalidInput)?;
        rustix::fs::ftruncate(&file, bytes as u64)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing else.
        let map =
            unsafe { mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, &file, 0)? };
        let first = NonNull::new(map.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let words = SharedWords { first, count, file };
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE;
        rustix::fs::fcntl_add_seals(&words.file, seals)?;
        Ok(words)
    }

    /// Returns the words.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has `count` words, which any bytes are valid for, and lives as long
        // as `self`; the file cannot shrink under it.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }

    /// Returns a read-only descriptor for another process.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn reader(&self) -> io::Result<OwnedFd> {
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        let bytes = self.count * size_of::<u64>();
        // SAFETY: the mapping is ours, and references into it borrow `self`.
        let unmapped = unsafe { munmap(self.first.as_ptr().cast(), bytes) };
        debug_assert!(unmapped.is_ok(), "munmap of an own mapping: {unmapped:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::Ordering;

    #[test]
    fn readers_see_written_words_and_cannot_write() {
        let words = SharedWords::new("test", 1000).unwrap();
        words.words()[999].store(0x0102_0304_0506_0708, Ordering::Relaxed);
        let file = File::from(words.reader().unwrap());
        assert_eq!(file.metadata().unwrap().len(), 8000);
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, 7992).unwrap();
        assert_eq!(u64::from_ne_bytes(bytes), 0x0102_0304_0506_0708);
        assert!(file.write_at(&[1], 0).is_err() && file.set_len(0).is_err());
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        if let Ok(again) = File::options().write(true).open(path) {
            assert!(again.write_at(&[1], 0).is_err() && again.set_len(0).is_err());
        }
        assert!(SharedWords::new("test", 0).is_err() && SharedWords::new("x", usize::MAX).is_err());
    }
}
