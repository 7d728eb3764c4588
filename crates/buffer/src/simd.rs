//! Sixteen packets at a time.
//!
//! A [`Kernel`] is written once, over [`Lanes`]: sixteen 32-bit words, one of each of sixteen packets.
//! [`run`] compiles it for the widest instructions that the processor has. Types of lanes exist only
//! inside of [`run`], so that no instruction runs that the processor does not know.

use std::ops::{Add, BitAnd, BitOr, BitXor, Sub};
use std::sync::atomic::{AtomicU8, Ordering};

mod pattern;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use pattern::Pattern;

/// Lanes in one value.
pub const LANES: usize = 16;

/// Which instructions kernels use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Level {
    /// No kernels: every packet on its own.
    PerPacket = 1,
    /// What every processor of the architecture has.
    Scalar,
    /// AVX2.
    Avx2,
    /// AVX-512 (F, BW, DQ and VL).
    Avx512,
}

impl Level {
    /// All of them, the least first.
    pub const ALL: [Level; 4] = [Level::PerPacket, Level::Scalar, Level::Avx2, Level::Avx512];

    /// Its name, as `THALWEG_SIMD` takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Level::PerPacket => "per-packet",
            Level::Scalar => "scalar",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }

    /// The best that this processor has.
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

/// 0: not asked yet.
static LEVEL: AtomicU8 = AtomicU8::new(0);

/// The level in use: the best there is, or a lower one named in the environment as `THALWEG_SIMD`.
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

/// Uses a level from now on, or the best there is if that is lower: for tests and measurements.
/// Holds for the whole process.
pub fn set_level(level: Level) {
    LEVEL.store(level.min(Level::best()) as u8, Ordering::Relaxed);
}

/// Sixteen words. Arithmetic wraps; bit `i` of a mask belongs to lane `i`.
pub trait Lanes:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
{
    /// The same word in all lanes.
    fn splat(word: u32) -> Self;
    /// Words side by side in memory.
    fn load(from: &[u32; LANES]) -> Self;
    /// Words side by side in memory.
    fn store(self, to: &mut [u32; LANES]);
    /// Shifts each word left by `N` bits.
    #[must_use]
    fn shl<const N: u32>(self) -> Self;
    /// Shifts each word right by `N` bits, zeros coming in.
    #[must_use]
    fn shr<const N: u32>(self) -> Self;
    /// Lanes that are equal.
    fn eq(self, other: Self) -> u16;
    /// Lanes that are less than `other`'s, as unsigned numbers.
    fn lt(self, other: Self) -> u16;
    /// Lanes of `other` where the mask has a bit, of `self` elsewhere.
    #[must_use]
    fn replace(self, mask: u16, other: Self) -> Self;
    /// The first 20 bytes at each address, as five little-endian words.
    ///
    /// # Safety
    /// 20 bytes may be read at each.
    unsafe fn gather5(at: &[*const u8; LANES]) -> [Self; 5];
}

/// Something to be done for many packets, with whatever lanes the processor has.
pub trait Kernel {
    /// What comes of it.
    type Out;
    /// Does it. To be marked `#[inline(always)]`, as must be all that it hands lanes to: only then is
    /// it compiled for the lanes' level. So keep lanes out of closures and of functions that take
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
