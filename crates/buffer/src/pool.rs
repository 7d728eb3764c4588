//! The pool: one mapping, its depot of batches, and the audit.

use crate::meta::Meta;
use crate::packet::Packet;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Number of buffers that move between a cache and the depot at once.
pub const BATCH: usize = 64;
/// Headroom of a received packet, in bytes, for headers that grow.
pub const HEADROOM: usize = 128;
/// Default number of data bytes in a buffer.
pub const DEFAULT_DATA_SIZE: usize = 2048;
/// Bytes of metadata at the start of each buffer: two cache lines.
pub(crate) const HEADER: usize = 128;
const LINE: usize = 64;
const NONE: u32 = u32::MAX;

/// The start of each buffer. The first line is the packet's, the second the pool's.
#[repr(C, align(64))]
pub(crate) struct BufHdr {
    pub(crate) meta: Meta,
    pub(crate) next: Option<NonNull<BufHdr>>,
    pool: BufPool,
}

#[repr(C, align(64))]
struct BufPool {
    /// The pool this buffer belongs to.
    home: &'static Inner,
    /// Position in the pool.
    index: u32,
    /// Index of the next batch in the depot, while this buffer heads one.
    batch_next: AtomicU64,
}

/// Configuration of a pool.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// Number of buffers.
    pub buffers: usize,
    /// Data bytes of each, without the headroom: 256 to 16384.
    pub data_size: usize,
    /// Required page size in bytes; `None` takes the largest available.
    pub page_size: Option<usize>,
}

impl Default for PoolConfig {
    fn default() -> Self {
        PoolConfig { buffers: 16384, data_size: DEFAULT_DATA_SIZE, page_size: None }
    }
}

/// Error of creating a pool.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// A number in the configuration is out of range.
    #[error("buffers: {what} must be between {min} and {max}, not {found}")]
    Range {
        /// Name of the setting.
        what: &'static str,
        /// Minimum.
        min: usize,
        /// Maximum.
        max: usize,
        /// The configured value.
        found: usize,
    },
    /// The kernel has no memory.
    #[error(
        "buffers: cannot map {mib} MiB for {buffers} buffers ({source}); \
         lower `buffers {{ buffers-per-numa }}` or free memory"
    )]
    Map {
        /// Requested size in MiB.
        mib: usize,
        /// Requested number of buffers.
        buffers: usize,
        /// The kernel's error.
        source: rustix::io::Errno,
    },
    /// Less memory is free than the pool would fill.
    #[error(
        "buffers: {buffers} buffers need {need_mib} MiB, but only {have_mib} MiB of memory are \
         free; lower `buffers {{ buffers-per-numa }}`"
    )]
    Memory {
        /// Requested number of buffers.
        buffers: usize,
        /// MiB needed.
        need_mib: usize,
        /// MiB free.
        have_mib: usize,
    },
    /// Pages of the required size are not available.
    #[error(
        "buffers: no {size} pages to be had ({source}); reserve some in /proc/sys/vm/nr_hugepages \
         or drop `page-size` to take what there is"
    )]
    Pages {
        /// Page size as text.
        size: String,
        /// The kernel's error.
        source: rustix::io::Errno,
    },
}

/// The pages that hold the pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageKind {
    /// 1 GiB huge pages.
    Huge1G,
    /// 2 MiB huge pages.
    Huge2M,
    /// Ordinary mapping for which the kernel uses huge pages if it can.
    Transparent,
    /// Ordinary pages.
    Plain,
}

impl std::fmt::Display for PageKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            PageKind::Huge1G => "1G huge pages",
            PageKind::Huge2M => "2M huge pages",
            PageKind::Transparent => "transparent huge pages",
            PageKind::Plain => "plain pages",
        })
    }
}

/// State of all buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolAudit {
    /// Buffers in the pool.
    pub total: usize,
    /// Free, in the depot.
    pub depot: usize,
    /// Free, in workers' caches.
    pub cached: usize,
    /// Packets in use: `total - depot - cached`.
    pub in_use: usize,
}

pub(crate) struct Inner {
    pub(crate) base: NonNull<u8>,
    pub(crate) map_len: usize,
    pub(crate) stride: usize,
    /// Multiplicative inverse of a buffer's size in cache lines: see [`inverse`].
    inverse: u64,
    pub(crate) count: usize,
    pub(crate) data_size: usize,
    pub(crate) pages: PageKind,
    depot: Depot,
    cached: Mutex<Vec<Arc<Published>>>,
    /// Buffers of packets that were dropped outside the packet path, one by one.
    strays: Mutex<Vec<StrayBuf>>,
    strays_total: AtomicU64,
}

/// Fields that workers write when they trade batches, on cache lines without read-only data.
#[repr(align(128))]
struct Depot {
    /// Head of the stack of batches: tag in the upper half (against reuse between load and swap),
    /// index of the batch's first buffer in the lower.
    head: AtomicU64,
    /// Number of buffers in it.
    count: AtomicUsize,
}

/// Number of buffers in a cache: written in every loop by its worker, on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Published(pub(crate) AtomicUsize);

struct StrayBuf(NonNull<BufHdr>);

// SAFETY: a stray buffer has no other owner; its memory belongs to the pool.
unsafe impl Send for StrayBuf {}
// SAFETY: the mapping is shared memory; buffers are reached only through owned handles, and the
// depot's words are atomics.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

/// A pool of packet buffers. Clones share it.
///
/// A pool lives as long as the process: packets point into it without counting references, so its
/// memory is never freed. A process creates one (a test, a few small ones).
#[derive(Clone, Copy)]
pub struct Pool {
    pub(crate) inner: &'static Inner,
}

impl Pool {
    /// Maps and prepares a pool.
    ///
    /// # Errors
    /// [`PoolError`] if a number is out of range or memory or pages are not available.
    pub fn new(config: &PoolConfig) -> Result<Pool, PoolError> {
        let range = |what, min, max, found| {
            if (min..=max).contains(&found) {
                Ok(())
            } else {
                Err(PoolError::Range { what, min, max, found })
            }
        };
        range("buffers-per-numa", BATCH, 1 << 26, config.buffers)?;
        range("default data-size", 256, 16384, config.data_size)?;
        // An odd number of cache lines spreads buffers over all cache sets.
        let lines = (HEADER + HEADROOM + config.data_size).div_ceil(LINE) | 1;
        let stride = lines * LINE;
        let bytes = stride * config.buffers;
        check_memory(config.buffers, bytes)?;
        let (base, map_len, pages) = map(bytes, config)?;
        let inner = Inner {
            base,
            map_len,
            stride,
            inverse: inverse(lines as u64),
            count: config.buffers,
            data_size: config.data_size,
            pages,
            depot: Depot { head: AtomicU64::new(u64::from(NONE)), count: AtomicUsize::new(0) },
            cached: Mutex::new(Vec::new()),
            strays: Mutex::new(Vec::new()),
            strays_total: AtomicU64::new(0),
        };
        let pool = Pool { inner: Box::leak(Box::new(inner)) };
        pool.fill();
        Ok(pool)
    }

    /// Writes every header (which also makes the kernel commit the memory) and fills the depot.
    fn fill(&self) {
        let home = self.inner;
        let mut batch = Vec::with_capacity(BATCH);
        // Numbers come from the top, so that the lowest buffers are allocated first.
        for index in (0..self.inner.count).rev() {
            let at = self.inner.at(index as u32);
            let hdr = BufHdr {
                meta: Meta::default(),
                next: None,
                pool: BufPool { home, index: index as u32, batch_next: AtomicU64::new(0) },
            };
            // SAFETY: `at` is within the mapping, aligned to a cache line, and not in use yet.
            unsafe { at.as_ptr().write(hdr) };
            batch.push(at);
            if batch.len() == BATCH {
                self.inner.push_batch(&batch);
                batch.clear();
            }
        }
        if !batch.is_empty() {
            self.inner.push_batch(&batch);
        }
    }

    /// Returns the kind of pages of the pool.
    pub fn pages(&self) -> PageKind {
        self.inner.pages
    }
    /// Returns the data bytes of one buffer, without headroom.
    pub fn data_size(&self) -> usize {
        self.inner.data_size
    }
    /// Returns the number of bytes from one buffer to the next.
    pub fn stride(&self) -> usize {
        self.inner.stride
    }
    /// Returns the number of bytes mapped.
    pub fn mapped(&self) -> usize {
        self.inner.map_len
    }
    /// Returns the number of packets that were dropped outside the packet path since start.
    pub fn strays(&self) -> u64 {
        self.inner.strays_total.load(Ordering::Relaxed)
    }

    /// Returns the state of all buffers. Exact while no worker runs; while they run, a batch on the
    /// move may be counted as in use.
    pub fn audit(&self) -> PoolAudit {
        let i = self.inner;
        i.bring_strays_home();
        let depot = i.depot.count.load(Ordering::Relaxed);
        let caches = i.cached.lock().unwrap_or_else(|e| e.into_inner());
        let cached = caches.iter().map(|c| c.0.load(Ordering::Relaxed)).sum();
        PoolAudit { total: i.count, depot, cached, in_use: i.count.saturating_sub(depot + cached) }
    }
}

impl Inner {
    #[inline]
    pub(crate) fn at(&self, index: u32) -> NonNull<BufHdr> {
        debug_assert!((index as usize) < self.count);
        // SAFETY: index < count, so the buffer lies within the mapping.
        unsafe { self.base.add(index as usize * self.stride).cast() }
    }

    /// Returns the position of a buffer, from its address: reading the buffer itself would fetch a
    /// cache line of it, for each of a batch.
    #[inline]
    fn index_of(&self, buf: NonNull<BufHdr>) -> u32 {
        let line = (buf.addr().get() - self.base.addr().get()) / LINE;
        (line as u64).wrapping_mul(self.inverse) as u32
    }

    pub(crate) fn data_size(&self) -> usize {
        self.data_size
    }

    /// Puts up to [`BATCH`] free buffers into the depot: one atomic exchange.
    pub(crate) fn push_batch(&self, batch: &[NonNull<BufHdr>]) {
        assert!(!batch.is_empty() && batch.len() <= BATCH);
        let head = batch[0];
        // SAFETY: the buffers are free and ours; the head's data area holds the list.
        let (index, next_word) = unsafe {
            let list = batch_list(head);
            list.cast::<u32>().write(batch.len() as u32);
            for (i, b) in batch.iter().enumerate() {
                list.add(1 + i).cast::<u32>().write(self.index_of(*b));
            }
            (head.as_ref().pool.index, &raw const (*head.as_ptr()).pool.batch_next)
        };
        let mut old = self.depot.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: the word lies in a buffer that stays mapped.
            unsafe { (*next_word).store(old & 0xffff_ffff, Ordering::Relaxed) };
            let new = ((old >> 32).wrapping_add(1) << 32) | u64::from(index);
            match self.depot.head.compare_exchange_weak(
                old,
                new,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => old = now,
            }
        }
        self.depot.count.fetch_add(batch.len(), Ordering::Relaxed);
    }

    /// Takes a batch from the depot and appends it to `out`; returns false if the depot is empty.
    pub(crate) fn pop_batch(&self, out: &mut Vec<NonNull<BufHdr>>) -> bool {
        let mut old = self.depot.head.load(Ordering::Acquire);
        let head = loop {
            let index = old as u32;
            if index == NONE {
                return self.pop_strays(out);
            }
            let head = self.at(index);
            // SAFETY: the word stays mapped; if another thread has taken the batch meanwhile, the
            // tag makes the exchange fail and the value is not used.
            let next = unsafe { (*head.as_ptr()).pool.batch_next.load(Ordering::Relaxed) };
            let new = ((old >> 32).wrapping_add(1) << 32) | next;
            match self.depot.head.compare_exchange_weak(
                old,
                new,
                Ordering::Acquire,
                Ordering::Acquire,
            ) {
                Ok(_) => break head,
                Err(now) => old = now,
            }
        };
        // SAFETY: the batch is ours now, and its list was written before it was published.
        unsafe {
            let list = batch_list(head);
            let n = list.cast::<u32>().read() as usize;
            debug_assert!(n <= BATCH);
            for i in 0..n {
                out.push(self.at(list.add(1 + i).cast::<u32>().read()));
            }
            self.depot.count.fetch_sub(n, Ordering::Relaxed);
        }
        true
    }

    fn pop_strays(&self, out: &mut Vec<NonNull<BufHdr>>) -> bool {
        let mut strays = self.strays.lock().unwrap_or_else(|e| e.into_inner());
        let n = strays.len().min(BATCH);
        out.extend(strays.drain(..n).map(|s| s.0));
        n > 0
    }

    fn bring_strays_home(&self) {
        let mut strays = self.strays.lock().unwrap_or_else(|e| e.into_inner());
        let all: Vec<_> = strays.drain(..).map(|s| s.0).collect();
        drop(strays);
        for batch in all.chunks(BATCH) {
            self.push_batch(batch);
        }
    }

    pub(crate) fn register_cache(&self) -> Arc<Published> {
        let count = Arc::new(Published::default());
        self.cached.lock().unwrap_or_else(|e| e.into_inner()).push(count.clone());
        count
    }

    pub(crate) fn unregister_cache(&self, count: &Arc<Published>) {
        let mut all = self.cached.lock().unwrap_or_else(|e| e.into_inner());
        all.retain(|c| !Arc::ptr_eq(c, count));
    }
}

/// Returns the start of the list that a batch's first buffer carries in its data area, in 4-byte
/// words.
///
/// # Safety
/// `head` must be a free buffer that the caller owns.
unsafe fn batch_list(head: NonNull<BufHdr>) -> *mut u32 {
    // SAFETY: HEADER + (1 + BATCH) * 4 bytes are less than the smallest stride.
    unsafe { head.as_ptr().cast::<u8>().add(HEADER).cast::<u32>() }
}

/// Returns a packet's buffers to their pool from anywhere: the slow path, behind a lock.
pub(crate) fn free_stray(mut buf: NonNull<BufHdr>) {
    loop {
        // SAFETY: the caller owned the packet; every segment belongs to it.
        let (inner, next) = unsafe {
            let hdr = buf.as_mut();
            let next = hdr.next.take();
            hdr.meta = Meta::default();
            (hdr.pool.home, next)
        };
        inner.strays_total.fetch_add(1, Ordering::Relaxed);
        inner.strays.lock().unwrap_or_else(|e| e.into_inner()).push(StrayBuf(buf));
        match next {
            Some(n) => buf = n,
            None => return,
        }
    }
}

/// Returns the inverse of an odd number modulo 2^64: multiplying a multiple by it divides it.
const fn inverse(odd: u64) -> u64 {
    // Correct in the lowest 3 bits; each step doubles their number.
    let mut x = odd;
    let mut bits = 3;
    while bits < u64::BITS {
        x = x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
        bits *= 2;
    }
    x
}

const _: () = assert!((37u64 * 67_108_863).wrapping_mul(inverse(37)) == 67_108_863);

fn check_memory(buffers: usize, bytes: usize) -> Result<(), PoolError> {
    let Ok(text) = std::fs::read_to_string("/proc/meminfo") else { return Ok(()) };
    let field = |name: &str| -> Option<usize> {
        let line = text.lines().find(|l| l.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    let free_kib = field("MemAvailable:").unwrap_or(usize::MAX / 2048);
    let huge_kib = field("HugePages_Free:").unwrap_or(0) * field("Hugepagesize:").unwrap_or(0);
    let have = (free_kib + huge_kib).saturating_mul(1024);
    if bytes > have {
        let (need_mib, have_mib) = (bytes.div_ceil(1 << 20), have >> 20);
        return Err(PoolError::Memory { buffers, need_mib, have_mib });
    }
    Ok(())
}

fn map(bytes: usize, c: &PoolConfig) -> Result<(NonNull<u8>, usize, PageKind), PoolError> {
    const G: usize = 1 << 30;
    const M2: usize = 2 << 20;
    let huge = |size: usize, flag: MapFlags| {
        let len = bytes.next_multiple_of(size);
        anon(len, flag | MapFlags::POPULATE).map(|p| (p, len))
    };
    let plain = || {
        let len = bytes.next_multiple_of(M2);
        anon_aligned(len, M2).map(|p| (p, len)).map_err(|source| PoolError::Map {
            mib: len >> 20,
            buffers: c.buffers,
            source,
        })
    };
    let named = |size: &str, source| PoolError::Pages { size: size.into(), source };
    match c.page_size {
        Some(G) => {
            let (p, l) =
                huge(G, MapFlags::HUGETLB | MapFlags::HUGE_1GB).map_err(|e| named("1G", e))?;
            return Ok((p, l, PageKind::Huge1G));
        }
        Some(M2) => {
            let (p, l) =
                huge(M2, MapFlags::HUGETLB | MapFlags::HUGE_2MB).map_err(|e| named("2M", e))?;
            return Ok((p, l, PageKind::Huge2M));
        }
        Some(4096) => {
            let (p, l) = plain()?;
            return Ok((p, l, PageKind::Plain));
        }
        Some(other) => {
            return Err(PoolError::Range {
                what: "page-size (4k, 2m or 1g)",
                min: 4096,
                max: G,
                found: other,
            });
        }
        None => {}
    }
    if bytes >= G / 2
        && let Ok((p, l)) = huge(G, MapFlags::HUGETLB | MapFlags::HUGE_1GB)
    {
        return Ok((p, l, PageKind::Huge1G));
    }
    if let Ok((p, l)) = huge(M2, MapFlags::HUGETLB | MapFlags::HUGE_2MB) {
        return Ok((p, l, PageKind::Huge2M));
    }
    let (p, l) = plain()?;
    // SAFETY: advice on a mapping of our own changes no contents.
    let advised =
        unsafe { rustix::mm::madvise(p.as_ptr().cast::<c_void>(), l, Advice::LinuxHugepage) };
    let thp = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
        .is_ok_and(|s| !s.contains("[never]"));
    let kind = if advised.is_ok() && thp { PageKind::Transparent } else { PageKind::Plain };
    Ok((p, l, kind))
}

fn anon(len: usize, flags: MapFlags) -> Result<NonNull<u8>, rustix::io::Errno> {
    let prot = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new anonymous mapping touches no existing memory.
    let p = unsafe {
        rustix::mm::mmap_anonymous(std::ptr::null_mut(), len, prot, MapFlags::PRIVATE | flags)?
    };
    NonNull::new(p.cast::<u8>()).ok_or(rustix::io::Errno::NOMEM)
}

/// Maps pages that begin at a multiple of `align`, so that huge pages can take all their places.
fn anon_aligned(len: usize, align: usize) -> Result<NonNull<u8>, rustix::io::Errno> {
    let wide = anon(len + align, MapFlags::empty())?;
    let before = wide.addr().get().next_multiple_of(align) - wide.addr().get();
    // SAFETY: both ends are within the mapping, which nothing uses yet.
    unsafe {
        let base = wide.add(before);
        for (from, bytes) in [(wide, before), (base.add(len), align - before)] {
            if bytes > 0 {
                rustix::mm::munmap(from.as_ptr().cast::<c_void>(), bytes)?;
            }
        }
        Ok(base)
    }
}

/// Compile-time check of the header's size: nodes rely on meta being one cache line.
const _: () = {
    assert!(size_of::<BufHdr>() == HEADER);
    assert!(size_of::<Meta>() <= 56);
};

/// Fields that one worker writes all the time are on cache lines that no other uses.
const _: () = {
    assert!(size_of::<Published>() == 128 && align_of::<Published>() == 128);
    assert!(size_of::<Depot>() == 128);
    assert!(std::mem::offset_of!(Inner, depot) % 128 == 0);
};

impl BufHdr {
    /// Returns the buffer's position in its pool.
    #[inline]
    pub(crate) fn index(&self) -> u32 {
        self.pool.index
    }

    pub(crate) fn home_data_size(&self) -> usize {
        self.pool.home.data_size()
    }
}

impl Pool {
    /// Allocates one packet straight from the depot: for control threads, not for the packet path.
    /// Its data begins after the headroom and is empty.
    pub fn alloc_slow(&self) -> Option<Packet> {
        let mut out = Vec::with_capacity(BATCH);
        if !self.inner.pop_batch(&mut out) {
            return None;
        }
        let buf = out.pop()?;
        if !out.is_empty() {
            self.inner.push_batch(&out);
        }
        Some(Packet::fresh(buf))
    }
}
