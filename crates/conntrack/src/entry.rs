//! The value of a connection in the table: words whose parts have names.
//!
//! | word | what is in it |
//! | --- | --- |
//! | 0, 1 | by direction: what was sent, and up to where more is accepted |
//! | 2 | by direction, 32 bits each: window, scale, state and four flags |
//! | 3, 4 | by direction: bytes |
//! | 5, 6 | by direction: packets |
//! | 7 | the mark, and when it was committed |
//!
//! The first three are in the cache line of the keys.

use thalweg_tables::flow::Millis;

use thalweg_wire::tcp::flag::{ACK, FIN, RST, SYN};

use crate::tcp::{MAX_ACK_OFF, Pair, Scale, Segment, Side, TcpState};

/// Words of a value.
pub(crate) const WORDS: usize = 8;

/// A connection in the table.
pub(crate) type Entry = [u64; WORDS];

const META: usize = 2;
const BYTES: usize = 3;
const PACKETS: usize = 5;
const MARK: usize = 7;

/// Flags, in the upper half of the states' bytes.
pub(crate) mod flag {
    const FIRST: u32 = 24 + 4;
    const SECOND: u32 = 32 + FIRST;
    /// The one that opened it is the higher endpoint of the first key.
    pub(crate) const SWAPPED: u64 = 1 << FIRST;
    /// It has a second key, that of translated replies.
    pub(crate) const TRANSLATED: u64 = 2 << FIRST;
    /// The source that it was opened with is translated.
    pub(crate) const SNAT: u64 = 4 << FIRST;
    /// The destination that it was opened with is translated.
    pub(crate) const DNAT: u64 = 8 << FIRST;
    /// Who replies is the higher endpoint of the second key.
    pub(crate) const REPLY_SWAPPED: u64 = 1 << SECOND;
    /// Both sides know it.
    pub(crate) const ESTABLISHED: u64 = 2 << SECOND;
}

/// What a connection of a protocol without states has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Seen {
    /// One packet.
    First,
    /// Several, all one way.
    Single,
    /// Packets both ways.
    Both,
}

/// The part of a direction in the word of windows and states.
#[inline]
pub(crate) fn meta(entry: &Entry, reply: bool) -> u32 {
    (entry[META] >> (32 * u32::from(reply))) as u32
}

#[inline]
pub(crate) fn has(entry: &Entry, flag: u64) -> bool {
    entry[META] & flag != 0
}

#[inline]
pub(crate) fn set(entry: &mut Entry, flag: u64) {
    entry[META] |= flag;
}

const STATE_SHIFT: u32 = 24;
const STATE: u32 = 0xf << STATE_SHIFT;
const SIDE: u32 = STATE | 0x00ff_ffff;
/// Both sides' states.
const STATES: u64 = (STATE as u64) << 32 | STATE as u64;
const BOTH_ESTABLISHED: u64 = {
    let one = (TcpState::Established as u64) << STATE_SHIFT;
    one << 32 | one
};

fn side(numbers: u64, meta: u32) -> Side {
    Side {
        sent: numbers as u32,
        limit: (numbers >> 32) as u32,
        window: meta as u16,
        scale: Scale::from_bits((meta >> 16) as u8),
        state: TcpState::from_number((meta & STATE) >> STATE_SHIFT),
    }
}

fn words(side: &Side) -> (u64, u32) {
    let meta = u32::from(side.window)
        | u32::from(side.scale.bits()) << 16
        | (side.state as u32) << STATE_SHIFT;
    (u64::from(side.limit) << 32 | u64::from(side.sent), meta)
}

/// The sides of a TCP connection.
pub(crate) fn pair(entry: &Entry) -> Pair {
    Pair { sides: [side(entry[0], meta(entry, false)), side(entry[1], meta(entry, true))] }
}

pub(crate) fn put_pair(entry: &mut Entry, pair: &Pair) {
    let [(opener, low), (other, high)] = [words(&pair.sides[0]), words(&pair.sides[1])];
    (entry[0], entry[1]) = (opener, other);
    let kept = entry[META] & !(u64::from(SIDE) << 32 | u64::from(SIDE));
    entry[META] = kept | u64::from(high) << 32 | u64::from(low);
}

pub(crate) fn seen(entry: &Entry) -> Seen {
    match (meta(entry, false) & STATE) >> STATE_SHIFT {
        0 => Seen::First,
        1 => Seen::Single,
        _ => Seen::Both,
    }
}

pub(crate) fn put_seen(entry: &mut Entry, seen: Seen) {
    entry[META] = entry[META] & !u64::from(STATE) | u64::from(seen as u8) << STATE_SHIFT;
}

/// Whether a segment is one of data, or an acknowledgement, between two established sides.
#[inline]
pub(crate) fn may_be_ordinary(entry: &Entry, s: &Segment) -> bool {
    entry[META] & STATES == BOTH_ESTABLISHED && s.flags & (ACK | FIN | RST | SYN) == ACK
}

/// Moves the numbers on for a segment that [may be ordinary](may_be_ordinary), if it is within the window. False, and
/// nothing changed, if it is not. What it does, and to which, is what [`Pair::update`] does.
///
/// Not inlined: it has a use for all registers.
#[inline(never)]
pub(crate) fn ordinary(entry: &mut Entry, reply: bool, s: &Segment) -> bool {
    let from = usize::from(reply);
    let (numbers, peer) = (entry[from], entry[1 - from]);
    let (sent, limit) = (numbers as u32, (numbers >> 32) as u32);
    let (peer_sent, peer_limit) = (peer as u32, (peer >> 32) as u32);
    let place = 32 * u32::from(reply);
    let metas = entry[META].rotate_right(place);
    let (m, peer_m) = (metas as u32, (metas >> 32) as u32);
    let both = m & peer_m & 0x00f0_0000 != 0;
    let mask = if both { 0xf } else { 0 };
    let (shift, peer_shift) = (m >> 16 & mask, peer_m >> 16 & mask);
    let empty = s.payload == 0;
    let seq = if empty { sent } else { s.seq };
    let end = if empty { sent } else { s.seq.wrapping_add(s.payload) };
    let behind = peer_sent.wrapping_sub(s.ack) as i32;
    let allowed = (peer_m & 0xffff) << peer_shift;
    // All at once: what is within the window is the rule, and a branch each would be no help.
    let fits = (limit.wrapping_sub(end) < 1 << 31)
        & (seq.wrapping_sub(sent.wrapping_sub(allowed)) < 1 << 31)
        & (behind >= -(MAX_ACK_OFF as i32))
        & (i64::from(behind) <= i64::from(MAX_ACK_OFF) << shift);
    if !fits {
        return false;
    }
    let sent = if end.wrapping_sub(sent) < 1 << 31 { end } else { sent };
    let offered = u32::from(s.window) << shift;
    let further = s.ack.wrapping_add(offered).wrapping_sub(peer_limit) < 1 << 31;
    let peer_limit = if further { s.ack.wrapping_add(offered.max(1)) } else { peer_limit };
    entry[from] = u64::from(limit) << 32 | u64::from(sent);
    entry[1 - from] = u64::from(peer_limit) << 32 | u64::from(peer_sent);
    if u32::from(s.window) > m & 0xffff {
        entry[META] = entry[META] & !(0xffff << place) | u64::from(s.window) << place;
    }
    true
}

#[inline]
pub(crate) fn count(entry: &mut Entry, reply: bool, bytes: u32) {
    let way = usize::from(reply);
    entry[BYTES + way] += u64::from(bytes);
    entry[PACKETS + way] += 1;
}

pub(crate) fn bytes(entry: &Entry) -> [u64; 2] {
    [entry[BYTES], entry[BYTES + 1]]
}

pub(crate) fn packets(entry: &Entry) -> [u64; 2] {
    [entry[PACKETS], entry[PACKETS + 1]]
}

#[inline]
pub(crate) fn mark(entry: &Entry) -> u32 {
    entry[MARK] as u32
}

pub(crate) fn set_mark(entry: &mut Entry, mark: u32) {
    entry[MARK] = entry[MARK] >> 32 << 32 | u64::from(mark);
}

pub(crate) fn since(entry: &Entry) -> Millis {
    (entry[MARK] >> 32) as Millis
}

pub(crate) fn set_since(entry: &mut Entry, since: Millis) {
    entry[MARK] = u64::from(since) << 32 | u64::from(mark(entry));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Outcome;
    use proptest::prelude::*;

    prop_compose! {
        fn sides()(sent: u32, limit: u32, window: u16, state in 0u32..11, scale in 0usize..4,
            shift in 0u8..15) -> Side {
            let scales = [Scale::NONE, Scale::GUESSED, Scale::offered(shift), Scale::offered(0)];
            Side { sent, limit, window, scale: scales[scale], state: TcpState::from_number(state) }
        }
    }

    proptest! {
        #[test]
        fn words_hold_it_all(sides in [sides(), sides()], flags: u64, mark: u32, at: u32) {
            let mut entry = [0; WORDS];
            let all = [flag::SWAPPED, flag::TRANSLATED, flag::SNAT, flag::DNAT,
                flag::REPLY_SWAPPED, flag::ESTABLISHED];
            let chosen = all.iter().enumerate().filter(|(i, _)| flags >> i & 1 == 1);
            let chosen = chosen.fold(0, |sum, (_, f)| sum | f);
            set(&mut entry, chosen);
            set_since(&mut entry, at);
            set_mark(&mut entry, mark);
            put_pair(&mut entry, &Pair { sides });
            prop_assert_eq!(pair(&entry), Pair { sides });
            prop_assert_eq!(all.iter().filter(|f| has(&entry, **f)).sum::<u64>(), chosen);
            prop_assert_eq!((since(&entry), super::mark(&entry)), (at, mark));
        }

        /// Near the windows' edges, the short way agrees with the whole rule.
        #[test]
        fn the_short_way_is_the_whole_one(
            mut sides in [sides(), sides()], reply: bool, near in prop::array::uniform3(-70000i32..70000),
            window: u16, payload in prop_oneof![Just(0u32), 0u32..65000], flags in 0u8..64,
            settled in prop::bool::weighted(0.9),
        ) {
            if settled {
                sides.iter_mut().for_each(|s| s.state = TcpState::Established);
            }
            let (src, dst) = (usize::from(reply), usize::from(!reply));
            sides[src].limit = sides[src].sent.wrapping_add_signed(near[0]);
            let segment = Segment {
                seq: sides[src].sent.wrapping_add_signed(near[1]),
                ack: sides[dst].sent.wrapping_add_signed(near[2]),
                payload,
                window,
                flags,
                scale: Scale::NONE,
            };
            let mut entry = [0; WORDS];
            put_pair(&mut entry, &Pair { sides });
            let mut whole = Pair { sides };
            let outcome = whole.update(reply, &segment, true);
            if may_be_ordinary(&entry, &segment) && ordinary(&mut entry, reply, &segment) {
                prop_assert_eq!(outcome, Outcome::Valid);
                prop_assert_eq!(pair(&entry), whole);
            } else {
                prop_assert_eq!(pair(&entry), Pair { sides });
            }
        }
    }
}
