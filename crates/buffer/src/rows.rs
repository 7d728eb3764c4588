//! Operations on whole columns of a frame, for frame kernels.
//!
//! A node's kernel handles the common rows and leaves the others, a [`Rows`], to the per-packet
//! function. Everything here is safe to call with any frame: rows that are too short for an
//! operation yield zeros, or are left unchanged.

use crate::frame::{FRAME_SIZE, Frame};
use crate::meta::Flags;
use crate::packet::View;
use crate::pool::{BufHdr, HEADER};
use crate::simd::{LANES, Lanes};
use std::ptr::NonNull;

const WORDS: usize = FRAME_SIZE / 64;

/// A set of a frame's rows.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Rows([u64; WORDS]);

impl Rows {
    /// The empty set.
    pub const NONE: Rows = Rows([0; WORDS]);

    /// Returns the rows for which the items are true, in order; items beyond a full frame are
    /// ignored.
    #[inline(always)]
    pub fn of(each: impl Iterator<Item = bool>) -> Rows {
        // Bytes first: most often no bit is set, and the loop only has to find that out.
        let mut flags = [0u8; FRAME_SIZE];
        let mut any = 0;
        for (flag, is) in flags.iter_mut().zip(each) {
            *flag = u8::from(is);
            any |= *flag;
        }
        if any == 0 { Rows::NONE } else { Rows::pack(&flags) }
    }

    #[inline(never)]
    fn pack(flags: &[u8; FRAME_SIZE]) -> Rows {
        let mut rows = Rows::NONE;
        for (i, eight) in flags.as_chunks::<8>().0.iter().enumerate() {
            // Eight bytes of 0 or 1 become the eight bits of the product's top byte.
            let bits = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            rows.0[i / 8] |= bits << (i % 8 * 8);
        }
        rows
    }
    /// Adds those of the sixteen rows from `at` on whose bit in the mask is set.
    ///
    /// # Panics
    /// If `at` is not a multiple of 16, or is beyond a full frame.
    #[inline(always)]
    pub fn insert_lanes(&mut self, at: usize, mask: u16) {
        assert!(at.is_multiple_of(LANES));
        self.0[at / 64] |= u64::from(mask) << (at % 64);
    }
    /// Adds a row.
    #[inline]
    pub fn insert(&mut self, i: u8) {
        self.0[usize::from(i) / 64] |= 1 << (i % 64);
    }
    /// Removes a row.
    #[inline]
    pub fn remove(&mut self, i: u8) {
        self.0[usize::from(i) / 64] &= !(1 << (i % 64));
    }
    /// Returns true if row `i` is in the set.
    #[inline]
    pub fn contains(&self, i: u8) -> bool {
        self.0[usize::from(i) / 64] >> (i % 64) & 1 != 0
    }
    /// Returns true if the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.iter().fold(0, |all, w| all | w) == 0
    }
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.0.iter().map(|w| w.count_ones() as usize).sum()
    }
    /// Returns the union.
    #[inline]
    #[must_use]
    pub fn or(mut self, other: Rows) -> Rows {
        for (w, o) in self.0.iter_mut().zip(other.0) {
            *w |= o;
        }
        self
    }
    /// Returns the rows, in order.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = u8> {
        self.0.into_iter().enumerate().flat_map(|(word, mut left)| {
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some((word * 64) as u8 + bit as u8)
            })
        })
    }
}

/// A set of rows with their number.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct CountedRows {
    rows: Rows,
    n: u16,
}

impl CountedRows {
    pub(crate) const NONE: CountedRows = CountedRows { rows: Rows::NONE, n: 0 };

    #[inline]
    pub(crate) fn rows(&self) -> Rows {
        self.rows
    }
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.n.into()
    }
    #[inline]
    pub(crate) fn contains(&self, i: u8) -> bool {
        self.rows.contains(i)
    }
    #[inline]
    pub(crate) fn insert(&mut self, i: u8) {
        self.n += u16::from(!self.rows.contains(i));
        self.rows.insert(i);
    }
    #[inline]
    pub(crate) fn remove(&mut self, i: u8) {
        self.n -= u16::from(self.rows.contains(i));
        self.rows.remove(i);
    }
}

impl Frame {
    /// Returns the first `N` bytes of each packet; zeros for one whose first segment is shorter.
    #[inline(always)]
    pub fn heads<const N: usize>(&self) -> impl Iterator<Item = &[u8; N]> {
        let (bufs, views) = self.rows();
        bufs.iter().zip(views).map(|(buf, view)| {
            let zeros: &'static [u8; N] = const { &[0; N] };
            // SAFETY: the row is a packet of ours.
            let at = unsafe { address(*buf, view.off()) };
            let at = if view.len() >= N { at } else { NonNull::from(zeros).cast() };
            // SAFETY: at least N bytes are at its view, or we point to the zeros.
            unsafe { at.cast::<[u8; N]>().as_ref() }
        })
    }

    /// Returns `N` bytes of each packet, from `before` bytes before its current header on; `None`
    /// for one whose first segment ends earlier, or that has less headroom. The bytes before the
    /// header are a pulled header, or undefined.
    #[inline(always)]
    pub fn windows_mut<const N: usize>(
        &mut self,
        before: usize,
    ) -> impl Iterator<Item = Option<&mut [u8; N]>> {
        let (bufs, views) = self.rows();
        bufs.iter().zip(views).map(move |(buf, view)| {
            if view.len() + before < N || view.off() < HEADER + before {
                return None;
            }
            // SAFETY: the row is a packet of ours, each row another one; the bytes begin after the
            // buffer's header and end with the first segment at the latest. The kernel has zeroed
            // those never written.
            Some(unsafe { address(*buf, view.off() - before).cast::<[u8; N]>().as_mut() })
        })
    }

    /// Like [`heads`](Self::heads), if no packet's first segment is shorter than `N` bytes.
    #[inline(always)]
    pub fn long_heads<const N: usize>(&self) -> Option<impl Iterator<Item = &[u8; N]>> {
        let (bufs, views) = self.rows();
        let shortest = views.iter().fold(u32::MAX, |least, v| least.min(v.0));
        let all_long = shortest >= (N as u32) << 16;
        let rows = bufs.iter().zip(views);
        all_long.then(|| {
            // SAFETY: each row is a packet of ours with at least N bytes at its view.
            rows.map(|(buf, view)| unsafe { address(*buf, view.off()).cast::<[u8; N]>().as_ref() })
        })
    }

    /// Like [`windows_mut`](Self::windows_mut), if there is no `None`, and no packet longer than
    /// `longest`.
    #[inline(always)]
    pub fn long_windows_mut<const N: usize>(
        &mut self,
        before: usize,
        longest: u16,
    ) -> Option<impl Iterator<Item = &mut [u8; N]>> {
        let (bufs, views) = self.rows();
        // Values have 32 bits, so that many are compared at once.
        let (mut least, mut most, mut headroom) = (u32::MAX, 0, u32::MAX);
        for v in views {
            least = least.min(v.0);
            most = most.max(v.0);
            headroom = headroom.min(v.0 & 0xffff);
        }
        let all_fit = View(least).len() + before >= N
            && View(most).len() <= usize::from(longest)
            && headroom as usize >= HEADER + before;
        let rows = bufs.iter().zip(views);
        all_fit.then(|| {
            rows.map(move |(buf, v)| {
                // SAFETY: as for `windows_mut`.
                unsafe { address(*buf, v.off() - before).cast::<[u8; N]>().as_mut() }
            })
        })
    }

    /// Like [`long_windows_mut`](Self::long_windows_mut), each after its packet's side column and
    /// the length of its first segment.
    #[inline(always)]
    pub fn long_windows_with_aux<const N: usize>(
        &mut self,
        before: usize,
        longest: u16,
    ) -> Option<impl Iterator<Item = (u32, usize, &mut [u8; N])>> {
        let all_fit = self.long_windows_mut::<N>(before, longest).is_some();
        let (bufs, views) = self.rows();
        let rows = bufs.iter().zip(views).zip(self.aux());
        all_fit.then(|| {
            rows.map(move |((buf, v), aux)| {
                // SAFETY: as for `windows_mut`.
                let window = unsafe { address(*buf, v.off() - before).cast().as_mut() };
                (*aux, v.len(), window)
            })
        })
    }

    /// Returns the first row of each group of sixteen, and a mask of its rows that exist.
    #[inline(always)]
    pub fn lane_groups(&self) -> impl Iterator<Item = (usize, u16)> + use<> {
        let n = self.len();
        (0..n).step_by(LANES).map(move |at| (at, (u32::MAX >> (32 - (n - at).min(LANES))) as u16))
    }

    /// Returns the first 20 bytes of each of the sixteen packets from `at` on, as five
    /// little-endian words. Zeros if there is no packet, or its first segment is shorter.
    #[inline(always)]
    pub fn words5<V: Lanes>(&self, at: usize) -> [V; 5] {
        self.words4_and::<V, 16>(at)
    }

    /// Like [`words5`](Self::words5), the fifth word being the one at byte `FIFTH`.
    #[inline(always)]
    pub fn words4_and<V: Lanes, const FIFTH: usize>(&self, at: usize) -> [V; 5] {
        const { assert!(FIFTH >= 12) };
        let (bufs, views) = self.rows();
        let (Some(bufs), Some(views)) = (lanes(bufs, at), lanes(views, at)) else {
            return self.words5_of_few::<V, FIFTH>(at);
        };
        if V::load(&views.map(|v| v.0)).lt(V::splat((FIFTH as u32 + 4) << 16)) != 0 {
            return self.words5_of_few::<V, FIFTH>(at);
        }
        // SAFETY: each row is a packet of ours with at least that many bytes.
        unsafe {
            V::gather5::<FIFTH>(&std::array::from_fn(|i| {
                address(bufs[i], views[i].off()).as_ptr().cast_const()
            }))
        }
    }

    #[inline(never)]
    fn words5_of_few<V: Lanes, const FIFTH: usize>(&self, at: usize) -> [V; 5] {
        let mut words = [[0; LANES]; 5];
        let packets = (at..self.len()).take(LANES).map(|i| self.data(i as u8));
        for (i, data) in packets.enumerate().filter(|(_, data)| data.len() >= FIFTH + 4) {
            for (off, words) in [0, 4, 8, 12, FIFTH].into_iter().zip(&mut words) {
                let bytes = data.get(off..).and_then(<[u8]>::first_chunk);
                words[i] = bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes));
            }
        }
        words.map(|w| V::load(&w))
    }

    /// Like [`words5`](Self::words5), of the first 24 bytes.
    #[inline(always)]
    pub fn words6<V: Lanes>(&self, at: usize) -> [V; 6] {
        const NEED: usize = 24;
        let (bufs, views) = self.rows();
        let (Some(bufs), Some(views)) = (lanes(bufs, at), lanes(views, at)) else {
            return self.words6_of_few(at);
        };
        if V::load(&views.map(|v| v.0)).lt(V::splat((NEED as u32) << 16)) != 0 {
            return self.words6_of_few(at);
        }
        // SAFETY: as for `words5`.
        unsafe { V::gather6(|i| address(bufs[i], views[i].off()).as_ptr().cast_const()) }
    }

    #[inline(never)]
    fn words6_of_few<V: Lanes>(&self, at: usize) -> [V; 6] {
        let mut words = [[0; LANES]; 6];
        for (i, head) in self.heads::<24>().skip(at).take(LANES).enumerate() {
            for (words, bytes) in words.iter_mut().zip(head.as_chunks().0) {
                words[i] = u32::from_le_bytes(*bytes);
            }
        }
        words.map(|w| V::load(&w))
    }

    /// Returns the length of each packet's first segment.
    #[inline(always)]
    pub fn lengths(&self) -> impl Iterator<Item = usize> {
        self.rows().1.iter().map(|v| v.len())
    }

    /// Returns the lengths of the first segments of the sixteen packets from `at` on; undefined
    /// without one.
    #[inline(always)]
    pub fn lens<V: Lanes>(&mut self, at: usize) -> V {
        V::load(&self.sixteen_views(at).map(|v| v.0)).shr::<16>()
    }

    /// Truncates those of the sixteen packets from `at` on whose bit in the mask is set to these
    /// lengths, if they are longer. Frames with chained packets are left alone.
    #[inline(always)]
    pub fn truncate<V: Lanes>(&mut self, at: usize, mask: u16, lens: V) {
        if self.flags().contains(Flags::CHAINED) {
            return;
        }
        let views = self.sixteen_views(at);
        let old = V::load(&views.map(|v| v.0));
        let mask = mask & lens.lt(old.shr::<16>());
        let mut words = [0; LANES];
        old.replace(mask, (old & V::splat(0xffff)) | lens.shl::<16>()).store(&mut words);
        *views = words.map(View);
    }

    /// Removes the first `n` bytes of each packet except those in `except`. A packet whose first
    /// segment is shorter stays as it is.
    #[inline(always)]
    pub fn pull_all(&mut self, n: u16, except: Rows) {
        let shift = u32::from(n).wrapping_sub(u32::from(n) << 16);
        self.change_views(except, |v| {
            if v.0 >= u32::from(n) << 16 { View(v.0.wrapping_add(shift)) } else { v }
        });
    }

    /// Prepends `n` bytes to each packet except those in `except`, like
    /// [`PktMut::push`](crate::PktMut::push). A packet without the headroom stays as it is.
    #[inline(always)]
    pub fn push_all(&mut self, n: u16, except: Rows) {
        let shift = (u32::from(n) << 16).wrapping_sub(u32::from(n));
        let n = u32::from(n);
        self.change_views(except, |v| {
            let fits = (v.0 & 0xffff >= HEADER as u32 + n) & (v.0 >> 16 <= 0xffff - n);
            if fits { View(v.0.wrapping_add(shift)) } else { v }
        });
    }

    #[inline(always)]
    fn change_views(&mut self, except: Rows, mut change: impl FnMut(View) -> View) {
        let views = self.views_mut();
        if except.is_empty() {
            views.iter_mut().for_each(|v| *v = change(*v));
        } else {
            for (i, v) in views.iter_mut().enumerate() {
                let new = change(*v);
                *v = if except.contains(i as u8) { *v } else { new };
            }
        }
    }
}

/// Returns the sixteen rows from `at` on, if they all exist.
#[inline(always)]
fn lanes<T>(column: &[T], at: usize) -> Option<&[T; LANES]> {
    column.get(at..)?.first_chunk()
}

/// Returns an address in a buffer.
///
/// # Safety
/// The offset is within the buffer.
#[inline(always)]
unsafe fn address(buf: NonNull<BufHdr>, off: usize) -> NonNull<u8> {
    // SAFETY: by contract.
    unsafe { buf.cast::<u8>().add(off) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_go_one_by_one() {
        for first in 0..=255u8 {
            let last = first.wrapping_mul(7).wrapping_add(64);
            let mut rows = Rows::NONE;
            [first, last].iter().for_each(|i| rows.insert(*i));
            let mut left = rows;
            left.remove(first);
            assert!(!left.contains(first));
            assert!(first == last || left.contains(last));
        }
    }
}
