//! Communication between the main thread and a worker: bounded rings, and a descriptor to wake a
//! sleeping thread.

use crate::decl::{ArcId, Built, NodeId};
use crate::worker::hand_off::{Arrivals, Outbound};
use crate::worker::{Core, NodeInfo};
use rustix::event::EventfdFlags;
use std::any::Any;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use thalweg_buffer::SwIfIndex;

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// A packet that the main thread sends through a worker.
#[derive(Debug, Default)]
pub struct Inject {
    /// Node at which it enters the graph.
    pub node: NodeId,
    /// Its bytes, from the header that the node expects.
    pub bytes: Vec<u8>,
    /// Interface that it appears to come from.
    pub rx_if: SwIfIndex,
    /// Interface it leaves by.
    pub tx_if: SwIfIndex,
    /// The side column's value.
    pub aux: u32,
}

/// Messages from the main thread to a worker.
pub(crate) enum ToWorker {
    Install {
        id: NodeId,
        info: NodeInfo,
        built: Built,
    },
    Order(Vec<NodeId>),
    /// Opens or closes the gate of an interface on an arc, for the taps of `mask`.
    Gate {
        arc: ArcId,
        sw_if: SwIfIndex,
        mask: u32,
    },
    Node {
        node: NodeId,
        message: Box<dyn Any + Send>,
    },
    Inject(Inject),
    /// Ends of the rings to each other worker, by its number, and of those from them.
    Ways {
        to: Vec<Option<Outbound>>,
        from: Vec<Arrivals>,
    },
    Call(Box<dyn FnOnce(&mut Core) + Send>),
    Stop,
}

/// Topic of an event, registered with the main thread by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Topic(pub u16);

/// Number of bytes that an event can carry.
pub const EVENT_BYTES: usize = 112;

/// An event that a worker reports to the main thread.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// Topic.
    pub topic: Topic,
    /// The worker.
    pub worker: u16,
    /// Interface concerned.
    pub sw_if: SwIfIndex,
    /// Time of the event, in ticks.
    pub at: u64,
    len: u8,
    bytes: [u8; EVENT_BYTES],
}

impl Event {
    /// Makes an event with as much of `bytes` as fits.
    pub fn new(topic: Topic, sw_if: SwIfIndex, at: u64, bytes: &[u8]) -> Event {
        let n = bytes.len().min(EVENT_BYTES);
        let mut e = Event { topic, worker: 0, sw_if, at, len: n as u8, bytes: [0; EVENT_BYTES] };
        e.bytes[..n].copy_from_slice(&bytes[..n]);
        e
    }
    /// Returns the bytes that it carries.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }
}

/// A worker's side of the rings to the main thread.
pub(crate) struct ToMain {
    pub(crate) worker: u16,
    pub(crate) events: rtrb::Producer<Event>,
    pub(crate) trash: rtrb::Producer<Box<dyn Any + Send>>,
    pub(crate) waker: Arc<Waker>,
}

impl ToMain {
    pub(crate) fn event(&mut self, mut event: Event) -> bool {
        event.worker = self.worker;
        let ok = self.events.push(event).is_ok();
        self.waker.wake();
        ok
    }
    /// Like [`event`](Self::event), if the queue is less than half full.
    pub(crate) fn event_if_room(&mut self, event: Event) -> bool {
        let total = self.events.buffer().capacity();
        self.events.slots() > total / 2 && self.event(event)
    }
    pub(crate) fn discard(&mut self, thing: Box<dyn Any + Send>) {
        // If main is that far behind, dropping it here is the lesser evil.
        let _ = self.trash.push(thing);
        self.waker.wake();
    }
}

/// Wakes one sleeping thread. Costs its callers one fence while that thread is awake, and a read of
/// a cache line that no thread writes meanwhile.
#[repr(align(128))]
pub struct Waker {
    fd: OwnedFd,
    sleeping: AtomicBool,
}

impl Waker {
    pub(crate) fn new() -> std::io::Result<Waker> {
        let fd = rustix::event::eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Waker { fd, sleeping: AtomicBool::new(false) })
    }

    /// Wakes the thread if it sleeps. To be called after the work was made visible.
    pub fn wake(&self) {
        // Orders the work before the read of `sleeping`; the sleeper fences the other way round.
        fence(Ordering::SeqCst);
        if self.sleeping.load(Ordering::Relaxed) {
            let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
        }
    }

    /// Announces sleep. The caller must look for work once more before it sleeps.
    pub(crate) fn begin_sleep(&self) {
        self.sleeping.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Ends sleep. `called`: the descriptor was seen to be readable. If it becomes so just now, the
    /// next sleep ends at once and drains it.
    pub(crate) fn end_sleep(&self, called: bool) {
        self.sleeping.store(false, Ordering::Relaxed);
        if !called {
            return;
        }
        let mut buf = [0u8; 8];
        let _ = rustix::io::read(&self.fd, &mut buf);
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Returns true if the thread sleeps, or is about to.
    pub(crate) fn sleeps(&self) -> bool {
        self.sleeping.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;

    /// A thread that brings work while this one goes to sleep wakes it, or this one sees the work.
    /// Loom does not model the descriptor: what was written to it is checked at the end.
    #[test]
    fn loom_no_work_is_slept_over() {
        loom::model(|| {
            let waker = Arc::new(Waker::new().unwrap());
            let work = loom::sync::Arc::new(AtomicBool::new(false));
            let (called, brought) = (Arc::clone(&waker), loom::sync::Arc::clone(&work));
            let other = loom::thread::spawn(move || {
                brought.store(true, Ordering::Release);
                called.wake();
            });
            waker.begin_sleep();
            let sees = work.load(Ordering::Acquire);
            let sleeps = !sees;
            if sees {
                waker.end_sleep(false);
            }
            other.join().unwrap();
            let is_called = rustix::io::read(waker.fd(), &mut [0; 8]).is_ok();
            assert!(is_called || !sleeps, "it sleeps and is not woken");
            assert!(work.load(Ordering::Acquire));
        });
    }
}
