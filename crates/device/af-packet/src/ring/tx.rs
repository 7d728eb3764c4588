//! Sending frames.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::layout::{Cursor, RingSize, Version};
use super::parse;
use super::socket::Socket;
use crate::sys;
use thalweg_device_linux::{BadOffload, VnetHdr};

/// `tp_status`: the kernel may take the slot.
const SEND_REQUEST: u32 = 1;
/// `tp_status`: the kernel has the slot.
const SENDING: u32 = 2;
/// A length that the kernel refuses silently: how a slot that must not be sent
/// is made to pass, since the kernel takes slots strictly in turn.
const VOID: u32 = u32::MAX;
/// Refusals in one kick after which the device is taken to be unwilling.
const PATIENCE: u32 = 4;
/// Shortest and longest pause after a refused GSO packet: the next one is tried after that number
/// of frames that could have begun one.
const GSO_PAUSE: (u32, u32) = (256, 1 << 20);
const ETHERNET_HDR: usize = 14;
const TAG: usize = 4;
/// Maximum length of a GSO packet with its Ethernet header.
const LARGEST: usize = 65_536 + ETHERNET_HDR + 2 * TAG;
/// Length up to which the kernel copies a frame into one linear buffer, which costs less than page
/// references.
const LINEAR: usize = 2048;
/// Bytes copied of a longer frame without pending segmentation: all headers.
const HEADERS: usize = 128;
/// Maximum number of pieces of a frame that the kernel gathers. A frame with more, which is one of
/// 64 KiB in tiny buffers, is copied into one piece first.
const PIECES: usize = 64;

/// Reason why a frame was not sent. Each case has a counter in [`TxStats`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// No slot is free, or the socket has too much in flight.
    #[error("the transmit ring is full")]
    Full,
    /// Longer than the MTU allows, and not to be segmented.
    #[error("a frame of {len} bytes is too long: the device takes {max}")]
    TooLong {
        /// Length of the frame in bytes.
        len: usize,
        /// Maximum.
        max: usize,
    },
    /// Shorter than an Ethernet header.
    #[error("{0} bytes are not a frame: an Ethernet header alone has 14")]
    TooShort(usize),
    /// The vnet header does not match the frame.
    #[error("invalid offload request: {0}")]
    Offload(#[from] BadOffload),
    /// Offload was requested on a socket without it.
    #[error("checksum or segmentation is pending, but offload is off")]
    NoOffload,
    /// The device, or its queueing discipline, dropped the frame.
    #[error("frame rejected by device")]
    Refused,
    /// The device is down or was removed.
    #[error("the device is down")]
    Down,
}

/// Counters of a transmit ring. Every accepted frame ends in `frames`, `refused`, `down` or
/// `rejected`, or is still pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TxStats {
    /// Frames that the device took.
    pub frames: u64,
    /// Bytes of these frames.
    pub bytes: u64,
    /// Frames among them larger than a slot, sent directly.
    pub large: u64,
    /// GSO packets among them, each of several frames.
    pub gso_packets: u64,
    /// System calls made to send.
    pub kicks: u64,
    /// Calls after which frames stayed in the ring, as too many were in flight.
    pub would_block: u64,
    /// Frames refused: no free slot.
    pub full: u64,
    /// Frames refused: too long or too short.
    pub bad_length: u64,
    /// Frames refused: the vnet header does not match the frame.
    pub bad_offload: u64,
    /// Dropped by the device or its queueing discipline.
    pub refused: u64,
    /// Dropped as the device was down.
    pub down: u64,
    /// Dropped by the kernel as malformed. The kernel reports only their bytes, so this is exact if
    /// the frames of a burst have equal lengths, and at least 1.
    pub rejected: u64,
}

/// A pause after a refused GSO packet. The device may have had no room for it (`ENOBUFS`), which
/// passes, or takes none at all: each pause in a row is longer.
#[derive(Debug, Default)]
struct Pause {
    /// Chances for a GSO packet still to be passed over.
    left: u32,
    /// Length of the last pause in a row.
    last: u32,
}

impl Pause {
    fn begin(&mut self) {
        self.last = self.last.saturating_mul(4).clamp(GSO_PAUSE.0, GSO_PAUSE.1);
        self.left = self.last;
    }

    /// Takes a chance for a GSO packet; returns whether to try one.
    #[inline]
    fn is_over(&mut self) -> bool {
        let is_over = self.left == 0;
        self.left = self.left.saturating_sub(1);
        is_over
    }
}

/// The transmit ring of one queue.
#[derive(Debug)]
pub struct TxRing {
    socket: Arc<Socket>,
    ring: RingSize,
    /// Offsets of a slot's length, status and data.
    len_at: usize,
    status_at: usize,
    data_at: usize,
    /// Bytes before the frame: the vnet header, if there is one.
    prefix: usize,
    /// The next slot to fill.
    head: Cursor,
    /// The first slot that the kernel may not have taken, and how many follow.
    tail: Cursor,
    unsent: usize,
    /// When to try a GSO packet again, after the device has refused one.
    pause: Pause,
    /// Frames and bytes accepted and then lost, until they are taken.
    lost: (u64, u64),
    /// Buffer for a large frame with too many pieces.
    whole: Vec<u8>,
    stats: TxStats,
}

impl TxRing {
    pub(super) fn new(socket: &Arc<Socket>) -> Option<Self> {
        let ring = socket.tx?;
        // The transmit ring follows the receive ring in the mapping.
        let base = socket.rx.map_or(0, |rx| rx.bytes());
        let (len_at, status_at, data_at) = match socket.version {
            Version::V2 => (4, parse::V2_STATUS_AT, parse::V2_HDR),
            Version::V3 => (16, parse::V3_STATUS_AT, parse::V3_HDR),
        };
        Some(Self {
            socket: Arc::clone(socket),
            ring,
            len_at,
            status_at,
            data_at,
            prefix: if socket.vnet { VnetHdr::LEN } else { 0 },
            head: Cursor::new(base),
            tail: Cursor::new(base),
            unsent: 0,
            pause: Pause::default(),
            lost: (0, 0),
            whole: Vec::with_capacity(LARGEST),
            stats: TxStats::default(),
        })
    }

    /// The socket, for settings and counters.
    pub fn socket(&self) -> &Arc<Socket> {
        &self.socket
    }

    /// Counters of this ring.
    pub fn stats(&self) -> TxStats {
        self.stats
    }

    /// Takes the numbers of frames, and of their bytes, that were accepted and that the device did
    /// not take.
    #[inline]
    pub fn take_lost(&mut self) -> (u64, u64) {
        std::mem::take(&mut self.lost)
    }

    /// Slots not yet taken by the kernel. While the device is down, dropped frames are among them.
    #[inline]
    pub fn pending(&self) -> usize {
        self.unsent
    }

    /// Maximum length in bytes of a frame that fits a slot.
    #[inline]
    pub fn slot_room(&self) -> usize {
        self.ring.slot - self.data_at - self.prefix
    }

    /// Returns a free slot, or `None` if the ring is full: then [`TxRing::kick`], or drop.
    #[inline]
    pub fn reserve(&mut self) -> Option<TxSlot<'_>> {
        let status = self.socket.region.word(self.head.at + self.status_at);
        if status.load(Ordering::Acquire) & (SEND_REQUEST | SENDING) != 0 {
            self.stats.full += 1;
            return None;
        }
        Some(TxSlot { ring: self, len: 0, vnet: VnetHdr::default() })
    }

    /// Sends one frame gathered from pieces: in a slot if it fits, otherwise directly, after the
    /// frames waiting in the ring.
    ///
    /// # Errors
    /// The frame was not sent, see [`SendError`].
    #[inline]
    pub fn send<'p, I>(&mut self, vnet: VnetHdr, pieces: I) -> Result<(), SendError>
    where
        I: IntoIterator<Item = &'p [u8], IntoIter: Clone>,
    {
        let pieces = pieces.into_iter();
        let len = pieces.clone().map(<[u8]>::len).sum();
        if len > self.slot_room() {
            return self.send_large(vnet, pieces, len);
        }
        let Some(mut slot) = self.reserve() else { return Err(SendError::Full) };
        slot.vnet(vnet);
        for piece in pieces {
            slot.append(piece);
        }
        slot.commit()
    }

    /// Returns whether several TCP segments may be sent as one GSO packet, which the kernel
    /// segments if the device does not. To be asked at each chance for one.
    #[inline]
    pub fn accepts_gso(&mut self) -> bool {
        self.pause.is_over() && self.socket.supports_gso()
    }

    /// Sends `frames` frames as one GSO packet, after the frames waiting in the ring. The first
    /// frame, of maximum length, has `first` bytes. Returns false if nothing was sent: then send
    /// them one by one.
    pub fn send_gso<'p>(
        &mut self,
        vnet: VnetHdr,
        pieces: impl Iterator<Item = &'p [u8]> + Clone,
        frames: u64,
        first: usize,
    ) -> bool {
        let longest = self.socket.mtu() as usize + ETHERNET_HDR + 2 * TAG;
        let len = pieces.clone().map(<[u8]>::len).sum();
        if first > longest || len > LARGEST {
            return false;
        }
        match self.send_large(vnet, pieces, len) {
            Ok(()) => {
                self.stats.frames += frames - 1;
                self.stats.gso_packets += 1;
                self.pause = Pause::default();
                true
            }
            // The frames are sent one by one and counted then.
            Err(SendError::Refused) => {
                self.stats.refused -= 1;
                self.pause.begin();
                false
            }
            Err(SendError::Down) => {
                self.stats.down -= 1;
                false
            }
            Err(_) => false,
        }
    }

    /// Makes the kernel send the frames waiting in the ring: call it once per burst.
    ///
    /// Never blocks. Returns whether frames still wait, as too many are in flight: then call it
    /// again, at the latest when `poll` reports that the socket is writable. Poll for that only
    /// then, since the socket is writable most of the time. Frames that the device refuses, or that
    /// are sent while it is down, are dropped and counted.
    pub fn kick(&mut self) -> bool {
        let mut refusals = 0;
        let mut retried = false;
        while self.unsent > 0 {
            self.stats.kicks += 1;
            let result = sys::send(self.socket.fd(), &[], libc::MSG_DONTWAIT);
            let (frames, bytes) = self.reap();
            let error = match result {
                Ok(sent) => {
                    self.note_rejected(frames, bytes, sent as u64);
                    self.stats.would_block += u64::from(self.unsent > 0);
                    break;
                }
                Err(error) => error.raw_os_error().unwrap_or_default(),
            };
            match error {
                libc::EINTR => {}
                libc::EAGAIN => {
                    self.stats.would_block += 1;
                    break;
                }
                // The first error may be an old one left at the socket.
                libc::ENETDOWN | libc::ENXIO | libc::ENODEV if !retried => retried = true,
                libc::ENETDOWN | libc::ENXIO | libc::ENODEV => {
                    // Waiting frames would be stale when the device comes back.
                    self.stats.down += self.void(usize::MAX);
                    return false;
                }
                // The kernel stopped at a frame that was dropped on the way to the
                // device (ENOBUFS), and would try that one again.
                _ if refusals < PATIENCE => {
                    refusals += 1;
                    self.stats.refused += self.void(1);
                }
                _ if refusals == PATIENCE => {
                    refusals += 1;
                    self.stats.refused += self.void(usize::MAX);
                }
                _ => break,
            }
        }
        self.unsent > 0
    }

    /// Skips the slots that the kernel took; returns their frames and bytes.
    fn reap(&mut self) -> (u64, u64) {
        let (mut frames, mut bytes) = (0, 0);
        while self.unsent > 0 {
            let word = |at| self.socket.region.word(self.tail.at + at);
            if word(self.status_at).load(Ordering::Acquire) & SEND_REQUEST != 0 {
                break;
            }
            let len = word(self.len_at).load(Ordering::Relaxed);
            if len != VOID {
                frames += 1;
                bytes += u64::from(len) - self.prefix as u64;
            }
            self.unsent -= 1;
            self.tail.advance(&self.ring);
        }
        self.stats.frames += frames;
        self.stats.bytes += bytes;
        (frames, bytes)
    }

    /// Counts frames that the kernel skipped, by the bytes it did not send.
    fn note_rejected(&mut self, frames: u64, bytes: u64, sent: u64) {
        if let Some(missing) = bytes.checked_sub(sent).filter(|missing| *missing > 0) {
            let share = (missing * frames).div_ceil(bytes).clamp(1, frames);
            self.stats.frames -= share;
            self.stats.bytes -= missing;
            self.stats.rejected += share;
            self.lost = (self.lost.0 + share, self.lost.1 + missing);
        }
    }

    /// Voids up to `count` slots not yet taken by the kernel; returns how many were not void
    /// before.
    fn void(&mut self, count: usize) -> u64 {
        let mut cursor = self.tail;
        let (mut voided, mut bytes) = (0, 0);
        for _ in 0..count.min(self.unsent) {
            // The kernel reads slots only during a send call.
            let len = self.socket.region.word(cursor.at + self.len_at);
            let len = len.swap(VOID, Ordering::Relaxed);
            if len != VOID {
                voided += 1;
                bytes += u64::from(len) - self.prefix as u64;
            }
            cursor.advance(&self.ring);
        }
        self.lost = (self.lost.0 + voided, self.lost.1 + bytes);
        voided
    }

    /// Checks a frame before it is accepted.
    #[inline]
    fn check(&mut self, vnet: &VnetHdr, len: usize) -> Result<(), SendError> {
        if len < ETHERNET_HDR {
            self.stats.bad_length += 1;
            return Err(SendError::TooShort(len));
        }
        let max = match vnet.is_gso() {
            true => LARGEST,
            // Room for a tag; with vnet headers the kernel leaves the rest to the device, without
            // them it refuses more than one.
            false => {
                let tags = if self.prefix == 0 { TAG } else { 2 * TAG };
                self.socket.mtu() as usize + ETHERNET_HDR + tags
            }
        };
        if len > max {
            self.stats.bad_length += 1;
            return Err(SendError::TooLong { len, max });
        }
        let offload = if self.prefix == 0 && (vnet.is_gso() || vnet.needs_csum()) {
            Err(SendError::NoOffload)
        } else {
            vnet.check(len).map_err(SendError::from)
        };
        self.stats.bad_offload += u64::from(offload.is_err());
        offload
    }

    /// Sends a frame larger than a slot.
    #[cold]
    fn send_large<'p>(
        &mut self,
        vnet: VnetHdr,
        pieces: impl Iterator<Item = &'p [u8]> + Clone,
        len: usize,
    ) -> Result<(), SendError> {
        self.check(&vnet, len)?;
        // Frames keep their order: those in the ring go first.
        if self.kick() {
            self.stats.full += 1;
            return Err(SendError::Full);
        }
        let Some(fd) = self.socket.large_fd() else { return Err(SendError::Full) };
        let header = prepare(vnet, len).to_bytes();
        let mut gathered = [IoSlice::new(&[]); 1 + PIECES];
        gathered[0] = IoSlice::new(&header[..self.prefix]);
        let mut count = 1;
        let mut more = pieces.clone();
        for (to, piece) in gathered[1..].iter_mut().zip(more.by_ref()) {
            *to = IoSlice::new(piece);
            count += 1;
        }
        if more.next().is_some() {
            self.whole.clear();
            // A device needs it only if its frames are longer than the kernel's largest.
            if len > self.whole.capacity() {
                self.stats.bad_length += 1;
                return Err(SendError::TooLong { len, max: self.whole.capacity() });
            }
            pieces.for_each(|piece| self.whole.extend_from_slice(piece));
            gathered[1] = IoSlice::new(&self.whole);
            count = 2;
        }
        let gathered = &gathered[..count];
        self.stats.kicks += 1;
        let mut result = sys::send_gather(fd, gathered);
        if matches!(&result, Err(error) if error.raw_os_error() == Some(libc::ENETDOWN)) {
            // Another old error is possible here.
            result = sys::send_gather(fd, gathered);
        }
        self.finish_large(result, len)
    }

    fn finish_large(&mut self, result: io::Result<usize>, len: usize) -> Result<(), SendError> {
        let Err(error) = result else {
            self.stats.frames += 1;
            self.stats.bytes += len as u64;
            self.stats.large += 1;
            return Ok(());
        };
        match error.raw_os_error().unwrap_or_default() {
            libc::EAGAIN => {
                self.stats.full += 1;
                Err(SendError::Full)
            }
            libc::EMSGSIZE => {
                self.stats.bad_length += 1;
                Err(SendError::TooLong { len, max: self.socket.mtu() as usize + ETHERNET_HDR })
            }
            libc::ENETDOWN | libc::ENXIO | libc::ENODEV => {
                self.stats.down += 1;
                Err(SendError::Down)
            }
            _ => {
                self.stats.refused += 1;
                Err(SendError::Refused)
            }
        }
    }
}

impl AsFd for TxRing {
    /// Descriptor to poll: writable when [`TxRing::kick`] can continue.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.fd()
    }
}

/// Sets the header length, by which the kernel decides what to copy.
#[inline]
fn prepare(mut vnet: VnetHdr, len: usize) -> VnetHdr {
    let headers = match usize::from(vnet.hdr_len) {
        given @ ETHERNET_HDR..=256 if vnet.is_gso() => given,
        _ => HEADERS,
    };
    let linear = if len <= LINEAR { len } else { headers };
    vnet.hdr_len = linear as u16;
    vnet
}

/// A transmit slot being filled. Dropped without [`TxSlot::commit`], it stays free.
#[derive(Debug)]
#[must_use = "a slot that is not committed is not sent"]
pub struct TxSlot<'a> {
    ring: &'a mut TxRing,
    len: usize,
    vnet: VnetHdr,
}

impl TxSlot<'_> {
    /// Sets the offload work left to the kernel.
    #[inline]
    pub fn vnet(&mut self, vnet: VnetHdr) {
        self.vnet = vnet;
    }

    /// Bytes of room left.
    #[inline]
    pub fn room(&self) -> usize {
        self.ring.slot_room().saturating_sub(self.len)
    }

    /// Appends bytes of the frame. [`TxSlot::commit`] reports if they did not fit.
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) {
        if bytes.len() <= self.room() {
            let at = self.ring.head.at + self.ring.data_at + self.ring.prefix + self.len;
            // SAFETY: `reserve` saw with Acquire that the slot is free; it stays so
            // until `commit`, and `self` borrows the only ring that writes to it. The
            // receive ring is another part of the mapping.
            let room = unsafe { self.ring.socket.region.slice_mut(at, bytes.len()) };
            room.copy_from_slice(bytes);
        }
        self.len = self.len.saturating_add(bytes.len());
    }

    /// Passes the slot to the next [`TxRing::kick`].
    ///
    /// # Errors
    /// If the frame is too long or too short, or its vnet header does not match it; the slot stays
    /// free.
    #[inline]
    pub fn commit(self) -> Result<(), SendError> {
        let Self { ring, len, vnet } = self;
        ring.check(&vnet, len)?;
        if len > ring.slot_room() {
            ring.stats.bad_length += 1;
            return Err(SendError::TooLong { len, max: ring.slot_room() });
        }
        let region = &ring.socket.region;
        if ring.prefix != 0 {
            let at = ring.head.at + ring.data_at;
            // SAFETY: as in `append`.
            let room = unsafe { region.slice_mut(at, VnetHdr::LEN) };
            room.copy_from_slice(&prepare(vnet, len).to_bytes());
        }
        let total = (len + ring.prefix) as u32;
        region.word(ring.head.at + ring.len_at).store(total, Ordering::Relaxed);
        // Release: the kernel sees the frame if it sees the status.
        region.word(ring.head.at + ring.status_at).store(SEND_REQUEST, Ordering::Release);
        ring.head.advance(&ring.ring);
        ring.unsent += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_pause_ends_and_grows() {
        let mut pause = Pause::default();
        assert!(pause.is_over() && pause.is_over());
        let mut lengths = Vec::new();
        for _ in 0..8 {
            pause.begin();
            lengths.push((0..).take_while(|_| !pause.is_over()).count());
        }
        assert_eq!(lengths[..3], [256, 1024, 4096]);
        assert_eq!(lengths[6..], [1 << 20; 2]);
    }

    proptest! {
        /// The kernel refuses a header length beyond the frame.
        #[test]
        fn header_length_stays_inside(hdr_len: u16, gso: bool, len in 14usize..LARGEST) {
            let gso_type = if gso { VnetHdr::GSO_TCPV4 } else { VnetHdr::GSO_NONE };
            let vnet = prepare(VnetHdr { hdr_len, gso_type, ..VnetHdr::default() }, len);
            prop_assert!(usize::from(vnet.hdr_len) <= len);
            prop_assert!(usize::from(vnet.hdr_len) >= len.min(ETHERNET_HDR));
        }
    }
}
