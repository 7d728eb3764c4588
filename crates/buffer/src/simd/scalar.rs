//! Lanes for any processor, and the reference for the others.

use super::{LANES, Lanes};
use std::ops::{Add, BitAnd, BitOr, BitXor, Mul, Sub};
use std::sync::atomic::{AtomicU32, Ordering};

/// Sixteen words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Words(pub(super) [u32; LANES]);

impl Words {
    #[inline(always)]
    fn each(self, f: impl Fn(u32) -> u32) -> Words {
        Words(self.0.map(f))
    }
    #[inline(always)]
    fn both(self, other: Words, f: impl Fn(u32, u32) -> u32) -> Words {
        Words(std::array::from_fn(|i| f(self.0[i], other.0[i])))
    }
    #[inline(always)]
    fn mask(self, other: Words, f: impl Fn(u32, u32) -> bool) -> u16 {
        (0..LANES).fold(0, |mask, i| mask | u16::from(f(self.0[i], other.0[i])) << i)
    }
}

impl Add for Words {
    type Output = Words;
    #[inline(always)]
    fn add(self, other: Words) -> Words {
        self.both(other, u32::wrapping_add)
    }
}
impl Sub for Words {
    type Output = Words;
    #[inline(always)]
    fn sub(self, other: Words) -> Words {
        self.both(other, u32::wrapping_sub)
    }
}
impl Mul for Words {
    type Output = Words;
    #[inline(always)]
    fn mul(self, other: Words) -> Words {
        self.both(other, u32::wrapping_mul)
    }
}
impl BitAnd for Words {
    type Output = Words;
    #[inline(always)]
    fn bitand(self, other: Words) -> Words {
        self.both(other, |a, b| a & b)
    }
}
impl BitOr for Words {
    type Output = Words;
    #[inline(always)]
    fn bitor(self, other: Words) -> Words {
        self.both(other, |a, b| a | b)
    }
}
impl BitXor for Words {
    type Output = Words;
    #[inline(always)]
    fn bitxor(self, other: Words) -> Words {
        self.both(other, |a, b| a ^ b)
    }
}

impl Lanes for Words {
    const WIDE: bool = false;
    #[inline(always)]
    fn splat(word: u32) -> Words {
        Words([word; LANES])
    }
    #[inline(always)]
    fn load(from: &[u32; LANES]) -> Words {
        Words(*from)
    }
    #[inline(always)]
    fn store(self, to: &mut [u32; LANES]) {
        *to = self.0;
    }
    #[inline(always)]
    fn shl<const N: u32>(self) -> Words {
        self.each(|w| w << N)
    }
    #[inline(always)]
    fn shr<const N: u32>(self) -> Words {
        self.each(|w| w >> N)
    }
    #[inline(always)]
    fn eq(self, other: Words) -> u16 {
        self.mask(other, |a, b| a == b)
    }
    #[inline(always)]
    fn lt(self, other: Words) -> u16 {
        self.mask(other, |a, b| a < b)
    }
    #[inline(always)]
    fn replace(self, mask: u16, other: Words) -> Words {
        Words(std::array::from_fn(|i| if mask >> i & 1 != 0 { other.0[i] } else { self.0[i] }))
    }
    #[inline(always)]
    fn min(self, other: Words) -> Words {
        self.both(other, u32::min)
    }
    #[inline(always)]
    unsafe fn gather6(at: impl Fn(usize) -> *const u8) -> [Words; 6] {
        let mut words = [Words([0; LANES]); 6];
        for i in 0..LANES {
            for (w, words) in words.iter_mut().enumerate() {
                // SAFETY: by contract.
                words.0[i] = u32::from_le(unsafe { at(i).cast::<u32>().add(w).read_unaligned() });
            }
        }
        words
    }
    #[inline(always)]
    unsafe fn gather(first: *const u32, at: Words) -> Words {
        // SAFETY: by contract.
        Words(at.0.map(|at| unsafe {
            AtomicU32::from_ptr(first.add(at as usize).cast_mut()).load(Ordering::Acquire)
        }))
    }
    #[inline(always)]
    unsafe fn gather5<const FIFTH: usize>(at: &[*const u8; LANES]) -> [Words; 5] {
        let mut words = [Words([0; LANES]); 5];
        for (i, at) in at.iter().enumerate() {
            for (off, words) in [0, 4, 8, 12, FIFTH].into_iter().zip(&mut words) {
                // SAFETY: by contract.
                words.0[i] = u32::from_le(unsafe { at.add(off).cast::<u32>().read_unaligned() });
            }
        }
        words
    }
}
