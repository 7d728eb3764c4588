//! The value of a connection in the table: 32-bit words.
//!
//! | words | contents |
//! | --- | --- |
//! | 0 to 3 | by direction: next sequence number, and limit of what is accepted |
//! | 4, 5 | by direction: window, scale, state and four flags |
//! | 6 to 9 | by direction: bytes, the lower half first |
//! | 10 to 13 | by direction: packets, the lower half first |
//! | 14 | mark |
//! | 15 | time of the commit |
//!
//! The first six words share a cache line with the first key.

use thalweg_tables::flow::Millis;

use thalweg_wire::tcp::flag::{ACK, FIN, RST, SYN};

use crate::tcp::{self, MAX_ACK_OFF, Pair, Scale, Segment, Side, TcpState};
use crate::timeout::Timeout;

/// Number of words of a value.
pub(crate) const WORDS: usize = 16;

/// The value of a connection.
pub(crate) type Entry = [u32; WORDS];

const SENT: usize = 0;
const LIMIT: usize = 1;
const META: usize = 4;
const BYTES: usize = 6;
const PACKETS: usize = 10;
const MARK: usize = 14;
const SINCE: usize = 15;

/// Flags, in the upper half of the state bytes.
pub(crate) mod flag {
    /// A flag: the direction whose word holds it, and its bit.
    pub(crate) type Flag = (usize, u32);

    const FIRST: u32 = 24 + 4;
    /// The opener is the higher endpoint of the first key.
    pub(crate) const SWAPPED: Flag = (0, 1 << FIRST);
    /// The connection has a second key, that of translated replies.
    pub(crate) const TRANSLATED: Flag = (0, 2 << FIRST);
    /// The original source is translated.
    pub(crate) const SNAT: Flag = (0, 4 << FIRST);
    /// The original destination is translated.
    pub(crate) const DNAT: Flag = (0, 8 << FIRST);
    /// The replying side is the higher endpoint of the second key.
    pub(crate) const REPLY_SWAPPED: Flag = (1, 1 << FIRST);
    /// The connection is established.
    pub(crate) const ESTABLISHED: Flag = (1, 2 << FIRST);
}

/// Progress of a connection of a protocol without states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Seen {
    /// One packet.
    First,
    /// Several packets in one direction.
    Single,
    /// Packets in both directions.
    Both,
}

/// Window, scale and state of a direction.
#[inline]
fn meta(entry: &Entry, reply: bool) -> u32 {
    entry[META + usize::from(reply)]
}

#[inline]
pub(crate) fn has(entry: &Entry, (word, bit): flag::Flag) -> bool {
    entry[META + word] & bit != 0
}

#[inline]
pub(crate) fn set(entry: &mut Entry, (word, bit): flag::Flag) {
    entry[META + word] |= bit;
}

const STATE_SHIFT: u32 = 24;
const STATE: u32 = 0xf << STATE_SHIFT;
const SIDE: u32 = STATE | 0x00ff_ffff;

/// The bits of a state in its direction's word.
const fn bits(state: TcpState) -> u32 {
    (state as u32) << STATE_SHIFT
}

fn side(entry: &Entry, reply: bool) -> Side {
    let (numbers, meta) = (2 * usize::from(reply), meta(entry, reply));
    Side {
        sent: entry[numbers + SENT],
        limit: entry[numbers + LIMIT],
        window: meta as u16,
        scale: Scale::from_bits((meta >> 16) as u8),
        state: TcpState::from_number((meta & STATE) >> STATE_SHIFT),
    }
}

/// The sides of a TCP connection.
pub(crate) fn pair(entry: &Entry) -> Pair {
    Pair { sides: [side(entry, false), side(entry, true)] }
}

pub(crate) fn put_pair(entry: &mut Entry, pair: &Pair) {
    for (way, side) in pair.sides.iter().enumerate() {
        let scale = u32::from(side.scale.bits()) << 16;
        entry[2 * way + SENT] = side.sent;
        entry[2 * way + LIMIT] = side.limit;
        let kept = entry[META + way] & !SIDE;
        entry[META + way] = kept | u32::from(side.window) | scale | bits(side.state);
    }
}

pub(crate) fn seen(entry: &Entry) -> Seen {
    match (meta(entry, false) & STATE) >> STATE_SHIFT {
        0 => Seen::First,
        1 => Seen::Single,
        _ => Seen::Both,
    }
}

pub(crate) fn put_seen(entry: &mut Entry, seen: Seen) {
    entry[META] = entry[META] & !STATE | (seen as u32) << STATE_SHIFT;
}

/// Returns whether a segment is data or a pure acknowledgement between two established sides.
#[inline]
pub(crate) fn is_between_established(entry: &Entry, s: &Segment) -> bool {
    let established = bits(TcpState::Established);
    let other = |meta| (meta & STATE) ^ established;
    (other(entry[META]) | other(entry[META + 1]) == 0) && s.flags & (ACK | FIN | RST | SYN) == ACK
}

/// Advances the sequence numbers for a segment [between established sides](is_between_established),
/// if it is within the window. Returns false and changes nothing if it is not.
///
/// The function is not inlined: it needs all registers.
#[inline(never)]
pub(crate) fn slide_established(entry: &mut Entry, reply: bool, s: &Segment) -> bool {
    slide::<true>(entry, reply, s)
}

/// Updates a connection for a data segment, an acknowledgement or a FIN, if both sides have sent
/// before and the segment is within the window. Returns false and changes nothing for any other.
#[inline(never)]
pub(crate) fn slide_tcp(entry: &mut Entry, reply: bool, s: &Segment) -> bool {
    const { assert!(TcpState::SynSent as u32 == 2) };
    let heard = |meta: u32| meta & (STATE & STATE << 1) != 0;
    heard(entry[META])
        && heard(entry[META + 1])
        && s.flags & (ACK | RST | SYN) == ACK
        && slide::<false>(entry, reply, s)
}

/// Range of valid acknowledgements, from the furthest ahead to the furthest behind, by window
/// shift.
static ACK_RANGE: [u32; 16] = {
    let mut all = [MAX_ACK_OFF; 16];
    let mut shift = 0;
    while shift < 16 {
        // The largest shift is 14 (RFC 7323).
        all[shift] += MAX_ACK_OFF << if shift < 14 { shift } else { 14 };
        shift += 1;
    }
    all
};

/// The state of a side after it is acknowledged, four bits per state.
const ACKNOWLEDGED: u64 = {
    let (mut all, mut state) = (0, 0);
    while state < 16 {
        let next = TcpState::from_number(state).acknowledged();
        all |= (next as u64) << (4 * state);
        state += 1;
    }
    all
};

/// Does the same as [`Pair::update`] for a segment within the window, without its branches. Both
/// sides must have sent before. `SETTLED`: states do not change.
#[inline(always)]
fn slide<const SETTLED: bool>(entry: &mut Entry, reply: bool, s: &Segment) -> bool {
    let (from, to) = (usize::from(reply), usize::from(!reply));
    let (sent, limit) = (entry[2 * from + SENT], entry[2 * from + LIMIT]);
    let (peer_sent, peer_limit) = (entry[2 * to + SENT], entry[2 * to + LIMIT]);
    let (m, peer_m) = (entry[META + from], entry[META + to]);
    // Once both sides have sent, either both scale or neither does.
    let (shift, peer_shift) = (m >> 16 & 0xf, peer_m >> 16 & 0xf);
    let fin = !SETTLED && s.flags & FIN != 0;
    let numbered = s.payload + u32::from(fin);
    let empty = numbered == 0;
    let seq = if empty { sent } else { s.seq };
    let end = if empty { sent } else { s.seq.wrapping_add(numbered) };
    let allowed = (peer_m & 0xffff) << peer_shift;
    // Zero at the furthest ahead, growing towards the furthest behind.
    let behind = peer_sent.wrapping_sub(s.ack).wrapping_add(MAX_ACK_OFF);
    // Checked together: most segments are within the window, so separate branches gain nothing.
    let fits = (limit.wrapping_sub(end) < 1 << 31)
        & (seq.wrapping_sub(sent.wrapping_sub(allowed)) < 1 << 31)
        & (behind <= ACK_RANGE[shift as usize]);
    if !fits {
        return false;
    }
    if end.wrapping_sub(sent) < 1 << 31 {
        entry[2 * from + SENT] = end;
    }
    let offered = u32::from(s.window) << shift;
    if s.ack.wrapping_add(offered).wrapping_sub(peer_limit) < 1 << 31 {
        entry[2 * to + LIMIT] = s.ack.wrapping_add(offered.max(1));
    }
    if !SETTLED {
        let state = m & STATE;
        let state = if fin { state.max(bits(TcpState::Closing)) } else { state };
        let peer_state = (ACKNOWLEDGED >> (peer_m >> (STATE_SHIFT - 2) & 0x3c)) as u32 & 0xf;
        let window = s.window.max(m as u16);
        entry[META + from] = m & !(STATE | 0xffff) | state | u32::from(window);
        entry[META + to] = peer_m & !STATE | peer_state << STATE_SHIFT;
    } else if u32::from(s.window) > m & 0xffff {
        entry[META + from] = m & !0xffff | u32::from(s.window);
    }
    true
}

/// The timeout that applies to a TCP connection.
#[inline]
pub(crate) fn timeout(entry: &Entry) -> Timeout {
    static TIMEOUTS: [Timeout; 256] = {
        let mut all = [Timeout::TcpClose; 256];
        let mut states = 0;
        while states < 256 {
            let (a, b) = (states as u32 & 15, states as u32 >> 4);
            all[states] = tcp::timeout(TcpState::from_number(a), TcpState::from_number(b));
            states += 1;
        }
        all
    };
    let states = entry[META] >> STATE_SHIFT & 0xf | entry[META + 1] >> (STATE_SHIFT - 4) & 0xf0;
    TIMEOUTS[states as usize]
}

/// Returns whether both sides of a TCP connection have been acknowledged, and it is not marked
/// established yet.
#[inline]
pub(crate) fn is_newly_established(entry: &Entry) -> bool {
    let is = |meta: u32| meta & STATE >= bits(TcpState::Established);
    !has(entry, flag::ESTABLISHED) && is(entry[META]) && is(entry[META + 1])
}

/// A 64-bit number in two words.
#[inline]
fn long(entry: &Entry, at: usize) -> u64 {
    u64::from(entry[at]) | u64::from(entry[at + 1]) << 32
}

#[inline]
fn add(entry: &mut Entry, at: usize, more: u64) {
    let sum = long(entry, at) + more;
    (entry[at], entry[at + 1]) = (sum as u32, (sum >> 32) as u32);
}

#[inline]
pub(crate) fn count(entry: &mut Entry, reply: bool, bytes: u32) {
    let way = 2 * usize::from(reply);
    add(entry, BYTES + way, u64::from(bytes));
    add(entry, PACKETS + way, 1);
}

pub(crate) fn bytes(entry: &Entry) -> [u64; 2] {
    [long(entry, BYTES), long(entry, BYTES + 2)]
}

pub(crate) fn packets(entry: &Entry) -> [u64; 2] {
    [long(entry, PACKETS), long(entry, PACKETS + 2)]
}

#[inline]
pub(crate) fn mark(entry: &Entry) -> u32 {
    entry[MARK]
}

pub(crate) fn set_mark(entry: &mut Entry, mark: u32) {
    entry[MARK] = mark;
}

pub(crate) fn since(entry: &Entry) -> Millis {
    entry[SINCE]
}

pub(crate) fn set_since(entry: &mut Entry, since: Millis) {
    entry[SINCE] = since;
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
            let chosen: Vec<_> = chosen.map(|(_, f)| *f).collect();
            chosen.iter().for_each(|f| set(&mut entry, *f));
            set_since(&mut entry, at);
            set_mark(&mut entry, mark);
            put_pair(&mut entry, &Pair { sides });
            prop_assert_eq!(pair(&entry), Pair { sides });
            let found: Vec<_> = all.into_iter().filter(|f| has(&entry, *f)).collect();
            prop_assert_eq!(found, chosen);
            prop_assert_eq!((since(&entry), super::mark(&entry)), (at, mark));
        }

        /// Near the edges of the windows, the fast paths agree with the general rule.
        #[test]
        fn fast_paths_agree_with_the_general_rule(
            mut sides in [sides(), sides()], reply: bool, near in prop::array::uniform3(-70000i32..70000),
            window: u16, payload in prop_oneof![Just(0u32), 0u32..65000], flags in 0u8..64,
            settled: bool, acknowledges in prop::bool::weighted(0.9),
        ) {
            if settled {
                sides.iter_mut().for_each(|s| s.state = TcpState::Established);
            }
            let flags = if acknowledges { flags & !(SYN | RST) | ACK } else { flags };
            let (src, dst) = (usize::from(reply), usize::from(!reply));
            if !sides[src].scale.is_with(sides[dst].scale) {
                // Scales count only if both sides sent one.
                sides.iter_mut().for_each(|s| s.scale = Scale::NONE);
            }
            sides[src].limit = sides[src].sent.wrapping_add_signed(near[0]);
            let segment = Segment {
                seq: sides[src].sent.wrapping_add_signed(near[1]),
                ack: sides[dst].sent.wrapping_add_signed(near[2]),
                payload,
                window,
                flags,
                scale: Scale::NONE,
            };
            let mut before = [0; WORDS];
            put_pair(&mut before, &Pair { sides });
            let mut whole = Pair { sides };
            let outcome = whole.update(reply, &segment, true);
            let ordinary = |entry: &mut Entry, reply, s: &Segment| {
                is_between_established(entry, s) && slide_established(entry, reply, s)
            };
            for short in [ordinary, slide_tcp] {
                let mut entry = before;
                if short(&mut entry, reply, &segment) {
                    prop_assert_eq!(outcome, Outcome::Valid);
                    prop_assert_eq!(pair(&entry), whole);
                    prop_assert_eq!(timeout(&entry), whole.timeout());
                    prop_assert_eq!(is_newly_established(&entry), whole.is_established());
                } else {
                    prop_assert_eq!(entry, before);
                }
            }
            // The fast path leaves the rest to the general rule: invalid segments, sides not heard
            // before, and other flags.
            let heard = sides.iter().all(|side| side.state >= TcpState::SynSent);
            let usual_flags = segment.flags & (ACK | RST | SYN) == ACK;
            let mut entry = before;
            let expected = outcome == Outcome::Valid && heard && usual_flags;
            prop_assert_eq!(slide_tcp(&mut entry, reply, &segment), expected);
        }
    }
}
