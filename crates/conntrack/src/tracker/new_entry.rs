//! The initial value of a connection.

use super::Commit;
use crate::batch::{Headers, Kind};
use crate::entry::{self, Entry, flag};
use crate::tcp::Pair;
use crate::timeout::Timeout;
use crate::tuple::{Key, Tuple, zone_of};

/// The value of a connection opened by this packet, and its timeout.
#[inline]
pub(super) fn new_entry(headers: &Headers) -> (Entry, Timeout) {
    let mut value = [0; entry::WORDS];
    let timeout = match headers.kind {
        Kind::Tcp => {
            entry::put_pair(&mut value, &Pair::open(&headers.segment));
            Timeout::TcpSynSent
        }
        Kind::Query => Timeout::IcmpFirst,
        _ => Timeout::UdpFirst,
    };
    if headers.swapped {
        entry::set(&mut value, flag::SWAPPED);
    }
    entry::count(&mut value, false, headers.bytes);
    (value, timeout)
}

/// Adds the reply tuple of a translated connection; one that is the plain reverse adds nothing.
#[inline]
pub(super) fn with_translation<const W: usize>(
    mut value: Entry,
    key: &Key<W>,
    headers: &Headers,
    how: &Commit,
) -> (Entry, Option<Key<W>>) {
    let Some(reply) = how.reply else { return (value, None) };
    let Some((second, swapped)) = reply.key::<W>(zone_of(key)) else { return (value, None) };
    let mirror = Tuple::of_key(key, headers.swapped).reversed();
    if mirror == reply || second == *key {
        return (value, None);
    }
    entry::set(&mut value, flag::TRANSLATED);
    if swapped {
        entry::set(&mut value, flag::REPLY_SWAPPED);
    }
    if (mirror.dst, mirror.dport) != (reply.dst, reply.dport) {
        entry::set(&mut value, flag::SNAT);
    }
    if (mirror.src, mirror.sport) != (reply.src, reply.sport) {
        entry::set(&mut value, flag::DNAT);
    }
    (value, Some(second))
}
