//! Prefixes for tests and measurements.

use std::collections::HashSet;

use crate::hash::mix64;
use crate::prefix::Ipv4Prefix;

/// Share of each prefix length in the Internet's table, in thousandths, roughly; and some host
/// routes, as routers have in addition.
const MIX: [(u8, u64); 14] = [
    (24, 622),
    (23, 100),
    (22, 110),
    (21, 50),
    (20, 45),
    (19, 26),
    (18, 14),
    (17, 8),
    (16, 14),
    (15, 2),
    (14, 2),
    (13, 1),
    (12, 1),
    (32, 5),
];

/// Returns `count` different prefixes with lengths as in the Internet's table, the same ones each
/// time. None of them is in 10.0.0.0/8, 48.0.0.0/7 or 127.0.0.0/8: these are left to the benchmark.
pub fn internet(count: usize) -> Vec<Ipv4Prefix> {
    let mut seen = HashSet::with_capacity(count);
    (0u64..).filter_map(prefix).filter(|p| seen.insert(*p)).take(count).collect()
}

fn prefix(n: u64) -> Option<Ipv4Prefix> {
    let mut pick = mix64(n) % 1000;
    let len = MIX.iter().find(|(_, share)| {
        let here = pick < *share;
        pick = pick.saturating_sub(*share);
        here
    });
    let len = len.map_or(24, |(len, _)| *len);
    // Unicast space only.
    let addr = (mix64(!n) as u32 % (223 << 24)) + (1 << 24);
    let first = addr >> 24;
    (first != 10 && first != 127 && first >> 1 != 24).then(|| Ipv4Prefix::new(addr, len).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_different_and_outside_the_reserved_ones() {
        let all = internet(10_000);
        let slash_24 = all.iter().filter(|p| p.len() == 24).count();
        assert!((5800..6600).contains(&slash_24), "{slash_24}");
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 10_000);
        for taken in [0x3001_0203, 0x0a00_0001, 0x7f00_0001, 0xe000_0001] {
            assert!(all.iter().all(|p| !p.contains(taken)), "{taken:x}");
        }
    }
}
