//! Load: both sides of real exchanges between many hosts, as frames.
//!
//! A [`Client`] opens TCP connections at a rate, or as many at a time as it may, sends requests and
//! waits for the answers, and closes; a [`Server`] answers. Neither knows what lies between them: they
//! are handed frames that arrived, and write frames that are to leave into a [`Sink`]. What gets lost
//! on the way is counted by the client, which gives up on a connection that makes no progress.
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
//! The client has a slot for each pair of address and port that it may use, which the frame that
//! arrives names: nothing is looked up. The server keeps nothing at all: what it says next follows from
//! what it hears, so that it works behind translations, and for any number of clients.

#![forbid(unsafe_code)]

mod client;
mod frame;
mod server;
#[cfg(test)]
mod tests;

use std::net::Ipv4Addr;

pub use client::{Client, Counts};
pub use server::{Answered, Server};
pub use thalweg_wire::MacAddr;

/// Time since any moment, in microseconds.
pub type Micros = u64;

/// Where frames go.
pub trait Sink {
    /// Room for a frame of so many bytes, which will be filled; nothing if there is none, and the
    /// frame is lost.
    fn frame(&mut self, length: usize) -> Option<&mut [u8]>;
}

/// Frames in memory, for tests and slow paths.
impl Sink for Vec<Vec<u8>> {
    fn frame(&mut self, length: usize) -> Option<&mut [u8]> {
        self.push(vec![0; length]);
        self.last_mut().map(Vec::as_mut_slice)
    }
}

/// What connections look like.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The clients' Ethernet address, and where they send frames: the next hop or the server.
    pub client_mac: (MacAddr, MacAddr),
    /// The first client's address; the others follow.
    pub client: Ipv4Addr,
    /// How many clients there are.
    pub clients: u32,
    /// A client's first port, and how many it uses.
    pub ports: (u16, u16),
    /// The server's address and port.
    pub server: (Ipv4Addr, u16),
    /// Requests of a connection, each of which is answered; 0 opens and closes.
    pub requests: u16,
    /// Bytes of data of a request.
    pub request: u16,
    /// Bytes of data of an answer. A server answers what it was told to.
    pub answer: u16,
    /// Connections per second; without, as fast as `concurrent` allows.
    pub rate: Option<f64>,
    /// Connections at a time.
    pub concurrent: u32,
    /// A connection that makes no progress for as long is lost.
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

/// Why a profile is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// No client, no port or nothing at a time.
    #[error("{0} is zero: no connection can be opened")]
    Nothing(&'static str),
    /// Ports end at 65535.
    #[error("{ports} ports from {first} on go beyond 65535")]
    Ports {
        /// The first one.
        first: u16,
        /// How many.
        ports: u16,
    },
    /// More slots than can be numbered.
    #[error(
        "{clients} clients of {ports} ports are too many; 2147483647 connections can be told apart"
    )]
    Slots {
        /// How many clients.
        clients: u32,
        /// Ports of each.
        ports: u16,
    },
    /// A message does not fit into a frame.
    #[error("{what} of {bytes} bytes: a segment takes {max} at most", max = MAX_DATA)]
    Data {
        /// Which message.
        what: &'static str,
        /// Its size.
        bytes: u16,
    },
}

/// Bytes of data of a segment.
pub const MAX_DATA: u16 = 1460;

impl Profile {
    /// Pairs of address and port: one connection may use each at a time.
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
