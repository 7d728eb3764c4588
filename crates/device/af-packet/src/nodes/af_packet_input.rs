//! `af-packet-input`: receives frames from host interfaces.
//!
//! Writes: rx interface; pending offload work. Next: the `device-input` arc.

use crate::ring::{Fetch, Fetched, RxFrame, RxRing, Sink};
use std::any::Any;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use thalweg_buffer::{Cache, FRAME_SIZE, Frame};
use thalweg_device::SwIfIndex;
use thalweg_device_linux::Framing;
use thalweg_device_linux::receipt::{self, Lost, Receipt};
use thalweg_graph::{Built, InputNode, Kind, NodeCx, NodeDecl, Poll, RxMode};

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "af-packet-input",
    kind: Kind::Input,
    build: |_| Built::input(AfPacketInput { queues: Vec::new() }),
    ..NodeDecl::DEFAULT
};

/// Messages from the main thread.
pub(crate) enum ToInput {
    /// Poll this ring from now on (once its interface is up).
    Add { sw_if: SwIfIndex, queue: u32, framing: Framing, ring: Box<RxRing> },
    /// Drop all rings of an interface.
    Remove { sw_if: SwIfIndex },
    /// Release a queue for another worker.
    Give { sw_if: SwIfIndex, queue: u32, to: SyncSender<Box<Queue>> },
    /// Take over a queue from another worker.
    Take(Box<Queue>),
    /// The interface went up or down.
    Admin { sw_if: SwIfIndex, up: bool },
    /// Receive mode of one queue, or of all queues of an interface.
    Mode { sw_if: SwIfIndex, queue: Option<u32>, mode: RxMode },
    /// The kernel has lost this many frames of an interface.
    Missed { sw_if: SwIfIndex, frames: u64 },
}

/// A receive queue, which moves between workers with all its state.
pub(crate) struct Queue {
    sw_if: SwIfIndex,
    queue: u32,
    framing: Framing,
    ring: Box<RxRing>,
    up: bool,
    mode: RxMode,
}

struct AfPacketInput {
    // Boxed: queues move between workers by pointer.
    #[allow(clippy::vec_box)]
    queues: Vec<Box<Queue>>,
}

/// Copies a frame into a packet; returns false if the pool is exhausted.
#[inline]
fn take_frame(cache: &mut Cache, frame: &mut Frame, framing: Framing, rx: &RxFrame<'_>) -> bool {
    let Some(mut p) = cache.alloc() else { return false };
    let whole = match rx.vlan {
        None => p.append(rx.data, cache),
        // The kernel removed the tag; put it back after the addresses.
        Some(tag) => {
            let (addresses, rest) = rx.data.split_at(12);
            p.append(addresses, cache) && p.append(&tag.to_bytes(), cache) && p.append(rest, cache)
        }
    };
    if !whole {
        cache.free(p);
        return false;
    }
    match receipt::push(frame, p, &rx.vnet, framing) {
        Ok(()) => true,
        Err(p) => {
            cache.free(p);
            false
        }
    }
}

/// Copies frames into buffers.
struct FrameSink<'a> {
    cache: &'a mut Cache,
    frame: &'a mut Frame,
    framing: Framing,
    lost: &'a mut Lost,
}

impl Sink for FrameSink<'_> {
    #[inline]
    fn take(&mut self, rx: RxFrame<'_>) -> bool {
        if rx.vnet.has_too_many_segments(rx.len()) {
            self.lost.bad += 1;
        } else if !take_frame(self.cache, self.frame, self.framing, &rx) {
            self.lost.no_buffer += 1;
        }
        true
    }

    /// Frames go straight into buffers, which saves a copy of 64 KiB.
    fn fetch(&mut self, len: usize, fetch: Fetch<'_>) -> Option<bool> {
        let mut p = self.cache.alloc()?;
        let fetched = p.extend(len, self.cache).then(|| fetch.into(p.segments_mut()));
        let Some(Fetched::Copied(vnet)) = fetched else {
            self.cache.free(p);
            return (fetched == Some(Fetched::Missing)).then_some(false);
        };
        if vnet.has_too_many_segments(len) {
            self.cache.free(p);
            self.lost.bad += 1;
            return Some(true);
        }
        if let Err(p) = receipt::push(self.frame, p, &vnet, self.framing) {
            self.cache.free(p);
        }
        Some(true)
    }
}

impl Queue {
    /// Begins or ends to receive. Frames that come while the interface is down are no loss: the
    /// socket refuses them, and those that are in the ring by then are not received later.
    fn switch(&mut self, up: bool) {
        let socket = Arc::clone(self.ring.socket());
        if !up && let Err(e) = socket.refuse() {
            tracing::warn!("{e}");
        }
        // No more come meanwhile.
        self.ring.discard();
        if up && let Err(e) = socket.accept() {
            tracing::error!("nothing is received: {e}");
        }
        self.up = up;
    }

    fn poll(&mut self, cx: &mut NodeCx<'_>) -> usize {
        if !self.up || !self.ring.is_ready() {
            return 0;
        }
        let mut frame = cx.new_frame();
        let before = self.ring.stats();
        let Queue { sw_if, queue, framing, .. } = *self;
        let mut lost = Lost::default();
        let mut sink = FrameSink { cache: cx.cache(), frame: &mut frame, framing, lost: &mut lost };
        let n = self.ring.poll_into(FRAME_SIZE, &mut sink);
        let after = self.ring.stats();
        lost.bad += after.truncated + after.malformed - before.truncated - before.malformed;
        Receipt { driver: "af_packet", sw_if, queue, framing }.enter(cx, frame, lost);
        n
    }
}

impl InputNode for AfPacketInput {
    fn poll(&mut self, cx: &mut NodeCx<'_>) -> Poll {
        let n = self.queues.iter_mut().map(|q| q.poll(cx)).sum();
        if n > 0 {
            return Poll::Busy(n);
        }
        Poll::Idle
    }

    fn descriptors(&self) -> Vec<RawFd> {
        self.queues.iter().filter(|q| q.up).map(|q| q.ring.as_fd().as_raw_fd()).collect()
    }

    fn rx_modes(&self) -> Vec<RxMode> {
        self.queues.iter().filter(|q| q.up).map(|q| q.mode).collect()
    }

    fn trouble(&mut self) {
        for q in &self.queues {
            // The main thread learns of link changes by netlink.
            let _ = q.ring.socket().take_error();
        }
    }

    fn message(&mut self, cx: &mut NodeCx<'_>, message: Box<dyn Any + Send>) {
        let Ok(message) = message.downcast::<ToInput>() else { return };
        match *message {
            ToInput::Add { sw_if, queue, framing, ring } => {
                let mode = RxMode::default();
                let fresh = Queue { sw_if, queue, framing, ring, up: false, mode };
                self.queues.push(Box::new(fresh));
            }
            ToInput::Remove { sw_if } => {
                while let Some(i) = self.queues.iter().position(|q| q.sw_if == sw_if) {
                    // Unmapping and closing are left to the main thread.
                    cx.discard(self.queues.swap_remove(i));
                }
            }
            ToInput::Give { sw_if, queue, to } => {
                let at = self.queues.iter().position(|q| q.sw_if == sw_if && q.queue == queue);
                if let Some(i) = at
                    && let Err(back) = to.send(self.queues.swap_remove(i))
                {
                    // The receiver is gone: keep the queue.
                    self.queues.push(back.0);
                }
            }
            ToInput::Take(queue) => self.queues.push(queue),
            ToInput::Admin { sw_if, up } => {
                for q in self.queues.iter_mut().filter(|q| q.sw_if == sw_if) {
                    q.switch(up);
                }
            }
            ToInput::Mode { sw_if, queue, mode } => {
                let wanted =
                    |q: &&mut Box<Queue>| q.sw_if == sw_if && queue.is_none_or(|n| n == q.queue);
                self.queues.iter_mut().filter(wanted).for_each(|q| q.mode = mode);
            }
            ToInput::Missed { sw_if, frames } => {
                cx.stats().interface(sw_if).rx_miss.add(frames);
            }
        }
    }
}
