//! The table of forwarding objects, as workers read it.

use crate::kind::{Kind, LinkType};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering};
use thalweg_buffer::SwIfIndex;
use thalweg_buffer::simd::{Lanes, Line, halves_of, words_of};
use thalweg_graph::NodeId;
use thalweg_tables::{MapError, PagedTable, SparseArray};

thalweg_wire::number! {
    /// An index into the [`DpoTable`]; 0 is "no route". Route tables keep it as their leaf.
    pub struct Dpo(u32);
}

/// Bytes of a rewrite in the entry itself.
pub const REWRITE_BYTES: usize = 32;
/// Maximum length of a rewrite: the rest is in a second line.
pub const MAX_REWRITE: usize = REWRITE_BYTES + 64;

/// Word of the state.
const STATE: usize = 0;
/// Word of the node that transmits (16 bits), of the object that a midchain leads to, and of the
/// second line of the rewrite (24 bits each).
const NEXT: usize = 1;
/// First word of the rewrite.
const REWRITE: usize = 2;
/// First word of the neighbour's address, in IPv6 form; zeros if there is none.
const NEXT_HOP: usize = 6;

/// Maximum number of entries of all kinds.
pub(crate) const CAPACITY: usize = 1 << 20;

/// Mask of an index in the word [`NEXT`].
const INDEX: u32 = (1 << 24) - 1;

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
    /// Length of the rewrite.
    pub len: u8,
    /// Maximum packet length, without the rewrite. For [`Kind::LOAD_BALANCE`] the number of buckets
    /// less one, which is a mask.
    pub mtu: u16,
    /// Number of the outgoing interface. For [`Kind::LOAD_BALANCE`] the first bucket, for
    /// [`Kind::REDIRECT`] the member, for [`Kind::LOOKUP`] the table, for [`Kind::INTERFACE_RX`]
    /// the interface, for a feature's kind what it has set.
    pub value: u32,
}

/// Length of an Ethernet header.
pub const ETHERNET_HEADER: usize = 14;

/// Rewrite of an adjacency whose header has one of the usual lengths; see [`Entry::link`].
#[derive(Clone, Copy, Debug)]
pub struct LinkRewrite {
    /// Maximum length of a packet that needs no further checks, in bytes without the header; 0 for
    /// an entry of another kind or length.
    pub longest: u16,
    /// The header's first, second and last eight bytes, which overlap, as little-endian words.
    pub header: [u64; 3],
    /// Node that transmits.
    pub next: u32,
}

impl EntryState {
    /// State of an object that only has a kind.
    #[must_use]
    pub const fn of(kind: Kind) -> EntryState {
        EntryState { kind, len: 0, mtu: u16::MAX, value: 0 }
    }
    /// Returns the outgoing interface, of a kind that has one.
    #[inline(always)]
    #[must_use]
    pub const fn tx_if(self) -> SwIfIndex {
        SwIfIndex(self.value)
    }
    fn pack(self) -> u64 {
        u64::from(self.kind.bits())
            | u64::from(self.len) << 8
            | u64::from(self.mtu) << 16
            | u64::from(self.value) << 32
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
            value: (w >> 32) as u32,
        }
    }
    /// Returns true if the entry is of this kind.
    #[inline(always)]
    pub fn is(self, kind: Kind) -> bool {
        self.0[STATE].load(Ordering::Acquire) as u8 == kind.bits()
    }
    /// Returns the rewrite if it is a link header of `LEN` bytes (14, or 18 or 22 with tags),
    /// without a branch.
    #[inline(always)]
    pub fn link<const LEN: usize>(self) -> LinkRewrite {
        const { assert!(LEN == 14 || LEN == 18 || LEN == 22) };
        let state = self.0[STATE].load(Ordering::Acquire);
        let is_plain = u64::from(state & 0xffff == plain(LEN));
        LinkRewrite {
            longest: ((state >> 16) as u16).min(u16::MAX - LEN as u16) * is_plain as u16,
            header: self.header::<LEN>(),
            next: self.next(),
        }
    }
    /// Returns the header of [`link`](Self::link).
    #[inline(always)]
    pub fn header<const LEN: usize>(self) -> [u64; 3] {
        // Arithmetic is faster: reading bytes out of two words in memory would wait for both to be
        // stored.
        let word = |i: usize| u64::from_le_bytes(self.0[i].load(Ordering::Relaxed).to_ne_bytes());
        let (first, second) = (word(REWRITE), word(REWRITE + 1));
        let last = match LEN {
            14 => first >> 48 | second << 16,
            18 => second >> 16 | word(REWRITE + 2) << 48,
            _ => second >> 48 | word(REWRITE + 2) << 16,
        };
        [first, second, last]
    }
    /// Returns the node that transmits.
    #[inline]
    pub fn next(self) -> u32 {
        u32::from(self.0[NEXT].load(Ordering::Relaxed) as u16)
    }
    /// Returns the object that a midchain leads to, or an adjacency of a tunnel.
    #[inline]
    pub fn stacked(self) -> Dpo {
        Dpo((self.0[NEXT].load(Ordering::Acquire) >> 16) as u32 & INDEX)
    }
    /// Returns the index of the second line of the rewrite.
    fn second(self) -> u32 {
        (self.0[NEXT].load(Ordering::Relaxed) >> 40) as u32
    }
    /// Returns the rewrite's bytes in the entry, the first `state().len` bytes of which are set.
    #[inline]
    pub fn rewrite(self) -> [u8; REWRITE_BYTES] {
        let mut out = [0; REWRITE_BYTES];
        load(&self.0[REWRITE..NEXT_HOP], &mut out);
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
    /// Sets the node that transmits, the object that follows, and the second line of the rewrite.
    pub(crate) fn set_next(self, node: NodeId, stacked: Dpo, second: u32) {
        let word = u64::from(node.0)
            | u64::from(stacked.0 & INDEX) << 16
            | u64::from(second & INDEX) << 40;
        // Release: an adjacency in use gets another object, whose state was written before.
        self.0[NEXT].store(word, Ordering::Release);
    }
    /// Writes the rewrite's bytes in the entry.
    pub(crate) fn set_rewrite(self, bytes: &[u8]) {
        store(&self.0[REWRITE..NEXT_HOP], bytes);
    }
}

/// Reads words as bytes; the shorter slice limits their number.
#[inline]
fn load(words: &[AtomicU64], out: &mut [u8]) {
    for (bytes, word) in out.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
    }
}

/// Writes bytes to words, and zeros after them.
fn store(words: &[AtomicU64], bytes: &[u8]) {
    let mut chunks = bytes.chunks(8);
    for word in words {
        let mut new = [0; 8];
        let chunk = chunks.next().unwrap_or_default();
        new[..chunk.len()].copy_from_slice(chunk);
        word.store(u64::from_ne_bytes(new), Ordering::Relaxed);
    }
}

/// Objects that packets of sixteen flows meet; see [`DpoTable::met`].
#[derive(Clone, Copy, Debug)]
pub struct Met<V> {
    /// The object of each.
    pub dpos: V,
    /// Members that are complete.
    pub complete: u16,
    /// Members that are load balances whose members are complete.
    pub balanced: u16,
    /// Their first buckets, and the masks of their hashes.
    first: V,
    mask: V,
}

/// Kind and length of an adjacency with a header of `len` bytes, as in the state.
const fn plain(len: usize) -> u64 {
    Kind::REWRITE.bits() as u64 | (len as u64) << 8
}

/// Maximum number of buckets of a load balance.
pub const MAX_BUCKETS: usize = 64;

/// Value of [`DpoTable::exits`] for "no node".
const NO_NODE: u16 = u16::MAX;

/// All forwarding objects. Shared with the workers; address space is reserved at start and
/// committed as used.
pub struct DpoTable {
    entries: SparseArray<Line, CAPACITY>,
    /// Second lines of long rewrites.
    seconds: PagedTable<Line>,
    buckets: PagedTable<AtomicU32>,
    /// Number of times that each index was freed; see [`Parked`](crate::Parked).
    pub(crate) stamps: SparseArray<AtomicU32, CAPACITY>,
    /// Node that handles the objects of each kind, by link type.
    exits: [[AtomicU16; Kind::LIMIT]; LinkType::ALL.len()],
    /// True once an adjacency of a sub-interface without tags existed.
    names_senders: AtomicBool,
}

impl DpoTable {
    pub(crate) fn new() -> Result<DpoTable, MapError> {
        Ok(DpoTable {
            entries: SparseArray::default(),
            seconds: PagedTable::new(CAPACITY)?,
            buckets: PagedTable::new(CAPACITY * 16)?,
            stamps: SparseArray::default(),
            exits: [const { [const { AtomicU16::new(NO_NODE) }; Kind::LIMIT] };
                LinkType::ALL.len()],
            names_senders: AtomicBool::new(false),
        })
    }

    /// Returns whether packets without tags may leave on behalf of a sub-interface.
    #[inline]
    pub fn names_senders(&self) -> bool {
        self.names_senders.load(Ordering::Relaxed)
    }

    pub(crate) fn set_names_senders(&self) {
        self.names_senders.store(true, Ordering::Relaxed);
    }

    /// Returns an entry.
    #[inline]
    pub fn get(&self, dpo: Dpo) -> Entry<'_> {
        Entry(self.entries.at(dpo))
    }

    /// Returns the member of a load balance for a flow.
    #[inline]
    pub fn pick(&self, state: EntryState, hash: u32) -> Dpo {
        let slot = hash & u32::from(state.mtu);
        self.buckets
            .get(state.value.wrapping_add(slot))
            .map_or(Dpo(0), |b| Dpo(b.load(Ordering::Acquire)))
    }

    /// Returns whether some packets that meet an object end at this one.
    #[must_use]
    pub fn may_meet(&self, from: Dpo, end: Dpo) -> bool {
        let state = self.get(from).state();
        match state.kind {
            Kind::LOAD_BALANCE | Kind::LOAD_BALANCE_COMPLETE => {
                (0..=u32::from(state.mtu)).any(|slot| self.pick(state, slot) == end)
            }
            _ => self.resolve(from, || 0) == end,
        }
    }

    /// Returns the object that packets of a flow meet: of a group, one of its members. The member
    /// is never a group itself, as groups in groups are flattened.
    #[inline]
    pub fn resolve(&self, dpo: Dpo, hash: impl FnOnce() -> u32) -> Dpo {
        let state = self.get(dpo).state();
        match state.kind {
            Kind::REDIRECT | Kind::REDIRECT_COMPLETE => Dpo(state.value),
            Kind::LOAD_BALANCE | Kind::LOAD_BALANCE_COMPLETE => self.pick(state, hash()),
            _ => dpo,
        }
    }

    /// Returns what packets of sixteen flows meet, as far as it needs no hash.
    #[inline(always)]
    pub fn met<V: Lanes>(&self, dpos: V) -> Met<V> {
        let entries = self.entries.as_slice();
        let state = halves_of::<V, STATE, false>(entries, dpos);
        let kind = state & V::splat(0xff);
        let sent = kind.eq(V::splat(Kind::REWRITE.bits().into()));
        let redirected = kind.eq(V::splat(Kind::REDIRECT_COMPLETE.bits().into()));
        let balanced = kind.eq(V::splat(Kind::LOAD_BALANCE_COMPLETE.bits().into()));
        let mut met = Met { dpos, complete: sent | redirected, balanced, first: dpos, mask: dpos };
        if redirected | balanced != 0 {
            met.first = halves_of::<V, STATE, true>(entries, dpos);
            met.mask = state.shr::<16>();
            met.dpos = dpos.replace(redirected, met.first);
        }
        met
    }

    /// Returns these objects with members of the load balances in their places.
    #[inline(always)]
    pub fn pick_all<V: Lanes>(&self, met: &Met<V>, hashes: V) -> V {
        let at = met.first + (hashes & met.mask);
        met.dpos.replace(met.balanced, words_of(self.buckets.as_slice(), at))
    }

    /// Returns, for sixteen objects, the node that each packet goes to, and which of them are
    /// adjacencies with a header of `LEN` bytes and the MTU for a packet of this length.
    #[inline(always)]
    pub fn ways<V: Lanes, const LEN: usize>(&self, dpos: V, lengths: V) -> (V, u16) {
        let entries = self.entries.as_slice();
        let state = halves_of::<V, STATE, false>(entries, dpos);
        let plain = (state & V::splat(0xffff)).eq(V::splat(plain(LEN) as u32));
        let next = halves_of::<V, NEXT, false>(entries, dpos) & V::splat(0xffff);
        (next, plain & !state.shr::<16>().lt(lengths))
    }

    /// Returns the node that handles the objects of a kind for packets of a protocol.
    #[inline]
    pub fn exit(&self, link: LinkType, kind: Kind) -> Option<NodeId> {
        let node = self.exits[link as usize][kind.number()].load(Ordering::Relaxed);
        (node != NO_NODE).then_some(NodeId(node))
    }

    pub(crate) fn set_exit(&self, link: LinkType, kind: Kind, node: NodeId) {
        self.exits[link as usize][kind.number()].store(node.0, Ordering::Relaxed);
    }

    /// Returns an entry's state and its whole rewrite.
    #[must_use]
    pub fn rewrite(&self, dpo: Dpo) -> (EntryState, Vec<u8>) {
        let state = self.get(dpo).state();
        let len = if state.kind.is_sent() { usize::from(state.len) } else { 0 };
        let mut out = vec![0; len];
        self.copy_rewrite(self.get(dpo), &mut out);
        (state, out)
    }

    /// Copies the first bytes of a rewrite.
    #[inline]
    pub fn copy_rewrite(&self, entry: Entry<'_>, out: &mut [u8]) {
        let (first, rest) = out.split_at_mut(out.len().min(REWRITE_BYTES));
        first.copy_from_slice(&entry.rewrite()[..first.len()]);
        if !rest.is_empty() {
            self.copy_second(entry, rest);
        }
    }

    #[cold]
    fn copy_second(&self, entry: Entry<'_>, out: &mut [u8]) {
        let mut all = [0; MAX_REWRITE - REWRITE_BYTES];
        if let Some(line) = self.seconds.get(entry.second()) {
            load(line, &mut all);
        }
        let n = out.len().min(all.len());
        out[..n].copy_from_slice(&all[..n]);
    }

    /// Writes what of a rewrite is beyond the entry.
    pub(crate) fn set_second(&self, index: u32, bytes: &[u8]) {
        if let Some(line) = self.seconds.get(index) {
            store(line, bytes);
        }
    }

    pub(crate) fn set_bucket(&self, at: u32, dpo: Dpo) {
        if let Some(b) = self.buckets.get(at) {
            b.store(dpo.get(), Ordering::Release);
        }
    }

    /// Returns the members in these buckets.
    pub(crate) fn buckets(&self, base: u32, count: u32) -> impl Iterator<Item = Dpo> {
        let all = (base..base + count).filter_map(|at| self.buckets.get(at));
        all.map(|b| Dpo(b.load(Ordering::Relaxed)))
    }

    /// Returns the maximum number of entries.
    pub fn capacity(&self) -> usize {
        CAPACITY
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
        assert_eq!(e.state().kind, Kind::MISS);
        for kind in [Kind::REWRITE, Kind::LOAD_BALANCE, Kind::REDIRECT_COMPLETE, Kind::DOWN] {
            let s = EntryState { kind, len: 14, mtu: 9000, value: 0xffff_fffe };
            e.set_state(s);
            assert_eq!(e.state(), s);
        }
        assert!(e.is(Kind::DOWN) && !e.is(Kind::REWRITE));
        assert_eq!(e.link::<14>().longest, 0);
        for next_hop in [None, Some("192.0.2.1"), Some("2001:db8::1")] {
            let address = next_hop.map(|a| a.parse().unwrap());
            e.set_next_hop(address);
            assert_eq!(e.next_hop(), address);
        }
        let bytes: Vec<u8> = (1..=32).collect();
        e.set_rewrite(&bytes);
        assert_eq!(e.rewrite()[..], bytes[..]);
        assert_eq!(e.next_hop(), Some("2001:db8::1".parse().unwrap()));
        e.set_next(NodeId(0xfffe), Dpo(0xab_cdef), 0x12_3456);
        assert_eq!((e.next(), e.stacked(), e.second()), (0xfffe, Dpo(0xab_cdef), 0x12_3456));
    }

    fn header<const LEN: usize>(e: Entry<'_>) {
        for (mtu, longest) in [(1500, 1500), (u16::MAX, u16::MAX - LEN as u16)] {
            e.set_state(EntryState { kind: Kind::REWRITE, len: LEN as u8, mtu, value: 1 });
            assert_eq!(e.link::<LEN>().longest, longest);
        }
        let words = e.link::<LEN>().header.map(u64::to_le_bytes);
        let mut bytes = [0; 22];
        bytes[..8].copy_from_slice(&words[0]);
        bytes[8..16].copy_from_slice(&words[1]);
        bytes[LEN - 8..LEN].copy_from_slice(&words[2]);
        assert_eq!(bytes[..LEN], e.rewrite()[..LEN]);
        e.set_state(EntryState { kind: Kind::REWRITE, len: 12, mtu: 1500, value: 1 });
        assert_eq!(e.link::<LEN>().longest, 0, "another length");
    }

    #[test]
    fn headers_of_the_usual_lengths_come_as_words() {
        let line = Line::default();
        let e = Entry(&line);
        e.set_rewrite(&(1..=32).collect::<Vec<u8>>());
        header::<14>(e);
        header::<18>(e);
        header::<22>(e);
    }

    #[test]
    fn long_rewrites_continue_in_a_second_line() {
        let table = DpoTable::new().unwrap();
        let bytes: Vec<u8> = (1..=MAX_REWRITE as u8).collect();
        let e = table.get(Dpo(5));
        e.set_rewrite(&bytes[..REWRITE_BYTES]);
        table.set_second(7, &bytes[REWRITE_BYTES..]);
        e.set_next(NodeId(1), Dpo(0), 7);
        for len in [0, 14, 32, 33, 50, 64, MAX_REWRITE] {
            e.set_state(EntryState { len: len as u8, ..EntryState::of(Kind::MIDCHAIN) });
            assert_eq!(table.rewrite(Dpo(5)).1, bytes[..len]);
        }
        e.set_state(EntryState { len: 20, ..EntryState::of(Kind::DROP) });
        assert!(table.rewrite(Dpo(5)).1.is_empty(), "it is not sent");
    }
}
