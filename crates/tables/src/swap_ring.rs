//! A bounded single-producer, single-consumer ring that returns an empty item for each one taken.
//!
//! A thread that only hands items over runs out of them, and the thread that receives them
//! accumulates them, unless they go back. So a slot of this ring is never just emptied: the receiver
//! swaps an item in for the one it takes, and the sender finds it there one round later. Items that
//! own memory (frames) thus circulate without an allocator, at the cost of one pointer swap per end.
//!
//! The shared, written state is the two positions, each on cache lines of its own and written by one
//! end only, and the slots. An end reads the other's position only when the last value it read leaves
//! it nothing to do. There is no lock and no read-modify-write, and nothing waits: `send` on a full
//! ring fails.

use crate::sync::{AtomicU64, Ordering, Padded};
use std::sync::Arc;

#[cfg(loom)]
use loom::cell::UnsafeCell;
#[cfg(not(loom))]
use std::cell::UnsafeCell;

/// A place for an item on its way there or back.
struct Place<T>(UnsafeCell<Option<T>>);

impl<T> Place<T> {
    /// Puts `item` in and takes out what was there.
    ///
    /// # Safety
    /// No other thread uses the place.
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

/// Positions count items since the ring was made; their low bits name the place.
struct Ring<T> {
    /// Items sent. The places from here on, up to `received` and once round, are the sender's.
    sent: Padded<AtomicU64>,
    /// Items received. The places from here to `sent` are the receiver's.
    received: Padded<AtomicU64>,
    places: Box<[Place<T>]>,
}

// SAFETY: a place is used by one thread at a time: by the sender while its position is not released
// to the receiver, and the other way round. Items pass from thread to thread, hence `Send`.
unsafe impl<T: Send> Sync for Ring<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T> Ring<T> {
    #[inline]
    fn place(&self, position: u64) -> &Place<T> {
        // The number of places is a power of two.
        &self.places[position as usize & (self.places.len() - 1)]
    }
    fn depth(&self) -> usize {
        // This order: what is received in between cannot make it negative.
        let received = self.received.0.load(Ordering::Acquire);
        let sent = self.sent.0.load(Ordering::Acquire);
        (sent - received).min(self.places.len() as u64) as usize
    }
}

/// Makes a ring with room for `room` items, rounded up to a power of two.
pub fn channel<T: Send>(room: usize) -> (Sender<T>, Receiver<T>) {
    let places = (0..room.next_power_of_two()).map(|_| Place(UnsafeCell::new(None))).collect();
    let ring = Arc::new(Ring {
        sent: Padded(AtomicU64::new(0)),
        received: Padded(AtomicU64::new(0)),
        places,
    });
    let sender = Sender { ring: ring.clone(), sent: 0, received: 0 };
    (sender, Receiver { ring, received: 0, sent: 0 })
}

/// The end that hands items over.
pub struct Sender<T> {
    ring: Arc<Ring<T>>,
    sent: u64,
    /// What the receiver said last.
    received: u64,
}

impl<T> Sender<T> {
    /// True if there is no room: the next item would not be sent.
    #[inline]
    pub fn is_full(&mut self) -> bool {
        let room = self.ring.places.len() as u64;
        if self.sent - self.received == room {
            self.received = self.ring.received.0.load(Ordering::Acquire);
        }
        self.sent - self.received == room
    }

    /// Sends an item. Returns what the receiver has left in its place, if anything.
    ///
    /// # Errors
    /// The item itself, if the ring is full.
    #[inline]
    pub fn send(&mut self, item: T) -> Result<Option<T>, T> {
        if self.is_full() {
            return Err(item);
        }
        // SAFETY: the receiver has released this place, or never had it, and gets it by the store
        // below only.
        let left = unsafe { self.ring.place(self.sent).swap(Some(item)) };
        self.sent += 1;
        self.ring.sent.0.store(self.sent, Ordering::Release);
        Ok(left)
    }

    /// For looking at the ring from elsewhere.
    pub fn gauge(&self) -> Gauge<T> {
        Gauge { ring: self.ring.clone() }
    }
}

/// The end that gets them.
pub struct Receiver<T> {
    ring: Arc<Ring<T>>,
    received: u64,
    /// What the sender said last.
    sent: u64,
}

impl<T> Receiver<T> {
    /// True if nothing is there.
    #[inline]
    pub fn is_empty(&mut self) -> bool {
        if self.received == self.sent {
            self.sent = self.ring.sent.0.load(Ordering::Acquire);
        }
        self.received == self.sent
    }

    /// Takes the item sent first, and leaves for it what `leave` gives.
    #[inline]
    pub fn receive(&mut self, leave: impl FnOnce() -> Option<T>) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        // SAFETY: the sender has released this place, and gets it back by the store below only.
        let item = unsafe { self.ring.place(self.received).swap(leave()) };
        self.received += 1;
        self.ring.received.0.store(self.received, Ordering::Release);
        item
    }
}

/// Tells how full a ring is.
pub struct Gauge<T> {
    ring: Arc<Ring<T>>,
}

impl<T> Gauge<T> {
    /// Items on their way.
    pub fn depth(&self) -> usize {
        self.ring.depth()
    }
    /// Items that there is room for.
    pub fn room(&self) -> usize {
        self.ring.places.len()
    }
    /// Where the two positions lie in memory, for tests of the layout.
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

    /// What the receiver takes comes in order, and it leaves a token for each; places are reused.
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
                        // The first time round there is nothing in a place.
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

    /// The engine's way to sleep: whoever sends while the receiver goes to sleep sees it sleeping, or
    /// is seen.
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
