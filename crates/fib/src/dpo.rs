//! The table of forwarding objects, as workers read it.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use thalweg_tables::{MapError, PagedTable};

/// An index into the [`DpoTable`]; 0 is "no route". It is also the leaf of the route tables.
pub type Dpo = u32;

/// Kind of a forwarding object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum Kind {
    /// There is no route.
    Miss = 0,
    /// A complete adjacency: write the header and send.
    Rewrite = 1,
    /// An adjacency whose neighbour's MAC address is not known yet.
    Incomplete = 2,
    /// A connected subnet: the destination itself must be resolved.
    Glean = 3,
    /// The router's own address.
    Local = 4,
    /// One of several members, by flow.
    LoadBalance = 5,
    /// Send "host unreachable" and drop.
    Unreachable = 6,
    /// Send "administratively prohibited" and drop.
    Prohibit = 7,
    /// Drop silently.
    Drop = 8,
    /// The interface is down.
    Down = 9,
}

impl Kind {
    const ALL: [Kind; 10] = [
        Kind::Miss,
        Kind::Rewrite,
        Kind::Incomplete,
        Kind::Glean,
        Kind::Local,
        Kind::LoadBalance,
        Kind::Unreachable,
        Kind::Prohibit,
        Kind::Drop,
        Kind::Down,
    ];
    fn from_bits(b: u8) -> Kind {
        Kind::ALL.get(b as usize).copied().unwrap_or(Kind::Miss)
    }
}

/// Maximum length of an adjacency's rewrite.
pub const REWRITE_BYTES: usize = 24;

/// Words of an entry: a cache line.
type Line = [AtomicU64; 8];

/// Word of the state.
const STATE: usize = 0;
/// Word of the node that transmits, or the base of the buckets.
const NEXT: usize = 1;
/// First word of the rewrite.
const REWRITE: usize = 2;
/// First word of the neighbour's address, in IPv6 form; zeros if there is none.
const NEXT_HOP: usize = 6;

/// One entry, a cache line of the table. Its state is one word, so that a reader sees it change at
/// once; the bytes that an update changes while packets flow (the destination MAC address) are
/// within one word, too.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'t>(&'t Line);

/// An entry's state, read atomically.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryState {
    /// Kind.
    pub kind: Kind,
    /// Length of the rewrite; for [`Kind::LoadBalance`] log2 of the number of buckets.
    pub len: u8,
    /// Maximum packet length, without the rewrite.
    pub mtu: u16,
    /// Outgoing interface.
    pub tx_if: u32,
}

/// Length of an Ethernet header.
pub const ETHERNET_HEADER: usize = 14;

/// Rewrite of an adjacency on an Ethernet interface; see [`Entry::ethernet`].
#[derive(Clone, Copy, Debug)]
pub struct EthernetRewrite {
    /// Maximum length of a packet that needs no further checks, in bytes without the header; 0 for
    /// an entry of another kind.
    pub longest: u16,
    /// The header's first and last eight bytes, which overlap, as little-endian words.
    pub header: [u64; 2],
    /// Node that transmits.
    pub next: u32,
}

impl EntryState {
    fn pack(self) -> u64 {
        u64::from(self.kind as u8)
            | u64::from(self.len) << 8
            | u64::from(self.mtu) << 16
            | u64::from(self.tx_if) << 32
    }
}

impl Entry<'_> {
    /// Returns the state.
    #[inline]
    pub fn state(self) -> EntryState {
        let w = self.0[STATE].load(Ordering::Acquire);
        EntryState {
            kind: Kind::from_bits(w as u8),
            len: (w >> 8) as u8,
            mtu: (w >> 16) as u16,
            tx_if: (w >> 32) as u32,
        }
    }
    /// Returns true if the entry is of this kind.
    #[inline(always)]
    pub fn is(self, kind: Kind) -> bool {
        self.0[STATE].load(Ordering::Acquire) as u8 == kind as u8
    }
    /// Returns the rewrite for an Ethernet interface, without a branch.
    #[inline(always)]
    pub fn ethernet(self) -> EthernetRewrite {
        const PLAIN: u64 = Kind::Rewrite as u64 | (ETHERNET_HEADER as u64) << 8;
        let state = self.0[STATE].load(Ordering::Acquire);
        let is_plain = u64::from(state & 0xffff == PLAIN);
        // By arithmetic: reading bytes out of two words in memory would wait for both to be stored.
        let word = |i: usize| u64::from_le_bytes(self.0[i].load(Ordering::Relaxed).to_ne_bytes());
        let (first, second) = (word(REWRITE), word(REWRITE + 1));
        EthernetRewrite {
            longest: ((state >> 16) as u16).min(u16::MAX - ETHERNET_HEADER as u16)
                * is_plain as u16,
            header: [first, first >> 48 | second << 16],
            next: self.next(),
        }
    }
    /// Returns the node that transmits.
    #[inline]
    pub fn next(self) -> u32 {
        self.0[NEXT].load(Ordering::Relaxed) as u32
    }
    /// Returns the rewrite, `state().len` bytes of it.
    #[inline]
    pub fn rewrite(self) -> [u8; REWRITE_BYTES] {
        let mut out = [0; REWRITE_BYTES];
        for (i, w) in self.0[REWRITE..REWRITE + 3].iter().enumerate() {
            out[i * 8..i * 8 + 8].copy_from_slice(&w.load(Ordering::Relaxed).to_ne_bytes());
        }
        out
    }

    /// Returns the neighbour of an adjacency. For descriptions of packets: workers do not need it.
    #[must_use]
    pub fn next_hop(self) -> Option<IpAddr> {
        let word = |i: usize| u128::from(self.0[NEXT_HOP + i].load(Ordering::Relaxed));
        match word(0) << 64 | word(1) {
            0 => None,
            bits => Some(Ipv6Addr::from_bits(bits).to_canonical()),
        }
    }

    pub(crate) fn set_next_hop(self, next_hop: Option<IpAddr>) {
        let bits = next_hop.map_or(0, |address| match address {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
            IpAddr::V6(v6) => v6.to_bits(),
        });
        for (i, half) in [(bits >> 64) as u64, bits as u64].into_iter().enumerate() {
            self.0[NEXT_HOP + i].store(half, Ordering::Relaxed);
        }
    }

    pub(crate) fn set_state(self, s: EntryState) {
        self.0[STATE].store(s.pack(), Ordering::Release);
    }
    pub(crate) fn set_next(self, next: u32) {
        self.0[NEXT].store(u64::from(next), Ordering::Relaxed);
    }
    /// Writes the words that differ.
    pub(crate) fn set_rewrite(self, bytes: &[u8]) {
        let mut all = [0; REWRITE_BYTES];
        let n = bytes.len().min(REWRITE_BYTES);
        all[..n].copy_from_slice(&bytes[..n]);
        for (i, w) in self.0[REWRITE..REWRITE + 3].iter().enumerate() {
            let mut word = [0; 8];
            word.copy_from_slice(&all[i * 8..i * 8 + 8]);
            w.store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
    }
}

/// Maximum number of buckets of a load balance.
pub const MAX_BUCKETS: usize = 64;

/// All forwarding objects. Shared with the workers; address space is reserved at start and
/// committed as used.
pub struct DpoTable {
    entries: PagedTable<Line>,
    buckets: PagedTable<AtomicU32>,
}

impl DpoTable {
    pub(crate) fn new(capacity: usize) -> Result<DpoTable, MapError> {
        let entries = PagedTable::new(capacity)?;
        let buckets = PagedTable::new(capacity * 16)?;
        Ok(DpoTable { entries, buckets })
    }

    /// Returns an entry; that of "no route" if there is none.
    #[inline]
    pub fn get(&self, dpo: Dpo) -> Entry<'_> {
        Entry(self.entries.get(dpo).unwrap_or(&self.entries.as_slice()[0]))
    }

    /// Returns the member of a load balance for a flow.
    #[inline]
    pub fn pick(&self, entry: Entry<'_>, state: EntryState, hash: u32) -> Dpo {
        let slot = hash & ((1u32 << (state.len & 31)) - 1);
        self.buckets.get(entry.next().wrapping_add(slot)).map_or(0, |b| b.load(Ordering::Acquire))
    }

    pub(crate) fn set_bucket(&self, at: u32, dpo: Dpo) {
        if let Some(b) = self.buckets.get(at) {
            b.store(dpo, Ordering::Release);
        }
    }

    /// Returns the maximum number of entries.
    pub fn capacity(&self) -> usize {
        self.entries.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_per_entry_and_states_survive() {
        assert_eq!(size_of::<Line>(), 64);
        let line = Line::default();
        let e = Entry(&line);
        assert_eq!(e.state().kind, Kind::Miss);
        for kind in Kind::ALL {
            let s = EntryState { kind, len: 14, mtu: 9000, tx_if: 0xffff_fffe };
            e.set_state(s);
            assert_eq!(e.state(), s);
        }
        assert!(e.is(Kind::Down) && !e.is(Kind::Rewrite));
        assert_eq!(e.ethernet().longest, 0);
        let bytes: Vec<u8> = (1..=22).collect();
        e.set_rewrite(&bytes);
        for (mtu, longest) in [(1500, 1500), (u16::MAX, u16::MAX - 14)] {
            e.set_state(EntryState { kind: Kind::Rewrite, len: 14, mtu, tx_if: 1 });
            assert_eq!(e.ethernet().longest, longest);
        }
        for next_hop in [None, Some("192.0.2.1"), Some("2001:db8::1")] {
            let address = next_hop.map(|a| a.parse().unwrap());
            e.set_next_hop(address);
            assert_eq!(e.next_hop(), address);
        }
        let header = e.ethernet().header.map(u64::to_le_bytes);
        assert_eq!(header, [[1, 2, 3, 4, 5, 6, 7, 8], [7, 8, 9, 10, 11, 12, 13, 14]]);
        assert_eq!(e.rewrite()[..22], bytes[..]);
    }
}
