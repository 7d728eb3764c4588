//! Host interfaces: Linux network devices driven through `AF_PACKET` rings.
//!
//! [`ring`] opens sockets on a device and moves frames through memory that is
//! shared with the kernel (`PACKET_RX_RING`, `PACKET_TX_RING`). [`link`] says
//! what a device is and reports when its state changes. Neither knows the
//! packet engine.
//!
//! Sockets belong to the network namespace in which the calling thread is
//! when it opens them.

mod error;
pub mod link;
pub mod ring;
mod sys;

pub use error::Error;
