//! Owned packets, and access to their bytes.

use crate::SwIfIndex;
use crate::frame::PacketKey;
use crate::meta::{Flags, Meta};
use crate::pool::{BufHdr, HEADER, HEADROOM, free_stray};
use std::ptr::NonNull;

/// Offset (low half) and length (high half) of the first segment's bytes in its buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct View(pub(crate) u32);

impl View {
    pub(crate) const FRESH: View = View::new((HEADER + HEADROOM) as u16, 0);

    #[inline]
    pub(crate) const fn new(off: u16, len: u16) -> View {
        View(off as u32 | (len as u32) << 16)
    }
    #[inline]
    pub(crate) const fn off(self) -> usize {
        (self.0 & 0xffff) as usize
    }
    #[inline]
    pub(crate) const fn len(self) -> usize {
        (self.0 >> 16) as usize
    }
}

/// Properties that a packet passes on to its fragments, segments and copies: its interfaces, its
/// aux, the mark of packets that the router made or a flood multiplies, and its progress round a
/// circle.
///
/// They do not inherit what belongs to one packet: the trace and the sample go to the first of
/// those that replace it, and offload work to copies only. None gets the words that nodes leave for
/// one another in the meta.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lineage {
    pub(crate) flags: Flags,
    pub(crate) rx_if: SwIfIndex,
    pub(crate) tx_if: SwIfIndex,
    pub(crate) aux: u32,
    pub(crate) laps: u16,
}

impl Lineage {
    /// Marks that are inherited.
    fn flags(self) -> Flags {
        const INHERITED: Flags =
            Flags::LOCAL.union(Flags::MULTICAST).union(Flags::RETAGGED).union(Flags::PRIORITY);
        self.flags.intersection(INHERITED)
    }
}

/// A packet with one owner: neither `Copy` nor `Clone`.
///
/// Dropping it returns its buffers to their pool behind a lock; the packet path frees through its
/// [`Cache`](crate::Cache) instead.
pub struct Packet {
    pub(crate) buf: NonNull<BufHdr>,
    pub(crate) view: View,
}

// SAFETY: a packet is the only handle of its buffers.
unsafe impl Send for Packet {}

impl Drop for Packet {
    fn drop(&mut self) {
        free_stray(self.buf);
    }
}

impl Packet {
    #[inline]
    pub(crate) fn fresh(buf: NonNull<BufHdr>) -> Packet {
        Packet { buf, view: View::FRESH }
    }

    /// Splits the handle without freeing.
    #[inline]
    pub(crate) fn into_parts(self) -> (NonNull<BufHdr>, View) {
        let parts = (self.buf, self.view);
        std::mem::forget(self);
        parts
    }

    #[inline]
    fn hdr(&self) -> &BufHdr {
        // SAFETY: we own the buffer.
        unsafe { self.buf.as_ref() }
    }

    /// Returns the bytes of the first segment.
    #[inline]
    pub fn data(&self) -> &[u8] {
        // SAFETY: we own the buffer and the view lies within it.
        unsafe { bytes(self.buf, self.view) }
    }

    /// Returns the bytes of the first segment.
    #[inline]
    pub fn data_mut(&mut self) -> &mut [u8] {
        // SAFETY: we own the buffer and the view lies within it.
        unsafe { bytes_mut(self.buf, self.view) }
    }

    /// Returns the packet's key, unique while it lives.
    pub fn key(&self) -> PacketKey {
        PacketKey(self.buf.as_ptr() as usize)
    }

    /// Returns the metadata.
    pub fn meta(&self) -> &Meta {
        &self.hdr().meta
    }

    /// Returns the metadata. The frame that takes the packet is updated: [`Flags::META`] is set.
    pub fn meta_mut(&mut self) -> &mut Meta {
        // SAFETY: we own the buffer.
        let meta = unsafe { &mut self.buf.as_mut().meta };
        meta.flags.insert(Flags::META);
        meta
    }

    /// Sets marks.
    pub fn mark(&mut self, flags: Flags) {
        // SAFETY: we own the buffer.
        unsafe { self.buf.as_mut().meta.flags.insert(flags) };
    }

    /// Clears marks.
    pub fn unmark(&mut self, flags: Flags) {
        // SAFETY: we own the buffer.
        unsafe { self.buf.as_mut().meta.flags.remove(flags) };
    }

    /// Returns the interface that the packet came from, [`LOCAL_IF`](crate::LOCAL_IF) if none.
    pub fn rx_if(&self) -> SwIfIndex {
        self.hdr().meta.rx_if
    }

    /// Sets the interface that the packet came from.
    pub fn set_rx_if(&mut self, rx_if: SwIfIndex) {
        // SAFETY: we own the buffer.
        unsafe { self.buf.as_mut().meta.rx_if = rx_if };
    }

    /// Returns the interface that the packet leaves by.
    pub fn tx_if(&self) -> SwIfIndex {
        self.hdr().meta.tx_if
    }

    /// Sets the interface that the packet leaves by.
    pub fn set_tx_if(&mut self, tx_if: SwIfIndex) {
        // SAFETY: we own the buffer.
        unsafe { self.buf.as_mut().meta.tx_if = tx_if };
    }

    /// Returns the side column's value (an adjacency, an error) for the next frame.
    pub fn aux(&self) -> u32 {
        self.hdr().meta.aux
    }

    /// Sets the side column's value.
    pub fn set_aux(&mut self, aux: u32) {
        // SAFETY: we own the buffer.
        unsafe { self.buf.as_mut().meta.aux = aux };
    }

    /// Returns the number of bytes of all segments.
    pub fn total_len(&self) -> usize {
        self.view.len() + self.meta().rest_len as usize
    }

    /// Returns what packets made of this one inherit.
    pub fn lineage(&self) -> Lineage {
        let meta = self.meta();
        Lineage {
            flags: meta.flags,
            rx_if: meta.rx_if,
            tx_if: meta.tx_if,
            aux: meta.aux,
            laps: meta.laps,
        }
    }

    /// Takes over what packets made of another one inherit; see [`Lineage`].
    pub fn inherit(&mut self, from: Lineage) {
        self.mark(from.flags());
        self.set_rx_if(from.rx_if);
        self.set_tx_if(from.tx_if);
        self.set_aux(from.aux);
        if from.laps > 0 {
            self.meta_mut().laps = from.laps;
        }
    }

    /// Replaces the contents by `frame`, chaining buffers from `cache` as needed. Returns false,
    /// with the packet emptied, if the pool is exhausted.
    pub fn fill(&mut self, frame: &[u8], cache: &mut crate::Cache) -> bool {
        self.clear(cache);
        self.append(frame, cache)
    }

    /// Empties the packet, as if just allocated.
    fn clear(&mut self, cache: &mut crate::Cache) {
        // SAFETY: we own the buffer and its chain.
        let rest = unsafe { self.buf.as_mut().next.take() };
        if let Some(rest) = rest {
            cache.free_chain(rest);
        }
        // SAFETY: we own the buffer.
        let meta = unsafe { &mut self.buf.as_mut().meta };
        meta.rest_len = 0;
        meta.flags.remove(Flags::CHAINED);
        self.view = View::FRESH;
    }

    /// Appends `bytes` after the last segment, chaining buffers as needed. Returns false if the
    /// pool is exhausted; what was appended until then stays.
    pub fn append(&mut self, bytes: &[u8], cache: &mut crate::Cache) -> bool {
        let mut rest = bytes;
        self.lengthen(bytes.len(), cache, |room| {
            let (now, later) = rest.split_at(room.len());
            room.copy_from_slice(now);
            rest = later;
        })
    }

    /// Appends `len` undefined bytes, all of which the caller must overwrite, like
    /// [`append`](Self::append).
    pub fn extend(&mut self, len: usize, cache: &mut crate::Cache) -> bool {
        self.lengthen(len, cache, |_| {})
    }

    /// Calls `fill` for each piece after the last segment, chaining buffers, until `left` bytes are
    /// added.
    #[inline]
    fn lengthen(
        &mut self,
        mut left: usize,
        cache: &mut crate::Cache,
        mut fill: impl FnMut(&mut [u8]),
    ) -> bool {
        let mut last = self.buf;
        let mut view = self.view;
        let mut first = true;
        // SAFETY: we own the chain.
        while let Some(next) = unsafe { last.as_ref().next } {
            last = next;
            // SAFETY: as above.
            view = View(unsafe { last.as_ref().meta.view });
            first = false;
        }
        loop {
            // SAFETY: `last` is a segment of ours.
            let room = unsafe { room_behind(last, view, left) };
            let n = room.len();
            fill(room);
            view = View::new(view.off() as u16, (view.len() + n) as u16);
            if first {
                self.view = view;
            } else {
                // SAFETY: segments after the first keep their view in their own meta.
                unsafe {
                    last.as_mut().meta.view = view.0;
                    self.buf.as_mut().meta.rest_len += n as u32;
                }
            }
            left -= n;
            if left == 0 {
                return true;
            }
            let Some(more) = cache.take_buf() else { return false };
            // SAFETY: both buffers are ours. A later segment needs no headroom.
            unsafe {
                last.as_mut().next = Some(more);
                self.buf.as_mut().meta.flags.insert(Flags::CHAINED);
            }
            (last, view, first) = (more, View::new(HEADER as u16, 0), false);
        }
    }

    /// Truncates the packet to its first `n` bytes if it is longer; segments beyond them go back to
    /// `cache`.
    pub fn truncate(&mut self, n: usize, cache: &mut crate::Cache) {
        let first = self.view.len().min(n);
        self.view = View::new(self.view.off() as u16, first as u16);
        // SAFETY: we own the whole chain.
        unsafe {
            let (mut at, mut left, mut rest_len) = (self.buf, n - first, 0);
            while left > 0
                && let Some(next) = at.as_ref().next
            {
                let meta = &mut (*next.as_ptr()).meta;
                let view = View(meta.view);
                let keep = view.len().min(left);
                meta.view = View::new(view.off() as u16, keep as u16).0;
                (at, left, rest_len) = (next, left - keep, rest_len + keep as u32);
            }
            let rest = at.as_mut().next.take();
            let meta = &mut self.buf.as_mut().meta;
            meta.rest_len = rest_len;
            if at == self.buf {
                meta.flags.remove(Flags::CHAINED);
            }
            if let Some(rest) = rest {
                cache.free_chain(rest);
            }
        }
    }

    /// Returns the segments' bytes in order.
    pub fn segments(&self) -> Segments<'_> {
        // SAFETY: we own the chain for as long as the iterator borrows us.
        unsafe { Segments::new(self.buf, self.view) }
    }

    /// Returns the segments' bytes in order, to be written.
    pub fn segments_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let mut at = Some((self.buf, self.view));
        std::iter::from_fn(move || {
            let (buf, view) = at.take()?;
            // SAFETY: we own the chain and are borrowed mutably; each segment is given out once.
            unsafe {
                at = buf.as_ref().next.map(|n| (n, View(n.as_ref().meta.view)));
                Some(bytes_mut(buf, view))
            }
        })
    }

    /// Removes the first `n` bytes of the first segment; returns false (and does nothing) if it has
    /// fewer.
    pub fn pull(&mut self, n: usize) -> bool {
        pull(&mut self.view, n)
    }

    /// Prepends `n` bytes, to be written by the caller; `None` if the headroom is used up.
    pub fn push(&mut self, n: usize) -> Option<&mut [u8]> {
        if push(&mut self.view, n) { Some(&mut self.data_mut()[..n]) } else { None }
    }
}

#[inline]
pub(crate) fn pull(view: &mut View, n: usize) -> bool {
    if n > view.len() {
        return false;
    }
    *view = View::new((view.off() + n) as u16, (view.len() - n) as u16);
    true
}

#[inline]
pub(crate) fn push(view: &mut View, n: usize) -> bool {
    if n > view.off() - HEADER || view.len() + n > u16::MAX as usize {
        return false;
    }
    *view = View::new((view.off() - n) as u16, (view.len() + n) as u16);
    true
}

/// Returns the bytes of `view` in `buf`.
///
/// # Safety
/// The caller may read the buffer, and the view is within its data area.
#[inline]
pub(crate) unsafe fn bytes<'a>(buf: NonNull<BufHdr>, view: View) -> &'a [u8] {
    // SAFETY: by contract.
    unsafe {
        let at = buf.as_ptr().cast::<u8>().add(view.off());
        std::slice::from_raw_parts(at, view.len())
    }
}

/// Returns up to `n` bytes before those of `view` in `buf`.
///
/// # Safety
/// See [`bytes`].
#[inline]
pub(crate) unsafe fn bytes_before<'a>(buf: NonNull<BufHdr>, view: View, n: usize) -> &'a [u8] {
    let n = n.min(view.off() - HEADER);
    // SAFETY: by contract; the bytes are in the data area, after the buffer's header, which the
    // kernel has zeroed if they were never written.
    unsafe { bytes(buf, View::new((view.off() - n) as u16, n as u16)) }
}

/// Returns the bytes of `view` in `buf`, to be written.
///
/// # Safety
/// The caller owns the buffer, and the view is within its data area.
#[inline]
pub(crate) unsafe fn bytes_mut<'a>(buf: NonNull<BufHdr>, view: View) -> &'a mut [u8] {
    // SAFETY: by contract.
    unsafe {
        let at = buf.as_ptr().cast::<u8>().add(view.off());
        std::slice::from_raw_parts_mut(at, view.len())
    }
}

/// Returns up to `want` bytes after `view`'s end, or all.
///
/// # Safety
/// The caller owns `buf`.
#[inline]
unsafe fn room_behind<'a>(buf: NonNull<BufHdr>, view: View, want: usize) -> &'a mut [u8] {
    // SAFETY: by contract; the bytes end with the data area, and the kernel has zeroed those never
    // written.
    unsafe {
        let end = HEADER + HEADROOM + buf.as_ref().home_data_size();
        let at = view.off() + view.len();
        let n = want.min(end.saturating_sub(at));
        std::slice::from_raw_parts_mut(buf.as_ptr().cast::<u8>().add(at), n)
    }
}

/// Iterator over a packet's segments.
#[derive(Clone)]
pub struct Segments<'a> {
    at: Option<(NonNull<BufHdr>, View)>,
    owner: std::marker::PhantomData<&'a [u8]>,
}

impl Segments<'_> {
    /// # Safety
    /// The chain that begins with `buf` stays unchanged for the iterator's lifetime.
    pub(crate) unsafe fn new(buf: NonNull<BufHdr>, view: View) -> Self {
        Segments { at: Some((buf, view)), owner: std::marker::PhantomData }
    }
}

impl<'a> Iterator for Segments<'a> {
    type Item = &'a [u8];
    fn next(&mut self) -> Option<&'a [u8]> {
        let (buf, view) = self.at.take()?;
        // SAFETY: by the contract of `new`.
        unsafe {
            self.at = buf.as_ref().next.map(|n| (n, View(n.as_ref().meta.view)));
            Some(bytes(buf, view))
        }
    }
}
