//! Lanes in one register of AVX-512, or in two of AVX2.
//!
//! Values of these types come to be in [`run_avx512`] and [`run_avx2`] only, which are entered on
//! processors that have the instructions: that is what makes the intrinsics below sound.

use super::{Kernel, LANES, Lanes};
use std::arch::x86_64::*;
use std::ops::{Add, BitAnd, BitOr, BitXor, Sub};

pub(super) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("movbe")
}

/// # Safety
/// The processor has what the attribute names.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi2,movbe")]
pub(super) unsafe fn run_avx512<K: Kernel>(kernel: K) -> K::Out {
    kernel.run::<Zmm>()
}

/// # Safety
/// The processor has what the attribute names.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn run_avx2<K: Kernel>(kernel: K) -> K::Out {
    kernel.run::<Ymm>()
}

/// One 512-bit register.
#[derive(Clone, Copy)]
pub(super) struct Zmm(__m512i);

/// Two 256-bit registers: lanes 0 to 7, and 8 to 15.
#[derive(Clone, Copy)]
pub(super) struct Ymm(__m256i, __m256i);

/// Implements an operator by one intrinsic for each register.
macro_rules! operator {
    ($trait:ident, $method:ident, $zmm:ident, $ymm:ident) => {
        impl $trait for Zmm {
            type Output = Zmm;
            #[inline(always)]
            fn $method(self, other: Zmm) -> Zmm {
                // SAFETY: a value of this type exists, so the processor has AVX-512.
                Zmm(unsafe { $zmm(self.0, other.0) })
            }
        }
        impl $trait for Ymm {
            type Output = Ymm;
            #[inline(always)]
            fn $method(self, other: Ymm) -> Ymm {
                // SAFETY: a value of this type exists, so the processor has AVX2.
                unsafe { Ymm($ymm(self.0, other.0), $ymm(self.1, other.1)) }
            }
        }
    };
}

operator!(Add, add, _mm512_add_epi32, _mm256_add_epi32);
operator!(Sub, sub, _mm512_sub_epi32, _mm256_sub_epi32);
operator!(BitAnd, bitand, _mm512_and_si512, _mm256_and_si256);
operator!(BitOr, bitor, _mm512_or_si512, _mm256_or_si256);
operator!(BitXor, bitxor, _mm512_xor_si512, _mm256_xor_si256);

impl Lanes for Zmm {
    #[inline(always)]
    fn splat(word: u32) -> Zmm {
        // SAFETY: this type is named in `run_avx512` only.
        Zmm(unsafe { _mm512_set1_epi32(word as i32) })
    }
    #[inline(always)]
    fn load(from: &[u32; LANES]) -> Zmm {
        // SAFETY: as above; 64 bytes are there.
        Zmm(unsafe { _mm512_loadu_si512(from.as_ptr().cast()) })
    }
    #[inline(always)]
    fn store(self, to: &mut [u32; LANES]) {
        // SAFETY: as above; 64 bytes are there.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), self.0) };
    }
    #[inline(always)]
    fn shl<const N: u32>(self) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_slli_epi32::<N>(self.0) })
    }
    #[inline(always)]
    fn shr<const N: u32>(self) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_srli_epi32::<N>(self.0) })
    }
    #[inline(always)]
    fn eq(self, other: Zmm) -> u16 {
        // SAFETY: as above.
        unsafe { _mm512_cmpeq_epi32_mask(self.0, other.0) }
    }
    #[inline(always)]
    fn lt(self, other: Zmm) -> u16 {
        // SAFETY: as above.
        unsafe { _mm512_cmplt_epu32_mask(self.0, other.0) }
    }
    #[inline(always)]
    fn replace(self, mask: u16, other: Zmm) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_mask_mov_epi32(self.0, mask, other.0) })
    }
    #[inline(always)]
    unsafe fn gather5(at: &[*const u8; LANES]) -> [Zmm; 5] {
        // SAFETY: as above; by contract 20 bytes are there. Register k holds packets k, 4 + k, 8 + k
        // and 12 + k, so that turning its 128-bit lanes brings the packets into order.
        unsafe {
            let four = |k: usize| {
                let z = _mm512_castsi128_si512(load16(at[k]));
                let z = _mm512_inserti32x4::<1>(z, load16(at[4 + k]));
                let z = _mm512_inserti32x4::<2>(z, load16(at[8 + k]));
                _mm512_inserti32x4::<3>(z, load16(at[12 + k]))
            };
            let (a, b, c, d) = (four(0), four(1), four(2), four(3));
            let (ab, cd) = (_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d));
            let (ab_high, cd_high) = (_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d));
            let last = |k: usize| four_words(at, 4 * k);
            let z = _mm512_castsi128_si512(last(0));
            let z = _mm512_inserti32x4::<1>(z, last(1));
            let z = _mm512_inserti32x4::<2>(z, last(2));
            let fifth = _mm512_inserti32x4::<3>(z, last(3));
            [
                Zmm(_mm512_unpacklo_epi64(ab, cd)),
                Zmm(_mm512_unpackhi_epi64(ab, cd)),
                Zmm(_mm512_unpacklo_epi64(ab_high, cd_high)),
                Zmm(_mm512_unpackhi_epi64(ab_high, cd_high)),
                Zmm(fifth),
            ]
        }
    }
}

impl Lanes for Ymm {
    #[inline(always)]
    fn splat(word: u32) -> Ymm {
        // SAFETY: this type is named in `run_avx2` only.
        let v = unsafe { _mm256_set1_epi32(word as i32) };
        Ymm(v, v)
    }
    #[inline(always)]
    fn load(from: &[u32; LANES]) -> Ymm {
        let at = from.as_ptr().cast::<__m256i>();
        // SAFETY: as above; 64 bytes are there.
        unsafe { Ymm(_mm256_loadu_si256(at), _mm256_loadu_si256(at.add(1))) }
    }
    #[inline(always)]
    fn store(self, to: &mut [u32; LANES]) {
        let at = to.as_mut_ptr().cast::<__m256i>();
        // SAFETY: as above; 64 bytes are there.
        unsafe {
            _mm256_storeu_si256(at, self.0);
            _mm256_storeu_si256(at.add(1), self.1);
        }
    }
    #[inline(always)]
    fn shl<const N: u32>(self) -> Ymm {
        let by = N as i32;
        // SAFETY: as above. The count is a constant once this is compiled.
        unsafe {
            let by = _mm_cvtsi32_si128(by);
            Ymm(_mm256_sll_epi32(self.0, by), _mm256_sll_epi32(self.1, by))
        }
    }
    #[inline(always)]
    fn shr<const N: u32>(self) -> Ymm {
        let by = N as i32;
        // SAFETY: as above.
        unsafe {
            let by = _mm_cvtsi32_si128(by);
            Ymm(_mm256_srl_epi32(self.0, by), _mm256_srl_epi32(self.1, by))
        }
    }
    #[inline(always)]
    fn eq(self, other: Ymm) -> u16 {
        // SAFETY: as above.
        unsafe { bits(_mm256_cmpeq_epi32(self.0, other.0), _mm256_cmpeq_epi32(self.1, other.1)) }
    }
    #[inline(always)]
    fn lt(self, other: Ymm) -> u16 {
        // SAFETY: as above. There is a comparison of signed numbers only: turn the top bits over.
        unsafe {
            let top = _mm256_set1_epi32(i32::MIN);
            let less =
                |a, b| _mm256_cmpgt_epi32(_mm256_xor_si256(b, top), _mm256_xor_si256(a, top));
            bits(less(self.0, other.0), less(self.1, other.1))
        }
    }
    #[inline(always)]
    fn replace(self, mask: u16, other: Ymm) -> Ymm {
        // SAFETY: as above.
        unsafe {
            let bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            let spread = |mask: u16| {
                let all = _mm256_set1_epi32(i32::from(mask));
                _mm256_cmpeq_epi32(_mm256_and_si256(all, bit), bit)
            };
            Ymm(
                _mm256_blendv_epi8(self.0, other.0, spread(mask)),
                _mm256_blendv_epi8(self.1, other.1, spread(mask >> 8)),
            )
        }
    }
    #[inline(always)]
    unsafe fn gather5(at: &[*const u8; LANES]) -> [Ymm; 5] {
        // SAFETY: as above; by contract 20 bytes are there.
        unsafe {
            let (low, high) = (gather5_half(at, 0), gather5_half(at, 8));
            std::array::from_fn(|w| Ymm(low[w], high[w]))
        }
    }
}

/// Five words of the eight packets from `from` on.
///
/// # Safety
/// The processor has AVX2, and 20 bytes are at each address.
#[inline(always)]
unsafe fn gather5_half(at: &[*const u8; LANES], from: usize) -> [__m256i; 5] {
    // SAFETY: by contract.
    unsafe {
        let two = |k: usize| {
            let y = _mm256_castsi128_si256(load16(at[from + k]));
            _mm256_inserti128_si256::<1>(y, load16(at[from + 4 + k]))
        };
        let (a, b, c, d) = (two(0), two(1), two(2), two(3));
        let (ab, cd) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
        let (ab_high, cd_high) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
        let fifth = _mm256_castsi128_si256(four_words(at, from));
        [
            _mm256_unpacklo_epi64(ab, cd),
            _mm256_unpackhi_epi64(ab, cd),
            _mm256_unpacklo_epi64(ab_high, cd_high),
            _mm256_unpackhi_epi64(ab_high, cd_high),
            _mm256_inserti128_si256::<1>(fifth, four_words(at, from + 4)),
        ]
    }
}

/// # Safety
/// 16 bytes are at the address.
#[inline(always)]
unsafe fn load16(at: *const u8) -> __m128i {
    // SAFETY: by contract.
    unsafe { _mm_loadu_si128(at.cast()) }
}

/// The fifth words of four packets from `from` on.
///
/// # Safety
/// The processor has SSE 4.1, and 20 bytes are at each address.
#[inline(always)]
unsafe fn four_words(at: &[*const u8; LANES], from: usize) -> __m128i {
    // SAFETY: by contract.
    unsafe {
        let word = |i: usize| at[from + i].cast::<i32>().add(4).read_unaligned();
        let v = _mm_cvtsi32_si128(word(0));
        let v = _mm_insert_epi32::<1>(v, word(1));
        let v = _mm_insert_epi32::<2>(v, word(2));
        _mm_insert_epi32::<3>(v, word(3))
    }
}

/// The top bits of sixteen lanes.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn bits(low: __m256i, high: __m256i) -> u16 {
    // SAFETY: by contract.
    unsafe {
        let of = |v| _mm256_movemask_ps(_mm256_castsi256_ps(v)) as u16;
        of(low) | of(high) << 8
    }
}
