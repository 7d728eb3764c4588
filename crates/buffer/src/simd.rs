//! SIMD over sixteen packets.
//!
//! A [`Kernel`] is written once, over [`Lanes`]: sixteen 32-bit words, one of each of sixteen
//! packets. [`run`] compiles it for the widest instructions that the processor supports. Lane types
//! exist only inside [`run`], so that no unsupported instruction runs.

use std::ops::{Add, BitAnd, BitOr, BitXor, Mul, Sub};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

mod pattern;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use pattern::Pattern;

/// Number of lanes.
pub const LANES: usize = 16;

/// Instruction set used by kernels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Level {
    /// No kernels: every packet is processed individually.
    PerPacket = 1,
    /// The baseline of the architecture.
    Scalar,
    /// AVX2.
    Avx2,
    /// AVX-512 (F, BW, DQ and VL).
    Avx512,
}

impl Level {
    /// All levels, the lowest first.
    pub const ALL: [Level; 4] = [Level::PerPacket, Level::Scalar, Level::Avx2, Level::Avx512];

    /// Returns its name, as in `THALWEG_SIMD`.
    pub const fn name(self) -> &'static str {
        match self {
            Level::PerPacket => "per-packet",
            Level::Scalar => "scalar",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }

    /// Returns the best level of this processor.
    pub fn best() -> Level {
        #[cfg(target_arch = "x86_64")]
        {
            if x86::has_avx512() {
                return Level::Avx512;
            }
            if is_x86_feature_detected!("avx2") {
                return Level::Avx2;
            }
        }
        Level::Scalar
    }
}

/// 0: not determined yet.
static LEVEL: AtomicU8 = AtomicU8::new(0);

/// Returns the level in use: the best, or a lower one named in the environment as `THALWEG_SIMD`.
#[inline]
pub fn level() -> Level {
    match LEVEL.load(Ordering::Relaxed) {
        1 => Level::PerPacket,
        2 => Level::Scalar,
        3 => Level::Avx2,
        4 => Level::Avx512,
        _ => choose(),
    }
}

#[cold]
fn choose() -> Level {
    let asked = std::env::var("THALWEG_SIMD").ok();
    let named = Level::ALL.into_iter().find(|l| asked.as_deref() == Some(l.name()));
    let level = named.map_or(Level::best(), |l| l.min(Level::best()));
    LEVEL.store(level as u8, Ordering::Relaxed);
    level
}

/// Sets the level, limited to the best: for tests and benchmarks. Applies to the whole process.
pub fn set_level(level: Level) {
    LEVEL.store(level.min(Level::best()) as u8, Ordering::Relaxed);
}

/// Sixteen words. Arithmetic wraps; bit `i` of a mask is that of lane `i`.
pub trait Lanes:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
{
    /// True if lanes are in registers: otherwise operations on them are loops.
    const WIDE: bool;
    /// Returns the same word in all lanes.
    fn splat(word: u32) -> Self;
    /// Loads consecutive words.
    fn load(from: &[u32; LANES]) -> Self;
    /// Stores consecutive words.
    fn store(self, to: &mut [u32; LANES]);
    /// Shifts each word left by `N` bits.
    #[must_use]
    fn shl<const N: u32>(self) -> Self;
    /// Shifts each word right by `N` bits, filling with zeros.
    #[must_use]
    fn shr<const N: u32>(self) -> Self;
    /// Returns a mask of the lanes that are equal.
    fn eq(self, other: Self) -> u16;
    /// Returns a mask of the lanes that are less than `other`'s, unsigned.
    fn lt(self, other: Self) -> u16;
    /// Returns lanes of `other` where the mask has a bit, of `self` elsewhere.
    #[must_use]
    fn replace(self, mask: u16, other: Self) -> Self;
    /// Returns the smaller word of each lane, unsigned.
    #[must_use]
    fn min(self, other: Self) -> Self;
    /// Loads the first 16 bytes at each address, and the four that are `FIFTH` bytes behind it, as
    /// five little-endian words.
    ///
    /// # Safety
    /// 16 bytes, and `FIFTH` and four more, may be read at each.
    unsafe fn gather5<const FIFTH: usize>(at: &[*const u8; LANES]) -> [Self; 5];
    /// Loads the first 24 bytes at each address, as six little-endian words.
    ///
    /// # Safety
    /// 24 bytes may be read at each.
    unsafe fn gather6(at: impl Fn(usize) -> *const u8) -> [Self; 6];
    /// Loads a word at each of these positions, counted in words from `first`.
    ///
    /// # Safety
    /// The positions are below 2^31, and aligned words that other threads change atomically only.
    unsafe fn gather(first: *const u32, at: Self) -> Self;
}

/// Entry of a table that takes a cache line: eight words of 64 bits.
pub type Line = [AtomicU64; 8];

/// Largest number of words in reach of [`Lanes::gather`].
const REACH: usize = 1 << 31;

/// Loads words of a table; a position beyond its end stands for the last. Each is loaded as by
/// [`Ordering::Acquire`].
#[inline(always)]
pub fn words_of<V: Lanes>(table: &[AtomicU32], at: V) -> V {
    let Some(last) = table.len().min(REACH).checked_sub(1) else { return V::splat(0) };
    // SAFETY: no position is beyond the last word, which is in reach.
    unsafe { V::gather(table.as_ptr().cast(), at.min(V::splat(last as u32))) }
}

/// Loads a half of word `WORD` of entries of a table: the lower 32 bits, or the upper ones. A
/// position beyond the end stands for the last. Each is loaded as by [`Ordering::Acquire`].
#[inline(always)]
pub fn halves_of<V: Lanes, const WORD: usize, const UPPER: bool>(table: &[Line], at: V) -> V {
    const { assert!(WORD < 8) };
    let Some(last) = table.len().min(REACH / 16).checked_sub(1) else { return V::splat(0) };
    let half = 2 * WORD + usize::from(UPPER != cfg!(target_endian = "big"));
    let at = at.min(V::splat(last as u32)).shl::<4>();
    // SAFETY: no position is beyond the last entry, which is in reach, nor is the half beyond that
    // entry.
    unsafe { V::gather(table.as_ptr().cast::<u32>().add(half), at) }
}

/// A computation over many packets, generic over the lanes.
pub trait Kernel {
    /// Result.
    type Out;
    /// Runs it. Mark it `#[inline(always)]`, and everything it passes lanes to: only then is it
    /// compiled for the lanes' level. Keep lanes out of closures and of functions that take
    /// closures, such as `array::map`.
    fn run<V: Lanes>(self) -> Self::Out;
}

/// Runs a kernel on the level in use.
#[inline]
pub fn run<K: Kernel>(kernel: K) -> K::Out {
    match level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is never above the best that this processor has.
        Level::Avx512 => unsafe { x86::run_avx512(kernel) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx2 => unsafe { x86::run_avx2(kernel) },
        _ => kernel.run::<scalar::Words>(),
    }
}

#[cfg(test)]
mod tests;
