//! Receive rings.

use std::io::{ErrorKind, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::layout::{Cursor, RingSize, Version};
use super::parse::{self, Slot, Tag};
use super::socket::Socket;
use crate::sys;
use thalweg_device_linux::VnetHdr;

/// The largest frame that is fetched from the socket, with its vnet header.
const LARGEST: usize = 65_536 + 256;
/// Slots prefetched ahead: memory is slow, and a slot takes a few tens of nanoseconds.
const AHEAD: usize = 4;
/// Maximum number of pieces of a frame: 64 KiB are 33 buffers of the default size.
const PIECES: usize = 64;
/// Offset of the tag: after the two addresses.
const TAG_AT: usize = 12;

/// A received frame, valid during the call that gets it.
#[derive(Debug, Clone, Copy)]
pub struct RxFrame<'a> {
    /// The frame from its Ethernet header on, without the tag in `vlan`.
    pub data: &'a [u8],
    /// Length on the wire, tag included; equals [`RxFrame::len`], since truncated frames are
    /// dropped and counted.
    pub wire_len: usize,
    /// Pending offload work; offsets include the tag in `vlan`.
    pub vnet: VnetHdr,
    /// Outermost VLAN tag, if the kernel removed it: it belongs at byte 12.
    pub vlan: Option<Tag>,
    /// Time of arrival in ns of the realtime clock.
    pub timestamp_ns: u64,
}

impl RxFrame<'_> {
    /// Length of the frame in bytes, its tag included.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a frame has at least its header")]
    pub fn len(&self) -> usize {
        self.data.len() + if self.vlan.is_some() { Tag::LEN } else { 0 }
    }

    /// Copies what follows byte `from` of the frame, its tag included, into `to`.
    ///
    /// Returns the number of bytes copied, limited by both lengths.
    #[inline]
    pub fn copy(&self, from: usize, to: &mut [u8]) -> usize {
        match self.vlan {
            None => copy_part(self.data, from, to),
            Some(tag) => self.copy_tagged(tag, from, to),
        }
    }

    fn copy_tagged(&self, tag: Tag, from: usize, to: &mut [u8]) -> usize {
        let tag = tag.to_bytes();
        let (addresses, rest) = self.data.split_at(TAG_AT.min(self.data.len()));
        let mut skip = from;
        let mut done = 0;
        for piece in [addresses, &tag, rest] {
            done += copy_part(piece, skip, &mut to[done..]);
            skip = skip.saturating_sub(piece.len());
        }
        done
    }
}

#[inline]
fn copy_part(piece: &[u8], skip: usize, to: &mut [u8]) -> usize {
    let piece = piece.get(skip..).unwrap_or_default();
    let len = piece.len().min(to.len());
    to[..len].copy_from_slice(&piece[..len]);
    len
}

/// Counters of a receive ring. Drops due to a full ring are counted by the kernel:
/// [`Socket::kernel_stats`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RxStats {
    /// Frames delivered.
    pub frames: u64,
    /// Bytes of these frames.
    pub bytes: u64,
    /// Frames too large for a slot among them, fetched from the socket.
    pub large: u64,
    /// Dropped: too large for the slot, and the rest is lost.
    pub truncated: u64,
    /// Dropped: malformed slot, or frame below 14 bytes.
    pub malformed: u64,
    /// Skipped: sent by this host.
    pub outgoing: u64,
}

/// The receive ring of one queue.
#[derive(Debug)]
pub struct RxRing {
    socket: Arc<Socket>,
    ring: RingSize,
    /// The next slot (V2) or block (V3).
    cursor: Cursor,
    /// V3: offset of the next packet in the block at the cursor, and packets left.
    block: Option<(usize, u32)>,
    /// V3: number of packets at the start of the block at the cursor that are not wanted.
    stale: u32,
    reader: FrameReader,
}

/// Parses frames and updates counters before delivery.
#[derive(Debug)]
struct FrameReader {
    /// Buffer for frames that do not fit a slot.
    large: Box<[u8]>,
    stats: RxStats,
}

impl RxRing {
    pub(super) fn new(socket: &Arc<Socket>) -> Option<Self> {
        let mut ring = socket.rx?;
        if socket.version == Version::V3 {
            // A V3 block plays the part of a V2 slot.
            ring = RingSize { slot: ring.block, per_block: 1, ..ring };
        }
        Some(Self {
            socket: Arc::clone(socket),
            ring,
            // The receive ring comes first in the mapping.
            cursor: Cursor::new(0),
            block: None,
            stale: 0,
            reader: FrameReader {
                large: vec![0; LARGEST].into_boxed_slice(),
                stats: RxStats::default(),
            },
        })
    }

    /// The socket, for settings and counters.
    pub fn socket(&self) -> &Arc<Socket> {
        &self.socket
    }

    /// Maximum number of frames in the ring.
    pub fn capacity(&self) -> usize {
        /// Least memory of a frame, with its header.
        const LEAST: usize = 64;
        self.socket.rx_size().map_or(0, |size| size.bytes() / LEAST)
    }

    /// Counters of this ring.
    pub fn stats(&self) -> RxStats {
        self.reader.stats
    }

    /// Returns whether frames are waiting; the last check before sleeping.
    #[inline]
    pub fn is_ready(&self) -> bool {
        let status_at = match self.socket.version {
            Version::V2 => parse::V2_STATUS_AT,
            Version::V3 => parse::V3_BLOCK_STATUS_AT,
        };
        self.block.is_some()
            || self.socket.region.word(self.cursor.at + status_at).load(Ordering::Acquire)
                & parse::USER
                != 0
    }

    /// Passes over all frames of the ring, those included that are in a V3 block which the kernel
    /// still fills. For the time in which the socket [refuses](Socket::refuse) frames.
    pub fn discard(&mut self) {
        /// Frames at a time.
        const BATCH: usize = 256;
        let mut left = self.capacity();
        while left > 0 && self.poll(BATCH, |_| true) > 0 {
            left = left.saturating_sub(BATCH);
        }
        if self.socket.version == Version::V3 && self.block.is_none() {
            let packets_at = self.cursor.at + parse::V3_BLOCK_PACKETS_AT;
            self.stale = self.socket.region.word(packets_at).load(Ordering::Acquire);
        }
    }

    /// Calls `each` for up to `max` waiting frames, until it returns `false`.
    ///
    /// The frame for which it returned `false` is consumed. A frame's slot (V3: its block, after
    /// its last frame) goes back to the kernel when `each` returns. Never blocks. Returns the
    /// number of frames delivered.
    #[inline]
    pub fn poll<F: FnMut(RxFrame<'_>) -> bool>(&mut self, max: usize, each: F) -> usize {
        self.poll_into(max, &mut FnSink(each))
    }

    /// [`RxRing::poll`] for a sink that may fetch large frames straight to their destination.
    #[inline]
    pub fn poll_into(&mut self, max: usize, sink: &mut impl Sink) -> usize {
        match self.socket.version {
            Version::V2 => self.poll_v2(max, sink),
            Version::V3 => self.poll_v3(max, sink),
        }
    }

    fn poll_v2(&mut self, max: usize, each: &mut impl Sink) -> usize {
        let Self { socket, ring, cursor, reader, .. } = self;
        let region = &socket.region;
        let mut given = 0;
        // Take one round at most, in case all frames are dropped here.
        for _ in 0..ring.slots() {
            let status_at = cursor.at + parse::V2_STATUS_AT;
            let status = region.word(status_at).load(Ordering::Acquire);
            if given == max || status & parse::USER == 0 {
                break;
            }
            region.prefetch(cursor.at + AHEAD * ring.slot);
            // SAFETY: the status, read with Acquire, says that the slot is ours; it
            // goes back to the kernel below, after the last use of the slice. The ring
            // is borrowed mutably, so no other code reads or returns slots.
            let slot = unsafe { region.slice(cursor.at, ring.slot) };
            let more = match parse::v2_slot(slot, status, socket.vnet) {
                Ok(parsed) => reader.deliver(socket, &parsed, slot, status, &mut given, each),
                Err(_) => {
                    reader.stats.malformed += 1;
                    true
                }
            };
            // Give it back at once rather than at the end: the line is in the cache, and the kernel
            // has room sooner.
            region.word(status_at).store(0, Ordering::Release);
            cursor.advance(ring);
            if !more {
                break;
            }
        }
        given
    }

    fn poll_v3(&mut self, max: usize, each: &mut impl Sink) -> usize {
        let mut given = 0;
        let mut more = true;
        while more && given < max && self.is_ready() {
            let Self { socket, ring, cursor, block, stale, reader } = self;
            // SAFETY: `is_ready` read with Acquire that the block is ours, or did so
            // when `block` was set; it goes back to the kernel below, after the last
            // use of `bytes`.
            let bytes = unsafe { socket.region.slice(cursor.at, ring.block) };
            let (mut at, mut left) = match (*block, parse::v3_block(bytes)) {
                (Some(position), _) => position,
                (None, Ok(head)) => match std::mem::take(stale) {
                    0 => (head.first, head.packets),
                    count => parse::v3_after(bytes, head, count),
                },
                (None, Err(_)) => (0, 0),
            };
            while more && left > 0 && given < max {
                let Ok((packet, next)) = parse::v3_packet(bytes, at, socket.vnet) else {
                    // The chain is broken: later packets cannot be found.
                    reader.stats.malformed += u64::from(left);
                    left = 0;
                    break;
                };
                socket.region.prefetch(cursor.at + next);
                (at, left) = (next, left - 1);
                more = reader.deliver(socket, &packet, bytes, 0, &mut given, each);
            }
            if left > 0 {
                *block = Some((at, left));
                break;
            }
            *block = None;
            // The kernel resets it when it begins to fill the block, which may be later.
            let packets = socket.region.word(cursor.at + parse::V3_BLOCK_PACKETS_AT);
            packets.store(0, Ordering::Relaxed);
            let status = socket.region.word(cursor.at + parse::V3_BLOCK_STATUS_AT);
            status.store(0, Ordering::Release);
            cursor.advance(ring);
        }
        given
    }
}

impl FrameReader {
    /// Delivers a frame if it is complete; returns whether to continue.
    #[inline]
    fn deliver(
        &mut self,
        socket: &Socket,
        slot: &Slot,
        bytes: &[u8],
        status: u32,
        given: &mut usize,
        each: &mut impl Sink,
    ) -> bool {
        let whole = slot.len == slot.wire_len;
        if !whole || slot.outgoing || !parse::is_frame(slot.len) {
            return self.deliver_unusual(socket, slot, status, given, each);
        }
        let data = &bytes[slot.start..slot.start + slot.len];
        self.hand_over(slot, data, slot.vnet, given, each)
    }

    #[inline]
    fn hand_over(
        &mut self,
        slot: &Slot,
        data: &[u8],
        vnet: VnetHdr,
        given: &mut usize,
        each: &mut impl Sink,
    ) -> bool {
        let mut frame =
            RxFrame { data, wire_len: 0, vnet, vlan: slot.tag, timestamp_ns: slot.timestamp_ns };
        frame.wire_len = frame.len();
        *given += 1;
        self.stats.frames += 1;
        self.stats.bytes += frame.wire_len as u64;
        each.take(frame)
    }

    /// Handles frames that are incomplete in their slot, or not for us.
    #[cold]
    fn deliver_unusual(
        &mut self,
        socket: &Socket,
        slot: &Slot,
        status: u32,
        given: &mut usize,
        each: &mut impl Sink,
    ) -> bool {
        // The socket has the whole frame: take it in any case, since the next large frame is queued
        // after it.
        let large = status & parse::COPY != 0;
        if large && slot.tag.is_none() && !slot.outgoing && slot.wire_len <= LARGEST {
            let fetch = Fetch { socket, len: slot.wire_len };
            if let Some(took) = each.fetch(slot.wire_len, fetch) {
                if took {
                    *given += 1;
                    self.stats.frames += 1;
                    self.stats.bytes += slot.wire_len as u64;
                    self.stats.large += 1;
                } else {
                    self.stats.truncated += 1;
                }
                return true;
            }
        }
        let fetched = if large { self.fetch(socket, slot) } else { None };
        if slot.outgoing {
            self.stats.outgoing += 1;
            return true;
        }
        let Some(vnet) = fetched else {
            if slot.len < slot.wire_len {
                self.stats.truncated += 1;
            } else {
                self.stats.malformed += 1;
            }
            return true;
        };
        self.stats.large += 1;
        let large = std::mem::take(&mut self.large);
        let data = &large[..slot.wire_len];
        let more = self.hand_over(slot, data, vnet, given, each);
        self.large = large;
        more
    }

    /// Fetches a slot's frame from the socket's queue into `self.large`.
    fn fetch(&mut self, socket: &Socket, slot: &Slot) -> Option<VnetHdr> {
        let fetch = Fetch { socket, len: slot.wire_len };
        let vnet = fetch.into(std::iter::once(&mut self.large[..])).copied()?;
        Some(if slot.tag.is_some() { vnet.shifted(Tag::LEN as i16) } else { vnet })
    }
}

/// Receiver of frames.
pub trait Sink {
    /// Takes a frame; returns `false` to stop.
    fn take(&mut self, frame: RxFrame<'_>) -> bool;

    /// Offers a frame of `len` bytes that is too large for its slot, which the sink may fetch
    /// straight to its destination: `Some(true)` on success, `Some(false)` if the fetch failed.
    /// `None`, with nothing done, to take it like any other frame.
    fn fetch(&mut self, len: usize, fetch: Fetch<'_>) -> Option<bool> {
        let _ = (len, fetch);
        None
    }
}

/// Sink that calls a function, which returns whether to continue.
struct FnSink<F>(F);

impl<F: FnMut(RxFrame<'_>) -> bool> Sink for FnSink<F> {
    #[inline]
    fn take(&mut self, frame: RxFrame<'_>) -> bool {
        (self.0)(frame)
    }
}

/// A frame waiting in the socket's queue.
#[derive(Debug)]
pub struct Fetch<'a> {
    socket: &'a Socket,
    len: usize,
}

/// Result of fetching a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetched {
    /// Copied, with this pending offload work.
    Copied(VnetHdr),
    /// The frame was not in the queue.
    Missing,
    /// The frame is still queued: there were more pieces than allowed.
    TooManyPieces,
}

impl Fetched {
    fn copied(self) -> Option<VnetHdr> {
        match self {
            Fetched::Copied(vnet) => Some(vnet),
            Fetched::Missing | Fetched::TooManyPieces => None,
        }
    }
}

impl Fetch<'_> {
    /// Fetches the frame into pieces that together hold at least its length.
    pub fn into<'p>(self, pieces: impl Iterator<Item = &'p mut [u8]>) -> Fetched {
        let Self { socket, len } = self;
        let mut header = [0; VnetHdr::LEN];
        let start = if socket.vnet { VnetHdr::LEN } else { 0 };
        let mut all: [IoSliceMut<'_>; 1 + PIECES] =
            std::array::from_fn(|_| IoSliceMut::new(&mut []));
        all[0] = IoSliceMut::new(&mut header[..start]);
        let (mut room, mut count) = (start, 1);
        for piece in pieces {
            let Some(to) = all.get_mut(count) else { return Fetched::TooManyPieces };
            room += piece.len();
            *to = IoSliceMut::new(piece);
            count += 1;
        }
        // The queue is in the order of the slots. An error left at the socket by the device comes
        // before a frame, once; a frame of another length is one whose slot we never saw.
        let attempts = if room < start + len { 0 } else { 8 };
        let there = (0..attempts)
            .map(|_| sys::receive_scattered(socket.fd(), &mut all[..count]))
            .take_while(|got| !matches!(got, Err(e) if e.kind() == ErrorKind::WouldBlock))
            .any(|got| got.is_ok_and(|got| got == start + len));
        match there {
            true => Fetched::Copied(VnetHdr::parse(&header[..start]).unwrap_or_default()),
            false => Fetched::Missing,
        }
    }
}

impl AsFd for RxRing {
    /// Descriptor to poll: readable when frames are waiting.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Copying in pieces gives the frame with its tag at byte 12.
        #[test]
        fn copies_in_pieces(
            data in proptest::collection::vec(any::<u8>(), 14..200),
            tag in proptest::option::of((any::<u16>(), any::<u16>())),
            piece in 1usize..80,
        ) {
            let vlan = tag.map(|(tpid, tci)| Tag { tpid, tci });
            let frame =
                RxFrame { data: &data, wire_len: 0, vnet: VnetHdr::default(), vlan, timestamp_ns: 0 };
            let mut whole = data.clone();
            if let Some(tag) = vlan {
                whole.splice(12..12, tag.to_bytes());
            }
            prop_assert_eq!(frame.len(), whole.len());
            let mut copied = Vec::new();
            let mut buffer = vec![0; piece];
            while copied.len() < whole.len() {
                let len = frame.copy(copied.len(), &mut buffer);
                prop_assert!(len > 0);
                copied.extend_from_slice(&buffer[..len]);
            }
            prop_assert_eq!(copied, whole);
            prop_assert_eq!(frame.copy(frame.len(), &mut buffer), 0);
        }
    }
}
