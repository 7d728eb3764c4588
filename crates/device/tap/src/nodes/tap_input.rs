//! `tap-input`: receives frames from TAP and TUN devices.
//!
//! Writes: rx interface; pending offload work. Next: the `device-input` arc.
//!
//! Each frame costs one system call, and one more tells which of all queues have any: queues
//! without traffic cost nothing.

use crate::sys::Tun;
use rustix::event::epoll;
use std::any::Any;
use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use thalweg_buffer::{Cache, FRAME_SIZE, Frame, Packet};
use thalweg_device::SwIfIndex;
use thalweg_device_linux::receipt::{self, Lost, Receipt};
use thalweg_device_linux::{Framing, VnetHdr};
use thalweg_graph::{Built, InputNode, Kind, NodeCx, NodeDecl, Poll, RxMode};

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "tap-input",
    kind: Kind::Input,
    build: |_| Built::input(TapInput { queues: Vec::new(), ready: None, scratch: Box::default() }),
    ..NodeDecl::DEFAULT
};

/// Longest frame: a GSO packet with its headers.
const LONGEST: usize = 65_536 + 64;
/// Most pieces of a frame: in the smallest buffers, and the header.
const PIECES: usize = 260;
/// Bytes of a buffer that a frame is first read to.
const FIRST: usize = 1536;
/// Queues that one call says are ready; the next call names others.
const READY: usize = 32;

/// Returns memory for the rest of a frame that is longer than a buffer. A message brings it, so
/// that no worker has to allocate it.
pub(crate) fn scratch() -> Box<[u8]> {
    vec![0; LONGEST].into_boxed_slice()
}

/// Messages from the main thread.
pub(crate) enum ToInput {
    /// Poll this queue from now on (once its interface is up).
    Add {
        /// The queue.
        queue: Box<Queue>,
        /// Memory for a worker that has none yet.
        scratch: Box<[u8]>,
    },
    /// Drop all queues of an interface.
    Remove { sw_if: SwIfIndex },
    /// Release a queue for another worker.
    Give { sw_if: SwIfIndex, queue: u32, to: SyncSender<Box<Queue>> },
    /// The interface went up or down.
    Admin { sw_if: SwIfIndex, up: bool },
    /// Receive mode of one queue, or of all queues of an interface.
    Mode { sw_if: SwIfIndex, queue: Option<u32>, mode: RxMode },
    /// The kernel has lost this many frames of an interface.
    Missed { sw_if: SwIfIndex, frames: u64 },
}

/// A receive queue, which moves between workers with all its state.
pub(crate) struct Queue {
    pub(crate) sw_if: SwIfIndex,
    pub(crate) queue: u32,
    pub(crate) framing: Framing,
    pub(crate) tun: Arc<Tun>,
    pub(crate) up: bool,
    pub(crate) mode: RxMode,
    /// The last frame was longer than a buffer, and the next one may be.
    pub(crate) long: bool,
}

struct TapInput {
    /// Queues by the number under which they are waited for.
    queues: Vec<Option<Box<Queue>>>,
    /// Descriptor that shows which queues have frames.
    ready: Option<OwnedFd>,
    scratch: Box<[u8]>,
}

/// Outcome of a read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    Frame,
    /// The pool has no buffer: the frame is lost.
    NoBuffer,
    /// Invalid frame.
    Bad,
    /// No frame is waiting, or the device is gone.
    Nothing,
}

/// Reads a frame behind its header into pieces; returns its length.
fn read<'p>(
    tun: &Tun,
    pieces: impl Iterator<Item = &'p mut [u8]>,
    header: &mut [u8; VnetHdr::LEN],
) -> Option<usize> {
    let mut all: [IoSliceMut<'_>; PIECES] = std::array::from_fn(|_| IoSliceMut::new(&mut []));
    all[0] = IoSliceMut::new(header);
    let mut count = 1;
    for piece in pieces {
        // No pool's buffers are that small.
        let Some(to) = all.get_mut(count) else { break };
        *to = IoSliceMut::new(piece);
        count += 1;
    }
    tun.read(&mut all[..count]).ok()?.checked_sub(VnetHdr::LEN)
}

impl Queue {
    /// Takes one frame.
    fn take(&mut self, cache: &mut Cache, frame: &mut Frame, scratch: &mut [u8]) -> Read {
        let mut header = [0; VnetHdr::LEN];
        let Some(mut p) = cache.alloc() else { return self.skip() };
        let len = if self.long && p.extend(LONGEST, cache) {
            read(&self.tun, p.segments_mut(), &mut header)
        } else {
            p.truncate(0, cache);
            if !p.extend(FIRST.min(cache.pool().data_size()), cache) {
                cache.free(p);
                return self.skip();
            }
            self.read_short(&mut p, &mut header, scratch, cache)
        };
        let Some(len) = len else {
            cache.free(p);
            return Read::Nothing;
        };
        self.long = len > FIRST;
        if p.total_len() < len {
            cache.free(p);
            return Read::NoBuffer;
        }
        p.truncate(len, cache);
        let vnet = VnetHdr::parse(&header).unwrap_or_default();
        if len >= LONGEST || len == 0 || vnet.has_too_many_segments(len) {
            cache.free(p);
            return Read::Bad;
        }
        if let Err(p) = receipt::push(frame, p, &vnet, self.framing) {
            cache.free(p);
        }
        Read::Frame
    }

    /// Reads a frame that is expected to fit into one buffer; what does not is copied.
    #[inline]
    fn read_short(
        &self,
        p: &mut Packet,
        header: &mut [u8; VnetHdr::LEN],
        scratch: &mut [u8],
        cache: &mut Cache,
    ) -> Option<usize> {
        let first = p.data_mut();
        let room = first.len();
        let mut pieces =
            [IoSliceMut::new(header), IoSliceMut::new(first), IoSliceMut::new(&mut *scratch)];
        let len = self.tun.read(&mut pieces).ok()?.checked_sub(VnetHdr::LEN)?;
        if len > room {
            // The caller sees by the length if there was no buffer.
            p.append(&scratch[..(len - room).min(scratch.len())], cache);
        }
        Some(len)
    }

    /// Passes over a frame for which there is no buffer.
    #[cold]
    fn skip(&self) -> Read {
        let mut first = [0; VnetHdr::LEN];
        match self.tun.read(&mut [IoSliceMut::new(&mut first)]) {
            Ok(_) => Read::NoBuffer,
            Err(_) => Read::Nothing,
        }
    }

    fn poll(&mut self, cx: &mut NodeCx<'_>, scratch: &mut [u8]) -> usize {
        let mut frame = cx.new_frame();
        let (mut n, mut lost) = (0, Lost::default());
        while n < FRAME_SIZE {
            match self.take(cx.cache(), &mut frame, scratch) {
                Read::Frame => {}
                Read::NoBuffer => lost.no_buffer += 1,
                Read::Bad => lost.bad += 1,
                Read::Nothing => break,
            }
            n += 1;
        }
        let Queue { sw_if, queue, framing, .. } = *self;
        Receipt { driver: "tap", sw_if, queue, framing }.enter(cx, frame, lost);
        n
    }
}

impl TapInput {
    fn all(&self) -> impl Iterator<Item = &Queue> {
        self.queues.iter().flatten().map(Box::as_ref)
    }

    /// Waits for frames of a queue, or no longer.
    fn watch(&self, at: usize, on: bool) {
        let (Some(ready), Some(Some(q))) = (&self.ready, self.queues.get(at)) else { return };
        let data = epoll::EventData::new_u64(at as u64);
        let done = match on {
            true => epoll::add(ready, q.tun.as_fd(), data, epoll::EventFlags::IN),
            false => epoll::delete(ready, q.tun.as_fd()),
        };
        match done {
            // A device that went away is not waited for any more.
            Err(e) if on && e != rustix::io::Errno::EXIST => {
                tracing::error!("nothing is received by a TAP: {e}");
            }
            _ => {}
        }
    }

    fn add(&mut self, queue: Box<Queue>) {
        if self.ready.is_none() {
            let made = epoll::create(epoll::CreateFlags::CLOEXEC);
            self.ready = made.inspect_err(|e| tracing::error!("nothing is received: {e}")).ok();
        }
        let free = self.queues.iter().position(Option::is_none);
        let at = free.unwrap_or(self.queues.len());
        let up = queue.up;
        match self.queues.get_mut(at) {
            Some(place) => *place = Some(queue),
            None => self.queues.push(Some(queue)),
        }
        if up {
            self.watch(at, true);
        }
    }

    fn remove(&mut self, wanted: impl Fn(&Queue) -> bool) -> Option<Box<Queue>> {
        let found = |q: &Option<Box<Queue>>| q.as_ref().is_some_and(|q| wanted(q));
        let at = self.queues.iter().position(found)?;
        self.watch(at, false);
        self.queues[at].take()
    }

    fn set_admin(&mut self, sw_if: SwIfIndex, up: bool) {
        for at in 0..self.queues.len() {
            let Some(q) = self.queues[at].as_mut().filter(|q| q.sw_if == sw_if) else { continue };
            let was = std::mem::replace(&mut q.up, up);
            if !up {
                // The device has no carrier any more, and takes no other frames.
                q.tun.drain();
            }
            if was != up {
                self.watch(at, up);
            }
        }
    }
}

impl InputNode for TapInput {
    fn poll(&mut self, cx: &mut NodeCx<'_>) -> Poll {
        let Some(ready) = &self.ready else { return Poll::Idle };
        let none =
            epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let mut events = [none; READY];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        let count = epoll::wait(ready, &mut events, Some(&now)).unwrap_or(0);
        let mut n = 0;
        for event in &events[..count] {
            // The kernel packs the structure: no reference to its fields.
            let (data, flags) = (event.data, event.flags);
            let at = data.u64() as usize;
            let Some(Some(q)) = self.queues.get_mut(at) else { continue };
            let got = q.poll(cx, &mut self.scratch);
            n += got;
            if got == 0 && flags.contains(epoll::EventFlags::ERR) {
                // The device went away, and would be reported until the main thread notices.
                self.watch(at, false);
            }
        }
        if n > 0 { Poll::Busy(n) } else { Poll::Idle }
    }

    fn descriptors(&self) -> Vec<RawFd> {
        self.ready.iter().map(AsRawFd::as_raw_fd).collect()
    }

    fn rx_modes(&self) -> Vec<RxMode> {
        self.all().filter(|q| q.up).map(|q| q.mode).collect()
    }

    fn message(&mut self, cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        let Ok(message) = message.downcast::<ToInput>() else { return };
        match *message {
            ToInput::Add { queue, scratch } => {
                if self.scratch.is_empty() {
                    self.scratch = scratch;
                }
                self.add(queue);
            }
            ToInput::Remove { sw_if } => {
                while let Some(queue) = self.remove(|q| q.sw_if == sw_if) {
                    // Closing is left to the main thread.
                    cx.discard(queue);
                }
            }
            ToInput::Give { sw_if, queue, to } => {
                if let Some(q) = self.remove(|q| q.sw_if == sw_if && q.queue == queue)
                    && let Err(back) = to.send(q)
                {
                    // The receiver is gone: keep the queue.
                    self.add(back.0);
                }
            }
            ToInput::Admin { sw_if, up } => self.set_admin(sw_if, up),
            ToInput::Mode { sw_if, queue, mode } => {
                let wanted =
                    |q: &&mut Box<Queue>| q.sw_if == sw_if && queue.is_none_or(|n| n == q.queue);
                self.queues.iter_mut().flatten().filter(wanted).for_each(|q| q.mode = mode);
            }
            ToInput::Missed { sw_if, frames } => {
                cx.stats().interface(sw_if).rx_miss.add(frames);
            }
        }
    }
}
