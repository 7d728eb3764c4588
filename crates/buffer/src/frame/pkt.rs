//! One packet of a frame, as nodes see it.

use super::{Frame, PacketKey};
use crate::SwIfIndex;
use crate::meta::{Flags, Meta, Search};
use crate::packet::{Lineage, Packet, Segments, View, bytes, bytes_before, bytes_mut, pull, push};
use crate::pool::BufHdr;
use std::ptr::NonNull;

/// A packet of a frame, borrowed by the function that processes it.
pub struct PktMut<'f> {
    pub(super) frame: &'f mut Frame,
    pub(super) i: u8,
    pub(super) buf: NonNull<BufHdr>,
    pub(super) view: View,
}

impl PktMut<'_> {
    /// Returns its position in the frame.
    #[inline]
    pub fn index(&self) -> u8 {
        self.i
    }
    /// Returns the bytes of the first segment, from the current header on.
    #[inline]
    pub fn data(&self) -> &[u8] {
        // SAFETY: the frame owns the packet and is borrowed by us.
        unsafe { bytes(self.buf, self.view) }
    }
    /// Returns the bytes of the first segment, from the current header on.
    #[inline]
    pub fn data_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { bytes_mut(self.buf, self.view) }
    }
    /// Returns up to `n` bytes before the current header: headers that were pulled.
    #[inline]
    pub fn before(&self, n: usize) -> &[u8] {
        // SAFETY: the frame owns the packet and is borrowed by us.
        unsafe { bytes_before(self.buf, self.view, n) }
    }

    /// Returns the number of bytes before the current header that nodes have pulled since the
    /// packet came from a device; 0 if headers were pushed again.
    #[inline]
    pub fn stepped(&self) -> usize {
        self.view.off().saturating_sub(View::FRESH.off())
    }
    /// Returns the length of the first segment.
    #[inline]
    pub fn len(&self) -> usize {
        self.view.len()
    }
    /// Returns true if the first segment has no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.view.len() == 0
    }
    /// Returns the length of all segments.
    #[inline]
    pub fn total_len(&self) -> usize {
        self.frame.total_len(self.i)
    }
    /// Returns the segments' bytes in order.
    pub fn segments(&self) -> Segments<'_> {
        self.frame.segments(self.i)
    }
    /// Returns true if the packet may have marks: checked on the slow path.
    #[inline]
    pub fn may_have_flags(&self) -> bool {
        !self.frame.flags.is_empty()
    }
    /// Returns the packet's key, unique while it is in the router.
    #[inline]
    pub fn key(&self) -> PacketKey {
        self.frame.key(self.i)
    }
    /// Returns the packet's marks.
    #[inline]
    pub fn flags(&self) -> Flags {
        if self.frame.flags.is_empty() {
            return Flags::empty();
        }
        let sampled = self.frame.sampled.contains(self.i);
        let mark = if sampled { Flags::SAMPLED } else { Flags::empty() };
        self.meta().flags.union(mark)
    }
    /// Returns the metadata.
    #[inline]
    pub fn meta(&self) -> &Meta {
        // SAFETY: the frame owns the packet and is borrowed by us.
        unsafe { &self.buf.as_ref().meta }
    }
    /// Returns the metadata, to be changed; marks the packet with [`Flags::META`].
    #[inline]
    pub fn meta_mut(&mut self) -> &mut Meta {
        self.mark(Flags::META);
        // SAFETY: as above.
        unsafe { &mut self.buf.as_mut().meta }
    }
    /// Sets marks, on the packet and on its frame.
    #[inline]
    pub fn mark(&mut self, mut flags: Flags) {
        self.frame.flags.insert(flags);
        if flags.contains(Flags::SAMPLED) {
            self.frame.sampled.insert(self.i);
            flags.remove(Flags::SAMPLED);
        }
        self.frame.written.insert(self.i);
        // SAFETY: the frame owns the packet and is borrowed by us.
        unsafe { self.buf.as_mut().meta.flags.insert(flags) };
    }
    /// Records that its addresses, ports or tags may have changed: if it was sampled, it is marked
    /// with [`Flags::TRANSLATED`].
    #[inline]
    pub fn note_translation(&mut self) {
        if self.frame.flags.contains(Flags::SAMPLED) && self.frame.sampled.contains(self.i) {
            self.mark(Flags::TRANSLATED);
        }
    }
    /// Records that its VLAN tags have changed: if it was sampled, it is marked with
    /// [`Flags::RETAGGED`].
    #[inline]
    pub fn note_retagging(&mut self) {
        if self.frame.flags.contains(Flags::SAMPLED) && self.frame.sampled.contains(self.i) {
            self.mark(Flags::RETAGGED);
        }
    }
    /// Clears marks of the packet; the frame keeps them.
    #[inline]
    pub fn unmark(&mut self, flags: Flags) {
        if !self.frame.flags.is_empty() {
            if flags.contains(Flags::SAMPLED) {
                self.frame.sampled.remove(self.i);
            }
            self.frame.flags.insert(Flags::META);
            self.frame.written.insert(self.i);
            // SAFETY: as above.
            unsafe {
                let meta = &mut self.buf.as_mut().meta;
                meta.flags.remove(flags);
                meta.flags.insert(Flags::META);
            }
        }
    }
    /// Returns the interface that the packet came from.
    #[inline]
    pub fn rx_if(&self) -> SwIfIndex {
        self.frame.rx.get(self.i)
    }
    /// Sets the interface that the packet came from.
    #[inline]
    pub fn set_rx_if(&mut self, rx_if: SwIfIndex) {
        let n = self.frame.n;
        self.frame.rx.change(self.i as usize, n, rx_if);
    }
    /// Returns the interface that the packet leaves by.
    #[inline]
    pub fn tx_if(&self) -> SwIfIndex {
        self.frame.tx.get(self.i)
    }
    /// Sets the interface that the packet leaves by.
    #[inline]
    pub fn set_tx_if(&mut self, tx_if: SwIfIndex) {
        let n = self.frame.n;
        self.frame.tx.change(self.i as usize, n, tx_if);
    }
    /// Returns what packets made of this one inherit.
    pub fn lineage(&self) -> Lineage {
        let (rx_if, tx_if, aux) = (self.rx_if(), self.tx_if(), self.aux());
        let flags = self.flags();
        let laps = if flags.contains(Flags::META) { self.meta().laps } else { 0 };
        Lineage { flags, rx_if, tx_if, aux, laps }
    }
    /// Returns the side column's value.
    #[inline]
    pub fn aux(&self) -> u32 {
        self.frame.aux[self.i as usize]
    }
    /// Sets the side column's value.
    #[inline]
    pub fn set_aux(&mut self, aux: u32) {
        self.frame.aux[self.i as usize] = aux;
    }
    /// Removes the first `n` bytes; returns false (and does nothing) if the segment has fewer.
    #[inline]
    pub fn pull(&mut self, n: usize) -> bool {
        let ok = pull(&mut self.view, n);
        self.frame.views[self.i as usize] = self.view;
        ok
    }
    /// Prepends `n` bytes; `None` if the headroom is used up. The new bytes contain a header pulled
    /// before, or are undefined.
    #[inline]
    pub fn push(&mut self, n: usize) -> Option<&mut [u8]> {
        if !push(&mut self.view, n) {
            return None;
        }
        self.frame.views[self.i as usize] = self.view;
        Some(&mut self.data_mut()[..n])
    }
    /// Truncates the packet to its first `n` bytes if it is longer; later segments go back to
    /// `cache`.
    pub fn truncate(&mut self, n: usize, cache: &mut crate::Cache) {
        if n > self.view.len() {
            self.truncate_chain(n, cache);
            return;
        }
        self.view = View::new(self.view.off() as u16, n as u16);
        self.frame.views[self.i as usize] = self.view;
        if self.flags().contains(Flags::CHAINED) {
            // SAFETY: the frame owns the packet.
            let rest = unsafe { self.buf.as_mut().next.take() };
            if let Some(rest) = rest {
                cache.free_chain(rest);
            }
            self.meta_mut().rest_len = 0;
            self.unmark(Flags::CHAINED);
        }
    }

    fn truncate_chain(&mut self, n: usize, cache: &mut crate::Cache) {
        if !self.flags().contains(Flags::CHAINED) {
            return;
        }
        let mut left = n - self.view.len();
        let mut rest_len = 0;
        let mut at = self.buf;
        // SAFETY: the whole chain belongs to this packet.
        unsafe {
            while left > 0 {
                let Some(next) = at.as_ref().next else { break };
                let hdr = &mut *next.as_ptr();
                let view = View(hdr.meta.view);
                let keep = view.len().min(left);
                hdr.meta.view = View::new(view.off() as u16, keep as u16).0;
                left -= keep;
                rest_len += keep as u32;
                at = next;
            }
            if let Some(rest) = at.as_mut().next.take() {
                cache.free_chain(rest);
            }
        }
        self.meta_mut().rest_len = rest_len;
    }

    /// Takes the [progress of the search](crate::Meta::search) for the worker that has the packet's
    /// flow.
    #[inline]
    pub fn take_search(&mut self) -> Search {
        if !self.may_have_flags() || !self.flags().contains(Flags::META) {
            return Search::New;
        }
        match self.meta().search {
            Search::New => Search::New,
            _ => std::mem::take(&mut self.meta_mut().search),
        }
    }

    /// Takes the packet out of the frame: the caller owns it from here on.
    #[must_use = "a taken packet must be kept, sent on or freed"]
    pub fn take(self) -> Packet {
        let i = self.i as usize;
        let packet = self.frame.lift(i);
        self.frame.taken[i] = true;
        self.frame.holes = true;
        packet
    }
}
