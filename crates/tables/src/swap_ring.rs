//! A bounded single-producer, single-consumer ring that returns an empty item for each one taken.
//!
//! A thread that only hands items over runs out of them, and the thread that receives them
//! accumulates them, unless they go back. A slot of this ring is therefore never just emptied: the
//! receiver swaps an item in for the one it takes, and the sender finds it there one round later.
//! Items that own memory (frames) thus circulate without an allocator, at the cost of one pointer
//! swap per end.
//!
//! The shared, written state is the two positions, each on cache lines of its own and written by
//! one end only, and the slots. An end reads the other's position only when the last value it read
//! leaves it nothing to do. The ring has no lock and no read-modify-write, and nothing waits:
//! `send` on a full ring fails.

use crate::sync::{AtomicU64, Ordering, Padded};
use std::sync::Arc;

#[cfg(loom)]
use loom::cell::UnsafeCell;
#[cfg(not(loom))]
use std::cell::UnsafeCell;

/// A slot for an item on its way there or back.
struct Slot<T>(UnsafeCell<Option<T>>);

impl<T> Slot<T> {
    /// Stores `item` and returns what was there.
    ///
    /// # Safety
    /// No other thread uses the slot.
    #[inline]
    unsafe fn swap(&self, item: Option<T>) -> Option<T> {
        // SAFETY: by contract.
        #[cfg(not(loom))]
        unsafe {
            std::mem::replace(&mut *self.0.get(), item)
        }
        // SAFETY: by contract, which loom checks.
        #[cfg(loom)]
        self.0.with_mut(|at| unsafe { std::mem::replace(&mut *at, item) })
    }
}

/// Positions count items since the ring was made; their low bits select the slot.
struct Ring<T> {
    /// Items sent. The slots from here on, up to `received` one round later, are the sender's.
    sent: Padded<AtomicU64>,
    /// Items received. The slots from here to `sent` are the receiver's.
    received: Padded<AtomicU64>,
    slots: Box<[Slot<T>]>,
}

// SAFETY: a slot is used by one thread at a time: by the sender while its position is not released
// to the receiver, and the other way round. Items pass from thread to thread, so `Send` is
// required.
unsafe impl<T: Send> Sync for Ring<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T> Ring<T> {
    #[inline]
    fn slot(&self, position: u64) -> &Slot<T> {
        // The number of slots is a power of two.
        &self.slots[position as usize & (self.slots.len() - 1)]
    }
    fn depth(&self) -> usize {
        // The order matters: items received in between cannot make the difference negative.
        let received = self.received.0.load(Ordering::Acquire);
        let sent = self.sent.0.load(Ordering::Acquire);
        (sent - received).min(self.slots.len() as u64) as usize
    }
}

/// Creates a ring with room for `room` items, rounded up to a power of two.
pub fn channel<T: Send>(room: usize) -> (Sender<T>, Receiver<T>) {
    let slots = (0..room.next_power_of_two()).map(|_| Slot(UnsafeCell::new(None))).collect();
    let ring = Arc::new(Ring {
        sent: Padded(AtomicU64::new(0)),
        received: Padded(AtomicU64::new(0)),
        slots,
    });
    let sender = Sender { ring: ring.clone(), sent: 0, received: 0 };
    (sender, Receiver { ring, received: 0, sent: 0 })
}

/// The sending end.
pub struct Sender<T> {
    ring: Arc<Ring<T>>,
    sent: u64,
    /// The receiver's position, as last read.
    received: u64,
}

impl<T> Sender<T> {
    /// Returns true if there is no room for another item.
    #[inline]
    pub fn is_full(&mut self) -> bool {
        let room = self.ring.slots.len() as u64;
        if self.sent - self.received == room {
            self.received = self.ring.received.0.load(Ordering::Acquire);
        }
        self.sent - self.received == room
    }

    /// Returns true if the ring holds this number of items or more.
    #[inline]
    pub fn holds(&mut self, items: usize) -> bool {
        if self.sent - self.received >= items as u64 {
            self.received = self.ring.received.0.load(Ordering::Acquire);
        }
        self.sent - self.received >= items as u64
    }

    /// Returns the number of items sent since the ring was made.
    #[inline]
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns the number of items received since the ring was made, as last read.
    #[inline]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Reads the receiver's position.
    #[inline]
    pub fn refresh(&mut self) {
        self.received = self.ring.received.0.load(Ordering::Acquire);
    }

    /// Sends an item. Returns the item that the receiver has left in its slot, if any.
    ///
    /// # Errors
    /// The item itself, if the ring is full.
    #[inline]
    pub fn send(&mut self, item: T) -> Result<Option<T>, T> {
        if self.is_full() {
            return Err(item);
        }
        // SAFETY: the receiver has released this slot, or never had it, and gets it by the store
        // below only.
        let left = unsafe { self.ring.slot(self.sent).swap(Some(item)) };
        self.sent += 1;
        self.ring.sent.0.store(self.sent, Ordering::Release);
        Ok(left)
    }

    /// Returns a gauge of the ring.
    pub fn gauge(&self) -> Gauge<T> {
        Gauge { ring: self.ring.clone() }
    }
}

/// The receiving end.
pub struct Receiver<T> {
    ring: Arc<Ring<T>>,
    received: u64,
    /// The sender's position, as last read.
    sent: u64,
}

impl<T> Receiver<T> {
    /// Returns true if there is no item.
    #[inline]
    pub fn is_empty(&mut self) -> bool {
        if self.received == self.sent {
            self.sent = self.ring.sent.0.load(Ordering::Acquire);
        }
        self.received == self.sent
    }

    /// Takes the oldest item, and leaves the result of `leave` in its slot.
    #[inline]
    pub fn receive(&mut self, leave: impl FnOnce() -> Option<T>) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        // SAFETY: the sender has released this slot, and gets it back by the store below only.
        let item = unsafe { self.ring.slot(self.received).swap(leave()) };
        self.received += 1;
        self.ring.received.0.store(self.received, Ordering::Release);
        item
    }
}

/// Reads how full a ring is, from any thread.
pub struct Gauge<T> {
    ring: Arc<Ring<T>>,
}

impl<T> Gauge<T> {
    /// Returns the number of items in the ring.
    pub fn depth(&self) -> usize {
        self.ring.depth()
    }
    /// Returns the number of items received since the ring was made.
    pub fn received(&self) -> u64 {
        self.ring.received.0.load(Ordering::Acquire)
    }
    /// Returns the capacity of the ring.
    pub fn room(&self) -> usize {
        self.ring.slots.len()
    }
    /// Returns the addresses of the two positions, for tests of the layout.
    pub fn positions(&self) -> [usize; 2] {
        [&self.ring.sent, &self.ring.received].map(|p| std::ptr::from_ref(p).addr())
    }
}

#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::sync::fence;
    use loom::sync::atomic::AtomicBool;

    /// Items are received in order, and a token is left for each; slots are reused.
    #[test]
    fn loom_items_there_and_back() {
        loom::model(|| {
            let (mut to, mut from) = channel::<u32>(2);
            let receiver = loom::thread::spawn(move || {
                let mut next = 0;
                for _ in 0..4 {
                    match from.receive(|| Some(100 + next)) {
                        Some(got) => {
                            assert_eq!(got, next);
                            next += 1;
                        }
                        None => loom::thread::yield_now(),
                    }
                }
                next
            });
            let (mut sent, mut back) = (0, 0);
            for _ in 0..4 {
                match to.send(sent) {
                    Ok(left) => {
                        // In the first round a slot is empty.
                        assert_eq!(left, sent.checked_sub(2).map(|n| 100 + n));
                        back += u32::from(left.is_some());
                        sent += 1;
                    }
                    Err(same) => assert_eq!(same, sent),
                }
            }
            let got = receiver.join().unwrap();
            assert!(got <= sent && back <= got && sent <= got + 2);
        });
    }

    /// Test of the way the engine sleeps: a sender that sends while the receiver goes to sleep sees
    /// it sleeping, or its item is seen.
    #[test]
    fn loom_nothing_is_sent_to_a_sleeper_unnoticed() {
        loom::model(|| {
            let (mut to, mut from) = channel::<u32>(1);
            let sleeping = loom::sync::Arc::new(AtomicBool::new(false));
            let seen = sleeping.clone();
            let sender = loom::thread::spawn(move || {
                to.send(7).unwrap();
                fence(Ordering::SeqCst);
                seen.load(Ordering::Relaxed)
            });
            sleeping.store(true, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            let empty = from.is_empty();
            let woken = sender.join().unwrap();
            assert!(woken || !empty);
        });
    }
}
