//! Prefixes for tests and measurements.

use std::collections::HashSet;

use crate::hash::mix64;
use crate::prefix::{Ipv6Prefix, Prefix};

/// Share of each prefix length in the Internet's table, in thousandths, roughly.
const MIX: [(u8, u64); 11] = [
    (48, 465),
    (32, 115),
    (44, 105),
    (40, 95),
    (36, 50),
    (29, 30),
    (46, 30),
    (47, 30),
    (42, 25),
    (45, 25),
    (34, 30),
];

/// Returns `count` different prefixes with lengths as in the Internet's table, the same ones each
/// time: in some thousands of registries' /32, of which large networks have many. None of them is
/// in 2001:db8::/32, which is left to the benchmark.
pub fn internet6(count: usize) -> Vec<Ipv6Prefix> {
    let mut seen = HashSet::with_capacity(count);
    (0u64..).filter_map(prefix).filter(|p| seen.insert(*p)).take(count).collect()
}

/// Registries' blocks (upper 16 bits).
const BLOCKS: [u32; 8] = [0x2001, 0x2400, 0x2401, 0x2600, 0x2603, 0x2804, 0x2a00, 0x2a0e];

fn prefix(n: u64) -> Option<Ipv6Prefix> {
    let mut pick = mix64(n) % 1000;
    let len = MIX.iter().find(|(_, share)| {
        let here = pick < *share;
        pick = pick.saturating_sub(*share);
        here
    });
    let len = len.map_or(48, |(len, _)| *len);
    let random = mix64(!n);
    // The product of two dice: few networks have many prefixes, many have few.
    let (a, b) = (random as u32 & 0xff, random as u32 >> 8 & 0xff);
    let network = if len > 32 { a * b } else { random as u32 & 0xffff };
    let upper = BLOCKS[(random >> 16) as usize % BLOCKS.len()] << 16 | network;
    let lower = u128::from(mix64(random)) << 32;
    let is_free = upper != 0x2001_0db8;
    is_free.then(|| Prefix::new(u128::from(upper) << 96 | lower, len).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_different_and_global() {
        let all = internet6(10_000);
        let slash_48 = all.iter().filter(|p| p.len() == 48).count();
        assert!((4300..5000).contains(&slash_48), "{slash_48}");
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 10_000);
        assert!(all.iter().all(|p| p.addr() >> 125 == 1 && p.addr() >> 96 != 0x2001_0db8));
    }
}
