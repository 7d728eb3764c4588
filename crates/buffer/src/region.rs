//! The pool as one piece of memory that devices are given: the UMEM of AF_XDP, external memory of
//! DPDK.
//!
//! A device sees a region cut into chunks of equal size, one for each buffer. A buffer's bytes lie
//! at the same place in each chunk, so that a device needs an index or an offset and no pointer.

use crate::frame::Frame;
use crate::meta::Flags;
use crate::packet::{Packet, View};
use crate::pool::{HEADER, HEADROOM, PageKind, Pool};
use std::ptr::NonNull;

/// Bytes that the kernel leaves before a frame in a chunk of AF_XDP (`XDP_PACKET_HEADROOM`).
const XDP_HEADROOM: usize = 256;
/// Chunk sizes that the kernel takes for a UMEM of unaligned chunks: up to a page
/// (`xdp_umem_reg`, `net/xdp/xdp_umem.c`).
const XDP_CHUNK: std::ops::RangeInclusive<usize> = 2048..=4096;

/// The memory of a [`Pool`]: one mapping that begins and ends at a page, and never moves or ends.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// First byte, at a multiple of 2 MiB.
    pub base: NonNull<u8>,
    /// Bytes mapped, a multiple of 2 MiB; buffers do not fill the end.
    pub bytes: usize,
    /// Bytes from one buffer to the next: the size of a chunk. An odd number of cache lines, so
    /// that buffers spread over all cache sets.
    pub stride: usize,
    /// Offset in its chunk at which a received packet begins.
    pub headroom: usize,
    /// Data bytes from there on.
    pub data_size: usize,
    /// Number of buffers.
    pub buffers: u32,
    /// Pages of the mapping.
    pub pages: PageKind,
    /// 2^64 divided by the stride, rounded up: see [`index_at`](Self::index_at).
    reciprocal: u64,
}

// SAFETY: a region describes memory; it gives no access to it.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Returns the offset at which a buffer's chunk begins.
    #[inline]
    pub fn offset_of(&self, index: u32) -> usize {
        index as usize * self.stride
    }

    /// Returns the index of the buffer whose chunk an offset lies in; `None` beyond the last one.
    #[inline]
    pub fn index_at(&self, offset: usize) -> Option<u32> {
        // Exact below 2^49: the rounding, less than a stride, times the offset stays below 2^64.
        let index = (u128::from(self.reciprocal) * offset as u128) >> 64;
        (index < u128::from(self.buffers)).then_some(index as u32)
    }

    /// Returns the offset of bytes, such as a packet's; `None` if they are not in the region.
    #[inline]
    pub fn offset_of_bytes(&self, bytes: &[u8]) -> Option<usize> {
        let offset = bytes.as_ptr().addr().wrapping_sub(self.base.addr().get());
        (offset <= self.bytes && bytes.len() <= self.bytes - offset).then_some(offset)
    }

    /// Returns the headroom to ask for in `XDP_UMEM_REG`, with [`stride`](Self::stride) as size of
    /// unaligned chunks, so that the kernel puts frames where packets begin. `None` if the kernel
    /// refuses such chunks: the data size is below 1,729 or above 3,776 bytes.
    pub fn umem_headroom(&self) -> Option<usize> {
        XDP_CHUNK.contains(&self.stride).then_some(self.headroom - XDP_HEADROOM)
    }
}

const _: () = assert!(HEADER + HEADROOM >= XDP_HEADROOM);

impl Pool {
    /// Returns the memory of the pool, for a device to register.
    pub fn region(&self) -> Region {
        let pool = self.inner;
        Region {
            base: pool.base,
            bytes: pool.map_len,
            stride: pool.stride,
            headroom: HEADER + HEADROOM,
            data_size: pool.data_size,
            buffers: pool.count as u32,
            pages: pool.pages,
            reciprocal: u64::MAX / pool.stride as u64 + 1,
        }
    }

    /// Takes a buffer back that a device has filled or sent: a packet of `len` bytes that begin at
    /// offset `at` of its chunk. `None`, and the buffer stays the device's, unless these lie
    /// between the pool's own part of the chunk and its end.
    ///
    /// # Safety
    /// [`Packet::lend`] has returned `index` for a buffer of this pool, which has not been
    /// reclaimed since, and the device does not touch it any more.
    pub unsafe fn reclaim(&self, index: u32, at: usize, len: usize) -> Option<Packet> {
        let pool = self.inner;
        let end = HEADER + HEADROOM + pool.data_size;
        if index as usize >= pool.count || at < HEADER || at > end || len > end - at {
            return None;
        }
        Some(Packet { buf: pool.at(index), view: View::new(at as u16, len as u16) })
    }
}

impl Packet {
    /// Gives a packet's buffer to a device, which may write to all of its chunk but the pool's own
    /// part: returns the buffer's index. Until [`Pool::reclaim`] the buffer counts as in use.
    ///
    /// # Errors
    /// The packet, if it has more than one buffer.
    #[inline]
    pub fn lend(self) -> Result<u32, Packet> {
        if self.meta().flags.contains(Flags::CHAINED) {
            return Err(self);
        }
        let (buf, _) = self.into_parts();
        // SAFETY: the buffer was the packet's, and no one else's yet.
        Ok(unsafe { buf.as_ref() }.index())
    }
}

impl Frame {
    /// Returns the index of a packet's first buffer, and the offset of its bytes in the chunk: what
    /// a device needs to know that sends it.
    #[inline]
    pub fn place(&self, i: u8, region: &Region) -> Option<(u32, usize)> {
        let offset = region.offset_of_bytes(self.data(i))?;
        let index = region.index_at(offset)?;
        Some((index, offset - region.offset_of(index)))
    }
}
