//! Load generator: both sides of TCP exchanges between many hosts, as frames.
//!
//! A [`Client`] opens TCP connections at a rate, or as many as allowed concurrently, sends
//! requests, waits for the answers, and closes; a [`Server`] answers. Neither knows what lies
//! between them: they are passed received frames, and write frames to send into a [`Sink`]. The
//! client counts losses: it gives up on a connection that makes no progress.
//!
//! A connection with one request is eight packets:
//!
//! | client | server |
//! | --- | --- |
//! | SYN | SYN, ACK |
//! | ACK | – |
//! | request | answer |
//! | FIN | FIN |
//! | ACK | – |
//!
//! The client has a slot for each pair of address and port, which a received frame identifies
//! without a look-up. The server is stateless: each segment it sends follows from the one received,
//! so it works behind NAT and with any number of clients.

#![forbid(unsafe_code)]

mod client;
mod frame;
mod meet;
mod part;
pub mod search;
mod server;
pub mod stream;
pub mod talk;
#[cfg(test)]
mod tests;

use std::net::Ipv4Addr;

pub use client::{Client, Counts};
pub use meet::{Mixed, mixed};
pub use part::{MAX_PARTS, Part};
pub use server::{Server, ServerCounts};
pub use thalweg_wire::MacAddr;

/// Time since an arbitrary origin, in microseconds.
pub type Micros = u64;

/// Receiver of frames to send.
pub trait Sink {
    /// Returns a buffer of `length` bytes for a frame; `None` if there is no room, and the frame is
    /// lost.
    fn frame(&mut self, length: usize) -> Option<&mut [u8]>;
}

/// Frames in memory, for tests and slow paths.
impl Sink for Vec<Vec<u8>> {
    fn frame(&mut self, length: usize) -> Option<&mut [u8]> {
        self.push(vec![0; length]);
        self.last_mut().map(Vec::as_mut_slice)
    }
}

/// Parameters of the connections.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The clients' MAC address, and the MAC address they send to: that of the next hop or the
    /// server.
    pub client_mac: (MacAddr, MacAddr),
    /// The first client's address; the others follow it.
    pub client: Ipv4Addr,
    /// Number of clients.
    pub clients: u32,
    /// First port, and number of ports per client.
    pub ports: (u16, u16),
    /// The server's address and port.
    pub server: (Ipv4Addr, u16),
    /// Requests per connection, each of which is answered; with 0, connections are only opened and
    /// closed.
    pub requests: u16,
    /// Payload of a request in bytes.
    pub request: u16,
    /// Payload of an answer in bytes, as configured on the server.
    pub answer: u16,
    /// Connections per second; `None` = as fast as `concurrent` allows.
    pub rate: Option<f64>,
    /// Maximum number of concurrent connections.
    pub concurrent: u32,
    /// Time after which a connection without progress counts as lost, in microseconds.
    pub patience: Micros,
}

impl Default for Profile {
    fn default() -> Self {
        Profile {
            client_mac: (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2])),
            client: Ipv4Addr::new(16, 0, 0, 1),
            clients: 255,
            ports: (1024, 60000),
            server: (Ipv4Addr::new(48, 0, 0, 1), 80),
            requests: 1,
            request: 40,
            answer: 40,
            rate: None,
            concurrent: 1000,
            patience: 1_000_000,
        }
    }
}

/// Reason why a profile is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// A number is zero.
    #[error("{0} is zero: no connection can be opened")]
    Nothing(&'static str),
    /// The port range exceeds 65535.
    #[error("{ports} ports from {first} on exceed 65535")]
    Ports {
        /// First port.
        first: u16,
        /// Number of ports.
        ports: u16,
    },
    /// The number of slots is too large.
    #[error("{clients} clients of {ports} ports are too many: the limit is 2147483647 connections")]
    Slots {
        /// Number of clients.
        clients: u32,
        /// Ports per client.
        ports: u16,
    },
    /// A message does not fit into a segment.
    #[error("{what} of {bytes} bytes is too long: a segment carries up to {max}", max = MAX_DATA)]
    Data {
        /// The message.
        what: &'static str,
        /// Its size in bytes.
        bytes: u16,
    },
}

/// Maximum payload of a segment in bytes.
pub const MAX_DATA: u16 = 1460;

impl Profile {
    /// Number of pairs of address and port, each of which carries one connection at a time.
    pub fn slots(&self) -> u32 {
        self.clients.saturating_mul(u32::from(self.ports.1))
    }

    fn check(&self) -> Result<(), ProfileError> {
        let (first, ports) = self.ports;
        for (what, value) in
            [("clients", self.clients), ("ports", ports.into()), ("concurrent", self.concurrent)]
        {
            if value == 0 {
                return Err(ProfileError::Nothing(what));
            }
        }
        if u32::from(first) + u32::from(ports) > 65536 || first == 0 {
            return Err(ProfileError::Ports { first, ports });
        }
        if u64::from(self.clients) * u64::from(ports) >= 1 << 31 {
            return Err(ProfileError::Slots { clients: self.clients, ports });
        }
        for (what, bytes) in [("a request", self.request), ("an answer", self.answer)] {
            if bytes > MAX_DATA {
                return Err(ProfileError::Data { what, bytes });
            }
        }
        Ok(())
    }
}
