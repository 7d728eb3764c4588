//! Frames in and out of a device through memory shared with the kernel.
//!
//! [`HostPort::open`] opens the queues of a device. A queue is a packet socket with a receive ring
//! ([`RxRing`]), a transmit ring ([`TxRing`]) or both in one mapping. One thread at a time uses
//! each ring; the [`Socket`] that they share is for settings and counters.
//!
//! **Which version.** `TPACKET_V2` delivers each frame as it arrives. `TPACKET_V3` collects frames
//! in blocks and delivers a partly filled block only when its timer fires, up to 1 ms later: more
//! frames per second, but bad for request-reply traffic. V2 is the default.
//!
//! **Slots and large frames.** A device may deliver frames of up to 64 KiB with pending
//! segmentation and checksums (see [`VnetHdr`](thalweg_device_linux::VnetHdr)). Slots of that size
//! would make a ring of useful depth enormous, so slots hold what the MTU allows, and the few
//! larger frames bypass the ring:
//! the kernel queues them on the socket ([`RxRing`] fetches them in order), and [`TxRing`] sends
//! them directly from the caller's buffers. Without root the kernel does not enlarge the socket's
//! queue: slots are large and few instead.

mod claim;
mod layout;
mod map;
mod parse;
mod port;
mod rx;
mod socket;
mod tx;

pub use layout::{Options, RingSize, Version};
pub use parse::Tag;
pub use port::HostPort;
pub use rx::{Fetch, Fetched, RxFrame, RxRing, RxStats, Sink};
pub use socket::{KernelStats, Socket};
pub use tx::{SendError, TxRing, TxSlot, TxStats};
