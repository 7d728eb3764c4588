//! The pool's memory as devices see it.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use thalweg_buffer::{Cache, Frame, Pool, PoolConfig, Region};

const PAGE: usize = 4096;

fn pool(buffers: usize, data_size: usize) -> Pool {
    Pool::new(&PoolConfig { buffers, data_size, page_size: None }).unwrap()
}

#[test]
fn a_region_can_be_registered() {
    for page_size in [None, Some(PAGE)] {
        let pool = Pool::new(&PoolConfig { buffers: 100, data_size: 2048, page_size }).unwrap();
        let r = pool.region();
        assert!(r.base.addr().get().is_multiple_of(2 << 20), "{r:?}");
        assert!(r.bytes.is_multiple_of(PAGE) && r.bytes >= 100 * r.stride, "{r:?}");
        assert_eq!((r.stride, r.bytes, r.pages), (pool.stride(), pool.mapped(), pool.pages()));
        // Cache sets: chunks do not begin at the same ones.
        assert_eq!(r.stride / 64 % 2, 1);
        // AF_XDP puts a frame 256 bytes into its chunk, and a page holds the longest chunk.
        assert_eq!((r.umem_headroom(), r.headroom), (Some(0), 256));
    }
    let fits = |data_size| pool(64, data_size).region().umem_headroom().is_some();
    assert_eq!(
        [256, 1728, 1729, 2048, 3776, 3777, 9000].map(fits),
        [false, false, true, true, true, false, false]
    );
}

/// The kernel takes the region as UMEM, or this test has no right to ask it.
#[test]
fn the_kernel_takes_a_region_as_umem() {
    use rustix::net::sockopt::set_xdp_umem_reg;
    use rustix::net::xdp::{XdpUmemReg, XdpUmemRegFlags};
    use rustix::net::{AddressFamily, SocketType, socket};

    for (data_size, page_size) in [(2048, None), (2048, Some(PAGE)), (1729, None), (3776, None)] {
        let Ok(socket) = socket(AddressFamily::XDP, SocketType::RAW, None) else { return };
        let pool = Pool::new(&PoolConfig { buffers: 128, data_size, page_size }).unwrap();
        let region = pool.region();
        let registered = set_xdp_umem_reg(
            &socket,
            XdpUmemReg {
                addr: region.base.addr().get() as u64,
                len: region.bytes as u64,
                chunk_size: region.stride as u32,
                headroom: region.umem_headroom().unwrap() as u32,
                flags: XdpUmemRegFlags::XDP_UMEM_UNALIGNED_CHUNK_FLAG,
                tx_metadata_len: 0,
            },
        );
        // Pinned memory is limited for those who are not root.
        let limited = [rustix::io::Errno::NOBUFS, rustix::io::Errno::PERM];
        assert!(registered.is_ok() || registered.is_err_and(|e| limited.contains(&e)));
    }
}

/// A device that holds a chunk never reaches another buffer.
#[test]
fn the_data_of_each_buffer_lies_within_its_chunk() {
    for data_size in [256, 2000, 2048, 16_384] {
        let pool = pool(200, data_size);
        let region = pool.region();
        let mut cache = Cache::new(pool);
        let mut frame = Frame::new();
        assert_eq!(cache.alloc_into(&mut frame, 200, data_size), 200);
        let mut seen = Vec::new();
        for i in 0..200 {
            let (index, at) = frame.place(i, &region).unwrap();
            assert_eq!(at, region.headroom);
            assert!(at + frame.data(i).len() <= region.stride);
            assert!(region.offset_of(index) + region.stride <= region.bytes);
            seen.push(index);
        }
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..200));
        cache.free_frame(&mut frame);
    }
}

/// Bytes that a device writes into a chunk come back as a packet; meanwhile the pool lends it to
/// none.
#[test]
fn lent_buffers_come_back_with_what_was_written() {
    let pool = pool(64, 2048);
    let region = pool.region();
    let mut cache = Cache::new(pool);
    let packets: Vec<_> = std::iter::from_fn(|| cache.alloc()).collect();
    let lent: Vec<u32> = packets.into_iter().map(|p| p.lend().ok().unwrap()).collect();
    cache.publish();
    assert_eq!((pool.audit().in_use, cache.alloc().is_none()), (64, true));
    for (n, index) in lent.into_iter().enumerate() {
        let at = region.offset_of(index) + region.headroom;
        // SAFETY: the buffer is lent to this test.
        unsafe { region.base.add(at).write(n as u8) };
        // Places beyond the chunk, in the pool's own part, and of a buffer that does not exist.
        for (index, at, len) in [
            (index, 256, 2049),
            (index, 127, 1),
            (index, 2305, 0),
            (64, 256, 1),
            (0, usize::MAX, 2),
        ] {
            // SAFETY: refused.
            assert!(unsafe { pool.reclaim(index, at, len) }.is_none());
        }
        // SAFETY: lent above, and reclaimed once.
        let packet = unsafe { pool.reclaim(index, region.headroom, 1) }.unwrap();
        assert_eq!(packet.data(), [n as u8]);
        cache.free(packet);
    }
    drop(cache);
    assert_eq!(pool.audit().in_use, 0);
}

#[test]
fn chains_are_not_lent() {
    let pool = pool(64, 256);
    let mut cache = Cache::new(pool);
    let mut packet = cache.alloc().unwrap();
    assert!(packet.fill(&[1; 600], &mut cache));
    let packet = packet.lend().err().unwrap();
    assert_eq!(packet.total_len(), 600);
    cache.free(packet);
}

#[test]
fn bytes_elsewhere_have_no_offset() {
    let region = pool(64, 256).region();
    assert_eq!(region.offset_of_bytes(&[1, 2, 3]), None);
    assert_eq!(region.index_at(region.offset_of(64)), None);
    assert_eq!(region.index_at(usize::MAX >> 15), None);
}

fn converts(region: &Region, index: u32, within: usize) {
    let offset = region.offset_of(index) + within % region.stride;
    assert_eq!(region.index_at(offset), Some(index), "{region:?}");
    assert_eq!(region.index_at(offset), Some((offset / region.stride) as u32));
}

proptest! {
    // Pools are never unmapped.
    #![proptest_config(ProptestConfig::with_cases(50))]

    #[test]
    fn offsets_convert_both_ways(
        data_size in 256usize..=16_384,
        index in 0u32..64,
        within in 0usize..20_000,
    ) {
        let region = pool(64, data_size).region();
        for within in [0, within, region.stride - 1] {
            converts(&region, index, within);
        }
        // A pool of the greatest size, which need not be mapped for this.
        let mut vast = region;
        vast.buffers = 1 << 26;
        for index in [index, (1 << 26) - 1 - index] {
            converts(&vast, index, within);
            converts(&vast, index, region.stride - 1);
        }
    }
}
