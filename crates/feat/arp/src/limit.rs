//! Rate limits that protect the main thread from a flood of ARP packets.

use crate::packet::NeighborReport;
use thalweg_graph::clock;
use thalweg_tables::hash::{mix128, random_seed};
use thalweg_tables::limit::RateLimit;

/// Allows `rate` events per second and bursts of `burst`.
pub(crate) fn bucket(rate: u32, burst: u32) -> RateLimit {
    RateLimit::steady(rate, burst, clock::hz() as u64)
}

/// Rows of [`Recent`].
const ROWS: usize = 1024;

/// Reports of the last second: an unchanged sender is reported once per second.
pub(crate) struct Recent {
    seed: u64,
    second: u64,
    /// Hash of a report and its tick count.
    rows: Box<[(u64, u64); ROWS]>,
}

impl Recent {
    pub(crate) fn new() -> Recent {
        Recent { seed: random_seed(), second: clock::hz() as u64, rows: Box::new([(0, 0); ROWS]) }
    }

    fn hash(&self, sw_if: u32, report: &NeighborReport) -> u64 {
        let [k, a, b, c, d, e, f, g, h, i, j] = report.encode();
        let low = u64::from_be_bytes([k, 0, a, b, c, d, e, f]);
        let ip = u32::from_be_bytes([g, h, i, j]);
        mix128(self.seed, low, u64::from(sw_if) << 32 | u64::from(ip))
    }

    /// Returns whether the same was reported within the last second.
    pub(crate) fn knows(&self, sw_if: u32, report: &NeighborReport, now: u64) -> bool {
        let hash = self.hash(sw_if, report);
        let (seen, at) = self.rows[hash as usize % ROWS];
        seen == hash && now.wrapping_sub(at) < self.second
    }

    pub(crate) fn note(&mut self, sw_if: u32, report: &NeighborReport, now: u64) {
        let hash = self.hash(sw_if, report);
        self.rows[hash as usize % ROWS] = (hash, now);
    }

    pub(crate) fn reset(&mut self) {
        self.rows.fill((0, 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Origin, ReportKind};

    #[test]
    fn the_bucket_holds_its_rate() {
        let hz = clock::hz() as u64;
        let mut b = bucket(100, 10);
        let now = 5 * hz;
        assert_eq!((0..50).filter(|_| b.allow(now)).count(), 10);
        let later = (1..=1000).filter(|i| b.allow(now + i * hz / 1000)).count();
        assert!((95..=101).contains(&later), "{later}");
        assert_eq!((0..50).filter(|_| b.allow(now + 60 * hz)).count(), 10);
    }

    #[test]
    fn the_same_sender_is_known_for_a_second() {
        let hz = clock::hz() as u64;
        let mut r = Recent::new();
        let kind = ReportKind::Sender(Origin::Request);
        let a = NeighborReport { kind, mac: [2; 6], ip: [10, 0, 0, 1].into() };
        let moved = NeighborReport { mac: [4; 6], ..a };
        let now = 10 * hz;
        assert!(!r.knows(1, &a, now));
        r.note(1, &a, now);
        assert!(r.knows(1, &a, now + hz / 2) && !r.knows(1, &a, now + 2 * hz));
        assert!(!r.knows(2, &a, now) && !r.knows(1, &moved, now));
        r.reset();
        assert!(!r.knows(1, &a, now));
    }
}
