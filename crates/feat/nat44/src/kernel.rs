//! The fast path: frames of packets of established sessions, with all keys, look-ups and rewrites
//! done together. Other packets are left to the per-packet function.

use crate::config::{Addresses, Config};
use crate::direction::Direction;
use crate::session::{self, FAST_IN, tcp};
use crate::translate::NEED;
use crate::worker::Nat;
use thalweg_buffer::{Frame, Rows};
use thalweg_fib::TableId;
use thalweg_tables::flow::{Found, Millis};
use thalweg_wire::ip::protocol;
use thalweg_wire::nat::packet::Change;
use thalweg_wire::nat::tuple::{self, Key};

/// TCP flags that open or close a connection.
const ENDS: u8 = tcp::flag::SYN | tcp::flag::FIN | tcp::flag::RST;

/// Bits of the first eight header bytes that must have their usual value: version, header length,
/// and the fragment fields except for DF.
const SHAPE: u64 = 0xff3f_0000_0000_00ff;
/// The usual value of those bits.
const PLAIN: u64 = 0x45;
/// Protocol and source in the next eight bytes.
const SOURCE: u64 = 0xffff_ffff_0000_ff00;

/// The packets to one of these addresses.
#[inline(always)]
pub(crate) fn hairpins(frame: &Frame, addresses: &Addresses) -> Rows {
    let to = |head: &[u8; NEED]| u32::from_be_bytes([head[16], head[17], head[18], head[19]]);
    // Packets too short for the fast path are included as well.
    let is_pooled = |head: &[u8; NEED]| head[0] == 0 || addresses.pooled.contains(&to(head));
    let rows = Rows::of(frame.heads::<NEED>().map(is_pooled));
    if addresses.mapped.is_empty() && addresses.kept.is_empty() {
        return rows;
    }
    let is = |head: &[u8; NEED]| head[0] == 0 || addresses.may_hairpin(&to(head));
    Rows::of(frame.heads::<NEED>().map(is))
}

#[inline(always)]
fn load(h: &[u8], at: usize) -> u64 {
    h[at..].first_chunk().map_or(0, |b| u64::from_le_bytes(*b))
}

#[inline(always)]
fn store(h: &mut [u8], at: usize, word: u64) {
    h[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

/// Packets that a kernel has translated.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Done {
    /// The rest, for the per-packet function.
    pub(crate) rest: Rows,
    /// Number of those translated that are TCP; all others are UDP.
    pub(crate) tcp: u64,
    /// True if they were found by the second key; not known of several flows.
    pub(crate) second: bool,
}

/// The common key of all packets of a frame, if there is one and no IPv4 header needs the slow
/// path.
#[inline(always)]
pub(crate) fn only_key(frame: &Frame, table: TableId, direction: Direction) -> Option<Key> {
    let words = |h: &[u8; NEED]| (load(h, 0) & SHAPE ^ PLAIN, load(h, 8), load(h, 16));
    let mut heads = frame.long_heads::<NEED>()?.map(words);
    let first = heads.next()?;
    let differ = |w: (u64, u64, u64)| w.0 | (w.1 ^ first.1) & SOURCE | w.2 ^ first.2;
    let (mut any, mut ttl) = (first.0, first.1 as u8);
    if let Some(second) = heads.next() {
        any |= differ(second);
        ttl = ttl.min(second.1 as u8);
    }
    if any != 0 {
        return None;
    }
    for w in heads {
        any |= differ(w);
        ttl = ttl.min(w.1 as u8);
    }
    let dies = u8::from(direction.may_be_from_inside());
    let ip = (first.1 >> 8) as u8;
    let plain = any == 0 && ttl > dies && matches!(ip, protocol::TCP | protocol::UDP);
    let addresses = first.1 >> 32 | first.2 << 32;
    plain.then(|| tuple::key(addresses, (first.2 >> 32) as u32, ip, table.get()))
}

/// Reads the keys of a frame's packets. Packets for the slow path get a key that no session has.
#[inline(always)]
pub(crate) fn gather(frame: &Frame, keys: &mut [Key], table: TableId, direction: Direction) {
    let dies = u64::from(direction.may_be_from_inside());
    for (h, key) in frame.heads::<NEED>().zip(keys.iter_mut()) {
        let (w0, w1, w2) = (load(h, 0), load(h, 8), load(h, 16));
        let ip = (w1 >> 8) as u8;
        let plain = (w0 & SHAPE == PLAIN)
            & ((ip == protocol::TCP) | (ip == protocol::UDP))
            & (w1 & 0xff > dies);
        let found = tuple::key(w1 >> 32 | w2 << 32, (w2 >> 32) as u32, ip, table.get());
        *key = if plain { found } else { [0; 2] };
    }
}

/// The change that a session makes to packets found by one of its keys.
#[inline]
pub(crate) fn change(nat: &mut Nat, found: Found) -> Change {
    let (other, _, words) = nat.table.counterpart(found);
    change_by(other, words[0], found.by_second())
}

/// The same by its key for the opposite direction and its first word; `second` tells which key was
/// found.
#[inline(always)]
fn change_by(other: &Key, word: u64, second: bool) -> Change {
    let flip = if second { 0xffff } else { 0 };
    Change {
        addresses: tuple::reversed_addresses(other),
        ports: tuple::reversed_ports(other),
        l3: word as u16 ^ flip,
        l4: (word >> 16) as u16 ^ flip,
    }
}

/// The same of a session on the fast path.
#[inline(always)]
fn fast(other: &Key, word: u64, second: bool) -> Option<Change> {
    (word & (FAST_IN << u32::from(second)) != 0).then(|| change_by(other, word, second))
}

/// Rewrites a TCP or UDP packet. Returns false and changes nothing if it opens or closes a
/// connection.
#[inline(always)]
fn rewrite(h: &mut [u8], f: &Change) -> bool {
    let udp = h[9] == protocol::UDP;
    if !udp && h[33] & ENDS != 0 {
        return false;
    }
    let follow = |h: &mut [u8], at: usize, delta: u16| {
        let sum = tuple::follow(u16::from_le_bytes([h[at], h[at + 1]]), delta);
        h[at..at + 2].copy_from_slice(&sum.to_le_bytes());
    };
    h[12..20].copy_from_slice(&f.addresses.to_le_bytes());
    h[20..24].copy_from_slice(&f.ports.to_le_bytes());
    follow(h, 10, f.l3);
    if udp {
        let old = u16::from_le_bytes([h[26], h[27]]);
        if old != 0 {
            let sum = tuple::follow(old, f.l4);
            let sum = if sum == 0 { 0xffff } else { sum };
            h[26..28].copy_from_slice(&sum.to_le_bytes());
        }
    } else {
        follow(h, 36, f.l4);
    }
    true
}

#[inline(always)]
fn length(h: &[u8]) -> u64 {
    u64::from(u16::from_be_bytes([h[2], h[3]]))
}

/// Takes away what was found by a second key.
#[inline(always)]
pub(crate) fn without_second(found: &mut Option<Found>) {
    if found.is_some_and(|found| found.by_second()) {
        *found = None;
    }
}

/// Handles a frame whose packets all have the same key.
#[inline(always)]
pub(crate) fn one_flow(
    nat: &mut Nat,
    frame: &mut Frame,
    key: &Key,
    config: &Config,
    (direction, now): (Direction, Millis),
) -> Done {
    let found = nat.table.find(key, nat.table.hash(key));
    let all =
        |frame: &Frame| Done { rest: Rows::of((0..frame.len()).map(|_| true)), ..Done::default() };
    let Some(found) = found else { return all(frame) };
    if found.by_second() && !direction.takes_second() {
        return all(frame);
    }
    let (other, end, words) = nat.table.counterpart(found);
    if now.wrapping_sub(*end) < 1 << 31 {
        return all(frame);
    }
    let word = words[0];
    let Some(f) = fast(other, word, found.by_second()) else { return all(frame) };
    let udp = (key[1] >> 32) as u8 == protocol::UDP;
    let done = if udp { rewrite_all::<true>(frame, &f) } else { rewrite_all::<false>(frame, &f) };
    let Some((packets, bytes, rest)) = done else { return all(frame) };
    words[1] += packets;
    words[2] += bytes;
    if packets > 0 {
        *end = now.wrapping_add(config.timeouts[session::class_number(word)]);
    }
    Done { rest, tcp: if udp { 0 } else { packets }, second: found.by_second() }
}

/// Rewrites TCP or UDP packets of one session. Returns the numbers of packets and bytes, and the
/// packets left because they open or close the connection. `None`, with nothing changed, if one is
/// too short.
#[inline(always)]
fn rewrite_all<const UDP: bool>(frame: &mut Frame, f: &Change) -> Option<(u64, u64, Rows)> {
    let (source, others) = (f.addresses << 32, f.addresses >> 32 | u64::from(f.ports) << 32);
    let (mut bytes, mut rest, mut left) = (0, Rows::NONE, 0);
    let n = frame.len() as u64;
    for (i, h) in frame.long_windows_mut::<NEED>(0, u16::MAX)?.enumerate() {
        if !UDP && h[33] & ENDS != 0 {
            rest.insert(i as u8);
            left += 1;
            continue;
        }
        bytes += length(h);
        let word = load(h, 8);
        let sum = tuple::follow((word >> 16) as u16, f.l3);
        store(h, 8, word & 0xffff | u64::from(sum) << 16 | source);
        store(h, 16, others);
        let at = if UDP { 26 } else { 36 };
        let old = u16::from_le_bytes([h[at], h[at + 1]]);
        let mut sum = tuple::follow(old, f.l4);
        if UDP {
            // Zero means no checksum (RFC 768).
            sum = if sum == 0 { 0xffff } else { sum };
            sum = if old == 0 { 0 } else { sum };
        }
        h[at..at + 2].copy_from_slice(&sum.to_le_bytes());
    }
    Some((n - left, bytes, rest))
}

/// Handles packets of several sessions that have been looked up.
#[inline(always)]
pub(crate) fn many_flows(nat: &mut Nat, frame: &mut Frame, config: &Config, now: Millis) -> Done {
    let mut rest = Rows::NONE;
    let Nat { table, columns, .. } = nat;
    let found = &columns.found[..frame.len()];
    for (i, (window, found)) in frame.windows_mut::<NEED>(0).zip(found).enumerate() {
        let (Some(h), Some(found)) = (window, found) else {
            rest.insert(i as u8);
            continue;
        };
        let (other, end, words) = table.counterpart(*found);
        let over = now.wrapping_sub(*end) < 1 << 31;
        let f = fast(other, words[0], found.by_second()).filter(|_| !over);
        match f {
            Some(f) if rewrite(h, &f) => {
                words[1] += 1;
                words[2] += length(h);
                *end = now.wrapping_add(config.timeouts[session::class_number(words[0])]);
            }
            _ => rest.insert(i as u8),
        }
    }
    // The case is apart, as it costs next to nothing there.
    let is_tcp = |key: &Key| (key[1] >> 32) as u8 == protocol::TCP;
    let keys = &columns.keys[..frame.len()];
    let all = keys.iter().map(|key| u64::from(is_tcp(key))).sum::<u64>();
    let left = rest.iter().filter(|i| keys.get(usize::from(*i)).is_some_and(is_tcp)).count();
    Done { rest, tcp: all - left as u64, second: false }
}
