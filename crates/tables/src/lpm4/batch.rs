//! Batched lookup of many addresses, so that their memory accesses overlap.
//!
//! Stage by stage, so that no load waits for another address's: the words of the first level,
//! fetched some chunks ahead; then the groups if any word refers to one; then the short routes if
//! any word has no route. With random destinations over a million routes this takes 8 to 10 clocks
//! an address where single lookups take 30.
//!
//! Two kernels can look up a chunk. Gathers need fewer instructions, so that more misses are in
//! flight at a time. Clocks an address, Zen 5, a million routes:
//!
//! | kernel | the same 64 destinations | random routed ones | random ones |
//! | --- | ---: | ---: | ---: |
//! | portable | 2.2 | 8.2 | 9.7 |
//! | AVX2 | 1.5 | 7.4 | 8.0 |
//! | AVX-512 (not kept) | 2.2 | 7.5 | 8.9 |

use super::leaf::Leaf;
use super::table::{IS_GROUP, Table};
use crate::prefetch::for_read;

/// Addresses whose loads are in flight together.
const BATCH: usize = 16;
/// Number of chunks that the first level is fetched ahead: 2 take 11 clocks a random lookup, 4 take
/// 8.7, 6 take 8.2, 12 take 7.6 and crowd a small L1.
const AHEAD: usize = 6;

/// Implementation of a chunk's lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kernel {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Kernel {
    /// Returns the kernels that this processor supports, the best last. `groups`: the table's
    /// limit.
    pub(super) fn available(groups: u32) -> Vec<Kernel> {
        // Gathers take signed indices: no word may lie beyond 2^31.
        #[cfg(target_arch = "x86_64")]
        if groups <= 1 << 23 && is_x86_feature_detected!("avx2") {
            return vec![Kernel::Portable, Kernel::Avx2];
        }
        let _ = groups;
        vec![Kernel::Portable]
    }

    /// Returns the best of them.
    pub(super) fn best(groups: u32) -> Kernel {
        Kernel::available(groups).pop().unwrap_or(Kernel::Portable)
    }
}

/// Looks up addresses; the shorter slice limits the number. The kernel must be an available one.
#[inline]
pub(super) fn lookup(table: &Table, kernel: Kernel, addrs: &[u32], leaves: &mut [u32]) {
    match kernel {
        Kernel::Portable => drive(table, addrs, leaves, |chunk, out| portable(table, chunk, out)),
        // SAFETY: the kernel is available: the processor has the instructions.
        #[cfg(target_arch = "x86_64")]
        Kernel::Avx2 => unsafe { x86::avx2(table, addrs, leaves) },
    }
}

#[inline(always)]
fn drive(
    table: &Table,
    addrs: &[u32],
    leaves: &mut [u32],
    chunk: impl Fn(&[u32; BATCH], &mut [u32; BATCH]),
) {
    let count = addrs.len().min(leaves.len());
    let (addrs, leaves) = (&addrs[..count], &mut leaves[..count]);
    let fetch = |addrs: &[u32]| addrs.iter().for_each(|&addr| for_read(table.first(addr)));
    fetch(&addrs[..count.min(AHEAD * BATCH)]);
    let (ins, rest_in) = addrs.as_chunks::<BATCH>();
    let (outs, rest_out) = leaves.as_chunks_mut::<BATCH>();
    for (n, (addrs, leaves)) in ins.iter().zip(outs).enumerate() {
        match ins.get(n + AHEAD) {
            // `fetch` is not used: with a known length, this is unrolled.
            Some(ahead) => ahead.iter().for_each(|&addr| for_read(table.first(addr))),
            None if n + AHEAD == ins.len() => fetch(rest_in),
            None => {}
        }
        chunk(addrs, leaves);
    }
    for (&addr, leaf) in rest_in.iter().zip(rest_out) {
        *leaf = table.lookup(addr);
    }
}

#[inline(always)]
fn portable(table: &Table, addrs: &[u32; BATCH], leaves: &mut [u32; BATCH]) {
    let words = addrs.map(|addr| table.first(addr).load());
    *leaves = words;
    if words.iter().fold(0, |all, word| all | word) & IS_GROUP != 0 {
        for (&addr, word) in addrs.iter().zip(&mut *leaves) {
            if *word & IS_GROUP != 0 {
                *word = table.second(*word, addr).load();
            }
        }
    }
    let mut missed = false;
    for leaf in &mut *leaves {
        *leaf &= Leaf::MAX;
        missed |= *leaf == 0;
    }
    if missed {
        // Branch-free: which random destinations miss is unpredictable.
        for (&addr, leaf) in addrs.iter().zip(leaves) {
            let short = table.short_of(addr).load() & Leaf::MAX;
            *leaf = if *leaf == 0 { short } else { *leaf };
        }
    }
}

/// The writer stores whole aligned words, and x86 loads each element of a gather as such a word, in
/// order with the loads of other instructions: a gather reads what an acquiring load of each word
/// would have read.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{BATCH, Table, drive};
    use crate::lpm4::leaf::Leaf;
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx2")]
    pub(super) fn avx2(table: &Table, addrs: &[u32], leaves: &mut [u32]) {
        let (first, groups, short) = table.bases();
        drive(table, addrs, leaves, |addrs: &[u32; BATCH], leaves: &mut [u32; BATCH]| {
            for (addrs, leaves) in addrs.chunks_exact(8).zip(leaves.chunks_exact_mut(8)) {
                // SAFETY: 8 words are one vector. 24 bits index the first level, 8 bits the short
                // routes; the first level names groups of the table only, whose words have indices
                // below 2^31 (`Kernel::available`).
                unsafe {
                    let addr = _mm256_loadu_si256(addrs.as_ptr().cast());
                    let mut word = _mm256_i32gather_epi32::<4>(first, _mm256_srli_epi32::<8>(addr));
                    if _mm256_movemask_ps(_mm256_castsi256_ps(word)) != 0 {
                        let low = _mm256_and_si256(addr, _mm256_set1_epi32(0xff));
                        let at = _mm256_or_si256(_mm256_slli_epi32::<8>(word), low);
                        // The sign bit, which marks a group, is the bit that selects.
                        word = _mm256_mask_i32gather_epi32::<4>(word, groups, at, word);
                    }
                    let missed = _mm256_cmpeq_epi32(word, _mm256_setzero_si256());
                    if _mm256_testz_si256(missed, missed) == 0 {
                        let at = _mm256_srli_epi32::<24>(addr);
                        word = _mm256_mask_i32gather_epi32::<4>(word, short, at, missed);
                    }
                    let leaf = _mm256_and_si256(word, _mm256_set1_epi32(Leaf::MAX as i32));
                    _mm256_storeu_si256(leaves.as_mut_ptr().cast(), leaf);
                }
            }
        });
    }
}
