//! Frames: up to 256 packets that move through the graph together.

mod pkt;

pub use pkt::PktMut;

use crate::SwIfIndex;
use crate::meta::{Flags, Meta};
use crate::packet::{Packet, Segments, View, bytes, bytes_before};
use crate::pool::BufHdr;
use crate::rows::{CountedRows, Rows};
use crate::simd::{LANES, Lanes};
use std::ptr::NonNull;

/// Number of packets in a full frame.
pub const FRAME_SIZE: usize = 256;

/// Number of keys for which [`Frame::deal`] searches the remaining rows.
const KEYS_TOGETHER: usize = 8;

/// The rows of a full frame.
const ROWS: [u8; FRAME_SIZE] = {
    let mut rows = [0; FRAME_SIZE];
    let mut i = 0;
    while i < FRAME_SIZE {
        rows[i] = i as u8;
        i += 1;
    }
    rows
};

/// Identifies a packet among all packets in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketKey(pub(crate) usize);

impl PacketKey {
    /// Returns it as a number.
    #[inline]
    #[must_use]
    pub fn bits(self) -> u64 {
        self.0 as u64
    }
    /// Returns the key of a number.
    #[inline]
    #[must_use]
    pub fn from_bits(bits: u64) -> PacketKey {
        PacketKey(bits as usize)
    }
}

/// Marks of a frame: at least those of each of its packets.
pub type FrameFlags = Flags;

/// One interface for the whole frame, or one per packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Iface {
    /// All packets share this interface.
    Uniform(SwIfIndex),
    /// Each packet has its own: query by index.
    Mixed,
}

/// An interface column: uniform as long as it can be, so that per-interface work is per frame.
#[derive(Clone)]
pub struct IfColumn {
    uniform: SwIfIndex,
    mixed: bool,
    each: [SwIfIndex; FRAME_SIZE],
}

impl IfColumn {
    const fn new() -> IfColumn {
        IfColumn { uniform: crate::LOCAL_IF, mixed: false, each: [crate::LOCAL_IF; FRAME_SIZE] }
    }
    #[inline]
    fn get(&self, i: u8) -> SwIfIndex {
        if self.mixed { self.each[i as usize] } else { self.uniform }
    }
    #[inline]
    fn whole(&self) -> Iface {
        if self.mixed { Iface::Mixed } else { Iface::Uniform(self.uniform) }
    }
    #[inline]
    fn set_all(&mut self, value: SwIfIndex) {
        (self.uniform, self.mixed) = (value, false);
    }
    /// Copies rows after the first `at` rows of `to`.
    #[inline]
    fn copy_rows(&self, rows: &[u8], to: &mut IfColumn, at: usize) {
        if !self.mixed && (at == 0 || (!to.mixed && to.uniform == self.uniform)) {
            to.set_all(self.uniform);
            return;
        }
        if !to.mixed {
            to.each[..at].fill(to.uniform);
            to.mixed = true;
        }
        for (to, row) in to.each[at..at + rows.len()].iter_mut().zip(rows) {
            *to = self.get(*row);
        }
    }
    /// Returns the values of the first `n` rows in order, each with the number of successive rows.
    #[inline]
    fn runs(&self, n: usize) -> impl Iterator<Item = (SwIfIndex, usize)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let (from, value) = (at, (at < n).then(|| self.get(at as u8))?);
            at = match self.mixed {
                false => n,
                true => (at..n).find(|i| self.get(*i as u8) != value).unwrap_or(n),
            };
            Some((value, at - from))
        })
    }
    /// Changes the value of row `i` out of `n`.
    #[inline]
    fn change(&mut self, i: usize, n: usize, value: SwIfIndex) {
        if n == 1 { self.set_all(value) } else { self.set(i, n, value) }
    }
    /// Writes the value of the new row `i`, the first `n` rows being in use.
    #[inline]
    fn set(&mut self, i: usize, n: usize, value: SwIfIndex) {
        if !self.mixed {
            if n == 0 {
                self.uniform = value;
                return;
            }
            if self.uniform == value {
                return;
            }
            self.each[..n].fill(self.uniform);
            self.mixed = true;
        }
        self.each[i] = value;
    }
}

/// Packets, up to [`FRAME_SIZE`], with what the next node needs of each in linear columns: where
/// its bytes are, one scalar (`aux`: an adjacency, a drop reason), and the interfaces it came from
/// and leaves by. Aligned, so that frames of different workers share no cache line.
#[repr(align(128))]
pub struct Frame {
    n: usize,
    flags: FrameFlags,
    /// Rows whose packets' metadata may differ from the default: no others need be read.
    written: Rows,
    /// Rows whose packets were sampled.
    sampled: CountedRows,
    holes: bool,
    rx: IfColumn,
    tx: IfColumn,
    bufs: [NonNull<BufHdr>; FRAME_SIZE],
    views: [View; FRAME_SIZE],
    aux: [u32; FRAME_SIZE],
    taken: [bool; FRAME_SIZE],
}

// SAFETY: a frame owns the packets in its rows.
unsafe impl Send for Frame {}

impl Default for Frame {
    fn default() -> Self {
        Frame {
            n: 0,
            flags: Flags::empty(),
            written: Rows::NONE,
            sampled: CountedRows::NONE,
            holes: false,
            rx: IfColumn::new(),
            tx: IfColumn::new(),
            bufs: [NonNull::dangling(); FRAME_SIZE],
            views: [View(0); FRAME_SIZE],
            aux: [0; FRAME_SIZE],
            taken: [false; FRAME_SIZE],
        }
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

impl Frame {
    /// Creates an empty frame.
    pub fn new() -> Box<Frame> {
        Box::default()
    }
    /// Returns the number of packets.
    #[inline]
    pub fn len(&self) -> usize {
        self.n
    }
    /// Returns true if there are no packets.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }
    /// Returns the number of packets that still fit.
    #[inline]
    pub fn room(&self) -> usize {
        FRAME_SIZE - self.n
    }
    /// Returns the marks that at least one packet may have. Empty: every packet's meta is default.
    #[inline]
    pub fn flags(&self) -> FrameFlags {
        self.flags
    }
    /// Returns the rows whose packets were sampled. They are empty unless [`Flags::SAMPLED`] is
    /// among the frame's marks.
    #[inline]
    pub fn sampled(&self) -> Rows {
        self.sampled.rows()
    }
    /// Returns the number of these rows.
    #[inline]
    pub fn sampled_packets(&self) -> usize {
        self.sampled.len()
    }
    /// Marks packet `i` as sampled; its metadata is not touched.
    #[inline]
    pub fn mark_sampled(&mut self, i: u8) {
        debug_assert!(usize::from(i) < self.n, "packet index beyond the frame");
        self.flags.insert(Flags::SAMPLED);
        self.sampled.insert(i);
    }
    /// Records that addresses, ports or tags of its packets may have changed: sampled packets are
    /// marked with [`Flags::TRANSLATED`].
    #[inline]
    pub fn note_translations(&mut self) {
        if self.flags.contains(Flags::SAMPLED) {
            self.mark_translated();
        }
    }
    #[cold]
    fn mark_translated(&mut self) {
        for i in self.sampled().iter() {
            self.pkt(i).mark(Flags::TRANSLATED);
        }
    }
    /// Records that the VLAN tags of its packets have changed: sampled packets are marked with
    /// [`Flags::RETAGGED`].
    #[inline]
    pub fn note_retagging(&mut self) {
        if self.flags.contains(Flags::SAMPLED) {
            self.mark_retagged();
        }
    }
    #[cold]
    fn mark_retagged(&mut self) {
        for i in self.sampled().iter() {
            self.pkt(i).mark(Flags::RETAGGED);
        }
    }
    /// Returns the key of packet `i`, unique while the packet lives.
    #[inline]
    pub fn key(&self, i: u8) -> PacketKey {
        self.check(i);
        PacketKey(self.bufs[i as usize].as_ptr() as usize)
    }
    /// Returns true if row `i` is the packet with that key.
    #[inline]
    pub fn holds(&self, i: u8, key: PacketKey) -> bool {
        usize::from(i) < self.n && self.bufs[usize::from(i)].as_ptr() as usize == key.0
    }
    /// Returns the interface the packets came from.
    #[inline]
    pub fn rx(&self) -> Iface {
        self.rx.whole()
    }
    /// Returns the interface the packets leave by.
    #[inline]
    pub fn tx(&self) -> Iface {
        self.tx.whole()
    }
    /// Returns the interfaces of receipt in order, each with the number of successive packets.
    #[inline]
    pub fn rx_runs(&self) -> impl Iterator<Item = (SwIfIndex, usize)> {
        self.rx.runs(self.n)
    }
    /// Returns the interfaces that the packets leave by in order, each with the number of
    /// successive packets.
    #[inline]
    pub fn tx_runs(&self) -> impl Iterator<Item = (SwIfIndex, usize)> {
        self.tx.runs(self.n)
    }
    /// Returns the interface packet `i` came from.
    #[inline]
    pub fn rx_if(&self, i: u8) -> SwIfIndex {
        self.rx.get(i)
    }
    /// Returns the interface packet `i` leaves by.
    #[inline]
    pub fn tx_if(&self, i: u8) -> SwIfIndex {
        self.tx.get(i)
    }
    /// Sets the interface that all packets came from.
    #[inline]
    pub fn set_rx(&mut self, rx_if: SwIfIndex) {
        self.rx.set_all(rx_if);
    }
    /// Sets the interface that all packets leave by.
    #[inline]
    pub fn set_tx(&mut self, tx_if: SwIfIndex) {
        self.tx.set_all(tx_if);
    }
    /// Sets the interface that each packet came from.
    #[inline]
    pub fn set_rx_each(&mut self, rx_ifs: &[SwIfIndex; FRAME_SIZE]) {
        self.rx.each[..self.n].copy_from_slice(&rx_ifs[..self.n]);
        self.rx.mixed = true;
    }
    /// Sets the interface that each packet leaves by.
    #[inline]
    pub fn set_tx_each(&mut self, tx_ifs: &[SwIfIndex; FRAME_SIZE]) {
        self.tx.each[..self.n].copy_from_slice(&tx_ifs[..self.n]);
        self.tx.mixed = true;
    }
    /// Returns the side column.
    #[inline]
    pub fn aux(&self) -> &[u32] {
        &self.aux[..self.n]
    }
    /// Returns the side column.
    #[inline]
    pub fn aux_mut(&mut self) -> &mut [u32] {
        &mut self.aux[..self.n]
    }

    /// Returns the side column of sixteen packets from `at` on; undefined without one.
    #[inline(always)]
    pub fn aux_lanes<V: Lanes>(&self, at: usize) -> V {
        let (all, _) = self.aux.as_chunks();
        V::load(&all[at / LANES])
    }
    /// Writes the side column of sixteen packets from `at` on.
    #[inline(always)]
    pub fn set_aux_lanes<V: Lanes>(&mut self, at: usize, values: V) {
        let (all, _) = self.aux.as_chunks_mut();
        values.store(&mut all[at / LANES]);
    }

    /// Returns the bytes of packet `i`'s first segment.
    #[inline]
    pub fn data(&self, i: u8) -> &[u8] {
        self.check(i);
        // SAFETY: row i is a packet of ours.
        unsafe { bytes(self.bufs[i as usize], self.views[i as usize]) }
    }

    /// Returns packet `i`'s key and the bytes of its first segment, with one lookup.
    #[inline]
    pub fn key_and_data(&self, i: u8) -> (PacketKey, &[u8]) {
        self.check(i);
        let buf = self.bufs[i as usize];
        // SAFETY: row i is a packet of ours.
        (PacketKey(buf.as_ptr() as usize), unsafe { bytes(buf, self.views[i as usize]) })
    }

    /// Returns the number of bytes before packet `i`'s current header that nodes have pulled since
    /// it came from a device; 0 if headers were pushed again.
    #[inline]
    pub fn stepped(&self, i: u8) -> usize {
        self.check(i);
        self.views[i as usize].off().saturating_sub(View::FRESH.off())
    }

    /// Returns the number of bytes that nodes have put in front of packet `i` since it came from a
    /// device, or was made; 0 if none, or if they took the place of pulled ones.
    #[inline]
    pub fn pushed(&self, i: u8) -> usize {
        self.check(i);
        View::FRESH.off().saturating_sub(self.views[i as usize].off())
    }

    /// Returns up to `n` bytes before packet `i`'s current header: headers that were pulled.
    pub fn before(&self, i: u8, n: usize) -> &[u8] {
        self.check(i);
        // SAFETY: row i is a packet of ours.
        unsafe { bytes_before(self.bufs[i as usize], self.views[i as usize], n) }
    }

    /// Returns the metadata of packet `i`.
    #[inline]
    pub fn meta(&self, i: u8) -> &Meta {
        self.check(i);
        // SAFETY: row i is a packet of ours.
        unsafe { &self.bufs[i as usize].as_ref().meta }
    }

    /// Returns the number of bytes of all segments of packet `i`.
    #[inline]
    pub fn total_len(&self, i: u8) -> usize {
        let first = self.views[i as usize].len();
        if self.flags.contains(Flags::CHAINED) {
            first + self.meta(i).rest_len as usize
        } else {
            first
        }
    }

    /// Returns packet `i`'s segments in order.
    pub fn segments(&self, i: u8) -> Segments<'_> {
        self.check(i);
        // SAFETY: row i is a packet of ours, borrowed by the iterator.
        unsafe { Segments::new(self.bufs[i as usize], self.views[i as usize]) }
    }

    /// Returns the sum of the packets' lengths, all segments counted.
    #[inline]
    pub fn bytes(&self) -> u64 {
        let mut sum: u32 = 0;
        for v in &self.views[..self.n] {
            sum += v.0 >> 16;
        }
        let mut sum = u64::from(sum);
        if self.flags.contains(Flags::CHAINED) {
            sum += (0..self.n).map(|i| u64::from(self.meta(i as u8).rest_len)).sum::<u64>();
        }
        sum
    }

    /// Prefetches the first cache line of packet `i`'s bytes; any `i` is allowed.
    #[inline]
    pub fn prefetch_data(&self, i: usize) {
        if i < self.n {
            let at = self.bufs[i].as_ptr().cast::<u8>().wrapping_add(self.views[i].off());
            prefetch(at);
        }
    }

    /// Returns a packet of this frame, to be changed in place.
    #[inline]
    pub fn pkt(&mut self, i: u8) -> PktMut<'_> {
        self.check(i);
        let (buf, view) = (self.bufs[i as usize], self.views[i as usize]);
        PktMut { frame: self, i, buf, view }
    }

    #[inline]
    fn check(&self, i: u8) {
        assert!((i as usize) < self.n, "packet index beyond the frame");
        assert!(!self.holes || !self.taken[i as usize], "packet was taken");
    }

    /// Appends a packet; returns it if the frame is full.
    pub fn push(&mut self, packet: Packet) -> Result<(), Packet> {
        if self.n == FRAME_SIZE {
            return Err(packet);
        }
        let (buf, view) = packet.into_parts();
        // SAFETY: the packet is ours now.
        let meta = unsafe { &mut (*buf.as_ptr()).meta };
        let (flags, rx, tx, aux) = (meta.flags, meta.rx_if, meta.tx_if, meta.aux);
        // Meta fields that the columns contain are cleared, so that an unmarked packet's meta is
        // default.
        if flags.contains(Flags::SAMPLED) {
            meta.flags.remove(Flags::SAMPLED);
            self.sampled.insert(self.n as u8);
        }
        if meta.flags.is_empty() {
            // SAFETY: as above; an unmarked packet uses no other field.
            unsafe { (*buf.as_ptr()).meta = Meta::default() };
        } else {
            self.written.insert(self.n as u8);
        }
        let i = self.n;
        self.rx.set(i, i, rx);
        self.tx.set(i, i, tx);
        self.bufs[i] = buf;
        self.views[i] = view;
        self.aux[i] = aux;
        self.flags.insert(flags);
        self.n = i + 1;
        Ok(())
    }

    /// Removes the last packet.
    pub fn pop(&mut self) -> Option<Packet> {
        while self.n > 0 {
            let i = self.n - 1;
            let taken = self.holes && self.taken[i];
            self.n = i;
            if taken {
                self.taken[i] = false;
                self.clear_row(i as u8);
                continue;
            }
            let packet = self.lift(i);
            self.clear_row(i as u8);
            if i == 0 {
                self.reset();
            }
            return Some(packet);
        }
        self.reset();
        None
    }

    fn clear_row(&mut self, i: u8) {
        self.written.remove(i);
        self.sampled.remove(i);
    }

    /// Turns row `i`, which is no longer a row, into an owned packet.
    fn lift(&mut self, i: usize) -> Packet {
        let buf = self.bufs[i];
        // SAFETY: the row's packet passes to the handle.
        let meta = unsafe { &mut (*buf.as_ptr()).meta };
        meta.rx_if = self.rx.get(i as u8);
        meta.tx_if = self.tx.get(i as u8);
        meta.aux = self.aux[i];
        if self.sampled.contains(i as u8) {
            meta.flags.insert(Flags::SAMPLED);
        }
        Packet { buf, view: self.views[i] }
    }

    #[inline]
    fn reset(&mut self) {
        self.n = 0;
        self.flags = Flags::empty();
        self.written = Rows::NONE;
        self.sampled = CountedRows::NONE;
        self.rx.set_all(crate::LOCAL_IF);
        self.tx.set_all(crate::LOCAL_IF);
        if self.holes {
            self.holes = false;
            self.taken = [false; FRAME_SIZE];
        }
    }

    /// Returns the columns with the packets' locations.
    #[inline]
    pub(crate) fn rows(&self) -> (&[NonNull<BufHdr>], &[View]) {
        assert!(!self.holes, "a packet was taken");
        (&self.bufs[..self.n], &self.views[..self.n])
    }

    /// Returns the views of sixteen rows, some of which may be invalid.
    #[inline(always)]
    pub(crate) fn sixteen_views(&mut self, at: usize) -> &mut [View; LANES] {
        let (all, _) = self.views.as_chunks_mut();
        &mut all[at / LANES]
    }

    #[inline]
    pub(crate) fn views_mut(&mut self) -> &mut [View] {
        &mut self.views[..self.n]
    }

    pub(crate) fn bufs(&self) -> &[NonNull<BufHdr>] {
        debug_assert!(!self.holes);
        &self.bufs[..self.n]
    }

    /// Clears all rows; their buffers have another owner.
    pub(crate) fn clear_all(&mut self) {
        self.reset();
    }

    /// Returns the packets whose metadata may differ from the default; there must be no holes.
    #[inline]
    pub(crate) fn written_bufs(&self) -> impl Iterator<Item = NonNull<BufHdr>> + '_ {
        debug_assert!(!self.holes);
        self.written.iter().map(|i| self.bufs[usize::from(i)])
    }

    pub(crate) fn append_fresh(&mut self, bufs: &[NonNull<BufHdr>], len: usize) {
        let (from, to) = (self.n, self.n + bufs.len());
        let view = View::new(View::FRESH.off() as u16, len as u16);
        match bufs {
            // No calls to copy and fill some bytes.
            [one] => (self.bufs[from], self.views[from], self.aux[from]) = (*one, view, 0),
            all => {
                self.bufs[from..to].copy_from_slice(all);
                self.views[from..to].fill(view);
                self.aux[from..to].fill(0);
            }
        }
        for column in [&mut self.rx, &mut self.tx] {
            if column.mixed {
                column.each[from..to].fill(crate::LOCAL_IF);
            }
        }
        self.n = to;
    }

    /// Moves all packets to the end of `to`, which must have room for them.
    ///
    /// # Panics
    /// If they do not fit.
    pub fn append_to(&mut self, to: &mut Frame) {
        self.compact(());
        let (from, n) = (to.n, self.n);
        assert!(n <= to.room());
        to.bufs[from..from + n].copy_from_slice(&self.bufs[..n]);
        to.views[from..from + n].copy_from_slice(&self.views[..n]);
        to.aux[from..from + n].copy_from_slice(&self.aux[..n]);
        append_column(&self.rx, &mut to.rx, from, n);
        append_column(&self.tx, &mut to.tx, from, n);
        to.flags.insert(self.flags);
        if !self.flags.is_empty() {
            self.written.iter().for_each(|i| to.written.insert(from as u8 + i));
            self.sampled().iter().for_each(|i| to.sampled.insert(from as u8 + i));
        }
        to.n += n;
        self.reset();
    }

    /// Moves every packet into the frame that `place` returns for its key, in order. Packets of one
    /// key move together, column by column; those of a frame's ninth key and on one by one.
    ///
    /// # Panics
    /// If `place` returns a full frame; the packets not yet moved are then lost to the pool.
    pub fn deal(&mut self, keys: &[u32; FRAME_SIZE], place: &mut impl Deal) {
        self.compact(());
        let n = std::mem::take(&mut self.n);
        let mut left: [u8; FRAME_SIZE] = ROWS;
        let mut rows = [0u8; FRAME_SIZE];
        let mut count = n;
        for _ in 0..KEYS_TOGETHER {
            if count == 0 {
                break;
            }
            let key = keys[left[0] as usize];
            // Both lists are written for every row; only the one that it belongs to grows.
            let (mut of_key, mut others) = (0, 0);
            for j in 0..count {
                // The masks show the compiler that no index is beyond the arrays.
                let row = left[j % FRAME_SIZE];
                let same = keys[row as usize] == key;
                rows[of_key % FRAME_SIZE] = row;
                left[others % FRAME_SIZE] = row;
                of_key += usize::from(same);
                others += usize::from(!same);
            }
            count = others;
            let mut moving = &rows[..of_key];
            while !moving.is_empty() {
                let to = place.frame_for(key);
                let (now, later) = moving.split_at(moving.len().min(to.room()));
                assert!(!now.is_empty(), "deal into a full frame");
                self.move_rows(now, to);
                moving = later;
            }
        }
        for row in &left[..count] {
            let to = place.frame_for(keys[*row as usize]);
            assert!(to.room() > 0, "deal into a full frame");
            self.move_rows(&[*row], to);
        }
        self.reset();
    }

    /// Copies rows to the end of `to`, which has room; the caller clears them here.
    #[inline]
    fn move_rows(&self, rows: &[u8], to: &mut Frame) {
        let (at, end) = (to.n, to.n + rows.len());
        for (to, row) in to.bufs[at..end].iter_mut().zip(rows) {
            *to = self.bufs[*row as usize];
        }
        for (to, row) in to.views[at..end].iter_mut().zip(rows) {
            *to = self.views[*row as usize];
        }
        for (to, row) in to.aux[at..end].iter_mut().zip(rows) {
            *to = self.aux[*row as usize];
        }
        self.rx.copy_rows(rows, &mut to.rx, at);
        self.tx.copy_rows(rows, &mut to.tx, at);
        if !self.flags.is_empty() {
            for (i, row) in rows.iter().enumerate() {
                if self.written.contains(*row) {
                    // SAFETY: the packet is the destination's now.
                    to.flags.insert(unsafe { self.bufs[*row as usize].as_ref().meta.flags });
                    to.written.insert((at + i) as u8);
                }
                if self.sampled.contains(*row) {
                    to.flags.insert(Flags::SAMPLED);
                    to.sampled.insert((at + i) as u8);
                }
            }
        }
        to.n = end;
    }

    /// Closes the gaps that taken packets have left, here and in `companion`.
    pub fn compact(&mut self, mut companion: impl Companion) {
        if !self.holes {
            return;
        }
        let mut at = 0;
        for i in 0..self.n {
            if self.taken[i] {
                self.clear_row(i as u8);
                continue;
            }
            self.bufs[at] = self.bufs[i];
            self.views[at] = self.views[i];
            self.aux[at] = self.aux[i];
            let (from, to) = (i as u8, at as u8);
            if self.written.contains(from) {
                self.written.remove(from);
                self.written.insert(to);
            }
            if self.sampled.contains(from) {
                self.sampled.remove(from);
                self.sampled.insert(to);
            }
            self.rx.each[at] = self.rx.each[i];
            self.tx.each[at] = self.tx.each[i];
            companion.keep(i, at);
            at += 1;
        }
        self.n = at;
        self.holes = false;
        self.taken = [false; FRAME_SIZE];
        if at == 0 {
            self.reset();
        }
    }

    /// Returns true if packets were taken out of the middle and [`compact`](Self::compact) is due.
    #[inline]
    pub fn has_holes(&self) -> bool {
        self.holes
    }
}

fn append_column(from: &IfColumn, to: &mut IfColumn, at: usize, n: usize) {
    if n == 0 {
        return;
    }
    if !from.mixed && (at == 0 || (!to.mixed && to.uniform == from.uniform)) {
        to.set_all(from.uniform);
        return;
    }
    if !to.mixed {
        to.each[..at].fill(to.uniform);
        to.mixed = true;
    }
    if from.mixed {
        to.each[at..at + n].copy_from_slice(&from.each[..n]);
    } else {
        to.each[at..at + n].fill(from.uniform);
    }
}

/// Values that accompany a frame's packets, one each; see [`Frame::compact`].
pub trait Companion {
    /// Moves the value of the packet at `from` down to `to`.
    fn keep(&mut self, from: usize, to: usize);
}

impl Companion for () {
    fn keep(&mut self, _from: usize, _to: usize) {}
}

/// Chooses frames by key; see [`Frame::deal`].
pub trait Deal {
    /// Returns the frame for packets of that key, which must have room for at least one.
    fn frame_for(&mut self, key: u32) -> &mut Frame;
}

#[inline]
fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address has no effect but on the cache.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
