//! An address that hosts inside share.

use crate::ports::{self, Ports};
use thalweg_wire::ip::protocol;

/// Protocols that have ports.
pub const PROTOCOLS: [u8; 3] = [protocol::TCP, protocol::UDP, protocol::ICMP];

/// The position of a protocol among those.
#[inline]
pub fn position(ip: u8) -> Option<usize> {
    PROTOCOLS.iter().position(|p| *p == ip)
}

/// An address and those of its ports that one worker gives away.
#[derive(Debug)]
pub struct Pool {
    /// The address.
    pub address: u32,
    /// Only for hosts of this routing table, if it says one.
    pub table: Option<u32>,
    /// For sources that are translated, too.
    pub twice: bool,
    /// False: it is given up as its sessions end.
    pub live: bool,
    /// Sessions that have a port of it.
    pub used: u32,
    /// By protocol.
    pub ports: [Ports; 3],
}

impl Pool {
    /// A worker's part of an address.
    pub fn new(
        address: u32,
        table: Option<u32>,
        twice: bool,
        worker: usize,
        workers: usize,
    ) -> Pool {
        let (first, count) = ports::share(worker, workers);
        let ports = std::array::from_fn(|_| Ports::new(first, count));
        Pool { address, table, twice, live: true, used: 0, ports }
    }

    /// Whether hosts of a table may use it: 2 if it is theirs alone, 1 if it is everybody's.
    pub fn suits(&self, table: u32, twice: bool) -> u8 {
        match self.table {
            _ if !self.live || self.twice != twice => 0,
            None => 1,
            Some(t) => 2 * u8::from(t == table),
        }
    }
}
