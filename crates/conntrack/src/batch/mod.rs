//! Reads packets into keys and the header fields that the state machines need.

mod ends;
mod fragment;
mod read;
#[cfg(test)]
mod tests;

use thalweg_tables::flow::{FlowHash, Guess};

use crate::tcp::Segment;
use crate::tuple::{Key, owner_hash, protocol_of};
use crate::{IPV4, IPV6, Tuple};
pub use fragment::Fragment;
use fragment::is_fragment;
use read::{intact, intact6, plain_tcp, plain_tcp6, read_ipv4, read_ipv6};

/// Maximum number of packets in a batch.
pub const ROOM: usize = 256;

/// Checksums to verify. A checksum that a device has verified, or will fill in, needs no check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// The IPv4 header checksum.
    pub network: bool,
    /// The TCP, UDP or ICMP checksum, if the whole packet is at hand.
    pub transport: bool,
}

impl Checks {
    /// No checksum.
    pub const NONE: Checks = Checks { network: false, transport: false };
    /// All checksums.
    pub const ALL: Checks = Checks { network: true, transport: true };
}

/// The kind of a packet, as the tracker sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Cannot be tracked.
    #[default]
    Invalid,
    /// A fragment other than the first, which has no ports: see [`Fragment`].
    Fragment,
    /// TCP.
    Tcp,
    /// UDP, or another protocol without states.
    Datagram,
    /// An ICMP query, or its reply.
    Query,
    /// An ICMP error about the connection of its key.
    Related,
}

impl Kind {
    /// True if there is a key to track it by.
    #[inline]
    pub(crate) fn is_tracked(self) -> bool {
        self > Kind::Fragment
    }
}

/// The header fields that the tracker needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Headers {
    /// TCP sequence numbers, flags and windows.
    pub segment: Segment,
    /// Length in bytes, from the network header on.
    pub bytes: u32,
    /// Kind of the packet.
    pub kind: Kind,
    /// True if the sender is the higher endpoint of the key; for ICMP queries, if it is a reply.
    pub swapped: bool,
}

/// Packets that are looked up together, as columns.
#[derive(Debug)]
pub struct Batch<const W: usize> {
    pub(crate) keys: Box<[Key<W>; ROOM]>,
    pub(crate) headers: Box<[Headers; ROOM]>,
    pub(crate) hashes: Box<[FlowHash; ROOM]>,
    pub(crate) guesses: Box<[Guess; ROOM]>,
    pub(crate) len: usize,
    /// First packet that has not been prefetched.
    pub(crate) ahead: usize,
    /// True if any packet is a fragment.
    fragments: bool,
}

impl<const W: usize> Default for Batch<W> {
    fn default() -> Self {
        Batch {
            keys: Box::new([[0; W]; ROOM]),
            headers: Box::new([Headers::default(); ROOM]),
            hashes: Box::new([FlowHash::default(); ROOM]),
            guesses: Box::new([Guess::default(); ROOM]),
            len: 0,
            ahead: 0,
            fragments: false,
        }
    }
}

impl<const W: usize> Batch<W> {
    /// Removes all packets.
    pub fn clear(&mut self) {
        self.len = 0;
        self.fragments = false;
    }

    /// Number of packets.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether any packet added from its bytes is a fragment.
    #[inline]
    pub fn has_fragments(&self) -> bool {
        self.fragments
    }

    /// Returns whether the batch is full.
    pub fn is_full(&self) -> bool {
        self.len == ROOM
    }

    /// The headers of packet `i`, or `None` past the end.
    pub fn headers(&self, i: usize) -> Option<&Headers> {
        self.headers[..self.len].get(i)
    }

    /// The tuple of a packet or, for an ICMP error, of the connection it is about. `None` for
    /// packets that cannot be tracked.
    pub fn tuple(&self, i: usize) -> Option<Tuple> {
        let headers = self.headers(i).filter(|h| h.kind.is_tracked())?;
        Some(Tuple::of_key(&self.keys[i], headers.swapped))
    }

    /// Adds a packet of another batch under a zone. Does nothing if the batch is full.
    ///
    /// # Panics
    /// If the other batch has no packet `i`.
    pub fn add_from(&mut self, other: &Batch<W>, i: usize, zone: u16) {
        assert!(i < other.len, "no packet {i} of {}", other.len);
        let mut key = other.keys[i];
        key[W - 1] = key[W - 1] & !(0xffff << 16) | u64::from(zone) << 16;
        self.add(key, other.headers[i]);
    }

    /// The protocol of the connection of packet `i`. `None` for packets that cannot be tracked, and
    /// past the end.
    #[inline]
    pub fn protocol(&self, i: usize) -> Option<u8> {
        let headers = self.headers[..self.len].get(i)?;
        headers.kind.is_tracked().then(|| protocol_of(&self.keys[i]))
    }

    /// The hash that selects the worker that owns the connection of packet `i`: the same for both
    /// directions, for ICMP errors about it, and in all zones. `None` for packets that cannot be
    /// tracked, and past the end.
    #[inline]
    pub fn owner_hash(&self, i: usize) -> Option<u32> {
        let headers = self.headers[..self.len].get(i)?;
        if !headers.kind.is_tracked() {
            return None;
        }
        Some(owner_hash(&self.keys[i]))
    }

    /// Adds a packet whose headers were read elsewhere. Does nothing if the batch is full.
    pub fn add(&mut self, key: Key<W>, headers: Headers) {
        if let (Some(k), Some(h)) = (self.keys.get_mut(self.len), self.headers.get_mut(self.len)) {
            (*k, *h) = (key, headers);
            self.len += 1;
        }
    }

    /// Adds packets that cannot be tracked until there are `len`: those between the packets of a
    /// family in a frame.
    #[inline]
    pub fn pad(&mut self, len: usize) {
        if self.len < len {
            self.add_invalid(len.min(ROOM));
        }
    }

    #[inline(never)]
    fn add_invalid(&mut self, len: usize) {
        while self.len < len {
            self.add([0; W], Headers::default());
        }
    }
}

impl Batch<IPV4> {
    /// Adds the packet that starts with IPv4 header `l3`, under a zone. `l3` may be truncated after
    /// its headers; the packet has `bytes` bytes. Does nothing if the batch is full.
    #[inline]
    pub fn add_ipv4(&mut self, zone: u16, l3: &[u8], bytes: usize, checks: Checks) {
        let at = self.len;
        let (Some(key), Some(headers)) = (self.keys.get_mut(at), self.headers.get_mut(at)) else {
            return;
        };
        self.len = at + 1;
        if !(plain_tcp(zone, l3, bytes, key, headers)
            && (checks == Checks::NONE || intact(l3, checks)))
        {
            self.reread(zone, l3, bytes, checks);
        }
    }

    /// Reads the last packet the general way. The function is not inlined, so that most packets
    /// need registers for [`plain_tcp`] only.
    #[inline(never)]
    fn reread(&mut self, zone: u16, l3: &[u8], bytes: usize, checks: Checks) {
        let at = self.len - 1;
        (self.keys[at], self.headers[at]) = read_ipv4(zone, l3, bytes, checks);
        self.fragments |= is_fragment(l3);
    }
}

impl Batch<IPV6> {
    /// Adds the packet that starts with IPv6 header `l3`, under a zone. `l3` may be truncated after
    /// its headers; the packet has `bytes` bytes. Does nothing if the batch is full.
    #[inline]
    pub fn add_ipv6(&mut self, zone: u16, l3: &[u8], bytes: usize, checks: Checks) {
        let at = self.len;
        let (Some(key), Some(headers)) = (self.keys.get_mut(at), self.headers.get_mut(at)) else {
            return;
        };
        self.len = at + 1;
        if !(plain_tcp6(zone, l3, bytes, key, headers)
            && (!checks.transport || intact6(l3, headers.bytes)))
        {
            self.reread6(zone, l3, bytes, checks);
        }
    }

    /// Reads the last packet the general way.
    #[inline(never)]
    fn reread6(&mut self, zone: u16, l3: &[u8], bytes: usize, checks: Checks) {
        let at = self.len - 1;
        (self.keys[at], self.headers[at]) = read_ipv6(zone, l3, bytes, checks);
        self.fragments |= Fragment::<IPV6>::read(zone, l3).is_some();
    }
}

/// Reading packets of the family whose keys have `W` words.
pub trait Packets<const W: usize> {
    /// Adds the packet that starts with IP header `l3`, as [`Batch::add_ipv4`] and
    /// [`Batch::add_ipv6`] do.
    fn add_packet(&mut self, zone: u16, l3: &[u8], bytes: usize, checks: Checks);
    /// Reads a packet as a fragment; `None` if it is not one.
    fn fragment(zone: u16, l3: &[u8]) -> Option<Fragment<W>>;
}

impl Packets<IPV4> for Batch<IPV4> {
    fn add_packet(&mut self, zone: u16, l3: &[u8], bytes: usize, checks: Checks) {
        self.add_ipv4(zone, l3, bytes, checks);
    }
    fn fragment(zone: u16, l3: &[u8]) -> Option<Fragment<IPV4>> {
        Fragment::<IPV4>::read(zone, l3)
    }
}

impl Packets<IPV6> for Batch<IPV6> {
    fn add_packet(&mut self, zone: u16, l3: &[u8], bytes: usize, checks: Checks) {
        self.add_ipv6(zone, l3, bytes, checks);
    }
    fn fragment(zone: u16, l3: &[u8]) -> Option<Fragment<IPV6>> {
        Fragment::<IPV6>::read(zone, l3)
    }
}
