//! Neighbours that the router has asked for a moment ago: their answers have a limit of their own.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use thalweg_device::SwIfIndex;
use thalweg_graph::clock;
use thalweg_tables::hash::{mix128, random_seed};

/// Rows: more than are asked for at once. An address that nobody has asked for is taken for one of
/// them with 1 in 2^[`TAG_BITS`] at most.
const ROWS: usize = 8192;
/// Bits of the hash in a row; the others are the time.
const TAG_BITS: u32 = 24;
const TIME: u64 = u64::MAX >> TAG_BITS;
/// Ticks of the clock in a unit of a row's time, as a power of two: some tenths of a millisecond.
const SHIFT: u32 = 20;
/// Time to wait for an answer: requests are sent each second.
const PATIENCE: Duration = Duration::from_secs(2);

/// Times when neighbours were last asked for, as workers and the main thread note them. A later one
/// may take the row of an earlier one, whose answer then counts as unasked for.
pub(crate) struct Awaited {
    seed: u64,
    patience: i64,
    rows: Box<[AtomicU64]>,
}

impl Awaited {
    pub(crate) fn new() -> Awaited {
        Awaited {
            seed: random_seed(),
            patience: (clock::ticks_in(PATIENCE) >> SHIFT).cast_signed(),
            rows: (0..ROWS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn row(&self, sw_if: SwIfIndex, ip: IpAddr) -> Option<(&AtomicU64, u64)> {
        let (family, bits) = match ip {
            IpAddr::V4(ip) => (0, u128::from(ip.to_bits())),
            IpAddr::V6(ip) => (1 << 32, ip.to_bits()),
        };
        let seed = mix128(self.seed, (bits >> 64) as u64, family | u64::from(sw_if.get()));
        let hash = mix128(seed, bits as u64, 0);
        Some((self.rows.get(hash as usize % ROWS)?, hash & !TIME))
    }

    /// Notes that a neighbour is asked for.
    pub(crate) fn note(&self, sw_if: SwIfIndex, ip: IpAddr, now: u64) {
        if let Some((row, tag)) = self.row(sw_if, ip) {
            row.store(tag | now >> SHIFT & TIME, Ordering::Relaxed);
        }
    }

    /// Returns whether a neighbour was asked for a moment ago.
    pub(crate) fn knows(&self, sw_if: SwIfIndex, ip: IpAddr, now: u64) -> bool {
        self.row(sw_if, ip).is_some_and(|(row, tag)| {
            let noted = row.load(Ordering::Relaxed);
            // A worker's time is that of the start of its loop: it may be a little earlier.
            let passed = ((now >> SHIFT).wrapping_sub(noted) << TAG_BITS).cast_signed();
            noted != 0 && noted & !TIME == tag && passed >> TAG_BITS <= self.patience
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    #[test]
    fn what_was_asked_for_is_known_for_a_while() {
        let awaited = Awaited::new();
        let (here, there) = (SwIfIndex(1), SwIfIndex(2));
        let ip: IpAddr = Ipv6Addr::from_bits(0xfe80 << 112 | 9).into();
        let (second, now) = (clock::hz() as u64, 10 * clock::hz() as u64);
        assert!(!awaited.knows(here, ip, now));
        awaited.note(here, ip, now);
        assert!(awaited.knows(here, ip, now) && awaited.knows(here, ip, now + second));
        assert!(!awaited.knows(there, ip, now) && !awaited.knows(here, [0, 0, 0, 9].into(), now));
        assert!(!awaited.knows(here, ip, now + 3 * second));
        // Hardly one of the others that are made up is taken for it.
        let others = (0..100_000u32).filter(|n| awaited.knows(here, n.to_be_bytes().into(), now));
        assert_eq!(others.count(), 0);
    }
}
